"""Writes the statement on a run in its forms, each with its annex, and signatures beside them; and the one of `release/`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from securetm.auditing.record import BROKEN, Audit
from securetm.corpus.corpus import Corpus
from securetm.credentials.report_signatures import ENDING, Signer
from securetm.data_classes import dataclass, replace
from securetm.federation.budget.forecast import check_words
from securetm.federation.folder import begin
from securetm.federation.release import MODEL, RELEASE
from securetm.federation.simulation.simulation import execute
from securetm.federation.soundness import check_floor
from securetm.plans.agreement import agree
from securetm.reports.audits.report import audit_page
from securetm.reports.audits.wording import quotes
from securetm.reports.document import Document
from securetm.reports.files import check_writable, make_private, write_report
from securetm.reports.markdown import in_markdown
from securetm.reports.pages import in_html
from securetm.reports.statement.annex import annex, annex_foot, bind, signed_report
from securetm.reports.statement.pdf import check_library, has_library, in_pdf
from securetm.reports.statement.questions import SignedReport
from securetm.reports.statement.seal import HTML, MARKDOWN, PDF, STATEMENT, annex_marks, sealed, sha256_of
from securetm.reports.statement.sources import released_files, sources_of
from securetm.reports.statement.statement import Statement, sheet, statement_on
from securetm.runs.finished import FederationResult
from securetm.runs.given_parties import in_their_language
from securetm.stages import Unwatched

_SHEETS = {HTML: "The page", PDF: "The PDF", MARKDOWN: "The text"}


@dataclass(frozen=True)
class WrittenReport:
    """The report of a run, and where its forms lie."""

    report: SignedReport
    statement: Statement
    sheet: Document
    annex: Document
    audits: tuple[Audit, ...]
    files: tuple[tuple[str, Path], ...]  # what each is, and where
    release: Path  # of the run

    @property
    def broken(self) -> bool:
        """Whether an attack refuted a promise, or parties did not refuse what they should."""
        own = any(audit.refuted_claims or audit.broken_promises for audit in self.audits)
        return own or any(one.standing == BROKEN for one in self.report.answers)

    def signed_by(self, signer: Signer) -> Iterator[Path]:
        """Writes a signature beside each form of the sheet, and returns where. It covers all that the sheet speaks of.

        Where no sheet was written, those in `release/` are signed.
        """
        released = [self.release / f"{STATEMENT}{form}" for form in _SHEETS]
        written = [path for what, path in self.files if what in _SHEETS.values()]
        for path in written or [one for one in released if one.is_file()]:
            signature = signer.sign(path.read_bytes(), self.report.run, self.report.digests.get("run", ""))
            beside = path.with_name(path.name + ENDING)
            write_report(beside, signature.text())
            yield beside


def write_release(run: Path) -> None:
    """Writes the statement of a finished run into its `release/`, in all forms that can be written here.

    One that is there and speaks of the same files stays: somebody may have signed it. It has no annex: what was tried on this
    run is a figure of its documents, and may not leave.
    """
    folder, name = run / RELEASE, f"{STATEMENT}.json"
    make_private(folder)
    if _speaks_of(folder / name) == released_files(run):
        return
    statement = statement_on(sources_of(run))
    content = statement.as_file()
    write_report(folder / name, content, private=True)
    made = sheet(statement, _sha256(content), name, {})
    for form in (HTML, MARKDOWN, *([PDF] if has_library() else [])):
        write_report(folder / f"{STATEMENT}{form}", sealed(_in_form(made, form)), private=True)


def _speaks_of(statement: Path) -> dict[str, str] | None:
    """The files that a statement speaks of; None where it cannot be read."""
    try:
        return dict(json.loads(statement.read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_released(run: Path) -> None:
    """Writes the statement of a run that has ended without one, as under Flower or after a crash."""
    if (run / RELEASE / MODEL).is_file() and not (run / RELEASE / f"{STATEMENT}.json").is_file():
        write_release(run)


def write_signed_report(run: Path, html: Path | None, pdf: Path | None, markdown: Path | None, examples: int) -> WrittenReport:
    """Writes the sheets that are wanted, with the statement and an annex beside each, which a signature under it covers."""
    if pdf is not None:
        check_library()
    sources = sources_of(run)
    report, audits, statement = signed_report(sources), tuple(audit for audit, _ in sources.audits), statement_on(sources)
    content = statement.as_file()
    digest, day = _sha256(content), max((statement.day, *(audit.made for audit in audits)))
    wanted = {form: path for form, path in ((HTML, html), (PDF, pdf), (MARKDOWN, markdown)) if path is not None}
    files: list[tuple[str, Path]] = []
    if wanted:
        first, technical = next(iter(wanted.values())), dict[str, str]()
        for audit in audits:  # the technical page of each beside the report, as a part of the annex
            path = first.with_name(f"{first.stem}.annex-{audit.plan}.html")
            check_writable(path)
            page = audit_page(audit, examples, annex_foot(digest, day), annex_marks(digest))
            write_report(path, page, private=quotes(audit, examples))
            technical[path.name] = sha256_of(path)
            files.append(("The annex", path))
        report = replace(report, annexes=technical)
    second = bind(annex(report), digest, day)
    for form, path in wanted.items():
        files = [(_SHEETS[form], path), *_beside(path, form, statement, second, report.annexes), *files]
    return WrittenReport(
        report, statement, sheet(statement, digest, f"{STATEMENT}.json", {}), second, audits, tuple(files), run / RELEASE
    )


def _beside(
    path: Path, form: str, statement: Statement, annex: Document, technical: Mapping[str, str]
) -> Iterator[tuple[str, Path]]:
    """Writes a sheet, and before it what it speaks of: the statement's file and the annex in the same form."""
    facts, content = path.with_name(f"{path.stem}.{STATEMENT}.json"), statement.as_file()
    second = path.with_name(f"{path.stem}.annex{form}")
    for one in (facts, second):
        check_writable(one)
    written = _in_form(annex, form)
    write_report(facts, content)
    write_report(second, written)
    made = sheet(statement, _sha256(content), facts.name, {second.name: _sha256(written), **technical})
    write_report(path, sealed(_in_form(made, form)))
    yield "The annex", second
    yield "The facts", facts


def _in_form(made: Document, form: str) -> bytes:
    if form == PDF:
        return in_pdf(made)
    return (in_html(made) if form == HTML else in_markdown(made)).encode("utf-8", "backslashreplace")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def federate(
    corpora: Mapping[str, Corpus | Sequence[str]],
    folder: str | Path,
    settings: Mapping[str, Any] | None = None,
    *,
    workers: int = 1,
    ledgers: str | Path | None = None,
    comparison: bool = True,
) -> FederationResult:
    """Trains a federation of these parties in a new folder. Returns the table that `securetm run --json` prints.

    Texts in the place of a corpus are read as the plan says, with the stop words of their language as in `securetm run`.

    `settings` are those of a plan, by dotted name: {"profile": "open", "model.n_topics": 20, "training.rounds": 500}. Totals of
    the result (`rounds`, `seconds`, `bytes_up`, `bytes_down`) are those of the whole run, whatever interrupted it: seconds are
    added up over its parts, and bytes are all that was sent, also for rounds that were run again; `rounds` led to the model.
    `comparison=False` leaves out what each party learns alone, which takes about as long as the training.
    A privacy budget is that of this trial, unless `ledgers` is a folder: there it is the documents' own, over all runs.
    What may leave of the run is in `release/` in the folder, with a statement; nothing else may.
    """
    plan, read = in_their_language(corpora, settings or {}, stacklevel=3)
    agreement = agree(plan)
    check_floor(agreement, len(read))
    check_words(agreement, read)
    begun = begin(Path(folder), plan, read, ledgers=None if ledgers is None else Path(ledgers))
    result = FederationResult(execute(begun, Unwatched(), workers=workers, comparison=comparison))
    if result["rounds"]:
        write_release(Path(folder))
    return result
