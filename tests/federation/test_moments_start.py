"""A training that begins at topics of moments: the question before it, what it costs, and what is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.composition import total
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Spend
from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Answer
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting
from securetm.federation.budget.prices import bill_of, calibrated
from securetm.federation.folder import begin
from securetm.federation.questions import PAIRS, TRAIN, Questions
from securetm.federation.simulation.simulation import execute
from securetm.federation.wire import wire
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from ..quick_part import quick
from .joined import Organisations, trained
from .played import Played
from .private import PUBLIC, paid, paying_parties, private_plan, settle

MODELS = ("lda", "lda-vi", "sentence-lda", "nmf", "fednmf")
START = {"training__start": "moments", "training__vectors": "none"}


def plan_of(folder: Path, profile: str = "dp-central", model: str = "lda-vi", **more: Any) -> Plan:
    settings = {"model": {"name": model, "n_topics": 3}, "training__rounds": 2, **START, **more}
    paid = {"privacy__epsilon": 3.0, "privacy__unit": "document"} if profile.startswith("dp-") else {}
    return private_plan(folder, profile, **{**paid, **settings})


@pytest.mark.parametrize("profile", quick(["dp-central", "dp-distributed"], "dp-distributed"))
def test_the_first_question_is_asked_once_and_all_of_it_is_in_the_ledger(
    profile: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    folder = begin(tmp_path / "run", plan_of(tmp_path, profile), five)
    result = execute(folder, Unwatched(), comparison=False)
    assert (result["rounds"], result["start"]) == (2, {"topics": "moments", "lacking": False})
    assert [one["about"]["question"] for one in paid(folder.ledger("north"))] == [PAIRS, TRAIN, TRAIN]
    assert all(2.7 < spent["epsilon"] <= 3.0 for spent in result["spent"])


@pytest.mark.parametrize("profile", ["masked"])
def test_without_a_budget_the_sum_is_exact(profile: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    result = execute(begin(tmp_path / "run", plan_of(tmp_path, profile), five), Unwatched(), comparison=False)
    assert result["start"]["topics"] == "moments"
    assert result["useful"]


@pytest.mark.parametrize("model", MODELS)
def test_every_table_of_topics_begins_at_those_of_the_sum(model: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    agreement = agree(plan_of(tmp_path, "masked", model))
    documents = Corpus.concat([corpus.project(PUBLIC) for corpus in five.values()], name="all")
    query = Questions(agreement, PUBLIC).make(PAIRS, {})
    summed = ClippedRowSum(query.terms, 1.0)
    query.answer(documents, summed, {}, np.random.default_rng(0))
    answer = Answer(summed.blocks())
    state, again = (agreement.start_after(PUBLIC, answer) for _ in range(2))
    found = agreement.topics_before.found(PUBLIC, answer, None).topics
    shown = agreement.model.topics(state)
    assert agreement.model.fits(state, len(PUBLIC))
    assert all(np.array_equal(state[name], again[name]) for name in state)
    assert [set(np.argsort(-topic)[:5]) for topic in shown] == [set(np.argsort(-topic)[:5]) for topic in found]


@pytest.mark.slow
def test_its_share_of_the_budget_is_billed_and_the_noise_of_the_rounds_makes_room_for_it(tmp_path: Path) -> None:
    epsilons = {}
    for share in (0.2, 0.8):
        agreement = calibrated(agree(plan_of(tmp_path, training__start_share=share)), 5)
        bill = bill_of(agreement, 5)
        assert bill.start is not None
        assert bill.start.event == GaussianDpEvent(agreement.noise_of_start)
        epsilons[share] = total([bill.start], ALONE * 1e-5).epsilon, agreement.plan.privacy.noise
        assert 2.9 < total(bill.spends(), ALONE * 1e-5).epsilon <= 3.0
    assert 1.2 < epsilons[0.2][0] < 1.5 < 2.5 < epsilons[0.8][0] < 3.0
    assert epsilons[0.2][1] < epsilons[0.8][1]


def test_a_party_answers_it_once_and_before_the_training(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "dp-local", privacy__noise=1.0)
    party = paying_parties(plan, five, tmp_path)["north"]
    assert party.ledger is not None
    played = Played(plan, tuple(five))
    settle(played, party)
    assert played.send(party, played.ask(PAIRS, {}, number=1)) == wire.Refusal("AskedTooOften")
    who = {"profile": plan.profile, "digest": party.agreement.profile.digest.hex(), "unit": "document"}
    party.ledger.record(party.run, Spend(GaussianDpEvent(100.0)), {**who, "question": TRAIN, "serial": 1})
    assert played.send(party, played.ask(PAIRS, {}, serial=2)) == wire.Refusal("OutOfTurn")
    party.close()


def test_it_is_refused_where_the_plan_does_not_ask_it(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "dp-local", privacy__noise=1.0)
    plain = plan_of(tmp_path, "dp-local", privacy__noise=1.0, training__start="plain", training__vectors="")
    party = paying_parties(plain, five, tmp_path)["north"]
    played, other = Played(plain, tuple(five)), Played(plan, tuple(five))
    settle(played, party)
    other.adopt(PUBLIC)
    assert played.send(party, replace(other.ask(PAIRS, {}))) == wire.Refusal("UnknownQuestion")
    party.close()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"model": "moments"}, "by itself"),
        ({"model": "prodlda"}, "no table of topics"),
        ({"profile": "bfv"}, "only the parties open sums"),
        ({"profile": "iftm", "model": "lda"}, "cannot be had under iftm"),
        ({"profile": "masked", "training__start_share": 0.5}, "no budget is spent"),
        ({"training__start_share": 0.99}, "must be from 0"),
        ({"training__start": "plain", "training__vectors": "", "training__start_share": 0.5}, "a question of its own"),
        ({"training__start": "public"}, "can do without vectors"),
    ],
)
def test_what_cannot_begin_there_is_refused(settings: Mapping[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=says):
        plan_of(tmp_path, **settings)


NETWORK = """
profile = "dp-distributed"
[model]
name = "lda-vi"
n_topics = 3
[vocabulary]
file = "{words}"
[origins]
vocabulary = "made up"
[training]
rounds = 2
held_out = 0.2
start = "moments"
vectors = "none"
[privacy]
unit = "document"
epsilon = 4.0
"""


@pytest.mark.slow
def test_organisations_of_their_own_answer_it_over_a_network(keys: Path, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(PUBLIC), "utf-8")
    plan = NETWORK.format(words=tmp_path / "words.txt")
    organisations = Organisations.of(keys, tmp_path / "all", plan)
    _, joined = trained(organisations, tmp_path / "coordinator")
    assert joined.problems == {}
    for report in joined.reports.values():
        assert report["answered"] == {PAIRS: 1, TRAIN: 2}
        assert 3.6 < report["spent"]["epsilon"] <= 4.0
