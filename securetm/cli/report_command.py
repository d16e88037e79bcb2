"""`securetm report`: the page to sign about a run, and an audit shown again, without repeating any attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli import completion
from securetm.cli.json_output import Json, print_json
from securetm.cli.key_options import PassphraseFile
from securetm.errors import Mistake, NoSuchPath

if TYPE_CHECKING:
    from securetm.auditing.record import Audit
    from securetm.reports.statement.write import WrittenReport

Html = Annotated[Path | None, typer.Option("--html", help="Write the report as one page.")]
Pdf = Annotated[Path | None, typer.Option("--pdf", help="Write the report of a run as a PDF, at most four sheets.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", help="Write the report as Markdown.")]
Examples = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=6,
        help="Leaked texts to quote for each finding; else 2 in the terminal, none in files.",
        show_default=False,
    ),
]
Sign = Annotated[
    Path | None,
    typer.Option(
        "--sign",
        metavar="HOME",
        help="Sign each sheet that is written, else those in `release`, with the party's keys in this home, as SHEET.sig.",
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Compare a sheet, or all in `release`, with all that it speaks of, and check a signature: --verify SHEET "
        "[SIGNATURE TRUSTED]. TRUSTED is a roster, a request, or a key's fingerprint.",
    ),
]
AT_HOME, AWAY = 2, 0  # findings' examples where only their owner reads them, and in a file that may be handed on


def report(
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="The folder of a run; or an audit's record, which `securetm audit --json` printed.",
            show_default=False,
            autocompletion=completion.run_folders,
        ),
    ] = None,
    html: Html = None,
    pdf: Pdf = None,
    markdown: Markdown = None,
    sign: Sign = None,
    passphrase_file: PassphraseFile = None,
    verify: Verify = False,
    examples: Examples = None,
    json: Json = False,
) -> None:
    """Says on one sheet to sign what leaves of a run and what is hidden; exits 1 if a promise was broken.

    The sheet's annex answers five questions, and says what was never tried. Of an audit's record it shows the audit again.
    With --verify it exits 1 if the sheet, or anything that it speaks of, is not as it was.
    """
    if verify:
        _verify(given or [], json)
        return
    if not given or len(given) > 1:
        raise _no_run_given()
    run = Path(given[0])
    written = [one for one in (html, pdf, markdown) if one is not None]
    if sign is not None and not written and not run.is_dir():
        hint = "name one with --pdf, --html or --markdown"
        raise Mistake("a signature needs a file to sign, and none is written", hint=hint)
    check_places(*written)
    if not run.exists():
        raise NoSuchPath(str(run))
    if run.is_dir():
        broken = _of_run(run, html, pdf, markdown, sign, passphrase_file, examples, json)
    else:
        broken = _of_audit(run, html, markdown, examples, json)
    if broken:
        raise typer.Exit(1)


def _of_audit(record: Path, html: Path | None, markdown: Path | None, examples: int | None, json: bool) -> bool:
    """Shows an audit again, and returns whether a promise was broken."""
    from securetm.reports.audits.records import read_record
    from securetm.reports.audits.report import show_audit
    from securetm.reports.terminal import results

    found = read_record(record)
    show_audit(found, at_home(examples), results(json))
    hand_out(found, html, markdown, examples, json)
    return bool(found.refuted_claims or found.broken_promises)


def _of_run(
    run: Path,
    html: Path | None,
    pdf: Path | None,
    markdown: Path | None,
    home: Path | None,
    passphrase_file: Path | None,
    examples: int | None,
    json: bool,
) -> bool:
    """Writes the page to sign, and returns whether a promise was broken."""
    from securetm.reports.document import Paragraph
    from securetm.reports.statement.write import check_released, write_signed_report
    from securetm.reports.terminal import results, screen, show

    signer = _signer(home, passphrase_file)
    check_released(run)
    made = write_signed_report(run, html, pdf, markdown, away(examples))
    show((made.sheet, Paragraph(""), made.annex), results(json))
    to = screen()
    for what, path in made.files:
        to.print(f"{what}: {path}", markup=False)
    for path in made.signed_by(signer) if signer is not None else ():
        to.print(f"Signed: {path}", markup=False)
    if json:
        print_json(_in_json(made, at_home(examples)))
    return made.broken


def _signer(home: Path | None, passphrase_file: Path | None) -> Any:
    """The party's keys, opened before anything is written."""
    if home is None:
        return None
    from securetm.cli.passphrases import passphrase_for
    from securetm.credentials.homes import KEYS
    from securetm.credentials.report_signatures import Signer, home_of

    found = home_of(home)
    return Signer.open(found, passphrase_for(found / KEYS, passphrase_file))


def _in_json(made: WrittenReport, examples: int) -> dict[str, Any]:
    """The record of the run's audit, if there is one, and the facts of the page beside it."""
    from securetm.auditing.evidence import record

    records = [record(audit, examples) for audit in made.audits]
    one = records[0] if len(records) == 1 else {}
    facts = {"report": asdict(made.report), "statement": asdict(made.statement)}
    return {**one, **facts, "audits": [audit.plan for audit in made.audits]}


def _no_run_given() -> Mistake:
    hint = (
        "give the folder of a run, or the file that `securetm audit --json` printed; with --verify a sheet or the folder "
        "`release`, and where it is signed, the signature and whom you trust"
    )
    return Mistake("it is not said of what to report", hint=hint)


def _verify(given: Sequence[str], json: bool) -> None:
    """Compares a sheet with all that it speaks of, checks a signature where one is given, and says what came out."""
    from securetm.reports.statement.verify import compare_statement, show_compared
    from securetm.reports.terminal import results

    if len(given) not in (1, 3):
        raise _no_run_given()
    file = Path(given[0])
    facts = _signed(file, Path(given[1]), given[2], json) if len(given) > 1 else {"file": str(file)}
    found = compare_statement(file)
    show_compared(found, results(json))
    if json:
        print_json({**facts, **asdict(found)})
    if found.changed:
        raise typer.Exit(1)


def _signed(file: Path, signature: Path, trusted: str, json: bool) -> dict[str, Any]:
    """Checks a signature, and says who signed what."""
    from securetm.credentials.keys import fingerprint_of
    from securetm.credentials.report_signatures import verified
    from securetm.reports.terminal import results

    signed = verified(file, signature, trusted)
    fingerprint = fingerprint_of(signed.identity)
    said = f"{file} is signed by {signed.name}, for the run {signed.run}. The key: {fingerprint}"
    results(json).print(said, markup=False, highlight=False)
    who = {"file": str(file), "signed_by": signed.name, "role": signed.role, "fingerprint": fingerprint}
    return {**who, "run": signed.run, "run_digest": signed.run_digest, "sha256": signed.sha256.hex()}


def check_places(*wanted: Path | None) -> None:
    """Refuses a file that cannot be written, or one for two reports, before anything is carried out for it."""
    from securetm.reports.files import cannot_write, check_writable

    places = [path for path in wanted if path is not None]
    for place, path in enumerate(places):
        if path.resolve() in [other.resolve() for other in places[:place]]:
            raise cannot_write(path, "it is named for two reports, and one would overwrite the other")
        check_writable(path)


def at_home(examples: int | None) -> int:
    """How many examples to quote where only their owner reads them."""
    return AT_HOME if examples is None else examples


def away(examples: int | None) -> int:
    """How many examples to quote in a file that may be handed on."""
    return AWAY if examples is None else examples


def hand_out(found: Audit, html: Path | None, markdown: Path | None, examples: int | None, json: bool) -> None:
    """Writes the page, the summary and the JSON document, as far as they are wanted."""
    from securetm.auditing.evidence import record
    from securetm.reports.audits.report import write_audit, write_summary
    from securetm.reports.terminal import screen

    to = screen()
    if html is not None:
        write_audit(found, html, away(examples))
        to.print(f"The report: {html}", markup=False)
    if markdown is not None:
        write_summary(found, markdown, away(examples))
        to.print(f"The summary: {markdown}", markup=False)
    if json:
        print_json(record(found, at_home(examples)))
