"""Every combination of answers: the chosen profile protects against all that was asked, and more fear never weakens it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, combinations, islice, product

import pytest

from securetm.contracts import Claim, Profile, Unit
from securetm.federation.soundness import check_floor, gaps_of_questions
from securetm.plans.agreement import agree
from securetm.plans.profile_choice import Answers, fitting, gaps_asked, threats_asked
from securetm.plans.profiles import claims_of, cohort_of, profile_names, read_profile
from securetm.plans.recommend import plan_from_tables
from securetm.reports.choosing import PlanNotes, plan_of
from securetm.reports.committed_costs import by_cost

LOOKS = ("coordinator", "party", "reader")
HIDE = ("organisation", "document", "total")
BREAKS = ("coordinator", "party")
PRIVATE = "the total is differentially private"
_profile = cache(read_profile)
_PLACES = {name: by_cost(read_profile(name)) for name in profile_names()}


def subsets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, n) for n in range(1, len(names) + 1))


def every_fear(parties: int, colluding: tuple[int, ...] = (0, 1, 2, 3), each: tuple[int, ...] = (0, 5)) -> Iterator[Answers]:
    """Every combination of fears. Sorting is as exploring, which one combination shows."""
    for purpose in ("explore", "sort", "publish"):
        yield Answers(("nobody",), parties, 100_000, purpose, 0)
    few = [number for number in colluding if number < parties]
    found = product(subsets(LOOKS), subsets(HIDE), (("nobody",), *subsets(BREAKS)), few, each, ("explore", "publish"))
    for looks, hide, breaks, helpers, per_person, purpose in found:
        yield Answers(looks, parties, 100_000, purpose, per_person, hide, breaks, helpers)


def chosen(answers: Answers) -> str | None:
    return fitting(answers, _PLACES.__getitem__)


@cache
def claims(name: str, parties: int) -> frozenset[Claim]:
    return claims_of(_profile(name), cohort_of(_profile(name), tuple(map(str, range(parties)))))


def holds(name: str, answers: Answers, what: str, against: str, helpers: int, unit: Unit | None = None) -> bool:
    made = claims(name, answers.parties)
    return any((c.what, c.against, c.unit) == (what, against, unit) and c.colluding >= helpers for c in made)


def protects(profile: Profile, answers: Answers) -> bool:
    """Written down once more, by the claims alone: what each answer asks for."""
    looks, hide, breaks, k = {*answers.looks, *answers.breaks} - {"nobody"}, answers.hide, answers.breaks, answers.colluding
    if answers.purpose == "publish" and looks:
        looks.add("reader")
    unit = Unit.PERSON if answers.per_person > 1 else Unit.DOCUMENT
    name, wanted = profile.name, []
    if "total" in hide:
        wanted += [profile.aggregation.opened_by == "parties", answers.purpose != "publish"]
        looks.add("coordinator")
    if "coordinator" in looks:
        honest = [] if "document" in hide and "coordinator" not in breaks and len(hide) == 1 else ["sees only sums"]
        lying = ["cannot speak for a party", "cannot show parties different cohorts"] if "coordinator" in breaks else []
        wanted += [holds(name, answers, what, "coordinator", k) for what in (*honest, *lying)]
        wanted += ["document" not in hide or holds(name, answers, PRIVATE, "coordinator", k, unit)]
    if "party" in looks and ("document" in hide or ("party" in breaks and "organisation" in hide)):
        wanted.append(holds(name, answers, PRIVATE, "party", max(k - 1, 0), unit))
    if "reader" in looks and "document" in hide:
        wanted.append(holds(name, answers, PRIVATE, "model reader", k, unit))
    plays_all = answers.parties == 1 and not looks  # one organisation, from which nobody has to be kept
    return all(wanted) and (plays_all or answers.parties >= profile.minimum_parties)


@pytest.mark.parametrize("parties", [3, 5])
def test_the_chosen_profile_protects_against_all_that_was_asked(parties: int) -> None:
    check_choice(every_fear(parties, (0, 2), (5,)))


@pytest.mark.slow
@pytest.mark.parametrize("parties", [1, 2, 3, 4, 5, 7])
def test_it_does_for_every_combination(parties: int) -> None:
    check_choice(every_fear(parties))


def check_choice(every: Iterator[Answers]) -> None:
    for answers in every:
        name = chosen(answers)
        assert name is None or protects(_profile(name), answers), answers
        cheaper = [other for other in _PLACES if name is None or _PLACES[other] < _PLACES[name]]
        alone = "organisation" in answers.hide and answers.parties - max(answers.colluding, "party" in answers.lookers) < 2
        assert alone or not any(protects(_profile(other), answers) for other in cheaper), answers


def more_fears(answers: Answers) -> Iterator[Answers]:
    """One fear more: somebody else looks, or for something else, or lies, or colludes, or persons have more documents."""
    for name, every in (("looks", LOOKS), ("hide", HIDE), ("breaks", BREAKS)):
        given = tuple(one for one in getattr(answers, name) if one != "nobody")
        yield from (replace(answers, **{name: (*given, one)}) for one in every if one not in given)
    if answers.colluding + 1 < answers.parties:
        yield replace(answers, colluding=answers.colluding + 1)
    yield replace(answers, purpose="publish")
    yield replace(answers, per_person=answers.per_person + 2)


def test_one_fear_more_never_yields_a_weaker_profile() -> None:
    check_more(islice(every_fear(5), 0, None, 41))  # 41 shares no factor with the numbers of answers


@pytest.mark.slow
@pytest.mark.parametrize("parties", [3, 5, 7])
def test_one_fear_more_never_does_for_any_combination(parties: int) -> None:
    check_more(every_fear(parties))


def check_more(every: Iterator[Answers]) -> None:
    for answers in every:
        if answers.looks == ("nobody",):
            continue
        before, threats = chosen(answers), threats_asked(answers)
        for other in more_fears(answers):
            after = chosen(other)
            assert after is None or (before is not None and not gaps_asked(after, answers, threats)), (answers, other)
            assert after is None or before is None or _PLACES[after] >= _PLACES[before]
            one, two = _profile(before or "open").budget, _profile(after or "fortress").budget
            assert one is None or two is None or two.epsilon <= one.epsilon


def test_every_profile_but_one_can_be_chosen() -> None:
    """`iftm` hides single words at a higher cost in quality than others hide documents at."""
    fears = chain.from_iterable(every_fear(parties, (0, 3), (5,)) for parties in (2, 3, 5))
    assert {chosen(answers) for answers in fears} - {None} == {*profile_names()} - {"iftm", "ckks"}


@pytest.mark.parametrize("name", sorted({*profile_names()} - {"iftm", "ckks"}))
@pytest.mark.parametrize("per_person", [0, 1, 6])
def test_the_plan_of_every_reachable_answer_is_sound(name: str, per_person: int) -> None:
    answers = Answers(("party",), 5, 100_000, "sort", per_person, ("document",))
    found, text = plan_of(answers, read_profile(name), PlanNotes())
    assert plan_from_tables(tomllib.loads(text), "plan.toml") == found.plan
    agreement = agree(found.plan)
    check_floor(agreement, 5)
    assert not gaps_of_questions(agreement, 5)
    assert agreement.budget is None or agreement.budget.unit is answers.unit
