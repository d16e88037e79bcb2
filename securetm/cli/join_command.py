"""`securetm join`: takes part in a federation with this organisation's documents, or shows first what that would send."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli.json_output import Json, print_json
from securetm.cli.key_options import PassphraseFile
from securetm.errors import SecuretmError

if TYPE_CHECKING:
    from securetm.credentials.keys import Keys
    from securetm.credentials.roster import FederationRoster
    from securetm.federation.party.joining import Carrier, Joining
    from securetm.federation.party.reply_times import PacedParty
    from securetm.federation.party.status import JoinStatus
    from securetm.reports.federation import JoinScreen

_LOOKS = 0.25  # seconds between two looks at the standing
_LEDGER_LOOKS = 60  # looks between two at the ledger, which takes longer


def join(
    party: Annotated[Path, typer.Argument(help="The party's own file, PARTY.toml.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent to whom and what it costs; send nothing.")
    ] = False,
    socket: Annotated[
        Path | None, typer.Option(help="Answer on this Unix socket, for Flower's SuperNode, and dial nobody.")
    ] = None,
    for_group: Annotated[bool, typer.Option("--for-group", help="Let the group of the socket use it too.")] = False,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
) -> None:
    """Takes part in a federation with this organisation's documents, until the run ends or you leave.

    With --json it prints one line for each event.
    """
    joining = _prepared(party, passphrase_file, tells=not dry_run and socket is None)
    if dry_run:
        _show_preview(joining, json)
        return
    with _stopped_by_signals() as stop:
        report = _joined(joining, stop, (socket, 0o660 if for_group else 0o600), json)
    if json:
        from securetm.reports.federation import JoinScreen
        from securetm.reports.terminal import results

        JoinScreen(results(json), as_json=True).tell("finished", report)


def _prepared(party: Path, passphrase_file: Path | None, *, tells: bool) -> Joining:
    from securetm.cli.passphrases import passphrase_for
    from securetm.credentials.diagnosis import ending_soon, now_utc
    from securetm.credentials.keys import keep_out_of_core_dumps
    from securetm.plans.party_file import PartyFile

    keep_out_of_core_dumps()
    PartyFile.read(party)  # a mistake in it is told at once; what follows takes seconds to load
    from securetm.federation.party.joining import prepare, tell_nobody
    from securetm.reports.keys import show_warnings
    from securetm.reports.terminal import LateBars, screen

    with LateBars(screen()) as bars:
        joining = prepare(
            party, lambda folder: passphrase_for(folder, passphrase_file), bars, _tell_coordinator if tells else tell_nobody
        )
    show_warnings((*ending_soon(joining.roster, now_utc()), *joining.warnings))
    return joining


def _tell_coordinator(party: str, keys: Keys, roster: FederationRoster, reason: str) -> None:
    """Tells the coordinator why this party does not take part; what is wrong here is told by whoever called."""
    from securetm.federation.network.dialing import Dialer
    from securetm.federation.network.events import Agreed
    from securetm.federation.refusal_errors import REASONS
    from securetm.reports.terminal import screen

    heard = Dialer(party, keys, roster, Agreed(bytes(32), bytes(32)), lambda: 0).decline(reason)
    told = "The coordinator was told that this party does not take part" if heard else "The coordinator could not be told"
    screen().print(f"{told}: {REASONS[reason]}.", markup=False, soft_wrap=True)


def _show_preview(joining: Joining, json: bool) -> None:
    from securetm.federation.party.preview import preview
    from securetm.reports.federation import preview_tables
    from securetm.reports.terminal import results

    shown = preview(joining)
    results(json).print(preview_tables(shown))
    if json:
        print_json(shown)


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


def _joined(joining: Joining, stop: threading.Event, at: tuple[Path | None, int], json: bool) -> Mapping[str, Any]:
    """Runs the party in a thread of its own, and draws in this one, which gets the signals."""
    from securetm.federation.party.joining import join as take_part
    from securetm.federation.party.status import JoinStatus
    from securetm.reports.federation import JoinScreen, ended_panel
    from securetm.reports.statement.write import write_release
    from securetm.reports.terminal import results, screen

    rounds = joining.agreement.plan.training.rounds
    with JoinScreen(screen(), as_json=json) as shown:
        status = JoinStatus(joining.file.name, joining.roster.federation, rounds, shown.tell)
        carrier = partial(_carrier, joining, status, *at)
        report = _in_thread(lambda: take_part(joining, carrier, status, stop), lambda: _look(joining, status, shown))
    if report["rounds"]:
        write_release(Path(str(report["directory"])))
    results(json).print(ended_panel(report))
    return report


def _carrier(joining: Joining, status: JoinStatus, socket: Path | None, mode: int, party: PacedParty) -> Carrier:
    """What brings requests to the party: a connection to the coordinator, or a socket on this machine."""
    from securetm.federation.flower.party_socket import SocketCarrier
    from securetm.federation.network.dialing import Dialer
    from securetm.federation.network.events import Agreed

    who = (joining.file.name, joining.keys, joining.roster)
    if socket is not None:
        return SocketCarrier(socket, mode, *who, lambda: party.most_bytes, lambda: party.party.finished is not None, status)
    agreed = Agreed(joining.agreement.digest, joining.agreement.profile.digest)
    return Dialer(*who, agreed, lambda: party.most_bytes, status)


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


def _look(joining: Joining, status: JoinStatus, shown: JoinScreen) -> None:
    """Draws the standing again; now and then with what the ledger says, which is read apart from the party's own work."""
    status.looks += 1
    if status.looks % _LEDGER_LOOKS == 1:
        with suppress(SecuretmError):  # the party itself says what is wrong
            status.spent = joining.spent()
    shown.show(status)
