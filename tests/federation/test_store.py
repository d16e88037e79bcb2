"""What a role keeps on disk: the same content is the same bytes, and an interrupted write is made once, whole."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from securetm.aggregation.vectors import pack_vector
from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import Block, Domain, Terms
from securetm.federation import store
from securetm.federation.party_store import read_stored, stored
from securetm.federation.simulation.simulation import Workers
from securetm.federation.store import COMMON, CoordinatorStore, SqliteStore, read_arrays, write_arrays
from securetm.federation.wire.wire import MOST_BYTES
from securetm.interrupts import undisturbed
from securetm.models.lda.lda import LDA
from securetm.models.stored_model import StoredModel, write_model
from securetm.private_files import private_file

from ..pressed import pressed_at
from .plain_workers import echo

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
