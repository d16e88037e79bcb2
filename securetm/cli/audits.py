"""`securetm audit` attacks runs and says what leaked; `securetm report` writes the page to sign, or shows an audit again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli.command import Output, command
from securetm.cli.options import ARGUMENT, COLUMN, FOLDERS, PassphraseFile
from securetm.data_classes import asdict, dataclass
from securetm.errors import BadSetting, Failed, Mistake, NoSuchPath
from securetm.wording import counted

if TYPE_CHECKING:
    from securetm.auditing.record import Audit

WHOLE, MINUTES = "full", 2.0  # the plan and the time of an audit of which only the run is named
FOREIGN = "foreign"  # in place of a plan: an audit of a model of another library
AT_HOME, AWAY = 2, 0  # findings' examples where only their owner reads them, and in a file that may be handed on
Html = Annotated[Path | None, "--html", "Write the report as one page."]
Markdown = Annotated[Path | None, "--markdown", "Write the report as Markdown."]
Examples = Annotated[
    int | None,
    "Leaked texts to quote for each finding; else 2 in the terminal, none in files.",
    {"min": 0, "max": 6, "show_default": False},
]


@dataclass(frozen=True)
class ForeignModel:
    """What an audit of a model of another library needs beside the model."""

    members: Annotated[Path | None, "With `foreign`: documents that the model was trained on."] = None
    non_members: Annotated[Path | None, "With `foreign`: documents of the same kind that it was not."] = None
    canaries_in: Annotated[Path | None, "With `foreign`: made documents that a fair coin put in."] = None
    canaries_out: Annotated[Path | None, "With `foreign`: made documents that it left out."] = None
    text: Annotated[str | None, "With `foreign`: the column of the text.", COLUMN] = None
    epsilon: Annotated[float | None, "With `foreign`: what its maker claims of a document.", {"min": 0}] = None
    delta: Annotated[float, "With `foreign`: the delta of that claim.", {"min": 0, "max": 1}] = 1e-5

    def audited(self, model: Path | None, out: Output) -> Audit:
        if model is None or self.members is None or self.non_members is None:
            raise typer.BadParameter("name the model, --members and --non-members")
        if (self.canaries_in is None) != (self.canaries_out is None):
            raise typer.BadParameter("--canaries-in and --canaries-out belong together")
        from securetm.auditing.foreign import ForeignFiles, audit_foreign
        from securetm.contracts import Budget, Unit

        both = (self.canaries_in, self.canaries_out) if self.canaries_in and self.canaries_out else None
        claimed = Budget(Unit.DOCUMENT, self.epsilon, self.delta) if self.epsilon is not None else None
        with out.bars() as bars:
            return audit_foreign(ForeignFiles(model, self.members, self.non_members, both, self.text, claimed), bars)


@command("quick --html audit.html")
def audit(
    out: Output,
    plan: Annotated[
        str, ARGUMENT, "An audit plan: one of audits/plans, such as quick, or a file. With --run alone: full."
    ] = "",
    model: Annotated[
        Path | None, ARGUMENT, "After `foreign`: a file of topics from another library, such as topics.npz."
    ] = None,
    run: Annotated[Path | None, "The folder of a run made with --record, to be tried too.", FOLDERS] = None,
    html: Html = None,
    markdown: Markdown = None,
    minutes: Annotated[
        float | None,
        "With --run: begin nothing that would take longer; 2 where no plan is named.",
        {"min": 0.1, "max": 100_000},
    ] = None,
    workers: Annotated[
        int | None, "So many processes; without it one, and with --run one for each core, at most 4.", {"min": 1, "max": 64}
    ] = None,
    keep: Annotated[Path | None, "Keep the runs that the audit makes in this folder, which must be empty or new."] = None,
    evidence: Annotated[Path | None, "Keep results in this folder, and carry out only what is missing there or stale."] = None,
    foreign: ForeignModel = ForeignModel(),
    examples: Examples = None,
) -> dict[str, Any]:
    """Carries out an audit plan; exits 1 if a claim of a profile was broken, or parties did not refuse what they should.

    Without --run it makes its own runs on public texts, first without protection: what does not break there proves nothing.
    """
    if plan == FOREIGN:
        check_places(html, markdown)
        found, kept = foreign.audited(model, out), ""
    else:
        if model is not None or foreign != ForeignModel(delta=foreign.delta):
            problem = "say `securetm audit foreign MODEL --members … --non-members …` to audit a model from elsewhere"
            raise typer.BadParameter(problem)
        found, kept = _audited(plan, run, minutes, (html, markdown), (evidence, keep), workers or 0, examples, out)
    return _handed_out(found, html, markdown, examples, out, kept)


def _audited(
    plan: str,
    run: Path | None,
    minutes: float | None,
    reports: tuple[Path | None, Path | None],
    folders: tuple[Path | None, Path | None],
    workers: int,
    examples: int | None,
    out: Output,
) -> tuple[Audit, str]:
    """The audit of the plan, with what an interrupted one has kept, and where that of a run is kept."""
    evidence, keep = folders
    if evidence is not None and run is not None:
        raise typer.BadParameter("evidence is of runs that the audit makes itself: leave one of --run and --evidence away")
    if run is None and not plan:
        raise typer.BadParameter("Missing argument 'plan': name one, such as quick, or a run with --run")
    if run is None and minutes is not None:
        raise typer.BadParameter("--minutes is for a run that is named with --run")
    if not plan:  # of a run alone, every attack that two minutes allow
        plan, minutes = WHOLE, MINUTES if minutes is None else minutes
    if plan.endswith(".toml") and not Path(plan).is_file():
        raise NoSuchPath(plan)
    check_places(*reports)
    _check_folders(evidence, keep)
    with _reporting_interruption(evidence, keep, run):
        from securetm.auditing.runner import audit as carried_out
        from securetm.reports.audits.records import write_record

        with out.bars() as bars:
            kept = None
            if run is not None:
                from securetm.auditing.given_run import Unfinished
                from securetm.auditing.plans import read_audit_plan
                from securetm.federation.folder import reopen

                kept = Unfinished(read_audit_plan(plan), reopen(run), minutes, _at_home(examples))
            if kept:
                trials = counted(len(kept), "trial")
                out.note(f"An audit of this run did not end: {trials} of it are kept in {kept.path}, and not made again.")
            found = carried_out(
                plan, run, evidence=evidence, keep=keep, stages=bars, minutes=minutes, kept=kept, workers=workers
            )
    if evidence is not None:
        out.note(_how_many_kept(found, plan, evidence))
    if run is None or kept is None:
        return found, ""
    place = write_record(found, run, _at_home(examples))
    kept.remove()
    again = f"show it again with securetm report {place}; the page to sign: securetm report {run} --pdf report.pdf"
    return found, f"Kept: {place}; {again}"


def _check_folders(evidence: Path | None, keep: Path | None) -> None:
    """Refuses before any result is made: a folder of evidence that cannot be written, a folder of runs with files in it."""
    from securetm.reports.files import check_folder, make_private

    if evidence is not None:
        check_folder(evidence)
    if keep is None:
        return
    make_private(keep, parents=True)
    if any(keep.iterdir()):
        problem = "holds files already, and runs of two audits would be mixed there"
        raise BadSetting("", "--keep", str(keep), problem, instead="name a folder that is empty or not there yet")


def _how_many_kept(found: Audit, plan: str, evidence: Path) -> str:
    before = sum(bool(finding.run.kept) for finding in found.findings)
    tried_now = len(found.refusals) - sum(bool(one.kept) for one in found.refusals)
    if before == len(found.findings) and not tried_now:
        return f"Nothing of {plan} is missing or stale in {evidence}: all that follows was kept there."
    now = counted(len(found.findings) - before, "result was", "results were")
    tried = f"; {counted(tried_now, 'refusal was', 'refusals were')} tried now" if tried_now else ""
    return f"{now} made now, and {counted(before, 'result')} of the same plan kept in {evidence} before{tried}."


@contextmanager
def _reporting_interruption(evidence: Path | None, keep: Path | None, run: Path | None) -> Iterator[None]:
    """Reports what was kept of an interrupted audit, and how to continue."""
    try:
        yield
    except KeyboardInterrupt as stop:
        kept, again = "no result was kept", "begin it again{}; with --evidence FOLDER an audit goes on where it was"
        if evidence is not None:
            kept = f"every part of it that was over is kept in {evidence}"
            again = "repeat the command: it goes on with what is missing{}"
        elif run is not None:
            kept = f"every trial that was over is kept below {run}"
            again = "repeat the command: it makes no trial again that was over{}"
        emptied = "" if keep is None else "; empty the folder of --keep before"
        raise Failed("the audit was interrupted; {kept}", hint=again.format(emptied), kept=kept) from stop


# ---- reports ---------------------------------------------------------------------------------------------------------


@command("runs/demo --html audit.html")
def report(
    out: Output,
    given: Annotated[
        list[str] | None,
        ARGUMENT,
        "The folder of a run; or an audit's record, which `securetm audit --json` printed.",
        FOLDERS,
        {"metavar": "RUN", "show_default": False},
    ] = None,
    html: Html = None,
    pdf: Annotated[Path | None, "--pdf", "Write the report of a run as a PDF, at most four sheets."] = None,
    markdown: Markdown = None,
    sign: Annotated[
        Path | None,
        "--sign",
        "Sign each sheet that is written, else those in `release`, with the party's keys in this home, as SHEET.sig.",
        {"metavar": "HOME"},
    ] = None,
    passphrase_file: PassphraseFile = None,
    verify: Annotated[
        bool,
        "--verify",
        "Compare a sheet, or all in `release`, with all that it speaks of, and check a signature: --verify SHEET "
        "[SIGNATURE TRUSTED]. TRUSTED is a roster, a request, or a key's fingerprint.",
    ] = False,
    examples: Examples = None,
) -> dict[str, Any]:
    """Says on one sheet to sign what leaves of a run and what is hidden; exits 1 if a promise was broken.

    The sheet's annex answers five questions, and says what was never tried. Of an audit's record it shows the audit again.
    With --verify it exits 1 if the sheet, or anything that it speaks of, is not as it was.
    """
    if verify:
        return _verified(given or [], out)
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
        return _of_run(run, (html, pdf, markdown), sign, passphrase_file, examples, out)
    from securetm.reports.audits.records import read_record

    return _handed_out(read_record(run), html, markdown, examples, out)


def _of_run(
    run: Path,
    files: tuple[Path | None, Path | None, Path | None],
    home: Path | None,
    passphrase_file: Path | None,
    examples: int | None,
    out: Output,
) -> dict[str, Any]:
    """Writes the page to sign. A promise that was broken is a gap."""
    from securetm.auditing.evidence import record
    from securetm.reports.document import Paragraph
    from securetm.reports.statement.write import check_released, write_signed_report
    from securetm.reports.terminal import show

    signer = None
    if home is not None:  # its keys are opened before anything is written
        from securetm.cli.passphrases import passphrase_for
        from securetm.credentials.homes import KEYS
        from securetm.credentials.report_signatures import Signer, home_of

        found = home_of(home)
        signer = Signer.open(found, passphrase_for(found / KEYS, passphrase_file))
    check_released(run)
    made = write_signed_report(run, *files, _away(examples))
    show((made.sheet, Paragraph(""), made.annex), out.results)
    for what, path in made.files:
        out.note(f"{what}: {path}")
    for path in made.signed_by(signer) if signer is not None else ():
        out.note(f"Signed: {path}")
    out.exit_code = 1 if made.broken else 0
    records = [record(audit, _at_home(examples)) for audit in made.audits]
    one = records[0] if len(records) == 1 else {}
    facts = {"report": asdict(made.report), "statement": asdict(made.statement)}
    return {**one, **facts, "audits": [audit.plan for audit in made.audits]}


def _no_run_given() -> Mistake:
    hint = (
        "give the folder of a run, or the file that `securetm audit --json` printed; with --verify a sheet or the folder "
        "`release`, and where it is signed, the signature and whom you trust"
    )
    return Mistake("it is not said of what to report", hint=hint)


def _verified(given: Sequence[str], out: Output) -> dict[str, Any]:
    """Compares a sheet with all that it speaks of, checks a signature where one is given, and says what came out."""
    from securetm.reports.statement.seal import compare_statement, show_compared

    if len(given) not in (1, 3):
        raise _no_run_given()
    file = Path(given[0])
    facts: dict[str, Any] = {"file": str(file)}
    if len(given) > 1:
        from securetm.credentials.keys import fingerprint_of
        from securetm.credentials.report_signatures import verified

        signed = verified(file, Path(given[1]), given[2])
        fingerprint = fingerprint_of(signed.identity)
        said = f"{file} is signed by {signed.name}, for the run {signed.run}. The key: {fingerprint}"
        out.results.print(said, markup=False, highlight=False)
        facts |= {"signed_by": signed.name, "role": signed.role, "fingerprint": fingerprint}
        facts |= {"run": signed.run, "run_digest": signed.run_digest, "sha256": signed.sha256.hex()}
    found = compare_statement(file)
    show_compared(found, out.results)
    out.exit_code = 1 if found.changed else 0
    return {**facts, **asdict(found)}


def check_places(*wanted: Path | None) -> None:
    """Refuses a file that cannot be written, or one for two reports, before anything is carried out for it."""
    from securetm.reports.files import cannot_write, check_writable

    places = [path for path in wanted if path is not None]
    for place, path in enumerate(places):
        if path.resolve() in [other.resolve() for other in places[:place]]:
            raise cannot_write(path, "it is named for two reports, and one would overwrite the other")
        check_writable(path)


def _handed_out(
    found: Audit, html: Path | None, markdown: Path | None, examples: int | None, out: Output, kept: str = ""
) -> dict[str, Any]:
    """Shows an audit, and writes the page and the summary as far as they are wanted. A promise that was broken is a gap."""
    from securetm.auditing.evidence import record
    from securetm.reports.audits.report import show_audit, write_audit, write_summary

    show_audit(found, _at_home(examples), out.results)
    if kept:
        out.note(kept)
    if html is not None:
        write_audit(found, html, _away(examples))
        out.note(f"The report: {html}")
    if markdown is not None:
        write_summary(found, markdown, _away(examples))
        out.note(f"The summary: {markdown}")
    out.exit_code = 1 if found.refuted_claims or found.broken_promises else 0
    return record(found, _at_home(examples))


def _at_home(examples: int | None) -> int:
    """How many examples to quote where only their owner reads them."""
    return AT_HOME if examples is None else examples


def _away(examples: int | None) -> int:
    """How many examples to quote in a file that may be handed on."""
    return AWAY if examples is None else examples
