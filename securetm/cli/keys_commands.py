"""`securetm keys`: an organisation's own keys, and the roster that it accepts. roster_commands.py makes rosters.

Lower layers do the work. They are imported when a command runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli import roster_commands
from securetm.cli.json_output import Json, print_json
from securetm.cli.key_options import Home, NewPassphrase, PassphraseFile, RosterArgument

if TYPE_CHECKING:
    from securetm.credentials.key_requests import KeyRequest
    from securetm.credentials.roster import FederationRoster

Holds = Annotated[
    int | None,
    typer.Option(min=0, help="At least so many documents, or persons where these name them; all members see the number."),
]
RequestFile = Annotated[Path | None, typer.Option("--request", metavar="FILE", help="Where the request goes: NAME.request.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    keys = typer.Typer(rich_markup_mode=None, add_completion=False)
    keys.callback(invoke_without_command=True, epilog=f"Example: securetm keys new {_COMMANDS['new'][2]}")(_alone)
    for name, (command, summary, example) in _COMMANDS.items():
        keys.command(name, short_help=summary, epilog=f"Example: securetm keys {name} {example}")(command)
    roster_commands.register(keys)
    app.add_typer(keys, name="keys", short_help="Make and check keys, certificates and rosters.")


def _alone(context: typer.Context) -> None:
    """Makes and checks keys, certificates and the roster of a federation of separate organisations.

    An organisation runs `new` and sends the request file; the coordinator's operator runs `issue` and sends the roster; each
    organisation runs `accept`. No private key ever leaves the machine on which it was made.
    """
    from securetm.credentials.keys import keep_out_of_core_dumps

    keep_out_of_core_dumps()
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def new(
    name: Annotated[str, typer.Argument(help="What the others call this organisation, such as hospital-a.")],
    home: Home = None,
    request: RequestFile = None,
    passphrase: NewPassphrase = False,
    passphrase_file: PassphraseFile = None,
    holds: Holds = None,
    json: Json = False,
) -> None:
    """Makes the keys of an organisation, and the request that its operator sends to the coordinator's.

    The keys lie in the organisation's home for its owner alone; the request holds no secret.
    """
    from securetm.cli.passphrases import new_passphrase
    from securetm.credentials.homes import new_keys
    from securetm.data_homes import data_home

    place = home or data_home() / name
    made = new_keys(place, name, new_passphrase(passphrase_file, passphrase), holds or 0)
    _tell_request(made, place, request, json)


def request(
    home: Home = None,
    request: RequestFile = None,
    holds: Holds = None,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
) -> None:
    """Writes the request of an organisation again, for the keys that it has or waits to use.

    With --holds it says another number: delta is judged by what all members say that they hold.
    """
    from securetm.cli.passphrases import passphrase_for
    from securetm.credentials.homes import KEYS, announced, found_home, waiting_request

    place = found_home(home)
    made = waiting_request(place)
    if holds is not None:
        made = announced(place, holds, passphrase_for(place / KEYS, passphrase_file))
    _tell_request(made, place, request, json)


def own(
    certificate: Annotated[Path, typer.Argument(help="A certificate in PEM, of an EC key on P-256 or P-384.")],
    key: Annotated[Path, typer.Argument(help="Its private key in PEM, for its owner alone.")],
    home: Home = None,
    request: RequestFile = None,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
) -> None:
    """Takes a certificate and key of the organisation's own authority, in the place of those that `new` made.

    The present keys stay in use until a roster with the new certificate is accepted. A passphrase has to be the same for both.
    """
    from securetm.credentials.homes import own_replacement

    _replace(home, request, passphrase_file, json, lambda place, phrase: own_replacement(place, certificate, key, phrase))


def rotate(
    identity: Annotated[bool, typer.Option("--identity", help="A new identity, too; the old one signs for it.")] = False,
    home: Home = None,
    request: RequestFile = None,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
) -> None:
    """Makes a new TLS key, and the request for a roster that names it.

    The present keys stay in use until that roster is accepted.
    """
    from securetm.credentials.homes import Replacement

    _replace(home, request, passphrase_file, json, lambda *_: Replacement(identity))


def show(
    file: Annotated[Path | None, typer.Argument(help="A roster, request or certificate; else the own keys.")] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Shows fingerprints in groups that people can read to each other over the telephone."""
    from securetm.credentials.shown_keys import shown_file, shown_home
    from securetm.reports.keys import show_fingerprints

    found = shown_file(file) if file else shown_home(home)
    show_fingerprints(found, json)
    if json:
        print_json(found)


def accept(
    roster: RosterArgument,
    home: Home = None,
    fingerprint: Annotated[
        str | None,
        typer.Option(metavar="DIGITS", help="The roster's fingerprint, as you were told it: no question."),
    ] = None,
    json: Json = False,
) -> None:
    """Shows who came, who left and whose keys changed, and trusts this roster from now on if you say so."""
    from securetm.credentials.homes import accept, accepted_roster, check_succession, home_in, own_entry
    from securetm.credentials.roster import changes, read_roster
    from securetm.reports.keys import show_changes
    from securetm.reports.terminal import results

    new_roster = read_roster(roster)
    place = home_in(home, new_roster)
    known = accepted_roster(place)
    check_succession(known, new_roster)
    own_entry(place, new_roster)
    lines = changes(known, new_roster)
    show_changes(new_roster, known, lines, results(json))
    if known is None or known.digest != new_roster.digest:
        _confirm(new_roster, fingerprint)
    accept(place, new_roster)
    facts: dict[str, Any] = {"home": str(place), "federation": new_roster.federation, "version": new_roster.version}
    facts |= {"fingerprint": new_roster.fingerprint, "changes": [vars(line) for line in lines], "accepted": True}
    if json:
        print_json(facts)
    else:
        results().print(f"Accepted, and kept in {place / 'roster.toml'}", markup=False, soft_wrap=True)


def _confirm(roster: FederationRoster, typed: str | None) -> None:
    """Refuses unless the operator says yes, or typed the fingerprint."""
    from securetm.credentials.keys import same_fingerprint
    from securetm.credentials.roster_errors import FingerprintDiffers, NotConfirmed

    if typed is not None:
        if not same_fingerprint(typed, roster.fingerprint):
            raise FingerprintDiffers(roster.federation)
    elif not sys.stdin.isatty() or not _answered_yes("Do the others see the same fingerprint, and do you accept it? [y/N] "):
        raise NotConfirmed(roster.federation, roster.version)


def _answered_yes(question: str) -> bool:
    """Asks on standard error, because standard output may be one JSON document."""
    typer.echo(question, nl=False, err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _replace(home: Path | None, file: Path | None, passphrase_file: Path | None, json: bool, change: Any) -> None:
    """Makes keys that wait for a roster, and writes their request."""
    from securetm.cli.passphrases import passphrase_for
    from securetm.credentials.homes import KEYS, found_home, next_keys
    from securetm.credentials.keys import Keys

    place = found_home(home)
    phrase = passphrase_for(place / KEYS, passphrase_file)
    made = next_keys(place, Keys.open(place / KEYS, phrase), change(place, phrase), phrase)
    _tell_request(made, place, file, json)


def _tell_request(made: KeyRequest, home: Path, file: Path | None, json: bool) -> None:
    """Writes the request where the operator finds it, and says what to do with it."""
    from securetm.credentials.key_requests import write_request
    from securetm.credentials.keys import fingerprint_of
    from securetm.reports.keys import show_request

    path = file or Path(f"{made.name}.request")
    write_request(path, made)
    facts = {"name": made.name, "home": str(home), "request": str(path), "identity": fingerprint_of(made.identity)}
    show_request(facts, json)
    if json:
        print_json(facts)


_COMMANDS: dict[str, tuple[Callable[..., None], str, str]] = {
    "new": (new, "Make an organisation's keys and its request.", "hospital-a"),
    "request": (request, "Write the request again.", "--home homes/hospital-a"),
    "accept": (accept, "See what a roster changes, and accept it.", "roster.toml --home homes/hospital-a"),
    "show": (show, "Show fingerprints to compare by telephone.", "roster.toml"),
    "rotate": (rotate, "Make new keys; the old ones serve until then.", "--home homes/hospital-a"),
    "own": (own, "Use a certificate of your own authority.", "own.pem own-key.pem --home homes/hospital-a"),
}
