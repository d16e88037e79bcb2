"""A federation of separate organisations: its files for a trial, its coordinator, its parties, and whether these work."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from securetm.cli.command import Output, command
from securetm.cli.options import ARGUMENT, PROFILES, PassphraseFile, Settings, check_courier
from securetm.cli.run import plan_settings
from securetm.data_classes import dataclass
from securetm.errors import Failed, SecuretmError, named_in
from securetm.foreign_text import printable
from securetm.reports.files import StandardOutput
from securetm.settings import require
from securetm.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from securetm.credentials.keys import Keys
    from securetm.credentials.roster import FederationRoster
    from securetm.federation.coordinator.serving import CoordinatorFiles, Serving
    from securetm.federation.courier.one_pass import Pass
    from securetm.federation.courier.places import Place
    from securetm.federation.party.joining import Carrier, Joining
    from securetm.federation.party.reply_times import PacedParty
    from securetm.federation.party.status import JoinStatus, Tell
    from securetm.plans.agreement import Agreement
    from securetm.plans.schema import CoordinatorChoice, Plan
    from securetm.reports.federation import JoinScreen

Told = Callable[[], tuple[str, bytes]]  # what a page is when it is asked for
Courier = Annotated[
    str | None,
    "Exchange files in this folder or store (sftp://..., s3://...); open no connection.",
    {"metavar": "FOLDER"},
]
_LOOKS = 0.25  # seconds between two looks at the standing
_MOST_PORT = 65_535
_LEDGER_LOOKS = 60  # looks between two at the ledger, which takes longer


# ---- init ------------------------------------------------------------------------------------------------------------


@command("trial")
def init(
    out: Output,
    folder: Annotated[Path, ARGUMENT, "A folder that is empty or not there yet."] = Path("trial"),
    profile: Annotated[str, "Privacy profile; see `securetm explain`.", PROFILES] = "masked",
    rounds: Annotated[int, "Most training rounds.", {"min": 1, "max": 100_000}] = 40,
    host: Annotated[str, "Where parties reach the coordinator; this machine, unless it is named."] = "127.0.0.1",
    port: Annotated[int, "Port of the coordinator; 0: one that is free now.", {"min": 0, "max": 65_535}] = 0,
    run: Annotated[bool, "--run", "Run it, too: six processes, beside a simulation of the same."] = False,
) -> dict[str, Any]:
    """Writes a plan, five parties with documents, keys and a signed roster: a federation to try on this machine.

    The documents are docstrings of installed packages. Change the files for a federation of your own.
    """
    from securetm.trial.files import make_trial

    with out.bars() as bars:
        trial = make_trial(folder, profile, rounds, bars, host=host, port=port)
    facts = {"folder": str(trial.path), "parties": trial.parties, "commands": trial.commands}
    if run:
        from securetm.reports.statement.write import write_release
        from securetm.trial.processes import SIMULATION, run_processes, run_simulation, same_models
        from securetm.trial.screen import live, show_ended

        with out.bars() as bars:
            simulated = run_simulation(trial, bars)
        with live(out.screen) as show:
            seconds = run_processes(trial, show)
        ended = same_models(trial, simulated, seconds)
        write_release(trial.path / SIMULATION)
        show_ended(ended, out.results)
        return facts | {"model": ended.model, "copies": ended.copies, "seconds": round(seconds, 1), "run": str(trial.run)}
    whose = f"A coordinator and {len(trial.parties)} parties with documents are in {trial.path}."
    out.results.print(f"{whose} Type each line in a terminal of its own:", markup=False)
    for words in trial.commands:
        out.results.print(f"  securetm {shlex.join(words)}", markup=False, soft_wrap=True)
    return facts


# ---- serve -----------------------------------------------------------------------------------------------------------


@command("plan.toml")
def serve(
    out: Output,
    plan: Annotated[Path, ARGUMENT, "The plan in TOML that all parties hold, with a section [coordinator]."],
    set_: Settings = None,
    record: Annotated[bool, "--record", "Keep the content of every message, for an audit."] = False,
    log: Annotated[bool, "--log", "Print the log's JSON lines on stderr, instead of a dashboard."] = False,
    courier: Courier = None,
    passphrase_file: PassphraseFile = None,
) -> Mapping[str, Any]:
    """Coordinates a federation: waits for the parties of the roster, trains with them, and hands out the model.

    Started again with the same plan it goes on from the last kept round. Ctrl-C or SIGTERM stops it, and nothing is lost.
    """
    check_courier(courier)
    chosen, files = _coordinator_files(plan, set_, passphrase_file, connects=courier is None)
    from securetm.federation.coordinator.serving import operated

    by_courier = ("--courier", courier) if courier else ()
    words = ("securetm", "serve", str(plan), *by_courier, *(part for pair in set_ or [] for part in ("--set", pair)))
    run = plan.parent / chosen.coordinator.out, files
    about: dict[str, Any] = {"with_content": record, "beside": sys.stderr if log else None}
    with _terminated_like_ctrl_c(), ExitStack() as opened:
        if courier:
            from securetm.federation.courier.coordinator_end import served_by_courier

            carried = served_by_courier(chosen, *run, _place(courier), shlex.join(words), every=_every(courier), **about)
            serving: Serving = opened.enter_context(carried)
            _say_passes(serving.folder.agreement, out.screen)
        else:
            serving = opened.enter_context(operated(chosen, *run, shlex.join(words), **about))
        opened.enter_context(_shown(chosen.coordinator, serving, out, dashboard=not log))
        result = serving.run()
    return _served(result, plan.parent / chosen.coordinator.out, out)


def _coordinator_files(
    plan: Path, set_: list[str] | None, passphrase_file: Path | None, *, connects: bool
) -> tuple[Plan, CoordinatorFiles]:
    from securetm.cli.passphrases import passphrase_for
    from securetm.credentials.diagnosis import ending_soon, now_utc, said_of_build
    from securetm.credentials.keys import keep_out_of_core_dumps
    from securetm.plans.recommend import whole_plan

    keep_out_of_core_dumps()
    chosen = whole_plan(plan, plan_settings(set_ or []))  # a mistake in it is told at once; what follows takes seconds to load
    from securetm.federation.coordinator.serving import CoordinatorFiles
    from securetm.reports.keys import show_warnings

    passphrase = partial(passphrase_for, file=passphrase_file)
    with named_in(plan, plan.parent / chosen.coordinator.roster):
        files = CoordinatorFiles.read(chosen.coordinator, plan.parent, passphrase, connects=connects)
    show_warnings((*ending_soon(files.roster, now_utc()), *filter(None, [said_of_build(files.roster)])))
    return chosen, files


def _served(result: Mapping[str, Any], place: Path, out: Output) -> Mapping[str, Any]:
    from securetm.reports.federation import show_served
    from securetm.reports.statement.write import write_release

    if result["rounds"]:
        write_release(place)
    show_served(result, out.results)
    return result


def _place(courier: str) -> Place:
    from securetm.federation.courier.places import place_of

    return place_of(courier)


def _say_passes(agreement: Agreement, on: Console) -> int:
    """Says what a run by courier takes, before anything starts."""
    from securetm.federation.courier.passes import passes_of

    passes = passes_of(agreement)
    on.print(f"By courier this run takes {counted(passes, 'pass', 'passes')} of each party at most.", markup=False)
    return passes


def _every(courier: str) -> float:
    """Seconds between two looks at the letters: a store on the network charges for each."""
    return 15.0 if "://" in courier else 1.0


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
def _shown(choice: CoordinatorChoice, serving: Serving, out: Output, *, dashboard: bool) -> Iterator[None]:
    """Shows how the run stands: metrics, status page, and the terminal."""
    from securetm.federation.coordinator.pages import RunMetrics, metrics_page
    from securetm.reports.federation import live_picture, status_pages

    facts = serving.status.facts
    pages = metrics_page(RunMetrics(facts)), status_pages(facts)
    with _served_pages(str(choice.metrics or ""), choice.status, *pages) as opened:
        if dashboard and out.screen.is_terminal:
            opened.enter_context(live_picture(out.screen, facts))
        elif dashboard:
            serving.status.tell = lambda refusal: out.screen.print(f"Note: {refusal}.", markup=False, soft_wrap=True)
        yield


@contextmanager
def _served_pages(metrics: str, status: int, metrics_page: Told, status_pages: Mapping[str, Told]) -> Iterator[ExitStack]:
    """Serves metrics at that port or address, and the status page at that port, as far as they are wanted."""
    from securetm.federation.coordinator.pages import LocalPages

    host, _, port = metrics.rpartition(":")
    with ExitStack() as opened:
        if metrics:
            is_port = port.isascii() and port.isdigit() and len(port) <= len(str(_MOST_PORT)) and int(port) <= _MOST_PORT
            require(is_port, "", "--metrics", metrics, f"must be PORT or ADDRESS:PORT, with a port up to {_MOST_PORT}")
            opened.enter_context(LocalPages({"/metrics": metrics_page}, int(port), host or "127.0.0.1"))
        if status:
            opened.enter_context(LocalPages(status_pages, status))
        yield opened


# ---- join ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Monitoring:
    """Options of `join`, none of which tells anybody else."""

    log: Annotated[bool, "--log", "Print a log in lines of JSON on stderr, instead of a panel."] = False
    metrics: Annotated[str, "Where Prometheus finds metrics; on this machine.", {"metavar": "[ADDRESS:]PORT"}] = ""
    status: Annotated[int, "Port of a status page on this machine; 0: none.", {"min": 0, "max": 65_535}] = 0


_TOLD = {  # each event in words
    "connected": "connected to the coordinator",
    "lost": "connection lost: {reason}",
    "not_connected": "not connected: {reason}",
    "answered": "round {round}: answered {question} number {number}, {bytes:,} bytes",
    "refused": "refused what the coordinator asked, which is told {name} and no more: {reason} ({hint})",
    "failed": "failed here, and the coordinator is told nothing: {name}: {reason} ({hint})",
}
_ROUND_EVERY = 10.0  # seconds between two plain lines about answers


class Lines:
    """Tells each event in a line of words on standard error, or of JSON on standard output, from any thread."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._json, self._last_round = as_json, 0.0

    def tell(self, event: str, facts: Mapping[str, Any]) -> None:
        if self._json:
            out = StandardOutput()
            out.write(json.dumps({"event": event, **facts}, ensure_ascii=True) + "\n")
            out.flush()
            return
        if event == "answered":
            now = time.monotonic()
            if self._last_round and now - self._last_round < _ROUND_EVERY:
                return  # thousands of lines help nobody
            self._last_round = now
        sys.stderr.write(printable(_TOLD[event].format_map(facts)) + "\n")


def log_event(event: str, facts: Mapping[str, Any]) -> None:
    """Writes one line. What may tell of documents is in none: `LOGGED` says what is."""
    from securetm.federation.party.status import log_line

    sys.stderr.write(log_line(event, facts) + "\n")
    sys.stderr.flush()


@command("PARTY.toml --dry-run")
def join(
    out: Output,
    party: Annotated[Path, ARGUMENT, "The party's own file, PARTY.toml."],
    dry_run: Annotated[bool, "--dry-run", "Show what would be sent to whom and what it costs; send nothing."] = False,
    socket: Annotated[Path | None, "Answer on this Unix socket, for Flower's SuperNode, and dial nobody."] = None,
    for_group: Annotated[bool, "--for-group", "Let the group of the socket use it too."] = False,
    courier: Courier = None,
    monitoring: Monitoring = Monitoring(),
    passphrase_file: PassphraseFile = None,
) -> dict[str, Any] | None:
    """Takes part in a federation with this organisation's documents, until the run ends or you leave.

    With --json it prints one line for each event.
    """
    check_courier(courier)
    tells = not dry_run and socket is None and courier is None
    joining = _prepared(party, passphrase_file, out, tells=tells, logs=monitoring.log, connects=courier is None)
    if courier is not None:
        _say_passes(joining.agreement, out.screen)
    if dry_run:
        from securetm.federation.party.preview import preview
        from securetm.reports.federation import preview_tables

        shown = preview(joining)
        out.results.print(preview_tables(shown))
        return shown
    with _stopped_by_signals() as stop:
        report = _joined(joining, stop, (socket, 0o660 if for_group else 0o600, courier), monitoring, out)
    if out.json:
        Lines(as_json=True).tell("finished", report)
    return None


def _prepared(
    party: Path, passphrase_file: Path | None, out: Output, *, tells: bool, logs: bool = False, connects: bool = True
) -> Joining:
    from securetm.cli.passphrases import passphrase_for
    from securetm.credentials.diagnosis import ending_soon, now_utc
    from securetm.credentials.keys import keep_out_of_core_dumps
    from securetm.plans.party_file import PartyFile

    keep_out_of_core_dumps()
    PartyFile.read(party)  # a mistake in it is told at once; what follows takes seconds to load
    from securetm.federation.party.joining import prepare
    from securetm.stages import Unwatched

    tell = partial(_tell_coordinator, out) if tells else lambda *_: None
    with nullcontext(Unwatched()) if logs else out.late_bars() as bars:
        joining = prepare(party, partial(passphrase_for, file=passphrase_file), bars, tell, connects=connects)
    ending = ending_soon(joining.roster, now_utc())
    if logs:  # the other warnings may tell of documents
        for one in ending:
            log_event("warned", {"reason": one})
    elif warnings := (*ending, *joining.warnings):
        from securetm.reports.keys import show_warnings

        show_warnings(warnings)
    return joining


def _tell_coordinator(out: Output, party: str, keys: Keys, roster: FederationRoster, reason: str) -> None:
    """Tells the coordinator why this party does not take part; what is wrong here is told by whoever called."""
    from securetm.federation.network.dialing import Dialer
    from securetm.federation.network.events import Agreed
    from securetm.federation.refusal_errors import REASONS

    heard = Dialer(party, keys, roster, Agreed(bytes(32), bytes(32)), lambda: 0).decline(reason)
    told = "The coordinator was told that this party does not take part" if heard else "The coordinator could not be told"
    out.screen.print(f"{told}: {REASONS[reason]}.", markup=False, soft_wrap=True)


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """Sets the event at the first Ctrl-C or SIGTERM. The second Ctrl-C ends the process as ever: what was kept is on disk."""
    stop, before = threading.Event(), dict[int, Any]()

    def leave(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, before[number])

    for signalled in (signal.SIGINT, signal.SIGTERM):
        before[signalled] = signal.signal(signalled, leave)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _joined(
    joining: Joining, stop: threading.Event, at: tuple[Path | None, int, str | None], monitoring: Monitoring, out: Output
) -> Mapping[str, Any]:
    """Runs the party in a thread of its own, and draws in this one, which gets the signals."""
    from securetm.federation.party.joining import join as take_part
    from securetm.federation.party.status import JoinStatus

    rounds, drawn = joining.agreement.plan.training.rounds, sys.stderr.isatty() and not (out.json or monitoring.log)
    tell: Tell = log_event if monitoring.log else Lines(as_json=out.json).tell
    screen: AbstractContextManager[JoinScreen | None] = nullcontext()
    if drawn:
        from securetm.reports.federation import JoinScreen  # with rich, which a service has no use for

        tell, screen = lambda *_: None, JoinScreen(out.screen)
    with screen as shown:
        status = JoinStatus(joining.file.name, joining.roster.federation, rounds, tell)
        if monitoring.log:
            tell("started", {"party": joining.file.name, "federation": joining.roster.federation, "run": joining.run_name})
        carrier, courier = partial(_carrier, joining, status, *at), at[-1]
        again = ("securetm", "join", str(joining.file.path), "--courier", str(courier)) if courier else ()
        with _monitored(joining, status, monitoring):
            report = _in_thread(lambda: take_part(joining, carrier, status, stop, again), lambda: _look(joining, status, shown))
        if monitoring.log:
            tell("finished", report)
    if report["rounds"]:
        from securetm.reports.statement.write import write_release  # a party that waits has no use for it

        write_release(Path(str(report["directory"])))
    if not monitoring.log:  # it has words of the model
        from securetm.reports.federation import ended_panel

        out.results.print(ended_panel(report))
    return report


def party_facts(joining: Joining, status: JoinStatus) -> Callable[[], dict[str, Any]]:
    """How the run stands, with what may stop it: the end of the certificate, and the room on the disk."""
    from securetm.credentials.diagnosis import now_utc

    until, home = joining.roster.member(joining.file.name).certificate.until, joining.home.path
    return lambda: {
        **status.facts(),
        "certificate_seconds": (until - now_utc()).total_seconds(),
        "disk_free_bytes": shutil.disk_usage(home).free,
    }


def _carrier(
    joining: Joining, status: JoinStatus, socket: Path | None, mode: int, courier: str | None, party: PacedParty
) -> Carrier:
    """What brings requests to the party: a connection to the coordinator, a socket on this machine, or letters."""
    if courier is not None:
        from securetm.federation.courier.party_end import carrier_of

        return carrier_of(joining, _place(courier), party, status, every=_every(courier))
    who = (joining.file.name, joining.keys, joining.roster)
    if socket is not None:
        from securetm.federation.flower.party_socket import SocketCarrier

        return SocketCarrier(socket, mode, *who, lambda: party.most_bytes, lambda: party.party.finished is not None, status)
    from securetm.federation.network.dialing import Dialer
    from securetm.federation.network.events import Agreed

    agreed = Agreed(joining.agreement.digest, joining.agreement.profile.digest)
    return Dialer(*who, agreed, lambda: party.most_bytes, status)


@contextmanager
def _monitored(joining: Joining, status: JoinStatus, chosen: Monitoring) -> Iterator[None]:
    """Serves metrics and the status page until the block ends."""
    if not (chosen.metrics or chosen.status):
        yield
        return
    from securetm.federation.coordinator.pages import PartyMetrics, metrics_page
    from securetm.reports.federation import party_status_page, status_pages

    facts = party_facts(joining, status)
    pages = metrics_page(PartyMetrics(facts)), status_pages(facts, party_status_page)
    with _served_pages(chosen.metrics, chosen.status, *pages):
        yield


def _in_thread(work: Callable[[], Mapping[str, Any]], look: Callable[[], None]) -> Mapping[str, Any]:
    """Runs the work in a thread, looks now and then, and returns or raises what the work did."""
    done: list[Mapping[str, Any]] = []
    raised: list[BaseException] = []

    def worked() -> None:
        try:
            done.append(work())
        except BaseException as problem:  # noqa: BLE001 - raised again in the main thread
            raised.append(problem)

    thread = threading.Thread(target=worked, name="party")
    thread.start()
    while thread.is_alive():
        look()
        thread.join(_LOOKS)
    if raised:
        raise raised[0]
    return done[0]


def _look(joining: Joining, status: JoinStatus, shown: JoinScreen | None) -> None:
    """Draws the standing again; now and then with what the ledger says, which is read apart from the party's own work."""
    status.looks += 1
    if status.looks % _LEDGER_LOOKS == 1:
        with suppress(SecuretmError):  # the party itself says what is wrong
            status.spent = joining.spent()
    if shown is not None:
        shown.show(status)


# ---- post ------------------------------------------------------------------------------------------------------------


@command("plan.toml --courier letters")
def post(
    out: Output,
    file: Annotated[Path, ARGUMENT, "The coordinator's plan, or a party's PARTY.toml."],
    courier: Annotated[str, "The folder or store (sftp://..., s3://...) in which the letters lie.", {"metavar": "FOLDER"}],
    set_: Settings = None,
    passphrase_file: PassphraseFile = None,
) -> dict[str, Any]:
    """Takes in the letters that are there, answers them, puts the answers out, and says whose letters are awaited.

    For a timer, or for a stick that is carried by hand. Every pass goes on from the one before; one too many does no harm.
    """
    from securetm.settings import read_toml

    check_courier(courier)
    if "data" in read_toml(file):  # a PARTY.toml names data, a plan does not
        made, passes, failed = _post_of_party(file, courier, passphrase_file, out)
    else:
        (made, passes), failed = _post_of_coordinator(file, courier, set_, passphrase_file, out), None
    for member, trouble in made.troubles.items():
        out.screen.print(f"Note: the letters of {member} are not read: {trouble}.", markup=False, soft_wrap=True)
    if made.unread:
        files = counted(made.unread, "file")
        out.screen.print(
            f"Note: this account may not read {files} there; letters may be among them.", markup=False, soft_wrap=True
        )
    if made.trained and made.ended is None:
        out.screen.print("The model is trained; awaited is that these members say they have it.", markup=False, soft_wrap=True)
    said = f"Taken in: {counted(made.took, 'letter')}. "
    awaited = ", ".join(made.awaited) or "nobody"
    said += f"Awaited: {awaited}." if made.ended is None else "The run has ended."
    out.results.print(said, markup=False, soft_wrap=True)
    if failed is not None:  # a timer has to see it: the coordinator is told nothing
        raise Failed(
            "this party could not answer: {name}: {reason}", hint=failed["hint"], name=failed["name"], reason=failed["reason"]
        )
    return made.facts() | {"passes": passes}


def _post_of_party(
    file: Path, courier: str, passphrase_file: Path | None, out: Output
) -> tuple[Pass, int, Mapping[str, Any] | None]:
    """The pass, how many the run takes, and what this party failed by."""
    joining = _prepared(file, passphrase_file, out, tells=False, connects=False)
    from securetm.federation.courier.one_pass import pass_of_party
    from securetm.federation.party.status import JoinStatus
    from securetm.reports.statement.write import write_release

    passes, rounds = _say_passes(joining.agreement, out.results), joining.agreement.plan.training.rounds
    lines, failed = Lines(), list[Mapping[str, Any]]()

    def tell(event: str, facts: Mapping[str, Any]) -> None:
        if event == "failed":
            failed.append(facts)
        else:
            lines.tell(event, facts)

    made = pass_of_party(joining, _place(courier), JoinStatus(joining.file.name, joining.roster.federation, rounds, tell))
    if made.ended is not None and made.ended["rounds"]:
        write_release(Path(str(made.ended["directory"])))
    return made, passes, failed[-1] if failed else None


def _post_of_coordinator(
    plan: Path, courier: str, set_: list[str] | None, passphrase_file: Path | None, out: Output
) -> tuple[Pass, int]:
    chosen, files = _coordinator_files(plan, set_, passphrase_file, connects=False)
    from securetm.federation.courier.one_pass import pass_of_coordinator
    from securetm.federation.soundness import agreed_apart

    passes, place = _say_passes(agreed_apart(chosen, files.roster.members), out.results), plan.parent / chosen.coordinator.out
    command = shlex.join(["securetm", "post", str(plan), "--courier", courier])
    with _terminated_like_ctrl_c():
        made = pass_of_coordinator(chosen, place, files, _place(courier), command)
    if made.ended is not None:
        _served(made.ended, place, out)
    return made, passes


# ---- health ----------------------------------------------------------------------------------------------------------


@command("plan.toml")
def health(
    out: Output,
    file: Annotated[Path, ARGUMENT, "The coordinator's plan, or a party's PARTY.toml.", {"envvar": "SECURETM_FILE"}],
) -> dict[str, Any]:
    """Says whether the process of this file works; exits 3 if it does not. For monitors of containers and services.

    It looks for the lock of the run or the data set, which the process holds on this machine, and whether a coordinator's
    network still moves. Without options it answers before any library loads: little later than Python itself.
    """
    from securetm.federation.health import check_works
    from securetm.plans.party_file import PartyFile
    from securetm.plans.recommend import whole_plan
    from securetm.settings import read_toml

    tables = read_toml(file)
    role = "party" if "data" in tables else "coordinator"
    _ = PartyFile.read(file) if role == "party" else whole_plan(file, {})  # a file with a mistake is told with all its mistakes
    out.results.print(check_works(file, tables), markup=False)
    return {"file": str(file), "role": role, "works": True}
