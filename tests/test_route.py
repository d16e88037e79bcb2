"""The route of a question says of each step what the profile's own mechanisms say, for every profile that comes with us."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from securetm.aggregation.homomorphic.bfv import BfvSum
from securetm.answers.block_sums import PartialSum
from securetm.answers.route import ClippedAnswer, Route, compile_route
from securetm.contracts import INF, Answer, Block, Cohort, Domain, Mechanism, NoiseBy, RoundContext, Terms
from securetm.entropy import OperatingSystem
from securetm.errors import Mismatch
from securetm.federation.questions import Questions, asked_in_run
from securetm.mechanisms.gaussian_noise import CentralNoise, GaussianNoise
from securetm.plans.agreement import agree
from securetm.plans.profiles import cohort_of, profile_names, read_profile
from securetm.plans.schema import ModelChoice, Plan, VocabularyChoice

MEMBERS = tuple(f"party {n}" for n in range(7))
LIST = tuple(f"word{n}" for n in range(30))


def questions_of(profile: str, source: str, model: str) -> dict[str, Terms]:
    """The terms of every question that this profile lets a run ask about a list of 30 words."""
    chosen = Plan(
        profile=profile, vocabulary=VocabularyChoice(source, "list.txt" * (source == "file")), model=ModelChoice(model)
    )
    questions = Questions(agree(chosen, listed=LIST if source == "file" else None), LIST)
    return {name: questions.make(name, about).terms for name, about in asked_in_run(questions, MEMBERS[0])}


ROUTES = [
    (profile, model, name, terms)
    for profile in profile_names()
    for model in ("lda", "prodlda")
    for source in read_profile(profile).vocabularies
    for name, terms in questions_of(profile, source, model).items()
]


@pytest.mark.parametrize(("name", "model", "question", "asked"), ROUTES, ids=[f"{p}-{m}-{q}" for p, m, q, _ in ROUTES])
def test_a_route_says_what_its_mechanisms_say(name: str, model: str, question: str, asked: Terms) -> None:
    profile = read_profile(name)
    cohort = cohort_of(profile, MEMBERS)
    route = compile_route(asked, profile, cohort)
    terms, rows = asked, asked
    for mechanism, step in zip(profile.mechanisms, route.steps, strict=True):
        after = mechanism.admit(terms, cohort)
        assert (step.mechanism, step.before, step.after) == (mechanism, terms, after)
        assert step.event == mechanism.event(after, cohort)
        assert step.failure_probability == mechanism.failure_probability(after, cohort)
        terms, rows = after, mechanism.row_terms(rows)
    assert route.row_terms == rows
    assert route.radius == min([INF, *(step.mechanism.row_radius(step.before) for step in route.steps)])
    assert route.terms == profile.aggregation.admit(terms, cohort)
    assert profile.budget is None or any(step.event is not None for step in route.steps)


class Halves(Mechanism):
    """Asks for half of what it is asked for, and counts how often it is asked to admit anything."""

    admitted = 0

    def admit(self, terms: Terms, cohort: object) -> Terms:
        self.admitted += 1
        return replace(terms, reach=terms.reach / 2)

    def row_radius(self, terms: Terms) -> float:
        return terms.reach

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        return replace(answer, deviation=10 * answer.deviation + terms.reach)


class OpenersNoise(Halves):
    noise_by = NoiseBy.OPENER


def test_a_route_is_compiled_once_and_clips_to_the_smallest_radius() -> None:
    parts, cohort = (Halves(), Halves()), cohort_of(read_profile("open"), MEMBERS)
    asked = replace(ROUTES[0][3], reach=8.0)
    route = Route.through(asked, parts, cohort)
    context = RoundContext(cohort, OperatingSystem(), {})  # type: ignore[arg-type]
    assert isinstance(route.empty_answer(context), ClippedAnswer)
    assert (route.radius, route.terms.reach) == (4.0, 2.0)
    assert [part.admitted for part in parts] == [1, 1]


def test_the_opening_role_sees_the_sum_without_its_own_noise() -> None:
    cohort = cohort_of(read_profile("open"), MEMBERS)
    route = Route.through(replace(ROUTES[0][3], reach=8.0), (Halves(), OpenersNoise()), cohort)
    context = RoundContext(cohort, OperatingSystem(), {})  # type: ignore[arg-type]
    seen, opened = route.seen_and_opened(Answer({}), context)
    assert (seen.deviation, opened.deviation) == (2.0, 22.0)


@dataclass(frozen=True)
class Heard(Mechanism):
    """Writes its name to whatever passes."""

    name: str

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        return (*documents, self.name)

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        return replace(answer, survivors=(*answer.survivors, self.name))


def test_documents_go_through_the_mechanisms_in_order_and_answers_back_in_reverse() -> None:
    cohort = Cohort(b"", 0, MEMBERS)
    context = RoundContext(cohort, OperatingSystem(), None)  # type: ignore[arg-type]
    route = Route.through(Terms((Block("all", (2,)),)), (Heard("first"), Heard("second")), cohort)
    assert route.on_documents((), context) == ("first", "second")
    assert route.opened(Answer({}), context).survivors == ("second", "first")


def test_a_coordinate_that_overflowed_leaves_as_zero_and_counts_as_lost() -> None:
    cohort = Cohort(b"", 0, MEMBERS)
    context = RoundContext(cohort, OperatingSystem(), None)  # type: ignore[arg-type]
    answer = Route.through(Terms((Block("all", (2,)),)), (), cohort)._answer_of(PartialSum(np.array([np.inf, 1.0])), context, 1)
    assert (answer.vector["all"].tolist(), answer.lost) == ([0.0, 1.0], 1)


BOUNDED = Terms((Block("all", (2,)),), domain=Domain.INTEGER, l1=1.0, l2=1.0, linf=1.0, reach=1.0)


@pytest.mark.parametrize(
    ("asked", "changes", "refusal"),
    [
        (replace(BOUNDED, names_words=True), {"mechanisms": ()}, "which words occur"),
        (replace(BOUNDED, batch=10), {"mechanisms": ()}, "no amplification"),
        (BOUNDED, {"mechanisms": (CentralNoise(1.0),), "aggregation": BfvSum()}, "here the parties open it"),
    ],
)
def test_what_no_budget_covers_is_refused(asked: Terms, changes: dict[str, Any], refusal: str) -> None:
    profile = replace(read_profile("dp-central"), **changes)
    with pytest.raises(Mismatch, match=refusal):
        compile_route(asked, profile, cohort_of(profile, MEMBERS))


def test_noise_meets_the_terms_behind_its_own_step() -> None:
    """Before it, a vector is not noised, and no noise is added under such terms."""
    cohort = Cohort(b"", 0, MEMBERS)
    route = Route.through(BOUNDED, (GaussianNoise(1000.0),), cohort)
    context = RoundContext(cohort, OperatingSystem(), None)  # type: ignore[arg-type]
    answer = route._answer_of(PartialSum(np.zeros(2, np.int64)), context, 1)
    assert answer.vector["all"].any()


def test_what_the_opener_sees_lacks_the_noise_that_it_adds() -> None:
    cohort = Cohort(b"", 0, MEMBERS)
    context = RoundContext(cohort, OperatingSystem(), None)  # type: ignore[arg-type]
    route = Route.through(BOUNDED, (CentralNoise(1000.0),), cohort)
    seen, opened = route.seen_and_opened(Answer({"all": np.zeros(2, np.int64)}), context)
    assert seen.total is not None
    assert opened.total is not None
    assert (seen.total["all"].any(), opened.total["all"].any()) == (False, True)
