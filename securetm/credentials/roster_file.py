"""`roster.toml`: reads a roster strictly, and writes it in one form. What a roster may say is checked in roster.py."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securetm.credentials.certificates import Certificate
from securetm.credentials.fingerprints import parsed_fingerprint
from securetm.credentials.member_names import COORDINATOR, check_name
from securetm.credentials.purposes import KEY, SIGNATURE
from securetm.credentials.roster import FederationRoster, Member
from securetm.credentials.roster_errors import DuplicateMember
from securetm.credentials.strict_toml import hexadecimal, quoted, read_limited, table_of
from securetm.private_files import sync
from securetm.settings import placed, require

LONGEST = 4 * 2**20  # bytes of a roster: 2,000 members take 2.5 MiB


@dataclass(frozen=True)
class _RosterTable:
    """The top of the file."""

    federation: str
    version: int
    coordinator: dict[str, Any]
    member: tuple[dict[str, Any], ...] = ()
    signature: tuple[dict[str, Any], ...] = ()
    revoked: tuple[str, ...] = ()


@dataclass(frozen=True)
class _CoordinatorTable:
    address: str
    identity: str
    certificate: str
    name: str = COORDINATOR


@dataclass(frozen=True)
class _MemberTable:
    name: str
    identity: str
    certificate: str
    holds: int = 0


@dataclass(frozen=True)
class _SignatureTable:
    member: str
    signature: str


def read_roster(path: Path) -> FederationRoster:
    """Reads a roster, and refuses one that is damaged, inconsistent or wrongly signed."""
    return parsed_roster(path, read_limited(path, LONGEST))


def parsed_roster(path: Path, tables: dict[str, Any]) -> FederationRoster:
    """The roster that these tables of a file are."""
    with placed(path):
        return _roster(tables, path.name)


def _roster(tables: dict[str, Any], where: str) -> FederationRoster:
    table = table_of(_RosterTable, tables, where)
    coordinator = table_of(_CoordinatorTable, table.coordinator, f"[coordinator] of {where}")
    parties = tuple(_party(one, f"[[member]] {number} of {where}") for number, one in enumerate(table.member, start=1))
    first = _member(_MemberTable(coordinator.name, coordinator.identity, coordinator.certificate), f"[coordinator] of {where}")
    revoked = frozenset(_fingerprint(one, where) for one in table.revoked)
    roster = FederationRoster(table.federation, table.version, coordinator.address, first, parties, revoked)
    return roster.with_signatures(_signatures(roster, table.signature, where))


def _party(table: dict[str, Any], where: str) -> Member:
    return _member(table_of(_MemberTable, table, where), where)


def _member(table: _MemberTable, where: str) -> Member:
    name = check_name(table.name, where)
    identity = hexadecimal(table.identity, KEY, where, "identity")
    return Member(name, identity, Certificate.from_pem(table.certificate, name), table.holds)


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
        found[table.member] = hexadecimal(table.signature, SIGNATURE, place, "signature")
    return found


# ---- writing ---------------------------------------------------------------------------------------------------------

_HEAD = """\
# The roster of a federation: who takes part, with which public keys. It holds no secret.
# Every member compares its fingerprint with the others by telephone, and accepts it: securetm keys accept roster.toml
"""


def roster_text(roster: FederationRoster) -> str:
    """The roster as its file has it; equal rosters have equal text."""
    revoked = "".join(f"  {quoted(one)},\n" for one in sorted(roster.revoked))
    parts = [
        _HEAD + f"# Fingerprint: {roster.fingerprint}",
        f"federation = {quoted(roster.federation)}\nversion = {roster.version}",
    ]
    parts[1] += f"\nrevoked = [\n{revoked}]" if revoked else ""
    parts.append(f"[coordinator]\n{_entry(roster.coordinator)}\naddress = {quoted(roster.address)}")
    parts += [f"[[member]]\n{_entry(one)}" for one in roster.parties]
    for name, signature in roster.signatures.items():
        parts.append(f'[[signature]]\nmember = {quoted(name)}\nsignature = "{signature.hex()}"')
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
    return f"name = {quoted(member.name)}\nidentity = \"{member.identity.hex()}\"{holds}\ncertificate = '''\n{certificate}'''"
