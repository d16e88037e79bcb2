"""What a ledger admits, what it says was spent, also by all runs together, and whom it refuses."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, NonPrivateDpEvent, PoissonSampledDpEvent

from securetm.accounting.composition import affordable, total
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.accounts import LOST
from securetm.accounting.ledger.all_runs import AllRuns, all_runs
from securetm.accounting.ledger.ledger import BudgetExhausted
from securetm.accounting.ledger.privacy_filter import ALONE, AMONG, FAILURE_SHARE, orders_for
from securetm.accounting.ledger.succession import continue_from
from securetm.accounting.renyi import epsilons_at, renyi_curve
from securetm.accounting.spends import Spend
from securetm.contracts import Budget, Unit
from securetm.errors import BadSetting, Failed, Mistake

BUDGET = Budget(Unit.DOCUMENT, 1.0, 1e-5)
WORDS = Spend(GaussianDpEvent(26.0), 1e-10)
STEP = Spend(GaussianDpEvent(36.0), 1e-12)
SAMPLED = Spend(PoissonSampledDpEvent(0.1, GaussianDpEvent(8.0)))
ABOUT: Mapping[str, str | int] = {"profile": "dp-local", "digest": "ab" * 32, "unit": "document", "question": "train"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alice.ledger"


def charge_until_refused(ledger: Ledger, run: str, spend: Spend) -> int:
    answers = 0
    try:
        while True:
            ledger.charge(run, spend, ABOUT)
            answers += 1
    except BudgetExhausted:
        return answers


# ---- one run


@pytest.mark.parametrize("spend", [SAMPLED, Spend(LaplaceDpEvent(60.0))])
def test_one_run_gets_exactly_what_composition_affords(path: Path, spend: Spend) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        fits = affordable((), spend, BUDGET.epsilon, ALONE * BUDGET.delta, 10**6)
        assert ledger.remaining("a run", spend) == fits
        some = min(fits // 2, 30)
        ledger.charge("a run", replace(spend, count=fits - some), ABOUT)
        assert ledger.remaining("a run", spend) == some
        assert charge_until_refused(ledger, "a run", spend) == some
        assert ledger.remaining("a run", spend) == 0
        assert ledger.spent().epsilon == pytest.approx(total([replace(spend, count=fits)], ALONE * BUDGET.delta).epsilon)
        assert ledger.spent().epsilon <= BUDGET.epsilon
        assert ledger.spent().delta == BUDGET.delta


LAPLACE = (Budget(Unit.DOCUMENT, 3.0, 0.0), [Spend(LaplaceDpEvent(noise)) for noise in (31.0, 47.0, 80.0)])
GAUSSIAN = (BUDGET, [WORDS, STEP, Spend(GaussianDpEvent(50.0))])


@pytest.mark.parametrize(("budget", "kinds"), [LAPLACE, pytest.param(*GAUSSIAN, marks=pytest.mark.slow)])
def test_kinds_that_take_turns_end_where_none_of_them_fits(path: Path, budget: Budget, kinds: list[Spend]) -> None:
    given: Counter[Spend] = Counter()
    chosen, left = random.Random(4), list(kinds)
    with Ledger.open(path, "alice", budget) as ledger:
        while left:
            kind = chosen.choice(left)
            try:
                ledger.charge("a run", kind, ABOUT)
                given[kind] += 1
            except BudgetExhausted:
                left.remove(kind)
    spends = [replace(kind, count=count) for kind, count in given.items()]
    assert len(spends) == 3
    assert total(spends, ALONE * budget.delta).epsilon <= budget.epsilon
    for kind in kinds:
        assert affordable(spends, kind, budget.epsilon, ALONE * budget.delta, 1) == 0


def test_most_charges_compose_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger.open(path, "alice", replace(BUDGET, epsilon=3.0)) as ledger:
        composed = 0
        compose = ledger._affordable

        def counted(*arguments: Any) -> int:
            nonlocal composed
            composed += 1
            return compose(*arguments)

        monkeypatch.setattr(ledger, "_affordable", counted)
        for _ in range(150):
            ledger.charge("a run", STEP, ABOUT)
            ledger.charge("a run", Spend(GaussianDpEvent(150.0)), ABOUT)
        assert 0 < composed < 25


def test_answers_that_do_not_fit_together_are_refused_together_and_nothing_is_entered(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        fits = ledger.remaining("a run", STEP)
        with pytest.raises(BudgetExhausted) as refused:
            ledger.charge("a run", replace(STEP, count=fits + 1), ABOUT)
        assert ledger.head[0] == 1
        assert refused.value.spent == 0
        assert refused.value.would > BUDGET.epsilon
        assert "document" in str(refused.value)
        ledger.charge("a run", replace(STEP, count=fits), ABOUT)


def test_an_exhausted_budget_is_refused_before_anything_is_entered(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        charge_until_refused(ledger, "a run", STEP)
        before = ledger.head
        with pytest.raises(BudgetExhausted):
            ledger.charge("a run", STEP, ABOUT)
        assert ledger.head == before
        ledger.record("a run", STEP, ABOUT)  # what was sent anyway counts, and shows
        assert ledger.spent().epsilon > BUDGET.epsilon


def test_without_noise_nothing_is_affordable(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        for run in ("a run", "another"):
            with pytest.raises(BudgetExhausted):
                ledger.charge(run, Spend(NonPrivateDpEvent()), ABOUT)
            ledger.charge("a run", STEP, ABOUT)


# ---- several runs


def by_filter(spends: list[Spend], budget: Budget) -> float:
    """The rule as its page states it, written once more."""
    orders = orders_for(budget)
    epsilons = epsilons_at(np.array(orders), renyi_curve(spends, orders), AMONG * budget.delta / len(orders))
    failure_probability = sum(spend.failure_probability * spend.count for spend in spends)
    assert failure_probability * (1 + math.exp(budget.epsilon)) <= FAILURE_SHARE * budget.delta
    return float(epsilons.min())


def test_a_second_run_is_admitted_by_the_filter_over_all_entries(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        for _ in range(30):
            ledger.charge("first", STEP, ABOUT)
        ledger.charge("second", SAMPLED, ABOUT)
        everything = [replace(STEP, count=30), SAMPLED]
        assert ledger.spent().epsilon == pytest.approx(by_filter(everything, BUDGET), rel=1e-9)
        more = charge_until_refused(ledger, "second", STEP)
        everything[0] = replace(STEP, count=30 + more)
        assert by_filter(everything, BUDGET) <= BUDGET.epsilon
        everything[0] = replace(STEP, count=31 + more)
        assert by_filter(everything, BUDGET) > BUDGET.epsilon
        with pytest.raises(BudgetExhausted):  # neither does the first run go on, nor a third begin
            ledger.charge("first", STEP, ABOUT)
        with pytest.raises(BudgetExhausted):
            ledger.charge("third", STEP, ABOUT)


@pytest.mark.parametrize("spend", [SAMPLED, Spend(LaplaceDpEvent(90.0))])
def test_the_filter_never_says_less_than_composition_of_the_same_answers(path: Path, spend: Spend) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        ledger.charge("first", replace(spend, count=20), ABOUT)
        ledger.charge("second", replace(spend, count=20), ABOUT)
        together = total([replace(spend, count=40)], BUDGET.delta).epsilon
        assert together < ledger.spent().epsilon < 3 * together


def test_pure_answers_add_up_across_runs_without_any_delta(path: Path) -> None:
    pure = Budget(Unit.DOCUMENT, 1.0, 0.0)
    with Ledger.open(path, "alice", pure) as ledger:
        for run in ("first", "second", "third", "fourth"):
            ledger.charge(run, Spend(LaplaceDpEvent(4.0)), ABOUT)
        assert ledger.spent().epsilon == 1.0
        with pytest.raises(BudgetExhausted):
            ledger.charge("fifth", Spend(LaplaceDpEvent(4000.0)), ABOUT)
        with pytest.raises(BudgetExhausted):
            ledger.charge("first", STEP, ABOUT)


def test_slack_beyond_its_share_admits_no_second_run(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        ledger.charge("first", Spend(GaussianDpEvent(100.0), failure_probability=0.1 * BUDGET.delta), ABOUT)
        with pytest.raises(BudgetExhausted):
            ledger.charge("second", Spend(GaussianDpEvent(100.0)), ABOUT)


# ---- again and again


def test_a_ledger_opened_again_stands_where_it_was(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET, "news") as ledger:
        for kind in (WORDS, STEP, STEP, SAMPLED):
            ledger.charge("first", kind, ABOUT)
        head, spent, left = ledger.head, ledger.spent(), ledger.remaining("first", STEP)
    assert path.stat().st_mode & 0o077 == 0
    with Ledger.open(path, "alice", BUDGET, "news") as ledger:
        assert (ledger.head, ledger.spent(), ledger.remaining("first", STEP)) == (head, spent, left)
    with Ledger.read(path) as ledger:
        assert (ledger.head, ledger.spent(), ledger.owner, ledger.corpus, ledger.budget) == (
            head,
            spent,
            "alice",
            "news",
            BUDGET,
        )
        (run,) = ledger.runs()
        assert (run.run, run.profile, run.digest, run.entries, run.answers.total()) == ("first", "dp-local", "ab" * 32, 4, 4)
        assert run.total(BUDGET).epsilon == spent.epsilon
        assert [entry.content["kind"] for entry in ledger.entries()] == ["opened"] + 4 * ["spent"]
        assert [entry.number for entry in ledger.entries()] == [1, 2, 3, 4, 5]
        assert list(ledger.entries())[4].content["about"] == dict(ABOUT)


def test_a_budget_is_raised_and_lowered_by_entries(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        given = charge_until_refused(ledger, "first", STEP)
    with Ledger.open(path, "alice", replace(BUDGET, epsilon=1.3)) as ledger:
        assert charge_until_refused(ledger, "first", STEP) > 0
        assert ledger.runs()[0].answers.total() > given
    with Ledger.open(path, "alice", BUDGET) as ledger:
        with pytest.raises(BudgetExhausted):
            ledger.charge("first", Spend(GaussianDpEvent(1000.0)), ABOUT)
        changes = [entry.content for entry in ledger.entries() if entry.content["kind"] == "budget"]
    assert [(change["before"]["epsilon"], change["epsilon"]) for change in changes] == [(1.0, 1.3), (1.3, 1.0)]


def test_a_writer_notices_a_budget_that_another_process_lowered(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        ledger.charge("first", STEP, ABOUT)
        Ledger.open(path, "alice", replace(BUDGET, epsilon=0.01)).close()
        with pytest.raises(BudgetExhausted):
            ledger.charge("first", STEP, ABOUT)


def test_others_and_other_units_are_refused(path: Path) -> None:
    Ledger.open(path, "alice", BUDGET, "news").close()
    with pytest.raises(Mistake, match="alice over news, not of bob over news"):
        Ledger.open(path, "bob", BUDGET, "news")
    with pytest.raises(Mistake, match="is the ledger of"):
        Ledger.open(path, "alice", BUDGET, "letters")
    with pytest.raises(Mistake, match="counts the budget of each"):
        Ledger.open(path, "alice", replace(BUDGET, unit=Unit.PERSON), "news")
    with Ledger.open(path, "alice", BUDGET, "news") as ledger:
        for enter in (ledger.charge, ledger.record):
            with pytest.raises(Mistake, match="each document, and this would spend the budget of each word"):
                enter("first", STEP, {**ABOUT, "unit": "word"})
        assert ledger.head[0] == 1


def test_a_run_keeps_its_profile(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        ledger.charge("first", STEP, ABOUT)
        with pytest.raises(Mistake, match="dp-local"):
            ledger.charge("first", STEP, {**ABOUT, "digest": "cd" * 32})
        ledger.charge("second", STEP, {**ABOUT, "digest": "cd" * 32})
        assert [run.entries for run in ledger.runs()] == [1, 1]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-5), (math.inf, 1e-5), (math.nan, 1e-5), (1.0, 1.0), (1.0, -1e-9)])
def test_budgets_that_promise_nothing_are_refused(path: Path, epsilon: float, delta: float) -> None:
    with pytest.raises(BadSetting):
        Ledger.open(path, "alice", Budget(Unit.DOCUMENT, epsilon, delta))
    assert not path.exists()


# ---- all runs together -----------------------------------------------------------------------------------------------------


DOCUMENTS, OCCURRENCES = Budget(Unit.DOCUMENT, 3.0, 1e-5), Budget(Unit.WORD, 8.0, 1e-9)
ANSWER, OF_WORDS = Spend(GaussianDpEvent(15.0)), Spend(LaplaceDpEvent(1 / 8))
MASKED = {"profile": "masked"}
WHY = "profile 'masked' has no bound"


def together(path: Path) -> AllRuns:
    found = all_runs(path)
    assert found is not None
    return found


def test_a_bound_before_and_after_a_run_that_has_none(tmp_path: Path) -> None:
    path = tmp_path / "north.ledger"
    with Ledger.open(path, "north", DOCUMENTS) as ledger:
        ledger.charge("first", ANSWER, {"profile": "dp-local"})
        bounded = ledger.spent().epsilon
    assert together(path).fields() == {"all_runs": bounded, "all_runs_delta": together(path).delta, "unbounded_because": None}
    with Ledger.open(path, "north", None) as ledger:
        ledger.release("second", WHY, MASKED)
        ledger.release("second", WHY, MASKED)  # its second answer
        ledger.charge("third", ANSWER, {"profile": "dp-local"})
        assert [entry.content["kind"] for entry in ledger.entries()] == ["opened", "spent", "unbounded", "spent"]
    found = together(path)
    because = "run second (profile 'masked' has no bound)"
    assert found.fields() == {"all_runs": None, "all_runs_delta": None, "unbounded_because": because}
    assert found.said() == "unbounded, because of run second (profile 'masked' has no bound)"
    assert math.isfinite(found.of_bounded)


def test_a_run_without_a_bound_takes_no_room_from_the_others(tmp_path: Path) -> None:
    """What it told may decide what is asked next, and a single run's own bound holds whatever was asked of it."""
    room = []
    for free in (False, True):
        with Ledger.open(tmp_path / f"{free}.ledger", "north", DOCUMENTS) as ledger:
            if free:
                ledger.release("free", WHY, MASKED)
            room.append(ledger.remaining("paid", ANSWER))
    assert room[0] == room[1]


def test_a_ledger_that_began_without_a_budget_takes_the_first_one(tmp_path: Path) -> None:
    path = tmp_path / "north.ledger"
    with Ledger.open(path, "north", None) as ledger:
        ledger.release("free", WHY, MASKED)
        assert not ledger.has_budget
    with pytest.raises(Mistake, match="no budget yet"):
        Ledger.reopen(path, 4.0)
    person = Budget(Unit.PERSON, 3.0, 1e-5)
    with Ledger.open(path, "north", person) as ledger:
        ledger.charge("paid", ANSWER, {"profile": "dp-local", "unit": "person"})
    with Ledger.reopen(path) as ledger:
        assert ledger.budget == person
        assert ledger.spent().epsilon > 0
    assert together(path).unbounded_because == "run free (profile 'masked' has no bound)"


def test_a_bound_of_single_words_bounds_no_document(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "north.words.ledger", "north", OCCURRENCES) as ledger:
        ledger.charge("words", OF_WORDS, {"profile": "iftm", "unit": "word"})
    with Ledger.open(tmp_path / "north.ledger", "north", DOCUMENTS) as ledger:
        ledger.charge("documents", ANSWER, {"profile": "dp-local"})
        each = ledger.spent()
    because = together(tmp_path / "north.ledger").unbounded_because
    assert because == "run words (profile 'iftm' bounds single words, and no whole document)"
    of_words = together(tmp_path / "north.words.ledger")
    assert of_words.unit is Unit.WORD
    assert of_words.epsilon == pytest.approx(8 + 2 * each.epsilon)  # without a word it is another document: twice a neighbour
    assert of_words.delta == pytest.approx(1e-9 + each.delta * (1 + math.exp(each.epsilon)))


def test_a_run_without_a_bound_is_in_every_ledger_that_succeeds(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with Ledger.open(tmp_path / f"{name}.ledger", name, None if name == "a" else DOCUMENTS) as ledger:
            if name == "a":
                ledger.release("free", WHY, MASKED)
            else:
                ledger.charge("paid", ANSWER, {"profile": "dp-local", "question": "train", "number": 3})
    continue_from([tmp_path / "a.ledger", tmp_path / "b.ledger"], tmp_path / "c.ledger", "c")
    with Ledger.read(tmp_path / "c.ledger") as ledger:
        assert ledger.budget == DOCUMENTS
    assert together(tmp_path / "c.ledger").unbounded_because == "run free (profile 'masked' has no bound)"


def test_which_answers_were_paid_for_is_known_in_every_ledger_that_succeeds(tmp_path: Path) -> None:
    about = {"profile": "dp-local", "question": "train", "members": "aa", "asked": "bb"}
    with Ledger.open(tmp_path / "a.ledger", "a", DOCUMENTS) as ledger:
        ledger.answered("run", ledger.charge("run", ANSWER, {**about, "number": 0}), b"one")
        ledger.charge("run", ANSWER, {**about, "number": 1})  # and killed
    continue_from([tmp_path / "a.ledger"], tmp_path / "b.ledger", "b")
    continue_from([tmp_path / "b.ledger"], tmp_path / "c.ledger", "c")
    with Ledger.open(tmp_path / "c.ledger", "c", DOCUMENTS) as ledger:
        account = ledger.account("run")
        assert account is not None
        assert account.answers.total() == 2
        assert [(one.number, one.asked, one.answer) for one in account.paid] == [(0, "bb", b"one".hex()), (1, "bb", LOST)]
        with pytest.raises(Failed, match="another answer"):
            ledger.answered("run", account.paid[1].entry, b"two")


def test_an_entry_pays_for_one_answer(tmp_path: Path) -> None:
    about = {"profile": "dp-local", "question": "train", "number": 3, "members": "aa", "asked": "bb"}
    path = tmp_path / "north.ledger"
    with Ledger.open(path, "north", DOCUMENTS) as ledger:
        entry = ledger.charge("run", ANSWER, about)
        assert entry == 2
        account = ledger.account("run")
        assert account is not None
        paid = account.paid_for("train", 3)
        assert paid is not None
        assert (paid.entry, paid.asked, paid.answer) == (2, "bb", "")
        assert paid.members == "aa"
        assert account.paid_for("train", 2) is None
        ledger.answered("run", entry, b"one")
        ledger.answered("run", entry, b"one")  # after a crash
        with pytest.raises(Failed, match="another answer"):
            ledger.answered("run", entry, b"two")
        with pytest.raises(BadSetting):
            ledger.answered("another run", entry, b"one")
    with Ledger.read(path) as ledger:
        account = ledger.account("run")
        assert account is not None
        paid = account.paid_for("train", 3)
        assert paid is not None
        assert paid.answer == b"one".hex()
        assert ledger.head[0] == 3


def test_what_is_paid_for_without_a_budget_is_no_ledger(tmp_path: Path) -> None:
    """A file whose entries contradict each other is refused, although its chain is whole."""
    path = tmp_path / "north.ledger"
    with Ledger.open(path, "north", None) as ledger, ledger._file.appending():
        ledger._file.append({"kind": "spent", "run": "r", "event": "x", "slack": 0.0, "count": 1, "about": {}, "time": ""})
    with pytest.raises(Failed, match="changed from outside"):
        Ledger.read(path)
