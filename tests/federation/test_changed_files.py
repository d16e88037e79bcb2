"""A file of a run that was changed, cut, lost or taken from another run is refused by its name, whoever reads it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

import securetm
from securetm.corpus.corpus import Corpus
from securetm.errors import Failed, SecuretmError
from securetm.federation.folder import KEPT, RUN, ChangedFile, begin, check_all, reopen, result_of
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import DamagedStore
from securetm.reports.audits.records import read_record, write_record
from securetm.runs.finished import FinishedRun
from securetm.stages import Unwatched

from ..reports.audits import AUDIT
from .conftest import StopsAfter, small_plan

LDA = {"name": "lda", "n_topics": 3, "sweeps": 1}
WORDS = "coordinator/vocabulary.txt"
MODEL = "release/model.safetensors"


@pytest.fixture(scope="module")
def finished(corpora: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two finished runs that differ in their seed alone."""
    place = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        plan = small_plan(model=LDA, training__rounds=2, seed=seed)
        execute(begin(place / str(seed), plan, corpora, with_content=True), Unwatched())
    return place / "0", place / "1"


@pytest.fixture
def run(finished: tuple[Path, Path], tmp_path: Path) -> Path:
    """A copy of the first, to be damaged."""
    return Path(shutil.copytree(finished[0], tmp_path / "run"))


def flipped(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def lost(path: Path) -> None:
    path.unlink()


READERS: Mapping[str, Callable[[Path], object]] = {
    "load": securetm.load,
    "topics and transform": FinishedRun.open,
    "resume": lambda run: execute(reopen(run), Unwatched()),
    "the result": result_of,
    "an audit": lambda run: check_all(run),
}
READ: Mapping[str, tuple[str, ...]] = {  # who trusts which file
    RUN: ("load", "topics and transform", "resume", "an audit"),
    "result.json": ("an audit", "the result", "resume"),
    WORDS: ("load", "topics and transform", "resume", "an audit"),
    MODEL: ("load", "topics and transform", "resume", "an audit"),
    "coordinator/checkpoint.safetensors": ("an audit",),
    "coordinator/rounds.sqlite": ("an audit",),
    "parties/01-north/corpus.npz": ("an audit",),
    "parties/01-north/alone.safetensors": ("an audit",),
    "parties/01-north/own.sqlite": ("an audit",),
    "transcript/messages.sqlite": ("an audit",),
}


@pytest.mark.parametrize("harm", [flipped, cut, lost])
@pytest.mark.parametrize("name", [name for name in READ if not name.endswith(".sqlite")])
def test_a_changed_file_is_refused_by_name(name: str, harm: Callable[[Path], None], run: Path) -> None:
    harm(run / name)
    for reader in READ[name]:
        if (name, harm, reader) == ("result.json", lost, "resume"):
            assert READERS[reader](run)  # a run without a result has not ended, and goes on to it again
            continue
        with pytest.raises(SecuretmError) as refusal:
            READERS[reader](run)
        assert Path(name).name in str(refusal.value) or (harm is lost and "holds no" in str(refusal.value)), reader
        assert refusal.value.advice()


@pytest.mark.parametrize("name", [RUN, "result.json", WORDS, MODEL, "parties/02-south/corpus.npz"])
def test_a_file_of_another_run_is_refused_though_it_is_whole(name: str, run: Path, finished: tuple[Path, Path]) -> None:
    shutil.copy(finished[1] / name, run / name)
    if (run / name).read_bytes() == (finished[0] / name).read_bytes():
        check_all(run)  # the other run had the same documents, and has the same words
        return
    for reader in READ.get(name, ("an audit",)):
        with pytest.raises(ChangedFile, match=Path(name).name) as refusal:
            READERS[reader](run)
        assert "SHA-256" in str(refusal.value)


def test_words_and_model_of_one_run_are_those_of_each_other_whatever_was_written_down(run: Path) -> None:
    """Digests are written anew here: words in another order would give every topic other words."""
    words = (run / WORDS).read_text("utf-8").split("\n")
    (run / WORDS).write_text("\n".join(reversed(words)), "utf-8")
    kept = json.loads((run / KEPT).read_text("utf-8"))
    del kept["files"][WORDS]
    (run / KEPT).write_text(json.dumps({**kept, "ended": False}), "utf-8")
    with pytest.raises(ChangedFile, match=r"vocabulary\.txt.*model\.safetensors"):
        securetm.load(run)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("transcript/messages.sqlite", "UPDATE messages SET bytes = bytes + 1 WHERE at = 3"),
        ("transcript/messages.sqlite", "DELETE FROM messages WHERE at = (SELECT MAX(at) FROM messages)"),
        ("coordinator/rounds.sqlite", "UPDATE rounds SET seconds = 0"),
        ("parties/01-north/own.sqlite", "DELETE FROM figures WHERE name = (SELECT MAX(name) FROM figures)"),
    ],
)
def test_a_database_is_bound_by_what_is_in_its_tables(name: str, change: str, run: Path) -> None:
    check_all(run)
    with closing(sqlite3.connect(run / name)) as opened:
        opened.execute("VACUUM")  # other bytes of the same rows are no change
    check_all(run)
    with closing(sqlite3.connect(run / name)) as opened:
        opened.execute(change)
        opened.commit()
    with pytest.raises(ChangedFile, match=Path(name).name):
        check_all(run)


def test_a_model_that_no_run_kept_is_not_taken_for_its_own(run: Path) -> None:
    kept = json.loads((run / KEPT).read_text("utf-8"))
    del kept["files"][MODEL]
    (run / KEPT).write_text(json.dumps(kept), "utf-8")
    with pytest.raises(ChangedFile, match="none of the files that this run kept"):
        securetm.load(run)


@pytest.mark.parametrize(
    "content", [None, "", "[]", '{"version": 1}', '{"version": 1, "ended": true, "files": {"a": 1}, "rows": {}}']
)
def test_digests_that_are_lost_or_damaged_are_refused(content: str | None, run: Path) -> None:
    (run / KEPT).unlink()
    if content is not None:
        (run / KEPT).write_text(content, "utf-8")
        (run / KEPT).chmod(0o600)
    for read in READERS.values():
        with pytest.raises((ChangedFile, DamagedStore), match=r"kept\.json"):
            read(run)


# ---- before the run has ended --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def interrupted(corpora: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = begin(tmp_path_factory.mktemp("interrupted") / "run", small_plan(model=LDA, training__rounds=2), corpora)
    with pytest.raises(Failed, match="the run was interrupted after round"):
        execute(folder, StopsAfter(1))
    return folder.path


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        (RUN, flipped),
        (WORDS, cut),
        (WORDS, lost),
        ("coordinator/checkpoint.safetensors", flipped),
        ("parties/03-west/corpus.npz", lost),
    ],
)
def test_an_interrupted_run_goes_on_from_no_changed_file(
    name: str, harm: Callable[[Path], None], interrupted: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(interrupted, tmp_path / "run"))
    harm(run / name)
    with pytest.raises(SecuretmError, match=Path(name).name):
        execute(reopen(run), Unwatched())


# ---- what is kept of it later --------------------------------------------------------------------------------------


def test_no_audit_is_of_a_changed_run(run: Path) -> None:
    flipped(run / "parties/01-north/corpus.npz")
    with pytest.raises(ChangedFile, match=r"corpus\.npz"):
        securetm.audit("quick", run)


def test_an_audit_that_a_run_keeps_is_bound_to_it_too(run: Path) -> None:
    path = write_record(AUDIT, run, 1)
    assert read_record(run) == read_record(path)
    check_all(run)
    written = path.read_text("utf-8")
    path.write_text(written.replace('"seconds"', ' "seconds"', 1), "utf-8")
    with pytest.raises(ChangedFile, match=path.name):
        read_record(run)
    write_record(AUDIT, run, 1)
    assert read_record(run).plan == AUDIT.plan


@pytest.mark.parametrize("harm", [cut, lost])
def test_a_database_that_is_cut_or_lost_is_refused(harm: Callable[[Path], None], run: Path) -> None:
    harm(run / "transcript/messages.sqlite")
    with pytest.raises(ChangedFile, match=r"messages\.sqlite"):
        check_all(run)
