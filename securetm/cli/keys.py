"""`securetm keys`: an organisation's own keys and the roster that it accepts, and what the coordinator's operator does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from securetm.cli.command import Group, Output, agreed_to, help_alone, member
from securetm.cli.options import ARGUMENT, FILE, Home, PassphraseFile
from securetm.cli.passphrases import new_passphrase, passphrase_for
from securetm.credentials import diagnosis, homes
from securetm.credentials.homes import KEYS, Replacement, found_home
from securetm.credentials.issuing import RosterOperator, with_revoked, without_member
from securetm.credentials.key_requests import KeyRequest, read_request, request_in, write_request
from securetm.credentials.keys import REQUEST, Keys, Passphrase, fingerprint_of, keep_out_of_core_dumps, same_fingerprint
from securetm.credentials.roster import COORDINATOR, FederationRoster, changes, read_roster, write_roster
from securetm.credentials.shown_keys import shown_file, shown_home
from securetm.data_classes import dataclass, replace
from securetm.data_homes import data_home
from securetm.errors import Mistake
from securetm.reports.keys import show_changes, show_fingerprints, show_request, show_warnings
from securetm.settings import require
from securetm.wording import counted

Holds = Annotated[
    int | None, "At least so many documents, or persons where these name them; all members see the number.", {"min": 0}
]
RequestFile = Annotated[Path | None, "--request", "Where the request goes: NAME.request.", FILE]
NewPassphrase = Annotated[bool, "--passphrase", "Ask for a passphrase that protects new keys."]
RosterArgument = Annotated[Path, ARGUMENT, "The file of the roster."]
Requests = Annotated[list[Path] | None, ARGUMENT, "The files of requests.", {"metavar": "REQUEST..."}]
Federation = Annotated[str | None, "What the federation is called; needed the first time."]
Address = Annotated[str | None, "Where parties reach the coordinator; needed the first time.", {"metavar": "HOST:PORT"}]
Days = Annotated[int, "How long new certificates are valid.", {"min": 1, "max": 3650}]


# ---- an organisation's own keys ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnKeys:
    home: Home = None
    request: RequestFile = None
    passphrase_file: PassphraseFile = None

    def replace(self, out: Output, change: Callable[[Path, Passphrase | None], Replacement]) -> dict[str, Any]:
        """Makes keys that wait for a roster, and writes their request."""
        place = found_home(self.home)
        phrase = passphrase_for(place / KEYS, self.passphrase_file)
        made = homes.next_keys(place, Keys.open(place / KEYS, phrase), change(place, phrase), phrase)
        return tell_request(made, place, self.request, out)


@member("Make an organisation's keys and its request.", "hospital-a")
def new(
    out: Output,
    name: Annotated[str, ARGUMENT, "What the others call this organisation, such as hospital-a."],
    own: OwnKeys = OwnKeys(),
    passphrase: NewPassphrase = False,
    holds: Holds = None,
) -> dict[str, Any]:
    """Makes the keys of an organisation, and the request that its operator sends to the coordinator's.

    The keys lie in the organisation's home for its owner alone; the request holds no secret.
    """
    place = own.home or data_home() / name
    made = homes.new_keys(place, name, new_passphrase(own.passphrase_file, passphrase), holds or 0)
    return tell_request(made, place, own.request, out)


@member("Write the request again.", "--home homes/hospital-a")
def request(out: Output, own: OwnKeys = OwnKeys(), holds: Holds = None) -> dict[str, Any]:
    """Writes the request of an organisation again, for the keys that it has or waits to use.

    With --holds it says another number: delta is judged by what all members say that they hold. The request of an older
    version gets the keys that outlast a quantum computer, and is signed anew.
    """
    place = found_home(own.home)
    made = homes.waiting_request(place)
    if holds is not None or not made.lasting:
        made = homes.announced(place, holds, passphrase_for(place / KEYS, own.passphrase_file))
    return tell_request(made, place, own.request, out)


@member("See what a roster changes, and accept it.", "roster.toml --home homes/hospital-a")
def accept(
    out: Output,
    roster: RosterArgument,
    home: Home = None,
    fingerprint: Annotated[
        str | None, "The roster's fingerprint, as you were told it: no question.", {"metavar": "DIGITS"}
    ] = None,
) -> dict[str, Any]:
    """Shows who came, who left and whose keys changed, and trusts this roster from now on if you say so."""
    new_roster = read_roster(roster)
    place = homes.home_in(home, new_roster)
    known = homes.accepted_roster(place)
    homes.check_succession(known, new_roster)
    homes.own_entry(place, new_roster)
    lines = changes(known, new_roster)
    show_changes(new_roster, known, lines, out.results)
    facts: dict[str, Any] = {"home": str(place), "federation": new_roster.federation, "version": new_roster.version}
    if known is None or known.digest != new_roster.digest:
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
    homes.accept(place, new_roster)
    facts |= {"fingerprint": new_roster.fingerprint, "changes": [vars(line) for line in lines], "accepted": True}
    if not out.json:
        out.results.print(f"Accepted, and kept in {place / 'roster.toml'}", markup=False, soft_wrap=True)
    return facts


@member("Show fingerprints to compare by telephone.", "roster.toml")
def show(
    out: Output,
    file: Annotated[Path | None, ARGUMENT, "A roster, request or certificate; else the own keys."] = None,
    home: Home = None,
) -> dict[str, Any]:
    """Shows fingerprints in groups that people can read to each other over the telephone."""
    found = shown_file(file) if file else shown_home(home)
    show_fingerprints(found, out.json)
    return found


@member("Make new keys; the old ones serve until then.", "--home homes/hospital-a")
def rotate(
    out: Output,
    identity: Annotated[bool, "--identity", "A new identity, too; the old one signs for it."] = False,
    own: OwnKeys = OwnKeys(),
) -> dict[str, Any]:
    """Makes a new TLS key, and the request for a roster that names it.

    The present keys stay in use until that roster is accepted.
    """
    return own.replace(out, lambda *_: Replacement(identity))


@member("Use a certificate of your own authority.", "own.pem own-key.pem --home homes/hospital-a")
def own(
    out: Output,
    certificate: Annotated[Path, ARGUMENT, "A certificate in PEM, of an EC key on P-256 or P-384."],
    key: Annotated[Path, ARGUMENT, "Its private key in PEM, for its owner alone."],
    keys: OwnKeys = OwnKeys(),
) -> dict[str, Any]:
    """Takes a certificate and key of the organisation's own authority, in the place of those that `new` made.

    The present keys stay in use until a roster with the new certificate is accepted. A passphrase has to be the same for both.
    """
    return keys.replace(out, lambda place, phrase: homes.own_replacement(place, certificate, key, phrase))


def tell_request(made: KeyRequest, home: Path, file: Path | None, out: Output) -> dict[str, Any]:
    """Writes the request where the operator finds it, and says what to do with it."""
    path = file or Path(f"{made.name}.request")
    write_request(path, made)
    facts = {"name": made.name, "home": str(home), "request": str(path), "identity": fingerprint_of(made.identity)}
    show_request(facts, out.json)
    return facts


# ---- the roster, by the coordinator's operator -----------------------------------------------------------------------


@dataclass(frozen=True)
class Operating:
    roster: Annotated[Path, "The file of the roster that is changed.", FILE] = Path("roster.toml")
    home: Home = None
    passphrase_file: PassphraseFile = None

    def operator(self, asked: bool = False) -> RosterOperator:
        """The operator, with the passphrase of the keys that are there or that will be made."""
        place = self.home or data_home() / COORDINATOR
        there = (place / KEYS / REQUEST).exists()
        known = passphrase_for(place / KEYS, self.passphrase_file) if there else new_passphrase(self.passphrase_file, asked)
        return RosterOperator(place, self.roster, known)

    def change(self, how: Callable[[FederationRoster], FederationRoster], out: Output) -> dict[str, Any]:
        operator = self.operator()
        old = operator.read()
        return _tell(operator.path, old, operator.publish(old, how(old)), out)


@member("Issue certificates and write the next roster.", "hospital-a.request")
def issue(
    out: Output,
    requests: Requests = None,
    federation: Federation = None,
    address: Address = None,
    days: Days = 365,
    at: Operating = Operating(),
    passphrase: NewPassphrase = False,
) -> dict[str, Any]:
    """Issues certificates for requests, and writes the next version of the roster.

    The first time, it makes the coordinator's keys and a certificate authority in the coordinator's home. Certificates that end
    within 30 days are renewed, also where no request is given.
    """
    return _enrol(at.operator(passphrase), requests or [], federation, address, days, out)


@member("Take a member off, and revoke its keys.", "hospital-b")
def revoke(
    out: Output,
    name: Annotated[str, ARGUMENT, "A member, or the fingerprint of a key or certificate.", {"metavar": "NAME"}],
    at: Operating = Operating(),
) -> dict[str, Any]:
    """Takes a member off the roster, and revokes its keys for good: no later roster can list them."""
    return at.change(lambda old: with_revoked(old, name), out)


@member("Show the members and their fingerprints.", "roster.toml", "show")
def show_roster(out: Output, roster: RosterArgument) -> dict[str, Any]:
    """Shows the members of a roster with their fingerprints."""
    read, found = read_roster(roster), shown_file(roster)
    show_fingerprints(found, out.json)
    return {**_facts(roster, read), **found}


@member("Check form, certificates and signatures.", "roster.toml")
def check(out: Output, roster: RosterArgument, home: Home = None) -> dict[str, Any]:
    """Checks form, keys, certificates and signatures of a roster, and with --home whether it is accepted there.

    It exits with 1 if a certificate has ended.
    """
    read, now = read_roster(roster), diagnosis.now_utc()
    if home is not None:
        homes.check_accepted(home, read)
    gone, warnings = diagnosis.ended(read, now), diagnosis.ending_soon(read, now)
    show_warnings(warnings)
    read.check_protocol()
    if not out.json:
        which = f"roster {read.version} of federation {read.federation}"
        over = f"{counted(len(gone), 'certificate')} of {which} {'has' if len(gone) == 1 else 'have'} ended"
        renewed = "`securetm keys issue` renews those that it issued, and who brings its own sends a new request"
        out.results.print(f"{over}: {renewed}." if gone else f"Fine: {which}.", markup=False, soft_wrap=True)
    out.exit_code = 1 if gone else 0
    return {**_facts(roster, read), "ended": list(gone), "warnings": list(warnings)}


@member("Sign a roster that was accepted here.", "roster.toml --home homes/hospital-a")
def sign(out: Output, roster: RosterArgument, home: Home = None, passphrase_file: PassphraseFile = None) -> dict[str, Any]:
    """Signs a roster that was accepted here, and writes the signature into the file.

    A member accepts a roster without asking once all parties, itself included, have signed it.
    """
    read = read_roster(roster)
    place = homes.home_in(home, read)
    homes.check_accepted(place, read)
    keys = Keys.open(place / KEYS, passphrase_for(place / KEYS, passphrase_file))
    signed = read.signed_by(request_in(place / KEYS).name, keys)
    write_roster(roster, signed)
    return _tell(roster, read, signed, out)


@member("Add members with certificates of their own.", "hospital-c.request")
def add(
    out: Output,
    requests: Requests = None,
    federation: Federation = None,
    address: Address = None,
    at: Operating = Operating(),
) -> dict[str, Any]:
    """Adds members that bring certificates of their own authorities, or replaces their keys. Nothing is issued.

    Where it makes the roster, the coordinator has keys and a certificate of its own already (`new coordinator`, then `own`).
    """
    return _enrol(at.operator(), requests or [], federation, address, None, out)


@member("Take a member off the roster.", "hospital-b")
def remove(
    out: Output, name: Annotated[str, ARGUMENT, "The member that leaves."], at: Operating = Operating()
) -> dict[str, Any]:
    """Takes a member off the roster. Its keys are not revoked, so that it may come back with them."""
    return at.change(lambda old: without_member(old, name), out)


@member("Say which builds of securetm take part.", "DIGEST --refuse")
def builds(
    out: Output,
    digests: Annotated[
        list[str] | None,
        ARGUMENT,
        "Of the builds, as `securetm version` prints them; else any.",
        {"metavar": "DIGEST..."},
    ] = None,
    refuse: Annotated[bool, "--refuse", "A member with another build takes no part; else it is told."] = False,
    at: Operating = Operating(),
) -> dict[str, Any]:
    """Writes the digests of builds into the roster. Each member compares its own with them before a run.

    A build says of itself which one it is. That finds a wrong version and a changed file, and no liar.
    """
    listed = frozenset(one.lower() for one in digests or ())
    return at.change(lambda old: replace(old, builds=listed, refuses_others=refuse, signatures={}), out)


def _enrol(
    operator: RosterOperator, requests: list[Path], federation: str | None, address: str | None, days: int | None, out: Output
) -> dict[str, Any]:
    """Makes members of requests; without days nothing is issued."""
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


def _tell(path: Path, old: FederationRoster | None, new: FederationRoster, out: Output) -> dict[str, Any]:
    lines, warnings, to = changes(old, new), diagnosis.ending_soon(new, diagnosis.now_utc()), out.results
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
    keep_out_of_core_dumps()
    help_alone(context)


def _about_rosters(context: typer.Context) -> None:
    """Shows, checks, signs and changes the roster of a federation."""
    help_alone(context)


roster = Group(
    "roster", (show_roster, check, sign, add, remove, builds), _about_rosters, summary="Show, check, sign and change a roster."
)
keys = Group(
    "keys",
    (new, request, accept, show, rotate, own, issue, revoke, roster),
    _about,
)
