"""Finds the ledgers in a folder of a run or of documents, and their heads in files beside them. It changes no file.

In a simulation the stores of all parties are on one machine. In a real federation the other parties have theirs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.ledger import SeenHead
from securetm.errors import Mistake
from securetm.federation.budget.witness import remembered
from securetm.federation.folder import RESULT, RUN, reopen
from securetm.federation.store import COMMON, SqliteStore, read_json
from securetm.private_files import copy_private


def ledgers_at(path: Path) -> list[Path]:
    """Returns the ledger itself, the ledgers of a run's parties, or all ledgers in a folder."""
    if not path.is_dir():
        return [path]
    if (path / RUN).is_file():
        folder = reopen(path)
        found = [folder.ledger(name) for name in folder.members]
    else:
        found = sorted(path.rglob("*.ledger"))
    there = [one for one in found if one.is_file()]
    if not there:
        raise Mistake(
            "there is no ledger in {path}",
            hint="give a ledger, the folder of a run under a profile with a budget, or a folder that was given to --ledgers",
            path=str(path),
        )
    return there


def seen_beside(path: Path) -> tuple[SeenHead, ...]:
    """Returns the heads of that ledger in the other parties' files of the same folder and in the record of the run."""
    with Ledger.read(path) as ledger:
        owner = ledger.owner
    own = path.with_suffix(".others")
    memories = [_of(memory, owner) for memory in sorted(path.parent.glob("*.others")) if memory != own]
    return tuple(seen for seen in (*memories, _recorded(path, owner)) if seen is not None)


def _of(memory: Path, owner: str) -> SeenHead | None:
    with tempfile.TemporaryDirectory() as place:  # a copy: whoever opens SQLite's file writes beside it
        copy = Path(place) / memory.name
        for end in ("", "-wal"):
            if (there := memory.with_name(memory.name + end)).is_file():
                copy_private(there, copy.with_name(copy.name + end))
        others = SqliteStore(copy, COMMON)
        head = remembered(others, owner)
        others.close()
    return SeenHead(memory.stem, head.count, head.last, head.ledger) if head else None


def _recorded(path: Path, owner: str) -> SeenHead | None:
    """Returns the head that the result of the run records, if it is a trial's ledger."""
    result = path.parent.parent / RESULT
    if not result.is_file():
        return None
    spent = [one for one in read_json(result).get("spent", ()) if one["party"] == owner and "head" in one]
    return SeenHead("the run's own record", int(spent[0]["entries"]), bytes.fromhex(spent[0]["head"])) if spent else None
