"""The ledger's file through killed processes, full disks and several writers; what was sent is always in it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from securetm.accounting.ledger import Ledger, ledger_file
from securetm.accounting.ledger.ledger import BudgetExhausted
from securetm.errors import Failed

from ...forking import forking
from ...pressed import pressed_at
from .charging import ANSWER, BUDGET, LARGE, charge


def charged(what: str, folder: Path, *numbers: int) -> list[int]:
    """How many answers each child sent."""
    ours, theirs = forking().Pipe(duplex=False)
    process = forking().Process(target=charge, args=(theirs, what, folder, numbers))
    process.start()
    theirs.close()
    sent: list[int] = ours.recv()
    process.join()
    return sent


def spent_entries(path: Path) -> int:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        return sum(run.entries for run in ledger.runs())


@pytest.mark.parametrize("moment", ["line", "step"])
def test_a_killed_party_has_entered_what_it_sent_and_at_most_one_answer_more(moment: str, tmp_path: Path) -> None:
    moments = [1, 30, 95, 150, 230, 340, 777, 1500]
    sent = charged(moment, tmp_path, *moments)
    assert sent[-1] > 3
    for moment_of_death, answers in zip(moments, sent, strict=True):
        assert answers <= spent_entries(tmp_path / f"{moment_of_death}") <= answers + 1


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """The folder of a writer that was killed, and how many answers it had sent."""
    folder = tmp_path_factory.mktemp("killed")
    (sent,) = charged("step", folder, 1500)
    return folder, sent


def test_a_killed_writer_leaves_a_ledger_that_can_be_read_without_being_touched(killed: tuple[Path, int]) -> None:
    folder, sent = killed
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "1500-wal" in before
    with Ledger.read(folder / "1500") as ledger:
        assert ledger.runs()[0].entries >= sent
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert before.keys() == after.keys()
    assert all(before[name] == after[name] for name in before if not name.endswith("-shm"))


def test_entries_that_lie_in_the_log_beside_a_copied_file_are_read_too(killed: tuple[Path, int], tmp_path: Path) -> None:
    folder, sent = killed
    for name in ("1500", "1500-wal"):
        shutil.copy(folder / name, tmp_path / name)
    with Ledger.read(tmp_path / "1500") as ledger:
        assert ledger.runs()[0].entries >= sent
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1500", "1500-wal"]


@pytest.mark.parametrize("runs", [(1, 2), (1, 1)], ids=["two runs", "one run"])
def test_two_processes_never_overspend_together(runs: tuple[int, int], tmp_path: Path) -> None:
    sent = charged("compete", tmp_path, *runs)
    assert sum(sent) > max(sent) > 1
    with Ledger.open(tmp_path / "both", "alice", BUDGET) as ledger:
        assert sum(run.entries for run in ledger.runs()) == sum(sent)
        assert 0.9 * BUDGET.epsilon < ledger.spent().epsilon <= BUDGET.epsilon
        with pytest.raises(BudgetExhausted):
            ledger.charge("run 1", LARGE, {})


class _SeenTooEarly(type(Path())):  # type: ignore[misc]  # what kind of path it is depends on the system
    """A place that was looked at a moment before another process made its ledger there."""

    looked = False

    def exists(self) -> bool:
        if self.name == "ledger" and not self.looked:
            self.looked = True
            return False
        return bool(super().exists())


def test_a_process_that_comes_while_another_makes_the_ledger_opens_that_one(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with Ledger.open(path, "alice", BUDGET) as faster:
        faster.charge("a run", ANSWER, {})
        assert path.with_name("ledger-wal").exists()
        with Ledger.open(_SeenTooEarly(path), "alice", BUDGET) as slower:
            assert slower.head == faster.head


def test_a_full_disk_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    (sent,) = charged("full", tmp_path, 200_000)
    assert sent > 3  # and the last of them after there was room again
    assert spent_entries(tmp_path / "200000") == sent


def test_a_database_without_room_refuses_the_answer(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger", "alice", BUDGET) as ledger:
        ledger.charge("a run", ANSWER, {})
        ledger._file._opened.execute("PRAGMA max_page_count = 1")
        with pytest.raises(Failed, match="full"):
            ledger.charge("a run", ANSWER, {"question": "x" * 10_000})
        entered = ledger.runs()[0].entries
        ledger._file._opened.execute("PRAGMA max_page_count = 100000")
        ledger.charge("a run", ANSWER, {})
        assert ledger.runs()[0].entries == entered + 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "ledger", "alice", BUDGET).close()
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(Failed, match="nothing could be entered"):
            Ledger.open(tmp_path / "ledger", "alice", BUDGET)
        with pytest.raises(Failed, match="nothing could be entered"):
            Ledger.open(tmp_path / "another", "alice", BUDGET)
        with Ledger.read(tmp_path / "ledger") as ledger:
            assert ledger.head[0] == 1
    finally:
        tmp_path.chmod(0o700)


def test_readers_see_what_a_writer_enters_and_cannot_enter_anything(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger", "alice", BUDGET) as writer, Ledger.read(tmp_path / "ledger") as reader:
        writer.charge("a run", ANSWER, {})
        assert reader.head == writer.head
        with pytest.raises(Failed, match="reading only"):
            reader.charge("a run", ANSWER, {})
    assert [path.name for path in tmp_path.iterdir()] == ["ledger"]


def test_control_c_at_any_step_leaves_a_ledger_that_is_written_on(tmp_path: Path) -> None:
    step, pressed = 0, True
    with Ledger.open(tmp_path / "a.ledger", "alice", BUDGET) as ledger:
        while pressed:
            pressed = pressed_at(step, lambda: ledger.record("run", ANSWER, {"question": "train"}), ledger_file)
            ledger.record("run", ANSWER, {"question": "train"})
            step += 1
        spent = sum(entry.content["kind"] == "spent" for entry in ledger.entries())
    assert step > 50  # it was pressed between every two steps there are
    assert step <= spent <= 2 * step  # what was entered before Ctrl-C is spent, and nothing is entered by half
