"""Runs of a folder: they are listed and deleted, and ledgers that may be of documents stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from securetm.errors import Mistake
from securetm.federation.folder import RunBusy, alone_in
from securetm.federation.store import write_json
from securetm.runs.kept_runs import delete


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder that says that it is a run."""
    folder = tmp_path / "runs" / "one"
    folder.mkdir(0o700, parents=True)
    write_json(folder / "run.json", {"ledgers": "ledgers", "members": [], "plan": {}})
    return folder


def test_a_run_that_a_process_works_on_is_not_deleted(run: Path) -> None:
    with alone_in(run), pytest.raises(RunBusy):
        delete(run)
    assert delete(run) == ()
    assert not run.exists()


@pytest.mark.parametrize(
    "record",
    [
        lambda run: write_json(run / "run.json", {"ledgers": str(run / "kept"), "plan": {}}),  # of documents
        lambda run: (run / "run.json").write_text("[]"),  # nobody can say whose they are
    ],
)
def test_ledgers_that_may_be_of_documents_are_not_deleted(run: Path, record: Callable[[Path], None]) -> None:
    record(run)
    (run / "ledgers").mkdir()
    (run / "ledgers" / "north.ledger").write_bytes(b"spent")
    with pytest.raises(Mistake, match="holds a ledger that is not of this run alone"):
        delete(run)
    assert (run / "ledgers" / "north.ledger").read_bytes() == b"spent"
