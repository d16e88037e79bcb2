"""What all runs told together: a bound with its unit, or the run that has none."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent

from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.accounts import LOST
from securetm.accounting.ledger.all_runs import AllRuns, all_runs
from securetm.accounting.ledger.succession import continue_from
from securetm.accounting.spends import Spend
from securetm.contracts import Budget, Unit
from securetm.errors import BadSetting, Failed, Mistake

DOCUMENTS, WORDS = Budget(Unit.DOCUMENT, 3.0, 1e-5), Budget(Unit.WORD, 8.0, 1e-9)
ANSWER, OF_WORDS = Spend(GaussianDpEvent(15.0)), Spend(LaplaceDpEvent(1 / 8))
MASKED = {"profile": "masked"}
WHY = "profile 'masked' has no bound"


def total(path: Path) -> AllRuns:
    found = all_runs(path)
    assert found is not None
    return found


def test_a_bound_before_and_after_a_run_that_has_none(tmp_path: Path) -> None:
    path = tmp_path / "north.ledger"
    with Ledger.open(path, "north", DOCUMENTS) as ledger:
        ledger.charge("first", ANSWER, {"profile": "dp-local"})
        bounded = ledger.spent().epsilon
    assert total(path).fields() == {"all_runs": bounded, "all_runs_delta": total(path).delta, "unbounded_because": None}
    with Ledger.open(path, "north", None) as ledger:
        ledger.release("second", WHY, MASKED)
        ledger.release("second", WHY, MASKED)  # its second answer
        ledger.charge("third", ANSWER, {"profile": "dp-local"})
        assert [entry.content["kind"] for entry in ledger.entries()] == ["opened", "spent", "unbounded", "spent"]
    found = total(path)
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
    assert total(path).unbounded_because == "run free (profile 'masked' has no bound)"


def test_a_bound_of_single_words_bounds_no_document(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "north.words.ledger", "north", WORDS) as ledger:
        ledger.charge("words", OF_WORDS, {"profile": "iftm", "unit": "word"})
    with Ledger.open(tmp_path / "north.ledger", "north", DOCUMENTS) as ledger:
        ledger.charge("documents", ANSWER, {"profile": "dp-local"})
        each = ledger.spent()
    because = total(tmp_path / "north.ledger").unbounded_because
    assert because == "run words (profile 'iftm' bounds single words, and no whole document)"
    of_words = total(tmp_path / "north.words.ledger")
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
    assert total(tmp_path / "c.ledger").unbounded_because == "run free (profile 'masked' has no bound)"


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
