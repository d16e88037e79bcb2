"""`securetm audit`: attacks real runs with what their adversaries saw, and reports what leaked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from securetm.cli import completion
from securetm.cli.audit_foreign import FOREIGN, foreign
from securetm.cli.command_errors import AuditInterrupted
from securetm.cli.json_output import Json
from securetm.cli.report_command import Examples, Html, Markdown, at_home, check_places, hand_out
from securetm.errors import BadSetting, NoSuchPath

if TYPE_CHECKING:
    from securetm.auditing.given_run import Unfinished
    from securetm.auditing.record import Audit

WHOLE, MINUTES = "full", 2.0  # the plan and the time of an audit of which only the run is named


def audit(
    plan: Annotated[
        str, typer.Argument(help="An audit plan: one of audits/plans, such as quick, or a file. With --run alone: full.")
    ] = "",
    model: Annotated[
        Path | None, typer.Argument(help="After `foreign`: a file of topics from another library, such as topics.npz.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(help="The folder of a run made with --record, to be tried too.", autocompletion=completion.run_folders),
    ] = None,
    html: Html = None,
    markdown: Markdown = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.1, max=100_000, help="With --run: begin nothing that would take longer; 2 where no plan is named."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="So many processes; without it one, and with --run one for each core, at most 4."),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the runs that the audit makes in this folder, which must be empty or new.")
    ] = None,
    evidence: Annotated[
        Path | None, typer.Option(help="Keep results in this folder, and carry out only what is missing there or stale.")
    ] = None,
    members: Annotated[Path | None, typer.Option(help="With `foreign`: documents that the model was trained on.")] = None,
    non_members: Annotated[
        Path | None, typer.Option(help="With `foreign`: documents of the same kind that it was not.")
    ] = None,
    canaries_in: Annotated[Path | None, typer.Option(help="With `foreign`: made documents that a fair coin put in.")] = None,
    canaries_out: Annotated[Path | None, typer.Option(help="With `foreign`: made documents that it left out.")] = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="With `foreign`: the column of the text.")] = None,
    epsilon: Annotated[float | None, typer.Option(min=0, help="With `foreign`: what its maker claims of a document.")] = None,
    delta: Annotated[float, typer.Option(min=0, max=1, help="With `foreign`: the delta of that claim.")] = 1e-5,
    examples: Examples = None,
    json: Json = False,
) -> None:
    """Carries out an audit plan; exits 1 if a claim of a profile was broken, or parties did not refuse what they should.

    Without --run it makes its own runs on public texts, first without protection: what does not break there proves nothing.
    """
    if plan == FOREIGN:
        foreign(
            model, members, non_members, (canaries_in, canaries_out), text, epsilon, delta, (html, markdown, examples, json)
        )
        return
    _refuse_of_foreign(model, members, non_members, canaries_in, canaries_out, text, epsilon)
    if evidence is not None and run is not None:
        raise typer.BadParameter("evidence is of runs that the audit makes itself: leave one of --run and --evidence away")
    plan, minutes = _chosen(plan, run, minutes)
    if plan.endswith(".toml") and not Path(plan).is_file():
        raise NoSuchPath(plan)
    check_places(html, markdown)
    _check_folders(evidence, keep)
    with _reporting_interruption(evidence, keep, run):
        from securetm.auditing.runner import audit as carried_out
        from securetm.reports.audits.records import write_record
        from securetm.reports.audits.report import show_audit
        from securetm.reports.terminal import Bars, results, screen

        to = screen()
        with Bars(to) as bars:
            kept = None if run is None else _kept_of(plan, run, minutes, at_home(examples))
            if kept:
                to.print(_goes_on(kept), markup=False)
            found = carried_out(
                plan, run, evidence=evidence, keep=keep, stages=bars, minutes=minutes, kept=kept, workers=workers or 0
            )
    if evidence is not None:
        to.print(_how_many_kept(found, plan, evidence), markup=False)
    show_audit(found, at_home(examples), results(json))
    if run is not None and kept is not None:
        place = write_record(found, run, at_home(examples))
        kept.remove()
        again = f"show it again with securetm report {place}; the page to sign: securetm report {run} --pdf report.pdf"
        to.print(f"Kept: {place}; {again}", markup=False)
    hand_out(found, html, markdown, examples, json)
    if found.refuted_claims or found.broken_promises:
        raise typer.Exit(1)


def _refuse_of_foreign(*given: object) -> None:
    """Refuses options that are about a model from elsewhere, where none is audited."""
    if any(one is not None for one in given):
        raise typer.BadParameter(
            "say `securetm audit foreign MODEL --members … --non-members …` to audit a model from elsewhere"
        )


def _chosen(plan: str, run: Path | None, minutes: float | None) -> tuple[str, float | None]:
    """The plan and the time: of a run alone, every attack that two minutes allow."""
    if run is None and not plan:
        raise typer.BadParameter("Missing argument 'plan': name one, such as quick, or a run with --run")
    if run is None and minutes is not None:
        raise typer.BadParameter("--minutes is for a run that is named with --run")
    return (plan, minutes) if plan else (WHOLE, MINUTES if minutes is None else minutes)


def _kept_of(plan: str, run: Path, minutes: float | None, examples: int) -> Unfinished:
    """What an audit of this run that did not end has kept."""
    from securetm.auditing.given_run import Unfinished
    from securetm.auditing.plans import read_audit_plan
    from securetm.federation.folder import reopen

    return Unfinished(read_audit_plan(plan), reopen(run), minutes, examples)


def _goes_on(kept: Unfinished) -> str:
    from securetm.wording import counted

    return f"An audit of this run did not end: {counted(len(kept), 'trial')} of it are kept in {kept.path}, and not made again."


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
    from securetm.wording import counted

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
        emptied = "" if keep is None else "; empty the folder of --keep before"
        if evidence is not None:
            again = f"repeat the command: it goes on with what is missing{emptied}"
            raise AuditInterrupted(f"every part of it that was over is kept in {evidence}", again) from stop
        if run is not None:
            again = f"repeat the command: it makes no trial again that was over{emptied}"
            raise AuditInterrupted(f"every trial that was over is kept below {run}", again) from stop
        again = f"begin it again{emptied}; with --evidence FOLDER an audit keeps its results and goes on where it was"
        raise AuditInterrupted("no result was kept", again) from stop
