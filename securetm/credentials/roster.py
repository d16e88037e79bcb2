"""The roster of a federation: who takes part, with which keys, and who signed it; and its file, `roster.toml`.

It is checked as a whole when it is made. Whether anybody accepted it, a home knows.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from securetm.credentials.certificates import Certificate, check_form, day_and_time
from securetm.credentials.hybrid_identity import (
    FORMER,
    KEY,
    LASTING,
    PublicIdentity,
    Purpose,
    digest_for,
    signature_in,
    signature_text,
)
from securetm.credentials.keys import Keys, fingerprint, fingerprint_of, parsed_fingerprint
from securetm.credentials.strict_toml import decoded, encoded, hexadecimal, quoted, read_limited, table_of
from securetm.data_classes import dataclass, field, replace
from securetm.errors import Mistake, Misuse, did_you_mean
from securetm.private_files import sync
from securetm.settings import one_of, placed, require


class DuplicateMember(Misuse):
    """two members of federation {federation} have the same {what}: {names}"""

    federation: str
    what: str
    names: tuple[str, ...]
    hint = "each member has a name and keys of its own: whoever made the roster removes one of them"


class MemberRevoked(Misuse):
    """the roster of federation {federation} lists {name} with a key that it lists as revoked, too"""

    federation: str
    name: str
    hint = "the member makes new keys (`securetm keys new`) and sends a new request"


class OwnKeysRevoked(Misuse):
    """the keys of {name} were revoked: roster {version} of federation {federation} no longer lists it"""

    federation: str
    name: str
    version: int
    hint = (
        "revoked keys take no part again: ask the coordinator's operator why; for new ones, `securetm keys new NAME --home "
        "FOLDER` in another home, and send that request"
    )


class BadRosterSignature(Misuse):
    """the signature of {name} under the roster of federation {federation} is wrong: it was changed after it was signed"""

    federation: str
    name: str
    hint = "ask for the file again, and compare fingerprints by telephone (`securetm keys show roster.toml`)"


class FormerRoster(Misuse):
    """roster {version} of federation {federation} is of protocol 3 and begins no run: quantum computers would break its keys"""

    federation: str
    version: int
    hint = (
        "each member sends `securetm keys request`, the operator moves all with one `securetm keys issue *.request`, and each "
        "member accepts that roster"
    )


class DowngradedRoster(Misuse):
    """roster {version} of federation {federation} is of protocol 3, and one of protocol 4 was accepted here before"""

    federation: str
    version: int
    hint = "keys that outlast a quantum computer are not given up again: ask the coordinator's operator why"


PROTOCOL, FORMER_PROTOCOL = 4, 3  # by the former one, members have an Ed25519 key alone


class AnotherBuild(Misuse):
    """roster {version} of federation {federation} does not let build {digest} of securetm take part"""

    federation: str
    version: int
    digest: str
    hint = "install the build that the federation agreed on; `securetm version --verify` says whether this one was changed"


COORDINATOR = "coordinator"
LONGEST_NAME = 63  # letters of one label of a name on the network
_NAME = re.compile(rf"[a-z0-9](?:[a-z0-9-]{{0,{LONGEST_NAME - 2}}}[a-z0-9])?")
_RULE = f"must be 1 to {LONGEST_NAME} small letters of English, digits and hyphens, with no hyphen at either end"


def check_name(name: str, where: str, setting: str = "name") -> str:
    """Returns the name, or refuses it and proposes one that is allowed."""
    proposal = proposed_name(name)
    instead = f"call it {proposal}" if proposal and proposal != name else ""
    require(_NAME.fullmatch(name) is not None, where, setting, name, _RULE, instead=instead)
    return name


def proposed_name(name: str) -> str:
    """The allowed name that is most like this one; it may be empty."""
    plain = unicodedata.normalize("NFKD", name[:200]).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:LONGEST_NAME].strip("-")


MOST_MEMBERS = 2_000
MOST_REVOKED = 20_000
MOST_HELD = 10**12  # documents of one party
MOST_VERSIONS = 2**53  # a number that every reader of TOML and JSON keeps exactly


@dataclass(frozen=True)
class Member:
    """One organisation: its name, its public identity and its TLS certificate, and how much it says that it holds at least."""

    name: str
    identity: bytes
    certificate: Certificate
    holds: int = 0  # at least so many documents; where these name persons, so many persons. 0: it says nothing
    lasting: bytes = b""  # the keys of its identity beside Ed25519: ML-DSA-65, X25519, ML-KEM-768

    @property
    def public(self) -> PublicIdentity:
        return PublicIdentity(self.identity, self.lasting)

    @property
    def fingerprint(self) -> str:
        """Of its identity, by which people know this member wherever it is shown or typed. It outlasts certificates."""
        return fingerprint_of(self.identity)

    @property
    def revocable(self) -> frozenset[str]:
        """Everything of this member that can be revoked: its identity, its TLS key and its certificate."""
        return frozenset(map(fingerprint_of, (self.identity, self.certificate.public_key, self.certificate.der)))


@dataclass(frozen=True)
class FederationRoster:
    """Everything that the members agree on about who they are. Parties are in the order of their names, in any file."""

    federation: str
    version: int
    address: str  # where the coordinator listens, host:port
    coordinator: Member
    parties: tuple[Member, ...]
    revoked: frozenset[str] = frozenset()  # fingerprints
    signatures: Mapping[str, bytes] = field(default_factory=dict, compare=False)  # by member; not in the digest
    builds: frozenset[str] = frozenset()  # of securetm, by their digests (`securetm version`), that members are to run
    refuses_others: bool = False  # whether a member with another build takes no part; else it is told so

    def __post_init__(self) -> None:
        """Refuses a roster that names anybody twice, or that lists what it revokes."""
        object.__setattr__(self, "parties", tuple(sorted(self.parties, key=lambda one: one.name)))
        check_name(self.federation, "the roster", "federation")
        require(1 <= self.version < MOST_VERSIONS, "the roster", "version", self.version, "must be at least 1 and below 2^53")
        check_address(self.address, "the roster")
        _check_members(self)
        for one in self.builds:
            is_digest = re.fullmatch("[0-9a-f]{64}", one) is not None
            require(is_digest, "the roster", "builds", one[:100], "must be a list of digests of 64 digits")
        require(bool(self.builds) or not self.refuses_others, "the roster", "other_builds", "refused", "needs `builds`")

    @property
    def protocol(self) -> int:
        """4 if all members have keys that outlast a quantum computer, 3 if none has."""
        return PROTOCOL if self.coordinator.lasting else FORMER_PROTOCOL

    def check_alike(self) -> None:
        """Refuses a roster on its way from protocol 3 to 4: all members move together."""
        lacking = tuple(one.name for one in self.everybody if not one.lasting)
        if lacking and len(lacking) <= len(self.parties):
            raise Mistake(
                "the roster of federation {federation} has no key of {names} that outlasts a quantum computer, and the others "
                "have one",
                hint="all members move to protocol 4 together: issue a new `securetm keys request` of each of them",
                federation=self.federation,
                names=lacking[:10],
            )

    def check_protocol(self) -> None:
        """Refuses a roster of the former protocol: it is read, and no run begins with it."""
        if self.protocol != PROTOCOL:
            raise FormerRoster(self.federation, self.version)

    @property
    def members(self) -> tuple[str, ...]:
        """The names of all parties, sorted."""
        return tuple(one.name for one in self.parties)

    @property
    def keys(self) -> Mapping[str, bytes]:
        return {one.name: one.identity for one in self.parties}

    @property
    def holds(self) -> Mapping[str, int]:
        return {one.name: one.holds for one in self.parties}

    @property
    def everybody(self) -> tuple[Member, ...]:
        return (self.coordinator, *self.parties)

    def member(self, name: str) -> Member:
        """The member of that name; `coordinator` is the coordinator."""
        for one in self.everybody:
            if one.name == name:
                return one
        raise Mistake(
            "there is no member called {name} in roster {version} of federation {federation}",
            hint="send the request again (`securetm keys request` writes it), and ask for a roster that has it",
            federation=self.federation,
            name=name[:100],
            version=self.version,
        )

    def own_member(self, name: str, identity: bytes, tls_public_key: bytes) -> Member:
        """The member of that name, which asks for itself, with the keys that it has."""
        own = {*map(fingerprint_of, (identity, tls_public_key))}
        if name not in (COORDINATOR, *self.members) and own & self.revoked:
            raise OwnKeysRevoked(self.federation, name, self.version)
        return self.member(name)

    def listed(self, name: str) -> Member:
        names = (COORDINATOR, *self.members)
        if name not in names:
            raise Mistake(
                "there is no member called {name} in roster {version} of federation {federation}",
                hint="{meant}`securetm keys roster show` shows all of its members",
                federation=self.federation,
                name=name[:100],
                version=self.version,
                meant=did_you_mean(name, names),
            )
        return self.member(name)

    @cached_property
    def digest(self) -> bytes:
        """The SHA-256 of everything but the signatures. Two rosters with one digest say the same."""
        self.check_alike()
        is_former = self.protocol == FORMER_PROTOCOL
        entries: list[bytes] = []
        for one in self.everybody:
            entries += (one.name.encode(), one.identity, *(() if is_former else (one.lasting,)), one.certificate.der)
        counts = (self.version, len(self.parties), len(self.revoked))
        numbers = (count.to_bytes(8, "big") for count in counts)
        revoked = (one.encode() for one in sorted(self.revoked))
        told = (part for one in self.parties if one.holds for part in (one.name.encode(), one.holds.to_bytes(8, "big")))
        pinned = (b"builds", bytes([self.refuses_others]), *map(bytes.fromhex, sorted(self.builds))) if self.builds else ()
        said = (self.federation.encode(), *numbers, self.address.encode(), *entries, *revoked, *told, *pinned)
        return digest_for(Purpose.ROSTER, *said, **({"protocol": FORMER} if is_former else {}))

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.digest)

    @property
    def unsigned(self) -> tuple[str, ...]:
        return tuple(name for name in self.members if name not in self.signatures)

    def signed_by(self, name: str, keys: Keys) -> FederationRoster:
        signature = keys.sign(Purpose.CONSENT, self.federation.encode(), self.digest)
        return self.with_signatures({**self.signatures, name: signature})

    def with_signatures(self, signatures: Mapping[str, bytes]) -> FederationRoster:
        """The same roster with these signatures. Each must be right."""
        for name, signature in signatures.items():
            public = self.member(name).public
            if not public.is_signed(signature, Purpose.CONSENT, self.federation.encode(), self.digest):
                raise BadRosterSignature(self.federation, name)
        return replace(self, signatures=dict(sorted(signatures.items())))


def check_address(address: str, where: str) -> tuple[str, int]:
    """Returns host and port of an address such as `hub.example.org:7443` or `[::1]:7443`, or refuses it."""
    host, colon, port = address.rpartition(":")
    inner = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    letters = all(letter.isascii() and (letter.isalnum() or letter in ".-:") for letter in inner)
    is_host = bool(inner) and len(inner) <= 253 and letters
    is_port = bool(colon) and port.isascii() and port.isdigit() and 1 <= int(port[:6]) <= 65_535
    plain = ":" not in inner or host != inner  # an IPv6 address stands in brackets
    require(is_host and is_port and plain, where, "address", address[:300], "must be HOST:PORT, such as hub.example.org:7443")
    return inner, int(port)


def _check_members(roster: FederationRoster) -> None:
    parties = len(roster.parties)
    require(parties <= MOST_MEMBERS, "the roster", "member", parties, f"must be at most {MOST_MEMBERS:,}")
    require(roster.coordinator.name == COORDINATOR, "the roster", "name", roster.coordinator.name, f"must be {COORDINATOR}")
    for one in roster.parties:
        other, name = one.name != COORDINATOR, one.name
        require(other, "the roster", "name", name, "must not be the coordinator's name", instead="call the party otherwise")
        check_name(one.name, "the roster")
    for one in roster.everybody:
        check_form(one.certificate, one.name)
        require(0 <= one.holds <= MOST_HELD, "the roster", "holds", one.holds, f"must be at least 0 and at most {MOST_HELD:,}")
    _refuse_twice(roster, "name", ((one.name.encode(), one.name) for one in roster.everybody))
    _refuse_twice(roster, "identity", ((one.identity, one.name) for one in roster.everybody))
    _refuse_twice(roster, "TLS key", ((one.certificate.public_key, one.name) for one in roster.everybody))
    most, revoked = MOST_REVOKED, len(roster.revoked)
    require(revoked <= most, "the roster", "revoked", revoked, f"must be at most {most:,}")
    for one in roster.everybody:
        if one.revocable & roster.revoked:
            raise MemberRevoked(roster.federation, one.name)


def _refuse_twice(roster: FederationRoster, what: str, found: Iterable[tuple[bytes, str]]) -> None:
    pairs = tuple(found)
    twice = {value for value, count in Counter(value for value, _ in pairs).items() if count > 1}
    if twice:
        raise DuplicateMember(roster.federation, what, tuple(name for value, name in pairs if value in twice)[:10])


STAYS = "stays"


@dataclass(frozen=True)
class RosterChange:
    name: str
    what: str  # came, left, revoked, stays, or what changed
    identity: str  # its fingerprint
    until: str  # the end of its certificate
    holds: int = 0  # how many documents or persons it says that it holds at least


def changes(old: FederationRoster | None, new: FederationRoster) -> tuple[RosterChange, ...]:
    """A line for each member of either roster, in the order of the names after the coordinator."""
    before, after = ({one.name: one for one in roster.everybody} if roster else {} for roster in (old, new))
    found = []
    for name in sorted({*before, *after}, key=lambda name: (name != COORDINATOR, name)):
        member = after.get(name) or before[name]
        what = _what(before.get(name), after.get(name))
        what = "revoked" if what == "left" and member.revocable & new.revoked else what
        found.append(RosterChange(name, what, member.fingerprint, day_and_time(member.certificate.until), member.holds))
    return tuple(found)


def _what(before: Member | None, after: Member | None) -> str:
    if before is None or after is None:
        return "came" if before is None else "left"
    if before.identity != after.identity:
        return "identity changed"
    if before.lasting != after.lasting:
        return "lasting keys came"
    if before.certificate.public_key != after.certificate.public_key:
        return "TLS key changed"
    if before.certificate.der != after.certificate.der:
        return "certificate renewed"
    return STAYS if before.holds == after.holds else "other number"


LONGEST_ROSTER = 24 * 2**20  # bytes of a roster: 2,000 members that have all signed take 21 MiB


@dataclass(frozen=True)
class _RosterTable:
    federation: str
    version: int
    coordinator: dict[str, Any]
    member: tuple[dict[str, Any], ...] = ()
    signature: tuple[dict[str, Any], ...] = ()
    revoked: tuple[str, ...] = ()
    protocol: int = FORMER_PROTOCOL
    builds: tuple[str, ...] = ()
    other_builds: Annotated[str, one_of("named", "refused")] = "named"


@dataclass(frozen=True)
class _CoordinatorTable:
    address: str
    identity: str
    certificate: str
    lasting: str = ""
    name: str = COORDINATOR


@dataclass(frozen=True)
class _MemberTable:
    name: str
    identity: str
    certificate: str
    lasting: str = ""
    holds: int = 0


@dataclass(frozen=True)
class _SignatureTable:
    member: str
    signature: str


def read_roster(path: Path) -> FederationRoster:
    """Reads a roster, and refuses one that is damaged, inconsistent or wrongly signed."""
    return parsed_roster(path, read_limited(path, LONGEST_ROSTER))


def parsed_roster(path: Path, tables: dict[str, Any]) -> FederationRoster:
    with placed(path):
        return _roster(tables, path.name)


def _roster(tables: dict[str, Any], where: str) -> FederationRoster:
    table = table_of(_RosterTable, tables, where)
    coordinator = table_of(_CoordinatorTable, table.coordinator, f"[coordinator] of {where}")
    places = (f"[[member]] {number} of {where}" for number in range(1, len(table.member) + 1))
    parties = tuple(_member(table_of(_MemberTable, one, at), at) for one, at in zip(table.member, places, strict=True))
    own = _MemberTable(coordinator.name, coordinator.identity, coordinator.certificate, coordinator.lasting)
    first = _member(own, f"[coordinator] of {where}")
    revoked = frozenset(_fingerprint(one, where) for one in table.revoked)
    known = table.protocol in (PROTOCOL, FORMER_PROTOCOL)
    require(known, where, "protocol", table.protocol, "is not known; this version of securetm reads 3 and 4")
    pinned: dict[str, Any] = {"builds": frozenset(table.builds), "refuses_others": table.other_builds == "refused"}
    roster = FederationRoster(table.federation, table.version, coordinator.address, first, parties, revoked, **pinned)
    roster.check_alike()
    as_said = "must be 4 where members have lasting keys, and else 3"
    require(table.protocol == roster.protocol, where, "protocol", table.protocol, as_said)
    return roster.with_signatures(_signatures(roster, table.signature, where))


def _member(table: _MemberTable, where: str) -> Member:
    name = check_name(table.name, where)
    identity = hexadecimal(table.identity, KEY, where, "identity")
    lasting = decoded(table.lasting, LASTING, where, "lasting") if table.lasting else b""
    return Member(name, identity, Certificate.from_pem(table.certificate, name), table.holds, lasting)


def _fingerprint(text: str, where: str) -> str:
    known = parsed_fingerprint(text)
    require(known is not None, where, "revoked", text[:100], "must be a list of fingerprints, of 60 digits each")
    return known or ""


def _signatures(roster: FederationRoster, tables: tuple[dict[str, Any], ...], where: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for number, one in enumerate(tables, start=1):
        place = f"[[signature]] {number} of {where}"
        table = table_of(_SignatureTable, one, place)
        if table.member in found:
            raise DuplicateMember(roster.federation, "signature", (table.member[:100],))
        found[table.member] = signature_in(table.signature, roster.protocol == PROTOCOL, place, "signature")
    return found


# ---- writing ---------------------------------------------------------------------------------------------------------

_HEAD = """\
# The roster of a federation: who takes part, with which public keys. It holds no secret.
# Every member compares its fingerprint with the others by telephone, and accepts it: securetm keys accept roster.toml
"""


def roster_text(roster: FederationRoster) -> str:
    """The roster as its file has it; equal rosters have equal text."""
    revoked = "".join(f"  {quoted(one)},\n" for one in sorted(roster.revoked))
    said = f"federation = {quoted(roster.federation)}\nversion = {roster.version}"
    parts = [_HEAD + f"# Fingerprint: {roster.fingerprint}", said]
    parts[1] += f"\nprotocol = {PROTOCOL}" if roster.protocol == PROTOCOL else ""
    parts[1] += f"\nrevoked = [\n{revoked}]" if revoked else ""
    if roster.builds:
        others = "refused" if roster.refuses_others else "named"
        parts[1] += f"\nbuilds = [{', '.join(map(quoted, sorted(roster.builds)))}]\nother_builds = {quoted(others)}"
    parts.append(f"[coordinator]\n{_entry(roster.coordinator)}\naddress = {quoted(roster.address)}")
    parts += [f"[[member]]\n{_entry(one)}" for one in roster.parties]
    for name, signature in roster.signatures.items():
        parts.append(f"[[signature]]\nmember = {quoted(name)}\nsignature = {signature_text(signature)}")
    return "\n\n".join(parts) + "\n"


def write_roster(path: Path, roster: FederationRoster) -> None:
    """Writes the roster at once: whoever reads meanwhile reads the old one or the new one. Everybody may read it."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(roster_text(roster), "utf-8")
    sync(beside)
    beside.replace(path)
    sync(path.parent)


def _entry(member: Member) -> str:
    certificate = member.certificate.pem.decode()
    holds = f"\nholds = {member.holds}" if member.holds else ""
    lasting = f"\nlasting = {encoded(member.lasting)}" if member.lasting else ""
    keys = f'identity = "{member.identity.hex()}"{lasting}{holds}'
    return f"name = {quoted(member.name)}\n{keys}\ncertificate = '''\n{certificate}'''"
