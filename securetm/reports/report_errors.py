"""Reports that cannot be read or written."""

from __future__ import annotations

from securetm.errors import CannotWrite, Misuse


class NotAnAudit(Misuse):
    """{path} is no result of an audit: {problem}"""

    path: str
    problem: str
    hint = (
        "give what `securetm audit PLAN --json` printed, or the folder of a run that was tried with `securetm audit PLAN --run`"
    )


class CannotWriteReport(CannotWrite):
    """{path} cannot be written: {problem}"""

    hint = "name another place, in a folder that is there and that you may write to"
