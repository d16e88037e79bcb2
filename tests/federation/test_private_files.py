"""What a run writes is its owner's alone: made so from the first byte, whatever the umask; what others may read is refused."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import securetm
from securetm.corpus.corpus import Corpus
from securetm.errors import OpenToOthers, OwnedByAnother
from securetm.federation.folder import RunFolder, begin, reopen
from securetm.federation.party_store import PartyStore
from securetm.federation.simulation.simulation import execute, make_party
from securetm.federation.store import CoordinatorStore, read_arrays, write_arrays
from securetm.federation.transcript import Transcript
from securetm.private_files import private_folder, writing
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import small_plan
from .private import public_words

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
