"""`securetm keys`: an organisation's own keys and the roster that it accepts, and what the coordinator's operator does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli.command import Group, Output, agreed_to, command, help_alone
from securetm.cli.options import Home, PassphraseFile

if TYPE_CHECKING:
    from securetm.credentials.homes import Replacement
    from securetm.credentials.issuing import RosterOperator
    from securetm.credentials.key_requests import KeyRequest
    from securetm.credentials.roster import FederationRoster

Holds = Annotated[
    int | None,
    typer.Option(min=0, help="At least so many documents, or persons where these name them; all members see the number."),
]
RequestFile = Annotated[Path | None, typer.Option("--request", metavar="FILE", help="Where the request goes: NAME.request.")]
NewPassphrase = Annotated[bool, typer.Option("--passphrase", help="Ask for a passphrase that protects new keys.")]
RosterArgument = Annotated[Path, typer.Argument(help="The file of the roster.")]
RosterOption = Annotated[Path, typer.Option(metavar="FILE", help="The file of the roster that is changed.")]
Requests = Annotated[list[Path] | None, typer.Argument(metavar="REQUEST...", help="The files of requests.")]
Federation = Annotated[str | None, typer.Option(help="What the federation is called; needed the first time.")]
Address = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Where parties reach the coordinator; needed the first time.")
]
Days = Annotated[int, typer.Option(min=1, max=3650, help="How long new certificates are valid.")]
_ROSTER = Path("roster.toml")


# ---- an organisation's own keys ----------------------------------------------------------------------------------------


@command("Make an organisation's keys and its request.", "hospital-a")
def new(
    name: Annotated[str, typer.Argument(help="What the others call this organisation, such as hospital-a.")],
    home: Home = None,
    request: RequestFile = None,
    passphrase: NewPassphrase = False,
    passphrase_file: PassphraseFile = None,
    holds: Holds = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Makes the keys of an organisation, and the request that its operator sends to the coordinator's.

    The keys lie in the organisation's home for its owner alone; the request holds no secret.
    """
    from securetm.cli.passphrases import new_passphrase
    from securetm.credentials.homes import new_keys
    from securetm.data_homes import data_home

    place = home or data_home() / name
    made = new_keys(place, name, new_passphrase(passphrase_file, passphrase), holds or 0)
    return _tell_request(made, place, request, out)


@command("Write the request again.", "--home homes/hospital-a")
def request(
    home: Home = None,
    request: RequestFile = None,
    holds: Holds = None,
    passphrase_file: PassphraseFile = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Writes the request of an organisation again, for the keys that it has or waits to use.

    With --holds it says another number: delta is judged by what all members say that they hold. The request of an older
    version gets the keys that outlast a quantum computer, and is signed anew.
    """
    from securetm.cli.passphrases import passphrase_for
    from securetm.credentials.homes import KEYS, announced, found_home, waiting_request

    place = found_home(home)
    made = waiting_request(place)
    if holds is not None or not made.lasting:
        made = announced(place, holds, passphrase_for(place / KEYS, passphrase_file))
    return _tell_request(made, place, request, out)


@command("See what a roster changes, and accept it.", "roster.toml --home homes/hospital-a")
def accept(
    roster: RosterArgument,
    home: Home = None,
    fingerprint: Annotated[
        str | None,
        typer.Option(metavar="DIGITS", help="The roster's fingerprint, as you were told it: no question."),
    ] = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Shows who came, who left and whose keys changed, and trusts this roster from now on if you say so."""
    from securetm.credentials.homes import accept as trust
    from securetm.credentials.homes import accepted_roster, check_succession, home_in, own_entry
    from securetm.credentials.roster import changes, read_roster
    from securetm.reports.keys import show_changes

    new_roster = read_roster(roster)
    place = home_in(home, new_roster)
    known = accepted_roster(place)
    check_succession(known, new_roster)
    own_entry(place, new_roster)
    lines = changes(known, new_roster)
    show_changes(new_roster, known, lines, out.results)
    if known is None or known.digest != new_roster.digest:
        from securetm.credentials.keys import same_fingerprint
        from securetm.errors import Mistake

        if fingerprint is not None:
            if not same_fingerprint(fingerprint, new_roster.fingerprint):
                raise Mistake(
                    "the fingerprint that was typed is not that of this roster of federation {federation}; nothing was changed",
                    hint="type all 60 digits, and compare them by telephone: if they differ, the others have another roster",
                    federation=new_roster.federation,
                )
        elif not agreed_to("Do the others see the same fingerprint, and do you accept it?"):
            raise Mistake(
                "roster {version} of federation {federation} was not accepted; nothing was changed",
                hint="compare the fingerprint by telephone, then answer y; without a terminal, type it after --fingerprint",
                federation=new_roster.federation,
                version=new_roster.version,
            )
    trust(place, new_roster)
    facts: dict[str, Any] = {"home": str(place), "federation": new_roster.federation, "version": new_roster.version}
    facts |= {"fingerprint": new_roster.fingerprint, "changes": [vars(line) for line in lines], "accepted": True}
    if not out.json:
        out.results.print(f"Accepted, and kept in {place / 'roster.toml'}", markup=False, soft_wrap=True)
    return facts


@command("Show fingerprints to compare by telephone.", "roster.toml")
def show(
    file: Annotated[Path | None, typer.Argument(help="A roster, request or certificate; else the own keys.")] = None,
    home: Home = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Shows fingerprints in groups that people can read to each other over the telephone."""
    from securetm.credentials.shown_keys import shown_file, shown_home
    from securetm.reports.keys import show_fingerprints

    found = shown_file(file) if file else shown_home(home)
    show_fingerprints(found, out.json)
    return found


@command("Make new keys; the old ones serve until then.", "--home homes/hospital-a")
def rotate(
    identity: Annotated[bool, typer.Option("--identity", help="A new identity, too; the old one signs for it.")] = False,
    home: Home = None,
    request: RequestFile = None,
    passphrase_file: PassphraseFile = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Makes a new TLS key, and the request for a roster that names it.

    The present keys stay in use until that roster is accepted.
    """
    from securetm.credentials.homes import Replacement

    return _replace(home, request, passphrase_file, out, lambda *_: Replacement(identity))


@command("Use a certificate of your own authority.", "own.pem own-key.pem --home homes/hospital-a")
def own(
    certificate: Annotated[Path, typer.Argument(help="A certificate in PEM, of an EC key on P-256 or P-384.")],
    key: Annotated[Path, typer.Argument(help="Its private key in PEM, for its owner alone.")],
    home: Home = None,
    request: RequestFile = None,
    passphrase_file: PassphraseFile = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Takes a certificate and key of the organisation's own authority, in the place of those that `new` made.

    The present keys stay in use until a roster with the new certificate is accepted. A passphrase has to be the same for both.
    """
    from securetm.credentials.homes import own_replacement

    change = lambda place, phrase: own_replacement(place, certificate, key, phrase)  # noqa: E731
    return _replace(home, request, passphrase_file, out, change)


def _replace(
    home: Path | None, file: Path | None, passphrase_file: Path | None, out: Output, change: Callable[[Path, Any], Replacement]
) -> dict[str, Any]:
    """Makes keys that wait for a roster, and writes their request."""
    from securetm.cli.passphrases import passphrase_for
    from securetm.credentials.homes import KEYS, found_home, next_keys
    from securetm.credentials.keys import Keys

    place = found_home(home)
    phrase = passphrase_for(place / KEYS, passphrase_file)
    made = next_keys(place, Keys.open(place / KEYS, phrase), change(place, phrase), phrase)
    return _tell_request(made, place, file, out)


def _tell_request(made: KeyRequest, home: Path, file: Path | None, out: Output) -> dict[str, Any]:
    """Writes the request where the operator finds it, and says what to do with it."""
    from securetm.credentials.key_requests import write_request
    from securetm.credentials.keys import fingerprint_of
    from securetm.reports.keys import show_request

    path = file or Path(f"{made.name}.request")
    write_request(path, made)
    facts = {"name": made.name, "home": str(home), "request": str(path), "identity": fingerprint_of(made.identity)}
    show_request(facts, out.json)
    return facts


# ---- the roster, by the coordinator's operator -----------------------------------------------------------------------


@command("Issue certificates and write the next roster.", "hospital-a.request")
def issue(
    requests: Requests = None,
    federation: Federation = None,
    address: Address = None,
    days: Days = 365,
    roster: RosterOption = _ROSTER,
    home: Home = None,
    passphrase: NewPassphrase = False,
    passphrase_file: PassphraseFile = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Issues certificates for requests, and writes the next version of the roster.

    The first time, it makes the coordinator's keys and a certificate authority in the coordinator's home. Certificates that end
    within 30 days are renewed, also where no request is given.
    """
    operator = _operator(home, roster, passphrase_file, passphrase)
    return _enrol(operator, requests or [], federation, address, days, out)


@command("Take a member off, and revoke its keys.", "hospital-b")
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A member, or the fingerprint of a key or certificate.")],
    roster: RosterOption = _ROSTER,
    home: Home = None,
    passphrase_file: PassphraseFile = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Takes a member off the roster, and revokes its keys for good: no later roster can list them."""
    from securetm.credentials.issuing import with_revoked

    return _change(_operator(home, roster, passphrase_file), lambda old: with_revoked(old, name), out)


@command("Show the members and their fingerprints.", "roster.toml", "show")
def show_roster(roster: RosterArgument, *, out: Output) -> dict[str, Any]:
    """Shows the members of a roster with their fingerprints."""
    from securetm.credentials.roster import read_roster
    from securetm.credentials.shown_keys import shown_file
    from securetm.reports.keys import show_fingerprints

    read, found = read_roster(roster), shown_file(roster)
    show_fingerprints(found, out.json)
    return {**_facts(roster, read), **found}


@command("Check form, certificates and signatures.", "roster.toml")
def check(roster: RosterArgument, home: Home = None, *, out: Output) -> dict[str, Any]:
    """Checks form, keys, certificates and signatures of a roster, and with --home whether it is accepted there.

    It exits with 1 if a certificate has ended.
    """
    from securetm.credentials.diagnosis import ended, ending_soon, now_utc
    from securetm.credentials.homes import check_accepted
    from securetm.credentials.roster import read_roster
    from securetm.reports.keys import show_warnings

    read, now = read_roster(roster), now_utc()
    if home is not None:
        check_accepted(home, read)
    gone, warnings = ended(read, now), ending_soon(read, now)
    show_warnings(warnings)
    if not gone and not out.json:
        out.results.print(f"Fine: roster {read.version} of federation {read.federation}.", markup=False)
    out.exit_code = 1 if gone else 0
    return {**_facts(roster, read), "ended": list(gone), "warnings": list(warnings)}


@command("Sign a roster that was accepted here.", "roster.toml --home homes/hospital-a")
def sign(roster: RosterArgument, home: Home = None, passphrase_file: PassphraseFile = None, *, out: Output) -> dict[str, Any]:
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
    return _tell(roster, read, signed, out)


@command("Add members with certificates of their own.", "hospital-c.request")
def add(
    requests: Requests = None,
    federation: Federation = None,
    address: Address = None,
    roster: RosterOption = _ROSTER,
    home: Home = None,
    passphrase_file: PassphraseFile = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Adds members that bring certificates of their own authorities, or replaces their keys. Nothing is issued.

    Where it makes the roster, the coordinator has keys and a certificate of its own already (`new coordinator`, then `own`).
    """
    return _enrol(_operator(home, roster, passphrase_file), requests or [], federation, address, None, out)


@command("Take a member off the roster.", "hospital-b")
def remove(
    name: Annotated[str, typer.Argument(help="The member that leaves.")],
    roster: RosterOption = _ROSTER,
    home: Home = None,
    passphrase_file: PassphraseFile = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Takes a member off the roster. Its keys are not revoked, so that it may come back with them."""
    from securetm.credentials.issuing import without_member

    return _change(_operator(home, roster, passphrase_file), lambda old: without_member(old, name), out)


@command("Say which builds of securetm take part.", "DIGEST --refuse")
def builds(
    digests: Annotated[
        list[str] | None,
        typer.Argument(metavar="DIGEST...", help="Of the builds, as `securetm version` prints them; else any."),
    ] = None,
    refuse: Annotated[
        bool, typer.Option("--refuse", help="A member with another build takes no part; else it is told.")
    ] = False,
    roster: RosterOption = _ROSTER,
    home: Home = None,
    passphrase_file: PassphraseFile = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Writes the digests of builds into the roster. Each member compares its own with them before a run.

    A build says of itself which one it is. That finds a wrong version and a changed file, and no liar.
    """
    from dataclasses import replace

    listed = frozenset(one.lower() for one in digests or ())
    change = lambda old: replace(old, builds=listed, refuses_others=refuse, signatures={})  # noqa: E731
    return _change(_operator(home, roster, passphrase_file), change, out)


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
    operator: RosterOperator, requests: list[Path], federation: str | None, address: str | None, days: int | None, out: Output
) -> dict[str, Any]:
    """Makes members of requests; without days nothing is issued."""
    from securetm.credentials.key_requests import read_request
    from securetm.settings import require

    read = [read_request(path) for path in requests]
    old = operator.read() if operator.path.exists() else None
    named = federation or (old.federation if old else "")
    first = f"is needed the first time, where there is no {operator.path}"
    require(bool(named), "", "--federation", None, first, instead="--federation NAME")
    require(bool(old or address), "", "--address", None, first, instead="--address HOST:PORT")
    known = old.federation if old else named
    require(named == known, "", "--federation", named, f"is another one than that of {operator.path}, {known}")
    begun = old or operator.begin(named, address or "", days)
    new = operator.enrol(begun, read, address, days)
    return _tell(operator.path, old, operator.publish(old, new), out)


def _change(operator: RosterOperator, how: Callable[[FederationRoster], FederationRoster], out: Output) -> dict[str, Any]:
    old = operator.read()
    return _tell(operator.path, old, operator.publish(old, how(old)), out)


def _tell(path: Path, old: FederationRoster | None, new: FederationRoster, out: Output) -> dict[str, Any]:
    """Says what changed, and what to do with the file."""
    from securetm.credentials.diagnosis import ending_soon, now_utc
    from securetm.credentials.roster import changes
    from securetm.reports.keys import show_changes, show_warnings

    lines, warnings, to = changes(old, new), ending_soon(new, now_utc()), out.results
    show_changes(new, old, lines, to)
    to.print(f"Send {path} to every member, who runs: securetm keys accept {path.name}", markup=False, soft_wrap=True)
    show_warnings(warnings)
    return {**_facts(path, new), "changes": [vars(line) for line in lines], "warnings": list(warnings)}


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


def _about(context: typer.Context) -> None:
    """Makes and checks keys, certificates and the roster of a federation of separate organisations.

    An organisation runs `new` and sends the request file; the coordinator's operator runs `issue` and sends the roster; each
    organisation runs `accept`. No private key ever leaves the machine on which it was made.
    """
    from securetm.credentials.keys import keep_out_of_core_dumps

    keep_out_of_core_dumps()
    help_alone(context)


def _about_rosters(context: typer.Context) -> None:
    """Shows, checks, signs and changes the roster of a federation."""
    help_alone(context)


roster = Group(
    "roster", "Show, check, sign and change a roster.", (show_roster, check, sign, add, remove, builds), _about_rosters
)
keys = Group(
    "keys",
    "Make and check keys, certificates and rosters.",
    (new, request, accept, show, rotate, own, issue, revoke, roster),
    _about,
)
