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


class NewerRun(Misuse):
    """{path} is of format {found}, and this version of securetm reads format {known}"""

    path: str
    found: int
    known: int
    hint = "update securetm, or have the report made where the run was made"


class NothingToWrite(Misuse):
    """a signature needs a file to sign, and none is written"""

    hint = "name one with --pdf, --html or --markdown"


class NoRunGiven(Misuse):
    """it is not said of what to report"""

    hint = (
        "give the folder of a run, or the file that `securetm audit --json` printed; with --verify a sheet or the folder "
        "`release`, and where it is signed, the signature and whom you trust"
    )


class NoStatement(Misuse):
    """{path} is no statement on a run: {problem}"""

    path: str
    problem: str
    hint = "give a sheet that `securetm report RUN` wrote, the folder `release` of a run, or the run's folder"


class PdfLibraryMissing(Misuse):
    """a PDF is asked for, and what writes it, typst and its fonts, is not installed"""

    hint = "pip install 'securetm[pdf]'; or write the page with --html and print it in a browser"
