"""What a role keeps on disk: the same content is the same bytes, written once and whole, and its owner's alone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import securetm
from securetm.aggregation.vectors import pack_vector
from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import Block, Domain, Terms
from securetm.corpus.corpus import Corpus
from securetm.errors import Mistake, OpenToOthers, OwnedByAnother
from securetm.federation import store
from securetm.federation.folder import RunBusy, RunFolder, alone_in, begin, reopen
from securetm.federation.party_store import PartyStore, read_stored, stored
from securetm.federation.simulation.simulation import Workers, execute, make_party
from securetm.federation.store import COMMON, CoordinatorStore, SqliteStore, read_arrays, write_arrays, write_json
from securetm.federation.transcript import Transcript
from securetm.federation.wire.wire import MOST_BYTES
from securetm.interrupts import undisturbed
from securetm.models.lda.lda import LDA
from securetm.models.stored_model import StoredModel, write_model
from securetm.private_files import private_file, private_folder, writing
from securetm.runs.kept_runs import delete
from securetm.stages import Unwatched

from ..pressed import pressed_at
from ..quick_part import quick
from .conftest import small_plan
from .plain_workers import echo
from .private import public_words

STATE = {"counts": np.arange(6.0).reshape(2, 3), "step": np.ones(1, np.int64), "a": np.float32(3.0), "none": np.zeros((0, 4))}


def test_the_same_arrays_and_facts_are_the_same_bytes(tmp_path: Path) -> None:
    facts = {f"fact {n}": n for n in range(8)}
    for n in range(10):
        write_arrays(tmp_path / f"{n}.safetensors", STATE, facts)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    found, said = read_arrays(tmp_path / "0.safetensors")
    assert said == facts
    for name, array in STATE.items():
        np.testing.assert_array_equal(found[name], array)
        assert (found[name].shape, found[name].dtype) == (np.shape(array), np.asarray(array).dtype)


def test_the_same_model_is_the_same_bytes_in_whatever_order_its_arrays_stand(tmp_path: Path) -> None:
    """A header in an order of chance has five keys: ten alike have a probability below 1e-18."""
    model, words = LDA(n_topics=2), ("boat", "lake", "river")
    state = model.start(words, np.random.default_rng(0))
    for n in range(10):
        write_model(tmp_path / f"{n}.safetensors", model, dict(reversed(state.items())) if n % 2 else state, words)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    again, kept, vocabulary = StoredModel.open(tmp_path / "0.safetensors").model_of(LDA)
    assert (again, vocabulary) == (model, words)
    assert all((kept[name] == array).all() for name, array in state.items())
    with safe_open(tmp_path / "0.safetensors", framework="numpy") as stored:  # what others read it with
        assert set(stored.metadata()) >= {"kind", "version", "model", "settings", "vocabulary"}


def kept_though_pressed(path: Path, step: int) -> tuple[bool, int]:
    """Whether Ctrl-C was pressed at that step of a `keep`, and how often its row is on disk once the store was closed."""
    database = SqliteStore(path, "CREATE TABLE IF NOT EXISTS messages (at INTEGER PRIMARY KEY, step INTEGER);", synced=False)
    database.later("INSERT INTO messages (step) VALUES (?)", step)
    pressed = pressed_at(step, database.keep, store)
    database.close()
    with contextlib.closing(sqlite3.connect(path)) as opened:
        return pressed, opened.execute("SELECT count(*) FROM messages WHERE step = ?", (step,)).fetchone()[0]


@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_control_c_at_any_step_of_a_write_loses_nothing_and_writes_nothing_twice(tmp_path: Path, stride: int) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    step, pressed = 0, True
    while pressed:
        pressed, rows = kept_though_pressed(tmp_path / "a.sqlite", step)
        assert rows == 1, step
        step += stride
    assert step > 50  # it was pressed between every two steps there are


def test_control_c_is_heard_once_the_write_is_over(tmp_path: Path) -> None:
    database = SqliteStore(tmp_path / "a.sqlite", COMMON)
    database.later("INSERT INTO store VALUES (?, ?)", "key", b"value")

    def keep() -> None:
        with undisturbed():
            signal.raise_signal(signal.SIGINT)
            database.keep()

    with pytest.raises(KeyboardInterrupt):
        keep()
    assert database.get("key") == b"value"
    database.close()


def test_a_database_that_is_open_keeps_its_locks_when_it_is_looked_at(tmp_path: Path) -> None:
    """Whoever closes a file drops every lock that the process holds on it, and SQLite's are such locks."""
    path = tmp_path / "a.sqlite"
    path.touch(0o600)
    ask = f"import fcntl; fcntl.lockf(open({str(path)!r}, 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    with path.open("r+") as opened:
        fcntl.lockf(opened, fcntl.LOCK_EX)
        private_file(path)
        again = subprocess.run([sys.executable, "-c", ask], check=False, capture_output=True, timeout=600)
    assert b"BlockingIOError" in again.stderr


def test_what_a_question_is_about_is_synced_before_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file and its name in the folder: parties answer that number again about nothing else."""
    synced: list[int] = []
    sync = os.fsync

    def noting(opened: int) -> None:
        synced.append(os.fstat(opened).st_ino)
        sync(opened)

    with contextlib.closing(CoordinatorStore(tmp_path)) as kept:
        monkeypatch.setattr(os, "fsync", noting)
        kept.keep_state("asked-train-3", {"weights": np.arange(3.0)}, {})
        asked = kept.kept_state("asked-train-3")
    assert asked is not None
    assert asked[0]["weights"].tolist() == [0.0, 1.0, 2.0]
    assert {(tmp_path / "asked-train-3.safetensors").stat().st_ino, tmp_path.stat().st_ino} <= set(synced)


TABLE = Terms((Block("documents", (1,)), Block("cells", (5_000, 24))), domain=Domain.INTEGER, bits=32)


@pytest.mark.parametrize("density", [0.0, 0.01, 1.0])
def test_an_answer_is_read_as_it_was_kept_and_takes_no_more_room(density: float) -> None:
    rng = np.random.default_rng(1)
    flat = rng.integers(-(2**31), 2**31, TABLE.size) * (rng.random(TABLE.size) < density)
    vector = blocks_of(flat.astype(np.int64), TABLE)
    kept, whole = stored(vector, TABLE), pack_vector(vector, TABLE)
    assert len(kept) <= len(whole)
    assert (len(kept) < len(whole) / 10) == (density < 0.5)
    for one in (kept, whole):  # earlier versions kept it whole
        read = read_stored(one, TABLE, "north")
        assert pack_vector(read, TABLE) == whole


def test_an_answer_that_deflates_to_its_own_length_is_kept_as_it_is() -> None:
    terms, rng = Terms((Block("cells", (60,)),), domain=Domain.INTEGER, bits=32), np.random.default_rng(0)
    ties = 0
    for _ in range(2_000):
        flat = rng.integers(-(2**31), 2**31, terms.size) * (np.arange(terms.size) < rng.integers(30, 60))
        vector = blocks_of(flat.astype(np.int64), terms)
        whole = pack_vector(vector, terms)
        ties += len(zlib.compress(whole, 1)) == len(whole)
        assert pack_vector(read_stored(stored(vector, terms), terms, "north"), terms) == whole
    assert ties > 0


def test_whoever_stops_listening_to_workers_leaves_no_reply_behind() -> None:
    workers = Workers(echo, {name: (name,) for name in "abcde"}, 2)
    said, then = ({name: text.encode() * 100_000 for name in "abcde"} for text in ("first", "then"))
    listening = iter(workers.ask(said, MOST_BYTES))
    first = [next(listening), next(listening)]
    listening.close()  # type: ignore[attr-defined]
    heard = dict(workers.ask(then, MOST_BYTES))
    workers.close()
    assert [name for name, _ in first] == ["a", "b"]
    assert list(heard) == list("abcde")
    assert all(b"then" in reply and b"first" not in reply for reply in heard.values())


# ---- files are their owner's alone -----------------------------------------------------------------------------------------


ROOT = Path(securetm.__file__).parent


@pytest.fixture
def open_umask() -> Iterator[None]:
    """As careless as an account can be."""
    before = os.umask(0)
    yield
    os.umask(before)


def _plan(folder: Path, profile: str) -> Any:
    words = {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": public_words(folder)}
    return small_plan(profile=profile, model={"name": "lda", "n_topics": 3, "sweeps": 2}, training__rounds=2, **words)


def _ran(folder: Path, profile: str, corpora: Mapping[str, Corpus]) -> RunFolder:
    made = begin(folder / "runs" / "one", _plan(folder, profile), corpora, with_content=True)
    execute(made, Unwatched())
    return made


def _modes(folder: Path) -> dict[str, str]:
    """Whatever is not private below a folder, with its mode."""
    asked = {True: 0o700, False: 0o600}
    found = {path: path.stat().st_mode & 0o7777 for path in (folder, *folder.rglob("*"))}
    return {str(path): oct(mode) for path, mode in found.items() if mode != asked[path.is_dir()]}


@pytest.mark.parametrize("profile", quick(["iftm", "bfv"], "bfv"))
@pytest.mark.usefixtures("open_umask")
def test_everything_that_a_run_leaves_is_private(
    profile: str, five: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("chmod", "fchmod"):  # a mode that is set afterwards was another before
        monkeypatch.delattr(os, name)
    made = _ran(tmp_path, profile, five)
    assert len(list(made.path.rglob("*"))) > 20
    assert _modes(tmp_path / "runs") == {}


@pytest.mark.usefixtures("open_umask")
def test_so_is_what_lies_beside_a_store_only_while_it_is_open(tmp_path: Path) -> None:
    store = PartyStore(tmp_path / "north")
    store.put("vector", bytes(1 << 17))  # too large for the database, so it lies in a file of its own
    beside = {path.name for path in (tmp_path / "north").iterdir()}
    assert beside == {"own.sqlite", "own.sqlite-wal", "own.sqlite-shm", "own.large"}
    assert _modes(tmp_path / "north") == {}
    store.close()


@pytest.fixture
def run(corpora: Mapping[str, Corpus], tmp_path: Path) -> RunFolder:
    return begin(tmp_path / "runs" / "one", _plan(tmp_path, "iftm"), corpora, with_content=True)


OPENED: Mapping[str, Callable[[RunFolder], object]] = {
    "": lambda run: reopen(run.path),
    "run.json": lambda run: reopen(run.path),
    "parties/01-north": lambda run: make_party(run, "north"),
    "parties/01-north/own.sqlite": lambda run: make_party(run, "north"),
    "parties/01-north/corpus.npz": lambda run: make_party(run, "north"),
    "coordinator": lambda run: CoordinatorStore(run.coordinator),
    "coordinator/rounds.sqlite": lambda run: CoordinatorStore(run.coordinator),
    "transcript/messages.sqlite": lambda run: Transcript(run.path / "transcript"),
}


@pytest.mark.parametrize(
    ("name", "mode"), [*((name, 0o040) for name in OPENED), *(("coordinator", mode) for mode in (0o020, 0o004, 0o002))]
)
def test_what_others_may_read_or_change_is_refused_by_name(name: str, mode: int, run: RunFolder) -> None:
    CoordinatorStore(run.coordinator).close()
    Transcript(run.path / "transcript").close()
    (run.path / name).chmod((run.path / name).stat().st_mode & 0o777 | mode)
    with pytest.raises(OpenToOthers) as refused:
        OPENED[name](run)
    assert refused.value.path == str(run.path / name)
    assert ("read" if mode & 0o044 else "change") in str(refused.value)
    assert f"chmod -R go= {run.path / name})" in refused.value.advice()


@pytest.mark.parametrize("kept", ["north.ledger", "north.others"])
def test_so_are_a_ledger_and_what_was_signed_of_others(kept: str, run: RunFolder) -> None:
    make_party(run, "north").close()
    path = run.ledger("north").with_suffix(Path(kept).suffix)
    path.chmod(0o644)
    with pytest.raises(OpenToOthers, match=path.name):
        make_party(run, "north")


def test_a_log_that_an_older_process_left_open_is_refused_too(tmp_path: Path) -> None:
    PartyStore(tmp_path / "north").close()
    (tmp_path / "north" / "own.sqlite-wal").write_bytes(b"")
    (tmp_path / "north" / "own.sqlite-wal").chmod(0o644)
    with pytest.raises(OpenToOthers, match=r"own\.sqlite-wal"):
        PartyStore(tmp_path / "north")


def test_kept_arrays_are_checked_when_they_are_read(tmp_path: Path) -> None:
    write_arrays(tmp_path / "memory-1.safetensors", {}, {})
    assert read_arrays(tmp_path / "memory-1.safetensors") == ({}, {})
    (tmp_path / "memory-1.safetensors").chmod(0o604)
    with pytest.raises(OpenToOthers, match="memory-1"):
        read_arrays(tmp_path / "memory-1.safetensors")


def test_what_belongs_to_another_account_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PartyStore(tmp_path / "north").close()
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(OwnedByAnother, match="north") as refused:
        PartyStore(tmp_path / "north")
    assert "chown" in refused.value.advice()


def test_an_empty_folder_of_ones_own_is_closed_and_a_full_one_refused(tmp_path: Path) -> None:
    for name in ("empty", "full"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o755)
    (tmp_path / "full" / "older").write_text("what others may have seen", "utf-8")
    private_folder(tmp_path / "empty")
    assert _modes(tmp_path / "empty") == {}
    with pytest.raises(OpenToOthers, match="full"):
        private_folder(tmp_path / "full")


@pytest.mark.usefixtures("open_umask")
def test_a_file_that_was_open_is_closed_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"older")
    with writing(path) as file:
        assert (path.stat().st_mode & 0o777, path.stat().st_size) == (0o600, 0)
        file.write(b"newer")
    assert path.read_bytes() == b"newer"


# Results about public texts, made-up files of the laws, and who makes modes.
PUBLIC = ("testing", "evidence.py", "private_files.py", "roster.py")
ELSEWHERE = (  # what a person asked for; goes on with a private file; sealed letters in a folder of several members
    *("reports/files.py", "federation/coordinator/status.py", "federation/courier/places.py"),
)
OTHERWISE = re.compile(
    r"\bopen\([^)\n]*[\"'][wax]b?[\"']|write_text\(|\.write_bytes\(|\.mkdir\(|makedirs\(|save_file\(|\.touch\(|copyfile\("
)


def test_nothing_that_runs_keep_is_written_in_another_way() -> None:
    """The umask decides nothing: whoever writes a file or makes a folder does it through `private_files`."""
    sources = [
        path
        for path in ROOT.rglob("*.py")
        if not set(path.relative_to(ROOT).parts) & set(PUBLIC) and not path.as_posix().endswith(ELSEWHERE)
    ]
    assert len(sources) > 200
    assert [str(path) for path in sources if OTHERWISE.search(path.read_text("utf-8"))] == []


# ---- runs of a folder ------------------------------------------------------------------------------------------------------


@pytest.fixture
def named_run(tmp_path: Path) -> Path:
    """A folder that says that it is a run."""
    folder = tmp_path / "runs" / "one"
    folder.mkdir(0o700, parents=True)
    write_json(folder / "run.json", {"ledgers": "ledgers", "members": [], "plan": {}})
    return folder


def test_a_run_that_a_process_works_on_is_not_deleted(named_run: Path) -> None:
    with alone_in(named_run), pytest.raises(RunBusy):
        delete(named_run)
    assert delete(named_run) == ()
    assert not named_run.exists()


@pytest.mark.parametrize(
    "record",
    [
        lambda named_run: write_json(named_run / "run.json", {"ledgers": str(named_run / "kept"), "plan": {}}),  # of documents
        lambda named_run: (named_run / "run.json").write_text("[]"),  # nobody can say whose they are
    ],
)
def test_ledgers_that_may_be_of_documents_are_not_deleted(named_run: Path, record: Callable[[Path], None]) -> None:
    record(named_run)
    (named_run / "ledgers").mkdir()
    (named_run / "ledgers" / "north.ledger").write_bytes(b"spent")
    with pytest.raises(Mistake, match="holds a ledger that is not of this run alone"):
        delete(named_run)
    assert (named_run / "ledgers" / "north.ledger").read_bytes() == b"spent"
