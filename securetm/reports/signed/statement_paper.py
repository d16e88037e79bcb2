"""The statement as one sheet, which somebody signs. It adds no figure to the statement, and reads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from securetm.reports.signed.report_paper import Items, Paper, PaperSection, Paragraph, TextTable, ToFillIn
from securetm.reports.signed.sheet_marks import sheet_marks, shown_digest
from securetm.reports.signed.statement import Statement

SIGNATURE_LINES = ("Name", "Function", "Place, date", "Signature")
_SIGNS = (
    "I have read this page. I answer for the documents of the organisation that is named below. I know of no run over these "
    "documents that is not counted above, and I agree that the files listed here leave."
)
_NO_INPUT = "Nothing but the agreed plan."


def sheet(statement: Statement, digest: str, name: str, annexes: Mapping[str, str]) -> Paper:
    """The sheet. `digest` is that of the statement's file, `name` the file's name, and `annexes` what belongs to this sheet."""
    files = {**statement.files, **annexes, name: digest}
    day = f", {statement.day}" if statement.day else ""
    return Paper(
        title=f"What leaves of the run “{statement.run}”, and what is hidden",
        subtitle=f"Statement {shown_digest(digest)}{day}. By securetm {statement.software}.",
        sections=tuple(_sections(statement, files)),
        annexes=tuple(annexes),
        foot=f"Statement {shown_digest(digest)}{day}",
        marks=sheet_marks(digest, files),
        day=statement.day,
        one_sheet=True,
    )


def _sections(statement: Statement, files: Mapping[str, str]) -> Iterator[PaperSection]:
    head, *rest = statement.bound
    yield PaperSection("What is hidden, and how well", (Paragraph(head, strong=True), *_listed(tuple(rest))))
    yield PaperSection("Who, and what was trained", (Paragraph(" ".join((*statement.who, *_trained(statement)))),))
    documents = (*statement.documents, statement.neighbours) if statement.neighbours else statement.documents
    yield PaperSection("Which documents", (Paragraph(" ".join(documents)),))
    yield PaperSection("From what it started", _listed(statement.origins) or (Paragraph(_NO_INPUT),))
    yield PaperSection("How the settings were chosen", (Paragraph(" ".join(statement.settings)),))
    yield PaperSection("What a failure would show", _listed(statement.failure))
    yield PaperSection("What is not covered", _listed(statement.not_covered))
    shares = (0.32, 0.68)
    rows = tuple((PurePath(name).name, digest) for name, digest in files.items())
    yield PaperSection("What belongs to this sheet", (TextTable(("file", "SHA-256"), rows, shares),))
    yield PaperSection("Signature", (Paragraph(_SIGNS, kept=True), ToFillIn(SIGNATURE_LINES)))


def _trained(statement: Statement) -> tuple[str, ...]:
    return (f"Model: {statement.model}. Protection: {statement.profile} ({statement.title[:1].lower()}{statement.title[1:]}).",)


def _listed(sentences: tuple[str, ...]) -> tuple[Items, ...]:
    return (Items(sentences),) if sentences else ()
