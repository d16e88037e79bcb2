"""Writes the page to sign in its forms, with the technical pages of the audits as annexes, and signatures beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from securetm.credentials.report_signatures import ENDING, Signer
from securetm.leakage.audit_record import Audit
from securetm.leakage.verdicts import BROKEN
from securetm.reports.audit_page import audit_page
from securetm.reports.audit_wording import quotes
from securetm.reports.signed.made_report import signed_report
from securetm.reports.signed.paper_markdown import in_markdown
from securetm.reports.signed.paper_page import in_html
from securetm.reports.signed.report_facts import SignedReport
from securetm.reports.signed.report_paper import Paper, paper
from securetm.reports.signed.report_sources import sources_of
from securetm.reports.writing import check_writable, write_report

_PAGES = ("The page", "The PDF", "The text")


@dataclass(frozen=True)
class WrittenReport:
    """The report of a run, and where its forms lie."""

    report: SignedReport
    paper: Paper
    audits: tuple[Audit, ...]
    files: tuple[tuple[str, Path], ...]  # what each is, and where

    @property
    def broken(self) -> bool:
        """Whether an attack refuted a promise, or parties did not refuse what they should."""
        own = any(audit.refuted_claims or audit.broken_promises for audit in self.audits)
        return own or any(one.standing == BROKEN for one in self.report.answers)

    def signed_by(self, signer: Signer) -> Iterator[Path]:
        """Writes a signature beside each form of the page, and returns where."""
        for _, path in (one for one in self.files if one[0] in _PAGES):
            signature = signer.sign(path.read_bytes(), self.report.run, self.report.digests.get("run", ""))
            beside = path.with_name(path.name + ENDING)
            write_report(beside, signature.text())
            yield beside


def write_signed_report(run: Path, html: Path | None, pdf: Path | None, markdown: Path | None, examples: int) -> WrittenReport:
    """Writes the forms that are wanted. Each names the annexes with their digests, so that a signature covers these, too."""
    if pdf is not None:
        from securetm.reports.signed.paper_pdf import check_library

        check_library()
    sources = sources_of(run)
    report, audits = signed_report(sources), tuple(audit for audit, _ in sources.audits)
    first = next((one for one in (html, pdf, markdown) if one is not None), None)
    annexes = [] if first is None else list(_annexes(audits, first, examples))
    report = replace(report, annexes={path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in annexes})
    made = paper(report)
    files = [*_forms(made, html, pdf, markdown), *(("The annex", path) for path in annexes)]
    return WrittenReport(report, made, audits, tuple(files))


def _annexes(audits: Sequence[Audit], beside: Path, examples: int) -> Iterator[Path]:
    """Writes the technical page of each audit beside the report."""
    for audit in audits:
        path = beside.with_name(f"{beside.stem}.annex-{audit.plan}.html")
        check_writable(path)
        write_report(path, audit_page(audit, examples), private=quotes(audit, examples))
        yield path


def _forms(made: Paper, html: Path | None, pdf: Path | None, markdown: Path | None) -> Iterator[tuple[str, Path]]:
    page, sheets, text = _PAGES
    if html is not None:
        write_report(html, in_html(made))
        yield page, html
    if pdf is not None:
        from securetm.reports.signed.paper_pdf import in_pdf

        write_report(pdf, in_pdf(made))
        yield sheets, pdf
    if markdown is not None:
        write_report(markdown, in_markdown(made))
        yield text, markdown
