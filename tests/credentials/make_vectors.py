"""Writes protocols/vectors/roster.json: rosters with the bytes that are hashed and signed, and rosters to refuse.

Run as `python -m tests.credentials.make_vectors`; a test fails if the file is not what this makes. All keys in it are public
knowledge, and the certificates are signed without random numbers, so that the file is the same each time.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from securetm.credentials.certificates import Certificate
from securetm.credentials.keys import Purpose, fingerprint, fingerprint_of, purposed
from securetm.credentials.roster import FederationRoster, Member, roster_text
from securetm.resources import data_folder

FILE = "roster.json"
BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2036, 1, 1, tzinfo=UTC)


def secret(purpose: str, name: str) -> bytes:
    """The private key of a vector."""
    return hashlib.sha256(f"{purpose} of {name}".encode()).digest()


def identity(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(secret("identity", name))


def member(name: str) -> Member:
    """A member whose certificate it has signed itself."""
    key = ec.derive_private_key(int.from_bytes(secret("TLS key", name), "big") >> 1, ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(BEGIN).not_valid_after(END)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    signed = builder.sign(key, hashes.SHA256(), ecdsa_deterministic=True).public_bytes(Encoding.DER)
    return Member(name, identity(name).public_key().public_bytes_raw(), Certificate(signed))


def roster(*names: str, version: int = 1, revoked: tuple[str, ...] = ()) -> FederationRoster:
    """A roster that all its members have signed."""
    parties = tuple(map(member, names))
    hub, gone = member("coordinator"), frozenset(fingerprint_of(one.encode()) for one in revoked)
    made = FederationRoster("vectors", version, "hub.example.org:7443", hub, parties, gone)
    return made.with_signatures({one.name: identity(one.name).sign(consent(made)) for one in made.everybody})


def consent(made: FederationRoster) -> bytes:
    """What each member signs."""
    return purposed(Purpose.CONSENT, made.federation.encode(), made.digest)


def described(name: str, made: FederationRoster) -> dict[str, Any]:
    """A good roster, with what another implementation has to find."""
    facts = {"digest": made.digest.hex(), "fingerprint": made.fingerprint, "signed": consent(made).hex()}
    return {"name": name, "toml": roster_text(made), **facts}


def bad(good: str) -> list[dict[str, str]]:
    """Texts to replace in the last good roster, and the refusal that each leads to."""
    first, second = (member(name).identity.hex() for name in ("east", "north"))
    changes = [
        ("another identity of a member", first, member("west").identity.hex(), "BadRosterSignature"),
        ("a member's name in another's place", '"north"', '"east"', "DuplicateMember"),
        ("the identity of another member", first, second, "DuplicateMember"),
        ("another version", "version = 7", "version = 8", "BadRosterSignature"),
        ("another federation", '"vectors"', '"others"', "BadRosterSignature"),
        ("another address", "7443", "7444", "BadRosterSignature"),
        ("a revocation that is left out", f'  "{fingerprint_of(b"one")}",\n', "", "BadRosterSignature"),
        ("the member itself is revoked", fingerprint_of(b"one"), fingerprint_of(member("east").identity), "MemberRevoked"),
        ("a name that is a path", '"north"', '"../north"', "BadSetting"),
        ("a name with a control character", '"north"', '"nor\\u0007th"', "BadSetting"),
        ("a setting that nobody knows", "version = 7", "version = 7\nadmin = true", "NotFound"),
        ("no TOML", "[coordinator]", "[coordinator", "UnreadableToml"),
    ]
    assert all(find in good for _, find, _, _ in changes)
    return [{"name": name, "find": find, "put": put, "refusal": refusal} for name, find, put, refusal in changes]


def vectors() -> dict[str, Any]:
    """The whole file."""
    small, large = roster("north"), roster("east", "north", "south", version=7, revoked=("one", "two"))
    rosters = [described("one party", small), described("three parties and two revoked keys", large)]
    prints = [{"sha256": one.hex(), "fingerprint": fingerprint(one)} for one in (bytes(32), b"\xff" * 32, small.digest)]
    return {"good": rosters, "bad": bad(rosters[1]["toml"]), "fingerprints": prints}


def text() -> str:
    return json.dumps(vectors(), indent=1) + "\n"


def path() -> Path:
    return data_folder("protocols") / "vectors" / FILE


if __name__ == "__main__":
    path().write_text(text(), "utf-8")
