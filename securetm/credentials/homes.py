"""A home: the folder of one organisation with its keys and the roster that it accepted. Nothing else decides whom it trusts.

A roster counts if it is that copy, or a newer one of the same federation that every party has signed, this one included.
The coordinator has a home, too.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from securetm.credentials.certificates import LONGEST, Certificate, CertificateOfAnotherKey, IdentityOfAnotherKey, check_form
from securetm.credentials.key_requests import KeyRequest, announcing, make_request, request_in, write_request
from securetm.credentials.keys import (
    CERTIFICATE,
    FIRST,
    IDENTITY,
    NEXT,
    REQUEST,
    TLS,
    Keys,
    Passphrase,
    ec_key,
    make_keys,
    no_keys,
    pem_of,
    public_der,
)
from securetm.credentials.roster import (
    COORDINATOR,
    DowngradedRoster,
    FederationRoster,
    Member,
    check_name,
    read_roster,
    write_roster,
)
from securetm.credentials.strict_toml import bytes_of
from securetm.data_classes import dataclass, field
from securetm.data_homes import data_home
from securetm.errors import Mistake, Misuse, NoSuchPath, Unreadable
from securetm.private_files import check_private, private_folder, sync, writing

KEYS, ACCEPTED = "keys", "roster.toml"  # in a home


class AcceptedRosterUnread(Misuse):
    """the roster that was accepted here cannot be read: {problem}"""

    path: str
    problem: str
    # By hand, because nothing here can tell any longer whether the next roster is older than this one.
    hint = (
        "take the newest roster, compare its fingerprint with the others by telephone (`securetm keys show roster.toml`), "
        "delete {path}, and accept that one: securetm keys accept roster.toml"
    )


def accepted_roster(home: Path) -> FederationRoster | None:
    """The roster that was accepted here last."""
    path = home / ACCEPTED
    if not path.exists():
        return None
    check_private(home)
    try:
        return read_roster(path)
    except (NoSuchPath, Unreadable):
        raise
    except Misuse as problem:
        raise AcceptedRosterUnread(str(path), str(problem)) from problem


def check_accepted(home: Path, roster: FederationRoster) -> None:
    """Refuses a roster that was not accepted here. One that every party has signed, this one too, is accepted now."""
    known = accepted_roster(home)
    if known is not None and known.digest == roster.digest:
        settle(home, roster)
        return
    check_succession(known, roster)
    me = request_in(home / KEYS).name
    if roster.unsigned or me not in roster.signatures:
        raise Mistake(
            "roster {version} of federation {federation} is not accepted here, and not every member has signed it",
            hint="see what it says and accept it: securetm keys accept roster.toml",
            federation=roster.federation,
            version=roster.version,
        )
    accept(home, roster)


def check_succession(known: FederationRoster | None, roster: FederationRoster) -> None:
    """Refuses what may not follow the accepted roster: another federation, an older version, a revocation taken back."""
    if known is None or known.digest == roster.digest:
        return
    if known.federation != roster.federation:
        raise Mistake(
            "this roster is of federation {federation}, and here keys are for federation {known}",
            hint="keep one home for each federation: `securetm keys new NAME --home FOLDER`",
            federation=roster.federation,
            known=known.federation,
        )
    if roster.protocol < known.protocol:
        raise DowngradedRoster(roster.federation, roster.version)
    if roster.version < known.version:
        raise Mistake(
            "this is roster {found} of federation {federation}, and roster {known} was accepted here before",
            hint="take the newest roster, also in the place of the copy that a plan or a PARTY.toml names: an older one may "
            "list members that left and keys that were revoked",
            federation=roster.federation,
            found=roster.version,
            known=known.version,
        )
    if roster.version == known.version:
        raise Mistake(
            "two different rosters of federation {federation} have the version {version}: this one and the accepted one",
            hint="members may have been shown different rosters: compare fingerprints with the others by telephone first",
            federation=roster.federation,
            version=roster.version,
        )
    if dropped := known.revoked - roster.revoked:
        raise Mistake(
            "the new roster of federation {federation} no longer lists {count:key|keys} as revoked that the accepted one lists",
            hint="what was revoked stays revoked: ask the coordinator's operator why",
            federation=roster.federation,
            count=len(dropped),
        )


def accept(home: Path, roster: FederationRoster) -> None:
    """Trusts this roster from now on. Whoever calls it has asked the operator, or found everybody's signature."""
    check_succession(accepted_roster(home), roster)
    own_entry(home, roster)
    private_folder(home)
    write_roster(home / ACCEPTED, roster)
    settle(home, roster)


def own_entry(home: Path, roster: FederationRoster) -> Member:
    """This organisation's entry. Refuses a roster that has other keys under its name than it holds, or waits to use."""
    present = request_in(home / KEYS)
    waiting = waiting_request(home)
    member = roster.own_member(present.name, waiting.identity, waiting.tls_public_key)
    if any(fits(member, one) for one in (present, waiting)):
        return member
    if member.identity not in {present.identity, waiting.identity}:
        raise IdentityOfAnotherKey(member.name, str(home / KEYS))
    raise CertificateOfAnotherKey(member.name, str(home / KEYS))


def settle(home: Path, roster: FederationRoster) -> None:
    """Takes the waiting keys into use if the accepted roster names them, and keeps the certificate beside the keys.

    Each step can be repeated, so a crash leaves nothing half done: the request, which says whose keys these are, moves last.
    """
    member, keys = own_entry(home, roster), home / KEYS
    if (keys / NEXT / REQUEST).is_file() and fits(member, request_in(keys / NEXT)):
        for name in (TLS, IDENTITY, REQUEST):
            if (keys / NEXT / name).exists():
                if name == IDENTITY and not (keys / FIRST).exists():
                    (keys / IDENTITY).replace(keys / FIRST)
                (keys / NEXT / name).replace(keys / name)
        shutil.rmtree(keys / NEXT)
        sync(keys)
    path = keys / CERTIFICATE
    if not path.is_file() or path.read_bytes() != member.certificate.pem:
        with writing(path) as file:
            file.write(member.certificate.pem)
        sync(keys)


def waiting_request(home: Path) -> KeyRequest:
    """The request of the keys that wait for a roster; that of the present ones if none wait."""
    folder = home / KEYS / NEXT
    return request_in(folder if (folder / REQUEST).is_file() else home / KEYS)


def fits(member: Member, request: KeyRequest) -> bool:
    """Whether the member's entry has the keys of this request. A roster of protocol 3 has no lasting ones."""
    same = (member.identity, member.certificate.public_key) == (request.identity, request.tls_public_key)
    return same and member.lasting in (b"", request.lasting)


def new_keys(home: Path, name: str, passphrase: Passphrase | None = None, holds: int = 0) -> KeyRequest:
    check_name(name, "the command", "NAME")
    folder = home / KEYS
    if (folder / REQUEST).exists():
        raise Mistake(
            "there are keys in {path} already",
            hint="`securetm keys request` writes their request again; `securetm keys rotate` makes new ones and "
            "keeps these meanwhile",
            path=str(folder),
        )
    private_folder(home)
    request = make_request(name, make_keys(folder, passphrase), holds=holds)
    write_request(folder / REQUEST, request)
    return request


def announced(home: Path, holds: int | None, passphrase: Passphrase | None) -> KeyRequest:
    """Changes how much the organisation says that it holds at least, in the request for its present or waiting keys.

    One from before protocol 4 gets the lasting keys of its identity. Without a number, the one that it says stays.
    """
    folder = home / KEYS
    folder = folder / NEXT if (folder / NEXT / REQUEST).exists() else folder
    known = request_in(folder)
    request = announcing(known, Keys.open(folder, passphrase), known.holds if holds is None else holds)
    write_request(folder / REQUEST, request)
    return request


@dataclass(frozen=True)
class Replacement:
    """New keys of a member: what is to change. What is not named stays."""

    identity: bool = False
    tls_key_pem: bytes = field(default=b"", repr=False)  # of an authority of its own
    certificate: Certificate | None = None


def own_replacement(home: Path, certificate: Path, key: Path, passphrase: Passphrase | None) -> Replacement:
    """A certificate and key of an authority of the organisation's own, checked as far as possible without a roster."""
    name = request_in(home / KEYS).name
    read = Certificate.from_pem(bytes_of(certificate, LONGEST), name)
    check_form(read, name)
    private = ec_key(key, passphrase)
    if read.public_key != public_der(private):
        raise CertificateOfAnotherKey(name, str(key))
    return Replacement(tls_key_pem=pem_of(private), certificate=read)


def next_keys(home: Path, present: Keys, change: Replacement, passphrase: Passphrase | None) -> KeyRequest:
    """Makes keys that wait, beside the present ones, for a roster that names them. The present ones stay in use until then."""
    folder = home / KEYS / NEXT
    if (folder / REQUEST).exists():
        raise Mistake(
            "new keys in {path} wait for a roster already",
            hint="accept the roster that has them (`securetm keys accept`); to give them up, delete that folder",
            path=str(folder),
        )
    keys = make_keys(folder, passphrase, identity=None if change.identity else present.identity, tls=change.tls_key_pem or None)
    known = request_in(home / KEYS)
    request = make_request(known.name, keys, certificate=change.certificate, replaced=present, holds=known.holds)
    write_request(folder / REQUEST, request)
    return request


_MOST_NAMED = 5


def homes() -> tuple[Path, ...]:
    return tuple(path.parents[1] for path in sorted(data_home().glob(f"*/{KEYS}/{REQUEST}")))


def found_home(named: Path | None) -> Path:
    """The home that was named, or the only one there is."""
    if named is not None:
        if not (named / KEYS / REQUEST).is_file():
            raise no_keys(str(named / KEYS))
        return named
    return _only(homes())


def home_in(named: Path | None, roster: FederationRoster) -> Path:
    """The home that was named, or the only one whose party stands in this roster with its keys."""
    known = homes() if named is None else ()
    fitting = tuple(home for home in known if home.name != COORDINATOR and _is_in(home, roster))
    return fitting[0] if len(fitting) == 1 else found_home(named) if named or not fitting else _only(fitting)


def _is_in(home: Path, roster: FederationRoster) -> bool:
    requests = (request_in(home / KEYS), waiting_request(home))
    return any(one.name == member.name and fits(member, one) for member in roster.parties for one in requests)


def _only(found: tuple[Path, ...]) -> Path:
    if not found:
        raise no_keys(str(data_home()))
    if len(found) > 1:
        named = ", ".join(home.name for home in found[:_MOST_NAMED])
        raise Mistake(
            "it is not clear whose keys are meant: {problem}",
            hint="name the home of the keys with --home FOLDER",
            problem=f"{data_home()} holds {len(found)} of them ({named}{', …' if len(found) > _MOST_NAMED else ''})",
        )
    return found[0]
