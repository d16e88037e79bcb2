"""How much of a bound on a process's memory is left for documents, once the process has loaded what it needs. Linux only."""

from __future__ import annotations

import resource
from pathlib import Path

from securetm.corpus.columns import Columns
from securetm.corpus.readers import records_of
from securetm.errors import BadSetting

USUAL = 1024  # MB of a process, where nothing is said
_LEAST = 48  # MB for documents
_STATUS = Path("/proc/self/statm")


def left_for_documents(megabytes: int | None, source: str, columns: Columns) -> int:
    """The MB that documents of this source may take in a process that may take so many in all.

    One document is read first, because a reader of tables takes most of its memory then.
    A sentence model that makes embeddings is not counted: it is loaded later.
    """
    next(records_of(source, columns)[1], None)
    taken = _taken()
    if megabytes is None:  # nobody asked for a bound that a large process would be past
        return max(USUAL - taken, _LEAST)
    if megabytes - taken < _LEAST:
        least = taken + _LEAST
        raise BadSetting("securetm corpus build", "--memory", str(megabytes), f"must be at least {least}: {taken} MB are taken")
    return megabytes - taken


def _taken() -> int:
    if _STATUS.is_file():
        return int(_STATUS.read_text().split()[1]) * resource.getpagesize() >> 20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10  # the peak so far, which is no less
