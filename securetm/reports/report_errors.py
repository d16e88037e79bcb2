"""Reports that cannot be read or written."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors import CannotWrite, Misuse


@dataclass(eq=False)
class NotAnAudit(Misuse):
    """{path} is no result of an audit: {problem}"""

    path: str
    problem: str
    hint = (
        "give what `securetm audit PLAN --json` printed, or the folder of a run that was tried with `securetm audit PLAN --run`"
    )


@dataclass(eq=False)
class CannotWriteReport(CannotWrite):
    """{path} cannot be written: {problem}"""

    hint = "name another place, in a folder that is there and that you may write to"
