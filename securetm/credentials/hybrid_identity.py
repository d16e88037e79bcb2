"""An identity with all its keys: Ed25519 and ML-DSA-65 sign together, X25519 and ML-KEM-768 open together.

All private keys follow from the 32 secret bytes of the Ed25519 key by HKDF, one way: whoever computes its private scalar from
the public key has half of a SHA-512 of these bytes, and not them. A home keeps one secret, and a rotation replaces all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import Enum
from functools import cached_property

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PrivateKey, MLDSA65PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from securetm.credentials.strict_toml import decoded, encoded, hexadecimal
from securetm.data_classes import dataclass, field
from securetm.entropy import OperatingSystem
from securetm.errors import Refused
from securetm.sessions.hybrid import CIPHERTEXT, KEM_SECRET, PUBLIC_KEYS, public_keys, receive_secret, send_secret
from securetm.sessions.hybrid import KEY as X25519_KEY

PROTOCOL = b"securetm credentials 2"  # comes before every label
FORMER = b"securetm credentials 1"  # before those of an identity that has an Ed25519 key alone
KEY = 32  # bytes of an Ed25519 key, public or private
ML_DSA_KEY = 1_952
LASTING = ML_DSA_KEY + PUBLIC_KEYS  # bytes of an identity's public keys beside Ed25519
FORMER_SIGNATURE = 64
SIGNATURE = FORMER_SIGNATURE + 3_309  # Ed25519, then ML-DSA-65
TAG = 16
SEALED = X25519_KEY + CIPHERTEXT + TAG  # bytes that sealing adds to a content


class Purpose(Enum):
    """The purpose of a signature or a hash. The text is in the bytes."""

    ROSTER = "roster"  # the digest of a roster
    CONSENT = "consent to a roster"  # a member's signature of it
    REQUEST = "request for a place in a roster"
    SUCCESSOR = "new identity of a member"  # the old identity's signature of the new one
    HELLO = "hello of a party"  # the first message of a connection
    WELCOME = "welcome of a coordinator"
    OFFER = "offer of a channel through a relay"  # the coordinator's key
    REPORT = "report on a run"  # the digest of a page, by whoever answers for the data
    ANSWER = "answer to an offer of a channel"  # the party's key
    LETTER = "sealed letter to a member"  # what members send each other as files


def purposed(purpose: Purpose, *fields: bytes, protocol: bytes = PROTOCOL) -> bytes:
    """The bytes that are signed or hashed: protocol, label and fields, each after its length in four bytes."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in (protocol, purpose.value.encode(), *fields))


def digest_for(purpose: Purpose, *fields: bytes, protocol: bytes = PROTOCOL) -> bytes:
    return hashlib.sha256(purposed(purpose, *fields, protocol=protocol)).digest()


def signature_text(signature: bytes) -> str:
    """As TOML writes it."""
    return f'"{signature.hex()}"' if len(signature) == FORMER_SIGNATURE else encoded(signature)


def signature_in(text: str, lasting: object, where: str, setting: str) -> bytes:
    """The signature of this text, by an identity that has lasting keys or none."""
    if not lasting:
        return hexadecimal(text, FORMER_SIGNATURE, where, setting)
    return decoded(text, SIGNATURE, where, setting)


class NotSealedForMember(Refused):
    """what was sealed for this member cannot be opened with its keys"""

    hint = "it was sealed for another member or for keys that were replaced, or it was changed on the way: ask for it again"


class NoLastingKeys(Refused):
    """nothing is sealed for {name}: the roster has no key of it that outlasts X25519"""

    name: str
    hint = "move the roster to protocol 4: each member sends `securetm keys request`, and the operator issues these"


@dataclass(frozen=True)
class PublicIdentity:
    """What everybody knows of an identity. One from before protocol 4 has an Ed25519 key alone."""

    ed25519: bytes
    lasting: bytes = b""  # ML-DSA-65, X25519, ML-KEM-768, end to end

    def is_signed(self, signature: bytes, purpose: Purpose, *fields: bytes) -> bool:
        """Whether this identity signed these fields for this purpose, with all the keys that it has."""
        signed = purposed(purpose, *fields, protocol=PROTOCOL if self.lasting else FORMER)
        try:
            Ed25519PublicKey.from_public_bytes(self.ed25519).verify(signature[:FORMER_SIGNATURE], signed)
            if self.lasting:
                lasting = MLDSA65PublicKey.from_public_bytes(self.lasting[:ML_DSA_KEY])
                lasting.verify(signature[FORMER_SIGNATURE:], signed, purpose.value.encode())
        except (InvalidSignature, ValueError):
            return False
        return len(signature) == (SIGNATURE if self.lasting else FORMER_SIGNATURE)

    def seal(self, name: str, content: bytes, *context: bytes) -> bytes:
        """Seals a content for this identity, which opens it in the same context. It does not say who sealed: sign the whole."""
        if not self.lasting:
            raise NoLastingKeys(name)
        once, theirs = OperatingSystem().bytes(X25519_KEY + KEM_SECRET), self.lasting[ML_DSA_KEY:]
        secret, ciphertext = send_secret(once, theirs, name)
        ends = public_keys(once)[:X25519_KEY] + ciphertext
        return ends + _lock(secret, ends, self, context).encrypt(bytes(12), content, None)


@dataclass(frozen=True, eq=False)
class PrivateIdentity:
    """The private keys of an identity. A text of this object shows nothing."""

    secret: bytes = field(repr=False)  # 32 bytes

    @cached_property
    def _lattice(self) -> MLDSA65PrivateKey:
        return MLDSA65PrivateKey.from_seed_bytes(self._derived(b"ML-DSA-65", 32))

    @cached_property
    def _opening(self) -> bytes:
        return self._derived(b"X25519", X25519_KEY) + self._derived(b"ML-KEM-768", KEM_SECRET)

    def _derived(self, kind: bytes, length: int) -> bytes:
        return HKDF(hashes.SHA256(), length, PROTOCOL, b"key of an identity: " + kind).derive(self.secret)

    @cached_property
    def public(self) -> PublicIdentity:
        own = Ed25519PrivateKey.from_private_bytes(self.secret).public_key().public_bytes_raw()
        return PublicIdentity(own, self._lattice.public_key().public_bytes_raw() + public_keys(self._opening))

    def sign(self, purpose: Purpose, *fields: bytes) -> bytes:
        signed = purposed(purpose, *fields)
        return Ed25519PrivateKey.from_private_bytes(self.secret).sign(signed) + self._lattice.sign(
            signed, purpose.value.encode()
        )

    def unseal(self, sealed: bytes, *context: bytes) -> bytes:
        """Opens what was sealed for this identity in this context, or refuses it."""
        ends, box = sealed[: X25519_KEY + CIPHERTEXT], sealed[X25519_KEY + CIPHERTEXT :]
        if len(box) < TAG:
            raise NotSealedForMember()
        secret = receive_secret(self._opening, ends, ends[X25519_KEY:], "the sender")
        try:
            return _lock(secret, ends, self.public, context).decrypt(bytes(12), box, None)
        except InvalidTag:
            raise NotSealedForMember() from None


def _lock(secret: bytes, ends: bytes, receiver: PublicIdentity, context: tuple[bytes, ...]) -> ChaCha20Poly1305:
    """Each key seals one content, because one of the ends is made for it alone: the nonce may be constant."""
    info = purposed(Purpose.LETTER, *_transcript(ends, receiver), *context)
    return ChaCha20Poly1305(HKDF(hashes.SHA256(), 32, PROTOCOL, info).derive(secret))


def _transcript(ends: bytes, receiver: PublicIdentity) -> Iterator[bytes]:
    yield from (ends[:X25519_KEY], ends[X25519_KEY:], receiver.ed25519, receiver.lasting)
