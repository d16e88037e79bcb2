"""`securetm serve`: coordinates a federation of separate organisations, or goes on with one that was interrupted."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli.json_output import Json, print_json
from securetm.cli.key_options import PassphraseFile
from securetm.cli.run_command import plan_settings

if TYPE_CHECKING:
    from securetm.federation.coordinator.serving import Serving
    from securetm.plans.schema import CoordinatorChoice


def serve(
    plan: Annotated[Path, typer.Argument(help="The plan in TOML that all parties hold, with a section [coordinator].")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Any setting of a plan, as section.name=value.")] = None,
    record: Annotated[bool, typer.Option("--record", help="Keep the content of every message, for an audit.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Print the log's JSON lines on stderr, instead of a dashboard.")] = False,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
) -> None:
    """Coordinates a federation: waits for the parties of the roster, trains with them, and hands out the model.

    Started again with the same plan it goes on from the last kept round. Ctrl-C or SIGTERM stops it, and nothing is lost.
    """
    from securetm.cli.passphrases import passphrase_for
    from securetm.credentials.diagnosis import ending_soon, now_utc
    from securetm.credentials.keys import keep_out_of_core_dumps
    from securetm.plans.recommend import read_plan

    keep_out_of_core_dumps()
    chosen = read_plan(plan, plan_settings(set_ or []))  # a mistake in it is told at once; what follows takes seconds to load
    from securetm.federation.coordinator.serving import CoordinatorFiles, operated
    from securetm.reports.keys import show_warnings
    from securetm.reports.statement.write import write_release

    files = CoordinatorFiles.read(chosen.coordinator, plan.parent, lambda folder: passphrase_for(folder, passphrase_file))
    show_warnings(ending_soon(files.roster, now_utc()))
    command = shlex.join(["securetm", "serve", str(plan), *(part for pair in set_ or [] for part in ("--set", pair))])
    beside = sys.stderr if log else None
    place = plan.parent / chosen.coordinator.out
    with (
        _terminated_like_ctrl_c(),
        operated(chosen, place, files, command, with_content=record, beside=beside) as serving,
        _shown(chosen.coordinator, serving, dashboard=not log),
    ):
        result = serving.run()
    if result["rounds"]:
        write_release(place)
    _show(result, json)


@contextmanager
def _terminated_like_ctrl_c() -> Iterator[None]:
    """SIGTERM stops the block as Ctrl-C does."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _shown(choice: CoordinatorChoice, serving: Serving, *, dashboard: bool) -> Iterator[None]:
    """Shows how the run stands: metrics, status page, and the terminal."""
    from securetm.federation.coordinator.pages import LocalPages, metrics_page
    from securetm.reports.federation import status_pages
    from securetm.reports.terminal import screen

    def facts() -> Mapping[str, Any]:
        return serving.status.facts().tables()

    with ExitStack() as opened:
        if choice.metrics:
            host, _, port = str(choice.metrics).rpartition(":")
            pages = {"/metrics": metrics_page(serving.status.facts)}
            opened.enter_context(LocalPages(pages, int(port), host or "127.0.0.1"))
        if choice.status:
            opened.enter_context(LocalPages(status_pages(facts), choice.status))
        if dashboard and screen().is_terminal:
            opened.enter_context(_dashboard(facts))
        elif dashboard:
            serving.status.tell = _note
        yield


def _note(refusal: str) -> None:
    from securetm.reports.terminal import screen

    screen().print(f"Note: {refusal}.", markup=False, soft_wrap=True)


def _dashboard(facts: Callable[[], Mapping[str, Any]]) -> AbstractContextManager[Any]:
    from securetm.reports.federation import Dashboard
    from securetm.reports.terminal import screen

    return Dashboard(screen(), facts)


def _show(result: Mapping[str, Any], json: bool) -> None:
    """The end of a run, as far as a coordinator may know it."""
    from securetm.reports.federation import show_served
    from securetm.reports.terminal import results

    show_served(result, results(json))
    if json:
        print_json(result)
