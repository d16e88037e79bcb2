"""The roster of a federation: who takes part, with which keys, and who signed it. It is checked as a whole when it is made.

It does not know whether anybody accepted it; acceptance.py does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from securetm.credentials.certificates import Certificate, check_form
from securetm.credentials.fingerprints import fingerprint, fingerprint_of
from securetm.credentials.key_files import Keys
from securetm.credentials.member_names import COORDINATOR, check_name, check_party_name
from securetm.credentials.purposes import Purpose, digest_for, is_signed
from securetm.credentials.roster_errors import BadRosterSignature, DuplicateMember, MemberRevoked, NotAMember
from securetm.settings import require

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

    def __post_init__(self) -> None:
        """Refuses a roster that names anybody twice, or that lists what it revokes."""
        object.__setattr__(self, "parties", tuple(sorted(self.parties, key=lambda one: one.name)))
        check_name(self.federation, "the roster", "federation")
        require(1 <= self.version < MOST_VERSIONS, "the roster", "version", self.version, "must be at least 1 and below 2^53")
        check_address(self.address, "the roster")
        _check_members(self)
        _check_revocations(self)

    @property
    def members(self) -> tuple[str, ...]:
        """The names of all parties, sorted."""
        return tuple(one.name for one in self.parties)

    @property
    def keys(self) -> Mapping[str, bytes]:
        """The public identity of each party, as sessions pin it."""
        return {one.name: one.identity for one in self.parties}

    @property
    def holds(self) -> Mapping[str, int]:
        """How many documents or persons each party says that it holds at least."""
        return {one.name: one.holds for one in self.parties}

    @property
    def everybody(self) -> tuple[Member, ...]:
        """The coordinator and all parties."""
        return (self.coordinator, *self.parties)

    def member(self, name: str) -> Member:
        """The member of that name; `coordinator` is the coordinator."""
        for one in self.everybody:
            if one.name == name:
                return one
        raise NotAMember(self.federation, name[:100], self.version)

    @cached_property
    def digest(self) -> bytes:
        """The SHA-256 of everything but the signatures. Two rosters with one digest say the same."""
        entries = (part for one in self.everybody for part in (one.name.encode(), one.identity, one.certificate.der))
        counts = (self.version, len(self.parties), len(self.revoked))
        numbers = (count.to_bytes(8, "big") for count in counts)
        revoked = (one.encode() for one in sorted(self.revoked))
        told = (part for one in self.parties if one.holds for part in (one.name.encode(), one.holds.to_bytes(8, "big")))
        return digest_for(Purpose.ROSTER, self.federation.encode(), *numbers, self.address.encode(), *entries, *revoked, *told)

    @property
    def fingerprint(self) -> str:
        """The digest, as people compare it."""
        return fingerprint(self.digest)

    @property
    def unsigned(self) -> tuple[str, ...]:
        """The parties that have not signed it."""
        return tuple(name for name in self.members if name not in self.signatures)

    def signed_by(self, name: str, keys: Keys) -> FederationRoster:
        """The same roster with the signature of that member."""
        signature = keys.sign(Purpose.CONSENT, self.federation.encode(), self.digest)
        return self.with_signatures({**self.signatures, name: signature})

    def with_signatures(self, signatures: Mapping[str, bytes]) -> FederationRoster:
        """The same roster with these signatures. Each must be right."""
        for name, signature in signatures.items():
            identity = self.member(name).identity
            if not is_signed(identity, signature, Purpose.CONSENT, self.federation.encode(), self.digest):
                raise BadRosterSignature(self.federation, name)
        return replace(self, signatures=dict(sorted(signatures.items())))


def check_address(address: str, where: str) -> tuple[str, int]:
    """Returns host and port of an address such as `hub.example.org:7443` or `[::1]:7443`, or refuses it."""
    host, colon, port = address.rpartition(":")
    inner = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    is_host = (
        bool(inner)
        and len(inner) <= 253
        and all(letter.isascii() and (letter.isalnum() or letter in ".-:") for letter in inner)
    )
    is_port = bool(colon) and port.isascii() and port.isdigit() and 1 <= int(port[:6]) <= 65_535
    plain = ":" not in inner or host != inner  # an IPv6 address stands in brackets
    require(is_host and is_port and plain, where, "address", address[:300], "must be HOST:PORT, such as hub.example.org:7443")
    return inner, int(port)


def _check_members(roster: FederationRoster) -> None:
    require(
        len(roster.parties) <= MOST_MEMBERS, "the roster", "member", len(roster.parties), f"must be at most {MOST_MEMBERS:,}"
    )
    require(roster.coordinator.name == COORDINATOR, "the roster", "name", roster.coordinator.name, f"must be {COORDINATOR}")
    for one in roster.parties:
        check_party_name(one.name, "the roster")
    for one in roster.everybody:
        check_form(one.certificate, one.name)
        require(0 <= one.holds <= MOST_HELD, "the roster", "holds", one.holds, f"must be at least 0 and at most {MOST_HELD:,}")
    _refuse_twice(roster, "name", ((one.name.encode(), one.name) for one in roster.everybody))
    _refuse_twice(roster, "identity", ((one.identity, one.name) for one in roster.everybody))
    _refuse_twice(roster, "TLS key", ((one.certificate.public_key, one.name) for one in roster.everybody))


def _refuse_twice(roster: FederationRoster, what: str, found: Iterable[tuple[bytes, str]]) -> None:
    pairs = tuple(found)
    twice = {value for value, count in Counter(value for value, _ in pairs).items() if count > 1}
    if twice:
        raise DuplicateMember(roster.federation, what, tuple(name for value, name in pairs if value in twice)[:10])


def _check_revocations(roster: FederationRoster) -> None:
    require(
        len(roster.revoked) <= MOST_REVOKED, "the roster", "revoked", len(roster.revoked), f"must be at most {MOST_REVOKED:,}"
    )
    for one in roster.everybody:
        if one.revocable & roster.revoked:
            raise MemberRevoked(roster.federation, one.name)
