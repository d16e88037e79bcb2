"""Writes protocols/vectors/roster.json: rosters with the bytes that are hashed and signed, and rosters to refuse.

Run as `python -m tests.credentials.make_vectors`; a test fails if the file is not what this makes. All keys in it are public
knowledge, and the certificates are signed without random numbers. ML-DSA signs with random numbers, so that a signature which
is in the file and right stays: the file is the same each time.
"""

from __future__ import annotations

import base64
import hashlib
import json
import tomllib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from securetm.credentials.certificates import Certificate
from securetm.credentials.hybrid_identity import FORMER, FORMER_SIGNATURE, PROTOCOL, PrivateIdentity, Purpose, purposed
from securetm.credentials.keys import fingerprint, fingerprint_of
from securetm.credentials.roster import FederationRoster, Member, roster_text
from securetm.credentials.strict_toml import encoded
from securetm.resources import data_folder

FILE = "roster.json"
BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2036, 1, 1, tzinfo=UTC)


def secret(purpose: str, name: str) -> bytes:
    """The private key of a vector."""
    return hashlib.sha256(f"{purpose} of {name}".encode()).digest()


def identity(name: str) -> PrivateIdentity:
    return PrivateIdentity(secret("identity", name))


def member(name: str, lasting: bool = True) -> Member:
    """A member whose certificate it has signed itself."""
    key = ec.derive_private_key(int.from_bytes(secret("TLS key", name), "big") >> 1, ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(BEGIN).not_valid_after(END)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    signed = builder.sign(key, hashes.SHA256(), ecdsa_deterministic=True).public_bytes(Encoding.DER)
    public = identity(name).public
    return Member(name, public.ed25519, Certificate(signed), lasting=public.lasting if lasting else b"")


def roster(*names: str, version: int = 1, revoked: tuple[str, ...] = (), lasting: bool = True) -> FederationRoster:
    """A roster that all its members have signed."""
    parties = tuple(member(name, lasting) for name in names)
    hub, gone = member("coordinator", lasting), frozenset(fingerprint_of(one.encode()) for one in revoked)
    made = FederationRoster("vectors", version, "hub.example.org:7443", hub, parties, gone)
    return made.with_signatures({one.name: signature(made, one) for one in made.everybody})


def signature(made: FederationRoster, one: Member) -> bytes:
    """The signature of a member: the one in the file if it is right, else a new one."""
    fields = (Purpose.CONSENT, made.federation.encode(), made.digest)
    if not one.lasting:
        private = Ed25519PrivateKey.from_private_bytes(secret("identity", one.name))
        return private.sign(purposed(*fields, protocol=FORMER))
    found = (known for known in _known_signatures() if one.public.is_signed(known, *fields))
    return next(found, None) or identity(one.name).sign(*fields)


@cache
def _known_signatures() -> tuple[bytes, ...]:
    texts = [good["toml"] for good in json.loads(path().read_text())["good"]] if path().is_file() else []
    signed = [one["signature"] for text in texts for one in tomllib.loads(text)["signature"]]
    return tuple(base64.b64decode(one.replace("\n", "")) for one in signed if "\n" in one)


def consent(made: FederationRoster) -> bytes:
    """What each member signs."""
    protocol = PROTOCOL if made.protocol == 4 else FORMER
    return purposed(Purpose.CONSENT, made.federation.encode(), made.digest, protocol=protocol)


def described(name: str, made: FederationRoster) -> dict[str, Any]:
    """A good roster, with what another implementation has to find."""
    facts = {"digest": made.digest.hex(), "fingerprint": made.fingerprint, "signed": consent(made).hex()}
    return {"name": name, "toml": roster_text(made), **facts}


def bad(made: FederationRoster) -> list[dict[str, str]]:
    """Texts to replace in the last good roster, and the refusal that each leads to."""
    good = roster_text(made)
    first, second = (member(name).identity.hex() for name in ("east", "north"))
    right, lasting = made.signatures["east"], member("east").lasting
    of_nobody = (
        bytes(FORMER_SIGNATURE) + right[FORMER_SIGNATURE:],
        right[:FORMER_SIGNATURE] + bytes(len(right) - FORMER_SIGNATURE),
    )
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
        ("a signature of ML-DSA-65 alone", encoded(right), encoded(of_nobody[0]), "BadRosterSignature"),
        ("a signature of Ed25519 alone", encoded(right), encoded(of_nobody[1]), "BadRosterSignature"),
        ("a signature of the former length", encoded(right), encoded(right[:FORMER_SIGNATURE]), "BadSetting"),
        ("the lasting keys of another member", encoded(lasting), encoded(member("west").lasting), "BadRosterSignature"),
        ("a member without lasting keys", f"\nlasting = {encoded(lasting)}", "", "Mistake"),
        ("a downgrade: it says protocol 3", "protocol = 4\n", "", "BadSetting"),
        ("a protocol that nobody knows", "protocol = 4\n", "protocol = 5\n", "BadSetting"),
        ("a setting that nobody knows", "version = 7", "version = 7\nadmin = true", "NotFound"),
        ("no TOML", "[coordinator]", "[coordinator", "UnreadableToml"),
    ]
    assert all(find in good for _, find, _, _ in changes)
    return [{"name": name, "find": find, "put": put, "refusal": refusal} for name, find, put, refusal in changes]


def vectors() -> dict[str, Any]:
    """The whole file."""
    small, large = roster("north"), roster("east", "north", "south", version=7, revoked=("one", "two"))
    former = roster("east", "north", version=6, lasting=False)
    rosters = [described("one party", small), described("of the former protocol 3, which is read and begins no run", former)]
    rosters.append(described("three parties and two revoked keys", large))
    prints = [{"sha256": one.hex(), "fingerprint": fingerprint(one)} for one in (bytes(32), b"\xff" * 32, small.digest)]
    return {"good": rosters, "bad": bad(large), "fingerprints": prints}


def text() -> str:
    return json.dumps(vectors(), indent=1) + "\n"


def path() -> Path:
    return data_folder("protocols") / "vectors" / FILE


if __name__ == "__main__":
    path().write_text(text(), "utf-8")
