"""A ledger's file through kills, full disks and several writers, and whatever is done to it behind its back."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from securetm.accounting.ledger import Ledger, ledger_file
from securetm.accounting.ledger.ledger import BudgetExhausted
from securetm.accounting.ledger.ledger_file import BEGINNING, LedgerRolledBack, canonical, digest, extend, follow
from securetm.errors import Failed, Mistake
from tests.forking import forking
from tests.pressed import pressed_at

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


# ---- behind its back -------------------------------------------------------------------------------------------------------


ENTRIES = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "alice.ledger"
    with Ledger.open(path, "alice", BUDGET) as ledger:
        for serial in range(ENTRIES - 1):
            ledger.charge("a run", ANSWER, {"profile": "dp-local", "question": "train", "serial": serial})
    return path


def behind_its_back(path: Path, *commands: str) -> None:
    """What somebody with the file can do: take away what keeps entries from change, change them, and put it back."""
    with sqlite3.connect(path) as opened:
        kept = opened.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in kept:
            opened.execute(f"DROP TRIGGER {name}")
        for command in commands:
            opened.execute(command)
        for _, sql in kept:
            opened.execute(sql)
    opened.close()


def test_the_file_itself_refuses_changes(path: Path) -> None:
    opened = sqlite3.connect(path)
    for command in (
        "UPDATE entries SET content = '{}' WHERE number = 3",
        "DELETE FROM entries WHERE number = 8",
        "INSERT OR REPLACE INTO entries SELECT 3, previous, '{}', head FROM entries WHERE number = 3",
        "INSERT INTO entries SELECT 20, previous, content, head FROM entries WHERE number = 3",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="only written at its end"):
            opened.execute(command)
    opened.close()


SWAP = """UPDATE entries SET content = (SELECT content FROM entries WHERE number = 4),
    head = (SELECT head FROM entries WHERE number = 4) WHERE number = 3"""


@pytest.mark.parametrize(
    ("command", "entry"),
    [
        ("UPDATE entries SET content = replace(content, '\"count\":1', '\"count\":0') WHERE number = 5", 5),
        ("UPDATE entries SET content = replace(content, '3.0', '9.0') WHERE number = 1", 1),
        ("UPDATE entries SET content = CAST(content AS BLOB) || ' ' WHERE number = 8", 8),
        ("UPDATE entries SET content = x'ff' WHERE number = 2", 2),
        ("UPDATE entries SET head = zeroblob(32) WHERE number = 6", 6),
        ("UPDATE entries SET head = 'text' WHERE number = 6", 6),
        ("UPDATE entries SET previous = zeroblob(32) WHERE number = 6", 6),
        ("DELETE FROM entries WHERE number = 1", 1),
        ("DELETE FROM entries WHERE number = 4", 4),
        ("UPDATE entries SET number = number - 1 WHERE number > (DELETED)", 4),
        (SWAP, 3),
        ("INSERT INTO entries SELECT 9, head, content, head FROM entries WHERE number = 8", 9),
    ],
)
def test_changed_removed_and_reordered_entries_are_found_at_their_number(path: Path, command: str, entry: int) -> None:
    commands = [command]
    if "(DELETED)" in command:  # one taken out and the rest moved up
        commands = ["DELETE FROM entries WHERE number = 4", command.replace("(DELETED)", "4")]
    behind_its_back(path, *commands)
    for look in (lambda: Ledger.open(path, "alice", BUDGET), lambda: Ledger.read(path)):
        with pytest.raises(Failed, match="changed from outside") as found:
            look()
        assert found.value.facts()["entry"] == entry
        assert str(path) in str(found.value)


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, "null", '{"about":"x"}', '{"kind":[]}', '{"event":"[["}', '{"count":[]}'],
)
def test_a_forged_last_entry_that_follows_is_refused_by_name(path: Path, content: str) -> None:
    """Its head is right, so that only its content can show that no ledger wrote it."""
    with sqlite3.connect(path) as opened:
        previous, written = opened.execute("SELECT previous, content FROM entries WHERE number = 2").fetchone()
    opened.close()
    forged = content if not content.startswith("{") else canonical({**json.loads(written), **json.loads(content)})
    head = extend(previous, digest(forged.encode()))
    change = f"UPDATE entries SET content = '{forged}', head = x'{head.hex()}' WHERE number = 2"
    behind_its_back(path, "DELETE FROM entries WHERE number > 2", change)
    with pytest.raises((Failed, Mistake)) as found:
        Ledger.read(path)
    assert str(path) in str(found.value)


def test_a_missing_trigger_is_found(path: Path) -> None:
    with sqlite3.connect(path) as opened:
        opened.execute("DROP TRIGGER entries_stay")
    opened.close()
    with pytest.raises(Failed, match="triggers that protect its entries"):
        Ledger.read(path)


def test_a_flipped_byte_anywhere_changes_no_entry_unnoticed(path: Path) -> None:
    whole = path.read_bytes()
    with Ledger.read(path) as ledger:
        told = list(ledger.entries())
    refused = 0
    for place in range(0, len(whole), 41):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            with Ledger.read(path) as ledger:
                entries = list(ledger.entries())
        except (Failed, Mistake, LedgerRolledBack):
            refused += 1
            continue
        assert entries == told[: len(entries)]  # the end alone can go unnoticed here; a head that others saw finds it
    assert refused > 40


def cut(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size - 5000)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def words(path: Path) -> None:
    path.write_text("all is well, nothing was spent")


def another_database(path: Path) -> None:
    path.unlink()
    path.touch(0o600)
    with sqlite3.connect(path) as opened:
        opened.execute("CREATE TABLE entries (number INTEGER PRIMARY KEY)")
    opened.close()


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def only_the_log(path: Path) -> None:
    path.rename(path.with_name(path.name + "-wal"))


def a_later_version(path: Path) -> None:
    with sqlite3.connect(path) as opened:
        opened.execute("PRAGMA user_version = 7")
    opened.close()


@pytest.mark.parametrize(
    ("what", "letter"),
    [
        (cut, "cannot be read as a ledger"),
        (emptied, "cannot be read as a ledger"),
        (words, "cannot be read as a ledger"),
        (another_database, "changed from outside"),
        (a_folder, "cannot be opened as a ledger"),
        (only_the_log, "cannot be read as a ledger"),
        (a_later_version, "cannot be opened as a ledger"),
    ],
)
def test_what_is_no_ledger_any_more_is_never_taken_for_a_new_one(path: Path, what: Callable[[Path], None], letter: str) -> None:
    what(path)
    before = {p.name: p.read_bytes() for p in path.parent.iterdir() if p.is_file()}
    with pytest.raises((Failed, Mistake), match=letter) as found:
        Ledger.open(path, "alice", BUDGET)
    assert str(path) in str(found.value)
    assert found.value.advice()
    assert {p.name: p.read_bytes() for p in path.parent.iterdir() if p.is_file()} == before


def test_reading_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="No such file"):
        Ledger.read(tmp_path / "ledger")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(path: Path) -> None:
    path.chmod(0)
    with pytest.raises(Mistake, match="ermission"):
        Ledger.open(path, "alice", BUDGET)


# ---- what only others can find out


def test_an_older_copy_is_found_even_when_it_went_on(path: Path) -> None:
    shutil.copy(path, path.with_name("older"))
    with Ledger.open(path, "alice", BUDGET) as ledger:
        ledger.charge("a run", ANSWER, {"profile": "dp-local"})
        seen = ledger.head
    with Ledger.open(path.with_name("older"), "alice", BUDGET) as older:
        for _ in range(3):
            older.charge("a run", ANSWER, {"profile": "dp-local"})
        with pytest.raises(LedgerRolledBack):
            older.check_against(*seen)


def test_a_ledger_written_anew_is_found(path: Path) -> None:
    with Ledger.read(path) as ledger:
        seen, identity = ledger.head, ledger.identity
    with Ledger.open(path, "alice", BUDGET) as ledger:
        assert ledger.identity == identity
    path.unlink()
    with Ledger.open(path, "alice", BUDGET) as anew:
        assert anew.identity != identity
        with pytest.raises(LedgerRolledBack):
            anew.check_against(*seen)


def test_signatures_in_the_file_find_an_end_cut_off(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        ledger.witness(*ledger.head, {"bob": b"his", "carol": b"hers"})
        assert ledger.witnessed() == 2
        ledger.charge("a run", ANSWER, {"profile": "dp-local"})
        assert ledger.witnessed() == 0
        ledger.witness(*ledger.head, {"bob": b"his"})
        assert ledger.witnessed() == 1
    behind_its_back(path, "DELETE FROM entries WHERE number > 5")
    with pytest.raises(LedgerRolledBack):
        Ledger.read(path)


def test_no_witness_is_kept_for_a_head_that_is_not_ours(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        with pytest.raises(LedgerRolledBack):
            ledger.witness(ENTRIES, bytes(32), {"bob": b"his"})
        with pytest.raises(LedgerRolledBack):
            ledger.witness(ENTRIES + 1, ledger.head[1], {"bob": b"his"})
        assert ledger.witnessed() == 0


def test_entries_that_vanish_while_the_ledger_is_open_stop_it(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        behind_its_back(path, "DELETE FROM entries WHERE number > 5")
        with pytest.raises(LedgerRolledBack):
            ledger.charge("a run", ANSWER, {"profile": "dp-local"})


def test_others_follow_the_head_with_digests_alone(path: Path) -> None:
    with Ledger.open(path, "alice", BUDGET) as ledger:
        number, head = ledger.head
        assert ledger.links(number) == ()
        for _ in range(3):
            ledger.charge("a run", ANSWER, {"profile": "dp-local"})
        links = ledger.links(number)
        assert len(links) == 3
        assert follow(head, links) == ledger.head[1]
        assert follow(BEGINNING, ledger.links(0)) == ledger.head[1]
        assert follow(head, links[1:]) != ledger.head[1]


def test_equal_answers_have_unlike_digests(path: Path) -> None:
    with Ledger.read(path) as ledger:
        assert len(set(ledger.links(0))) == ENTRIES


def test_the_chain_is_what_its_page_says(path: Path) -> None:
    head = bytes(32)
    with sqlite3.connect(path) as opened:
        rows = opened.execute("SELECT number, previous, content, head FROM entries ORDER BY number").fetchall()
    opened.close()
    assert [row[0] for row in rows] == list(range(1, ENTRIES + 1))
    for _, previous, content, stored in rows:
        content_digest = hashlib.sha256(b"securetm ledger content\n" + content.encode()).digest()
        assert previous == head
        head = hashlib.sha256(b"securetm ledger head\n" + head + content_digest).digest()
        assert (stored, content) == (head, canonical(json.loads(content)))
        assert head == extend(previous, digest(content.encode()))
