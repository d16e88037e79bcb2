"""How the parties of a session come to one secret key: one draws it and seals it to each of the others. Not the sum itself.

The coordinator carries the messages and can read none: each is signed by a pinned identity, each key sealed to one party.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from securetm.aggregation.homomorphic.homomorphic_errors import BadCiphertext, NoSignature, NotSealedForUs
from securetm.aggregation.homomorphic.parameters import DEGREE
from securetm.contracts import Array, Roster, Store
from securetm.errors import Malformed, NotInCohort, WrongSession
from securetm.sessions.session_errors import BadKey

VERSION = 1
HELLO, BUNDLE, SEALED, KEY, READY, FRESH, SUM = range(1, 8)
SECRET = DEGREE // 4  # bytes: two bits a coefficient
BOX = SECRET + 16
KEY_ID = 16
HELLO_BYTES = 32 + 64  # a public key and a signature
HEAD = 4 + 32
_SAYS_HELLO = b"securetm sum key v1 hello"
_SEALS = b"securetm sum key v1 seal"
_NAMES_KEY = b"securetm sum key v1 id"


@dataclass(frozen=True)
class SignedKey:
    """A party's key for this set-up alone, and its identity's signature under it."""

    public: bytes
    signature: bytes

    def packed(self) -> bytes:
        """As it travels."""
        return self.public + self.signature


def hello_of(packed: bytes) -> SignedKey:
    """From bytes of the right length."""
    return SignedKey(packed[:32], packed[32:HELLO_BYTES])


def _framed(*parts: bytes) -> bytes:
    """Parts end to end, each after its length: no two lists give the same bytes."""
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def roster_hash(roster: Roster) -> bytes:
    """What both sides must agree on about who takes part."""
    pinned = [part for member in roster.members for part in (member.encode(), roster.keys.get(member, b""))]
    return hashlib.sha256(_framed(*pinned)).digest()


def head(kind: int, roster: Roster) -> bytes:
    """The first bytes of every message: what it is, and of which session."""
    return b"SH" + bytes([VERSION, kind]) + roster.session


def body(message: bytes, kind: int, roster: Roster, sender: str) -> bytes:
    """What follows the head of an untrusted message, or a refusal."""
    if len(message) < HEAD or message[:4] != b"SH" + bytes([VERSION, kind]):
        raise Malformed(sender, f"it is no message of kind {kind}, version {VERSION}")
    if message[4:HEAD] != roster.session:
        raise WrongSession()
    return message[HEAD:]


def sized(content: bytes, size: int, sender: str) -> bytes:
    """The content, if it has exactly the bytes that the agreement gives."""
    if len(content) != size:
        raise Malformed(sender, f"it has {len(content)} bytes after its head where {size} are agreed")
    return content


# ---- signing and sealing -----------------------------------------------------------------------------------------------


def _signed_bytes(roster: Roster, code: str, who: str, public: bytes) -> bytes:
    return _framed(_SAYS_HELLO, code.encode(), roster.session, roster_hash(roster), roster.profile, who.encode(), public)


def say_hello(roster: Roster, code: str, me: str, ephemeral: bytes, identity: bytes) -> SignedKey:
    """Run by a party: signs the public half of its key for this set-up."""
    public = X25519PrivateKey.from_private_bytes(ephemeral).public_key().public_bytes_raw()
    signature = Ed25519PrivateKey.from_private_bytes(identity).sign(_signed_bytes(roster, code, me, public))
    return SignedKey(public, signature)


def check_hello(roster: Roster, code: str, who: str, hello: SignedKey) -> None:
    """Run by every role: refuses a key that the pinned identity did not sign for this session, roster and profile."""
    pinned = roster.keys.get(who)
    if pinned is None:
        raise NoSignature(who)
    try:
        Ed25519PublicKey.from_public_bytes(pinned).verify(hello.signature, _signed_bytes(roster, code, who, hello.public))
    except (InvalidSignature, ValueError) as problem:
        raise NoSignature(who) from problem


def _lock(roster: Roster, code: str, mine: bytes, theirs: bytes, pair: Sequence[tuple[str, bytes]]) -> ChaCha20Poly1305:
    """The key between a generator and one recipient, used for one message: its nonce may be constant."""
    shared = X25519PrivateKey.from_private_bytes(mine).exchange(X25519PublicKey.from_public_bytes(theirs))
    both = [part for name, public in pair for part in (name.encode(), public)]
    info = _framed(_SEALS, code.encode(), roster.session, roster_hash(roster), roster.profile, *both)
    return ChaCha20Poly1305(HKDF(SHA256(), 32, None, info).derive(shared))


def seal_for(roster: Roster, code: str, ephemeral: bytes, pair: Sequence[tuple[str, bytes]], secret: bytes) -> bytes:
    """Run by the generator: the secret key for one recipient's eyes. `pair`: generator, recipient, each name and public key."""
    try:
        lock = _lock(roster, code, ephemeral, pair[1][1], pair)
    except ValueError as problem:  # a public key of small order: anybody knows what is shared with it
        raise BadKey(pair[1][0]) from problem
    return lock.encrypt(bytes(12), secret, None)


def open_sealed(roster: Roster, code: str, ephemeral: bytes, pair: Sequence[tuple[str, bytes]], box: bytes) -> bytes:
    """Run by a recipient."""
    try:
        return _lock(roster, code, ephemeral, pair[0][1], pair).decrypt(bytes(12), box, None)
    except (InvalidTag, ValueError) as problem:
        raise NotSealedForUs(pair[0][0]) from problem


# ---- the secret polynomial as bytes --------------------------------------------------------------------------------------


def pack_secret(ternary: Array) -> bytes:
    """Four coefficients a byte, the lowest bits first; -1, 0, 1 are 0, 1, 2."""
    pairs = (ternary + 1).astype(np.uint8).reshape(-1, 4)
    return (pairs[:, 0] | pairs[:, 1] << 2 | pairs[:, 2] << 4 | pairs[:, 3] << 6).astype(np.uint8).tobytes()


def unpack_secret(packed: bytes, sender: str) -> Array:
    """The secret polynomial, refused if it is none or nothing but zeros."""
    quads = np.frombuffer(packed, dtype=np.uint8)
    ternary = np.stack([quads >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).ravel().astype(np.int64) - 1
    if len(ternary) != DEGREE or (ternary > 1).any() or not ternary.any():
        raise BadCiphertext(sender, "the secret key is no ternary polynomial")
    return ternary


def key_id(packed: bytes) -> bytes:
    """Names a key without saying anything about it: all parties must encrypt under the same one."""
    return HKDF(SHA256(), KEY_ID, None, _NAMES_KEY).derive(packed)


# ---- what a role remembers -----------------------------------------------------------------------------------------------


def kept(store: Store, roster: Roster, what: str) -> bytes | None:
    """A memory of this session."""
    return store.get(f"{what} of {roster.session.hex()}") or None


def keep(store: Store, roster: Roster, what: str, value: bytes) -> None:
    """On disk before it returns."""
    store.put(f"{what} of {roster.session.hex()}", value)


def place(roster: Roster, name: str) -> bytes:
    """A member as two bytes: its place in the roster."""
    if name not in roster.members:
        raise NotInCohort(name)
    return struct.pack("<H", roster.members.index(name))


def member_at(roster: Roster, packed: bytes, sender: str) -> str:
    """The member at a place that came from the network."""
    index = int.from_bytes(packed, "little")
    if index >= len(roster.members):
        raise Malformed(sender, "it names a member that is not in the roster")
    return roster.members[index]


def listed(roster: Roster, content: bytes, width: int, sender: str) -> Mapping[str, bytes]:
    """A count, then so many entries of a member's place and `width` bytes, in roster order: each member at most once."""
    if len(content) < 2:
        raise Malformed(sender, "a list is missing")
    (count,) = struct.unpack("<H", content[:2])
    if count > len(roster.members):
        raise Malformed(sender, "a list is longer than the roster")
    content = sized(content[2:], count * (2 + width), sender)
    entries = [content[i : i + 2 + width] for i in range(0, len(content), 2 + width)]
    names = [member_at(roster, entry[:2], sender) for entry in entries]
    if names != [m for m in roster.members if m in set(names)]:
        raise Malformed(sender, "a list is not in the order of the roster, or names a member twice")
    return {name: entry[2:] for name, entry in zip(names, entries, strict=True)}


def as_list(roster: Roster, entries: Mapping[str, bytes]) -> bytes:
    """The inverse of `listed`."""
    named = [place(roster, m) + entries[m] for m in roster.members if m in entries]
    return struct.pack("<H", len(named)) + b"".join(named)
