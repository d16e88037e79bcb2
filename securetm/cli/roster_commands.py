"""What the coordinator's operator does: `keys issue`, `keys revoke`, `keys roster …`. Each change is a new version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli.json_output import Json, print_json
from securetm.cli.key_options import Home, NewPassphrase, PassphraseFile, RosterArgument, RosterOption

if TYPE_CHECKING:
    from securetm.credentials.issuing import RosterOperator
    from securetm.credentials.roster import FederationRoster

_ROSTER = Path("roster.toml")
Requests = Annotated[list[Path] | None, typer.Argument(metavar="REQUEST...", help="The files of requests.")]
Federation = Annotated[str | None, typer.Option(help="What the federation is called; needed the first time.")]
Address = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Where parties reach the coordinator; needed the first time.")
]
Days = Annotated[int, typer.Option(min=1, max=3650, help="How long new certificates are valid.")]


def register(keys: typer.Typer) -> None:
    """Adds the commands."""
    for name, (command, summary, example) in _COMMANDS.items():
        keys.command(name, short_help=summary, epilog=f"Example: securetm keys {name} {example}")(command)
    roster = typer.Typer(rich_markup_mode=None, add_completion=False)
    roster.callback(invoke_without_command=True, epilog="Example: securetm keys roster show roster.toml")(_alone)
    for name, (command, summary, example) in _OF_ROSTERS.items():
        roster.command(name, short_help=summary, epilog=f"Example: securetm keys roster {name} {example}")(command)
    keys.add_typer(roster, name="roster", short_help="Show, check, sign and change a roster.")


def _alone(context: typer.Context) -> None:
    """Shows, checks, signs and changes the roster of a federation."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def issue(
    requests: Requests = None,
    federation: Federation = None,
    address: Address = None,
    days: Days = 365,
    roster: RosterOption = _ROSTER,
    home: Home = None,
    passphrase: NewPassphrase = False,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
) -> None:
    """Issues certificates for requests, and writes the next version of the roster.

    The first time, it makes the coordinator's keys and a certificate authority in the coordinator's home. Certificates that end
    within 30 days are renewed, also where no request is given.
    """
    operator = _operator(home, roster, passphrase_file, passphrase)
    _enrol(operator, requests or [], federation, address, days, json)


def add(
    requests: Requests = None,
    federation: Federation = None,
    address: Address = None,
    roster: RosterOption = _ROSTER,
    home: Home = None,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
) -> None:
    """Adds members that bring certificates of their own authorities, or replaces their keys. Nothing is issued.

    Where it makes the roster, the coordinator has keys and a certificate of its own already (`new coordinator`, then `own`).
    """
    _enrol(_operator(home, roster, passphrase_file), requests or [], federation, address, None, json)


def remove(
    name: Annotated[str, typer.Argument(help="The member that leaves.")],
    roster: RosterOption = _ROSTER,
    home: Home = None,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
) -> None:
    """Takes a member off the roster. Its keys are not revoked, so that it may come back with them."""
    from securetm.credentials.issuing import without_member

    _change(_operator(home, roster, passphrase_file), lambda old: without_member(old, name), json)


def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A member, or the fingerprint of a key or certificate.")],
    roster: RosterOption = _ROSTER,
    home: Home = None,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
) -> None:
    """Takes a member off the roster, and revokes its keys for good: no later roster can list them."""
    from securetm.credentials.issuing import with_revoked

    _change(_operator(home, roster, passphrase_file), lambda old: with_revoked(old, name), json)


def show(roster: RosterArgument, json: Json = False) -> None:
    """Shows the members of a roster with their fingerprints."""
    from securetm.credentials.roster import read_roster
    from securetm.credentials.shown_keys import shown_file
    from securetm.reports.keys import show_fingerprints

    read, found = read_roster(roster), shown_file(roster)
    show_fingerprints(found, json)
    if json:
        print_json({**_facts(roster, read), **found})


def check(roster: RosterArgument, home: Home = None, json: Json = False) -> None:
    """Checks form, keys, certificates and signatures of a roster, and with --home whether it is accepted there.

    It exits with 1 if a certificate has ended.
    """
    from securetm.credentials.diagnosis import ended, ending_soon, now_utc
    from securetm.credentials.homes import check_accepted
    from securetm.credentials.roster import read_roster
    from securetm.reports.keys import show_warnings
    from securetm.reports.terminal import results

    read, now = read_roster(roster), now_utc()
    if home is not None:
        check_accepted(home, read)
    gone, warnings = ended(read, now), ending_soon(read, now)
    show_warnings(warnings)
    if json:
        print_json({**_facts(roster, read), "ended": list(gone), "warnings": list(warnings)})
    elif not gone:
        results().print(f"Fine: roster {read.version} of federation {read.federation}.", markup=False)
    raise typer.Exit(1 if gone else 0)


def sign(roster: RosterArgument, home: Home = None, passphrase_file: PassphraseFile = None, json: Json = False) -> None:
    """Signs a roster that was accepted here, and writes the signature into the file.

    A member accepts a roster without asking once all parties, itself included, have signed it.
    """
    from securetm.cli.passphrases import passphrase_for
    from securetm.credentials.homes import KEYS, check_accepted, home_in
    from securetm.credentials.key_requests import request_in
    from securetm.credentials.keys import Keys
    from securetm.credentials.roster import read_roster, write_roster

    read = read_roster(roster)
    place = home_in(home, read)
    check_accepted(place, read)
    keys = Keys.open(place / KEYS, passphrase_for(place / KEYS, passphrase_file))
    signed = read.signed_by(request_in(place / KEYS).name, keys)
    write_roster(roster, signed)
    _tell(roster, read, signed, json)


# ---- what they share -------------------------------------------------------------------------------------------------


def _operator(home: Path | None, path: Path, passphrase_file: Path | None, asked: bool = False) -> RosterOperator:
    """The operator, with the passphrase of the keys that are there or that will be made."""
    from securetm.cli.passphrases import new_passphrase, passphrase_for
    from securetm.credentials.homes import KEYS
    from securetm.credentials.issuing import RosterOperator
    from securetm.credentials.keys import REQUEST
    from securetm.credentials.roster import COORDINATOR
    from securetm.data_homes import data_home

    place = home or data_home() / COORDINATOR
    there = (place / KEYS / REQUEST).exists()
    known = passphrase_for(place / KEYS, passphrase_file) if there else new_passphrase(passphrase_file, asked)
    return RosterOperator(place, path, known)


def _enrol(
    operator: RosterOperator, requests: list[Path], federation: str | None, address: str | None, days: int | None, json: bool
) -> None:
    """Makes members of requests; without days nothing is issued."""
    from securetm.credentials.key_requests import read_request
    from securetm.settings import require

    read = [read_request(path) for path in requests]
    old = operator.read() if operator.path.exists() else None
    named = federation or (old.federation if old else "")
    first = f"is needed the first time, where there is no {operator.path}"
    require(bool(named), "", "--federation", None, first, instead="--federation NAME")
    require(
        bool(old or address),
        "",
        "--address",
        None,
        first,
        instead="--address HOST:PORT",
    )
    known = old.federation if old else named
    require(named == known, "", "--federation", named, f"is another one than that of {operator.path}, {known}")
    begun = old or operator.begin(named, address or "", days)
    new = operator.enrol(begun, read, address, days)
    _tell(operator.path, old, operator.publish(old, new), json)


def _change(operator: RosterOperator, how: Callable[[FederationRoster], FederationRoster], json: bool) -> None:
    old = operator.read()
    _tell(operator.path, old, operator.publish(old, how(old)), json)


def _tell(path: Path, old: FederationRoster | None, new: FederationRoster, json: bool) -> None:
    """Says what changed, and what to do with the file."""
    from securetm.credentials.diagnosis import ending_soon, now_utc
    from securetm.credentials.roster import changes
    from securetm.reports.keys import show_changes, show_warnings
    from securetm.reports.terminal import results

    lines, warnings, to = changes(old, new), ending_soon(new, now_utc()), results(json)
    show_changes(new, old, lines, to)
    to.print(f"Send {path} to every member, who runs: securetm keys accept {path.name}", markup=False, soft_wrap=True)
    show_warnings(warnings)
    if json:
        print_json({**_facts(path, new), "changes": [vars(line) for line in lines], "warnings": list(warnings)})


def _facts(path: Path, roster: FederationRoster) -> dict[str, Any]:
    return {
        "roster": str(path),
        "federation": roster.federation,
        "version": roster.version,
        "address": roster.address,
        "members": list(roster.members),
        "unsigned": list(roster.unsigned),
        "revoked": sorted(roster.revoked),
        "fingerprint": roster.fingerprint,
    }


_COMMANDS: dict[str, tuple[Callable[..., None], str, str]] = {
    "issue": (issue, "Issue certificates and write the next roster.", "hospital-a.request"),
    "revoke": (revoke, "Take a member off, and revoke its keys.", "hospital-b"),
}
_OF_ROSTERS: dict[str, tuple[Callable[..., None], str, str]] = {
    "show": (show, "Show the members and their fingerprints.", "roster.toml"),
    "check": (check, "Check form, certificates and signatures.", "roster.toml"),
    "sign": (sign, "Sign a roster that was accepted here.", "roster.toml --home homes/hospital-a"),
    "add": (add, "Add members with certificates of their own.", "hospital-c.request"),
    "remove": (remove, "Take a member off the roster.", "hospital-b"),
}
