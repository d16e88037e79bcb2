"""Rounds, words, totals and the share of a first question follow from public numbers, by the committed fits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dp_accounting import GaussianDpEvent

from lab.fits.rounds_and_starts import EACH_WITHOUT_VECTORS as EACH
from lab.fits.rounds_and_starts import MORE_ROUNDS as ROUNDS
from lab.fits.rounds_and_starts import PAIRS, PLAIN, given_up
from lab.fits.rounds_and_starts import fitted_rounds as fitted
from lab.fits.rounds_and_starts import fitted_share as fitted_start
from lab.fits.settings import USUAL
from lab.fits.settings import fitted as fitted_settings
from lab.measuring import RESULTS
from securetm.accounting.calculator.persons import People
from securetm.accounting.composition import total
from securetm.accounting.spends import Spend
from securetm.cli.budget_profile import ProfileQuestion
from securetm.errors import BadSetting
from securetm.plans.forecast import setting_under, with_rounds
from securetm.plans.profiles import noise_in_sum, read_profile
from securetm.plans.recommend import plan_from_tables
from securetm.plans.rules import (
    LISTS,
    USUAL_START,
    WORDS_RULE,
    noise_of_one_round,
    noise_of_start,
    rounds_for,
    rounds_of_centres,
    rounds_rule,
    totals_for,
    totals_rule,
    words_for,
)
from securetm.stages import Unwatched

FROM_PUBLIC, FROM_PLAIN = (tuple(rounds_rule(plain=plain).value.values()) for plain in (False, True))
MOST_TOTALS = totals_rule(plain=False, after_pairs=False).value["most"]
RESULT = RESULTS / "reproduce" / "rounds-rule.json"


def plan(**training: Any) -> Any:
    return plan_from_tables({"profile": "dp-central", "model": {"name": "lda-vi"}, "training": training}, "a test")


def test_the_rule_is_what_the_committed_rows_give() -> None:
    result = json.loads(RESULT.read_text("utf-8"))
    assert fitted(result["rows"]) == (result["rounds_each"], result["most_rounds"]) == FROM_PUBLIC


def test_the_rule_of_plain_starts_is_what_its_committed_rows_give() -> None:
    """It loses less than the rule of public starts; after a question about pairs of words the two are not told apart."""
    result = json.loads((RESULT.parent / "rounds-without-vectors.json").read_text("utf-8"))
    rules = {one["start"]: (one["rounds_each"], one["most_rounds"]) for one in result["tables"]["Rules"]}
    rows = {start: [row for row in result["rows"] if row["start"] == start] for start in (PLAIN, PAIRS)}
    assert {start: fitted(rows[start], ROUNDS, EACH) for start in rows} == rules
    assert rules[PLAIN] == FROM_PLAIN
    lost = {
        start: [sum(given_up(row, *rule) for row in rows[start]) / len(rows[start]) for rule in (rules[start], FROM_PUBLIC)]
        for start in rows
    }
    assert lost[PLAIN][0] < lost[PLAIN][1] - 0.02
    assert lost[PAIRS][1] < lost[PAIRS][0] + 0.005


@pytest.mark.parametrize("start", ["public", "plain", "moments without vectors", "moments"])
def test_a_plain_start_is_asked_more_often_and_a_forecast_knows_it(start: str) -> None:
    """Where the plan leaves its start open, the rounds cannot follow from the vectors at the coordinator's place."""
    name, _, without = start.partition(" ")
    said = {"start": name, **({"vectors": "none"} if without else {})}
    stated = {"model": {"name": "lda-vi", "n_topics": 20}, "vocabulary": {"max_words": 1_000}, "privacy": {"epsilon": 2.0}}
    made = plan_from_tables({"profile": "dp-central", **stated, "training": {"documents": 9_000, **said}}, "a test")
    noise = noise_of_one_round(2.0, 1e-5) * (2**0.5 if name == "moments" else 1.0)
    assert made.training.rounds == rounds_for(9_000, 20, 1_000, noise, plain=name == "plain")
    assert with_rounds(setting_under("dp-central", 9_000, epsilon=2.0, start=start)).rounds == made.training.rounds
    unsaid = plan_from_tables({"profile": "dp-central", **stated, "training": {"documents": 9_000}}, "a test")
    for vectors in (True, False):
        assert with_rounds(setting_under("dp-central", 9_000, epsilon=2.0, vectors=vectors)).rounds == unsaid.training.rounds


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_noise_of_one_round_spends_the_epsilon(epsilon: float) -> None:
    noise = noise_of_one_round(epsilon, 1e-5)
    assert total([Spend(GaussianDpEvent(noise))], 1e-5).epsilon == pytest.approx(epsilon, rel=0.01)


def test_more_documents_are_asked_more_often() -> None:
    rounds = [rounds_for(documents, 20, 1_000, 1.0) for documents in (0, 1_000, 10_000, 10**6)]
    assert rounds == sorted(rounds)
    assert (rounds[0], rounds[-1]) == (1, FROM_PUBLIC[1])


def test_a_plan_that_states_its_documents_is_asked_by_the_rule_and_spends_its_budget() -> None:
    large, small, fixed = plan(documents=10**6), plan(documents=10), plan(documents=10, rounds=5)
    assert (large.training.rounds, small.training.rounds, fixed.training.rounds) == (FROM_PUBLIC[1], 1, 5)
    assert (large.privacy.epsilon, fixed.privacy.epsilon) == (8.0, 0.0)
    assert plan_from_tables(json.loads(json.dumps(large.tables())), "again") == large
    with pytest.raises(BadSetting, match="documents"):
        plan(documents=-1)


def test_the_calculator_suggests_what_a_run_would_ask() -> None:
    asked = ProfileQuestion("dp-central", 5, 3, 500, "lda-vi", people=People(documents=10**6)).question(Unwatched())
    assert asked.found["suggested"]["rounds"] == FROM_PUBLIC[1]
    assert any(f"asks {FROM_PUBLIC[1]} times for about 1,000,000 documents" in note for note in asked.notes)
    assert "suggested" not in ProfileQuestion("dp-central", 5, 3, 500, "prodlda").question(Unwatched()).found


def test_a_plan_that_states_its_parties_is_asked_by_the_noise_of_so_many() -> None:
    """Of noise by each party more parties make more; of shares of noise, less, until four of five must remain."""

    def asked(profile: str, parties: int) -> tuple[int, int]:
        tables = {"profile": profile, "training": {"documents": 5_000}, "federation": {"parties": parties}}
        found = plan_from_tables({**tables, "privacy": {"epsilon": 2.0}}, "a test")
        return found.training.rounds, found.vocabulary.max_words

    assert noise_in_sum(read_profile("dp-central"), 100) == 1.0  # one curator adds it, and each party that on words
    assert noise_in_sum(read_profile("dp-local"), 16) == 4.0
    assert noise_in_sum(read_profile("dp-distributed"), 5) == pytest.approx(2.5**0.5)
    assert noise_in_sum(read_profile("dp-distributed")) == noise_in_sum(read_profile("dp-distributed"), 4)
    assert asked("dp-local", 30) < asked("dp-local", 0) < asked("dp-central", 0)
    assert asked("dp-central", 30) == asked("dp-central", 0)


def test_a_plan_that_states_its_documents_lists_as_many_words_as_the_rule_says() -> None:
    def most(training: dict[str, int], **vocabulary: object) -> int:
        tables = {"profile": "dp-central", "model": {"name": "lda-vi"}, "training": training, "vocabulary": vocabulary}
        return plan_from_tables(tables, "a test").vocabulary.max_words

    assert most({}) == 2_000
    assert most({"documents": 100}) == LISTS[0]
    assert most({"documents": 10**6}) == LISTS[-1]
    assert most({"documents": 100}, max_words=700) == 700
    assert most({"documents": 100}, source="file", file="english") == LISTS[0]
    assert words_for(4_000, 0.6) > words_for(4_000, 3.7)


def test_the_rule_of_words_is_what_the_committed_rows_give_and_beats_every_constant() -> None:
    result = json.loads((RESULT.parent / "settings-rule.json").read_text("utf-8"))
    assert fitted_settings(result["rows"], "words") == (WORDS_RULE.value["at_one"], WORDS_RULE.value["power"])
    *constants, rule = result["tables"]["words"]
    assert rule["made_up"] < min(one["made_up"] for one in constants)
    assert rule["corpora"] <= min(one["corpora"] for one in constants)
    for setting in ("radius", "topics"):  # a constant is as good
        *constants, rule = result["tables"][setting]
        usual = next(one for one in constants if one["rule"] == f"always {USUAL[setting]:g}")
        assert usual["made_up"] < rule["made_up"] + 0.01


def test_totals_weigh_where_documents_are_few() -> None:
    """Never more than the most; not at all where it would be little; more after a plain start."""
    weights = [totals_for(documents, 20, 1_000, 3.73) for documents in (2_000, 10_000, 12_000, 14_000, 40_000)]
    assert weights[0] == MOST_TOTALS
    assert weights == sorted(weights, reverse=True)
    assert 0 < weights[2] < MOST_TOTALS
    assert weights[-1] == 0.0
    assert totals_for(14_000, 20, 1_000, 3.73, plain=True) > weights[3]


def test_the_share_of_a_first_question_is_what_the_committed_rows_give() -> None:
    result = json.loads((RESULT.parent / "start-rule.json").read_text("utf-8"))
    assert fitted_start(result["rows"]) == result["start_share"] == USUAL_START


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_answers_that_share_a_budget_spend_it_together(share: float) -> None:
    answers = [Spend(GaussianDpEvent(noise_of_start(3.0, 1e-5, part))) for part in (share, 1 - share)]
    assert total(answers, 1e-5).epsilon == pytest.approx(3.0, rel=0.01)


def test_centres_of_few_documents_are_asked_for_less_often() -> None:
    found = [rounds_of_centres(documents, 20, noise_of_one_round(1.0, 1e-6)) for documents in (500, 3_000, 20_000, 10**7)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (1, 8)
    assert rounds_of_centres(3_000, 20, noise_of_one_round(3.0, 1e-6)) > found[1]
