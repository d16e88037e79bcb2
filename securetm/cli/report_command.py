"""`securetm report`: shows again what an audit found, in the terminal or as a page, without repeating any attack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from securetm.cli.json_output import Json, print_json
from securetm.reports.report_errors import CannotWriteReport

if TYPE_CHECKING:
    from securetm.leakage.audit_record import Audit

Html = Annotated[Path | None, typer.Option("--html", help="Write the report as one page.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", help="Write a short summary as Markdown.")]
Examples = Annotated[int, typer.Option(min=0, max=6, help="Documents quoted for each finding; 0 quotes none.")]


def report(
    audit: Annotated[Path, typer.Argument(help="What `securetm audit --json` printed, or the folder of a run that was tried.")],
    html: Html = None,
    markdown: Markdown = None,
    examples: Examples = 2,
    json: Json = False,
) -> None:
    """Shows an audit again that was carried out before; exits 1 where `securetm audit` did."""
    from securetm.reports.audit_file import read_record
    from securetm.reports.audit_screen import show_audit
    from securetm.reports.terminal import results

    check_places(html, markdown)
    found = read_record(audit)
    show_audit(found, examples, results(json))
    hand_out(found, html, markdown, examples, json)
    if found.refuted_claims or found.broken_promises:
        raise typer.Exit(1)


def check_places(*wanted: Path | None) -> None:
    """Refuses a file that cannot be written, or one for two reports, before anything is carried out for it."""
    from securetm.reports.writing import check_writable

    places = [path for path in wanted if path is not None]
    for place, path in enumerate(places):
        if path.resolve() in [other.resolve() for other in places[:place]]:
            raise CannotWriteReport(str(path), "it is named for two reports, and one would overwrite the other")
        check_writable(path)


def hand_out(found: Audit, html: Path | None, markdown: Path | None, examples: int, json: bool) -> None:
    """Writes the page, the summary and the JSON document, as far as they are wanted."""
    from securetm.leakage.audit_record import record
    from securetm.reports.audit_page import write_audit
    from securetm.reports.audit_summary import write_summary
    from securetm.reports.terminal import screen

    to = screen()
    if html is not None:
        write_audit(found, html, examples)
        to.print(f"The report: {html}", markup=False)
    if markdown is not None:
        write_summary(found, markdown, examples)
        to.print(f"The summary: {markdown}", markup=False)
    if json:
        print_json(record(found, examples))
