"""One message as one file: sealed to its receiver, signed by its sender, and named without meaning.

A letter is a head of one length and a content. Who opens the head knows from whom it is, which number it has, and how long the
content is, before a byte of the content is read. `protocols/courier.md` has the bytes.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from securetm.contracts import Message
from securetm.credentials.hybrid_identity import SEALED, SIGNATURE, TAG, PrivateIdentity, Purpose
from securetm.credentials.keys import Keys
from securetm.credentials.roster import COORDINATOR, FederationRoster
from securetm.data_classes import dataclass
from securetm.entropy import OperatingSystem
from securetm.errors import Malformed, Mistake, Refused, SecuretmError

VERSION: Final = 1
_FIRST, _CONTEXT, _ONCE = bytes((VERSION,)), b"securetm letter 1", bytes(12)  # a content's key is drawn for it alone
DIGEST: Final = 32
_STATED = struct.Struct(">QQ32s32s")  # number, length of the content, its digest, the receiver's last letter
NAME = 32  # letters of a file's name


class NotALetter(SecuretmError):
    """{name} is no letter to this member: {problem}"""

    name: str
    problem: str
    hint = "it is left where it lies; nothing of it was used"


_KEY = 32  # of the content, in the head

HEAD = 1 + SEALED + 5 * DIGEST + _STATED.size + _KEY + SIGNATURE  # bytes of every letter before its content
OVERHEAD = HEAD + TAG


@dataclass(frozen=True)
class Subject:
    """What both ends must hold alike for a letter to be read: one run of one federation."""

    roster: bytes
    agreement: bytes
    profile: bytes

    def differs(self, other: Subject) -> str:
        """In words what is not the same; empty if all is."""
        named = {"roster": "roster", "agreement": "plan", "profile": "profile"}
        return " and ".join(word for name, word in named.items() if getattr(self, name) != getattr(other, name))


@dataclass(frozen=True)
class Head:
    sender: str
    subject: Subject
    number: int
    length: int  # of the content
    digest: bytes  # of the content
    answers: bytes  # the digest of the receiver's last letter that the sender treated; zeros: of none

    @property
    def identity(self) -> bytes:
        """Names this letter, whatever file it lies in."""
        return hashlib.sha256(self.sender.encode() + b"\n" + self.stated).digest()

    @property
    def stated(self) -> bytes:
        """All of it but the sender, as bytes."""
        about = self.subject.roster + self.subject.agreement + self.subject.profile
        return about + _STATED.pack(self.number, self.length, self.digest, self.answers)


@dataclass(frozen=True)
class Writer:
    """Who writes letters: a member of a roster, about one run."""

    name: str
    keys: Keys
    roster: FederationRoster
    subject: Subject

    @cached_property
    def _private(self) -> PrivateIdentity:
        return self.keys.private

    def sealed(self, receiver: str, number: int, answers: bytes, content: bytes) -> tuple[Head, bytes]:
        """The letter as a file. Two files of one letter have no byte in common but the first."""
        head = Head(self.name, self.subject, number, len(content), hashlib.sha256(content).digest(), answers)
        key = OperatingSystem().bytes(_KEY)
        stated = _names(self.name, receiver) + head.stated
        signature = self._private.sign(Purpose.LETTER, stated, key)
        sealed = self.roster.member(receiver).public.seal(receiver, stated + key + signature, _CONTEXT)
        return head, _FIRST + sealed + ChaCha20Poly1305(key).encrypt(_ONCE, content, None)

    def opened_head(self, file: str, first: bytes, length: int) -> tuple[Head, bytes]:
        """The head in the first `HEAD` bytes of a file of that length, and its content's key.

        It refuses what is foreign, damaged, or of a stranger.
        """
        if len(first) != HEAD or first[:1] != _FIRST:
            raise NotALetter(file, "it begins otherwise")
        try:
            plain = self._private.unseal(first[1:], _CONTEXT)
        except (Refused, ValueError):
            raise NotALetter(file, "it is sealed to somebody else, or damaged") from None
        stated, key, signature = plain[: -_KEY - SIGNATURE], plain[-_KEY - SIGNATURE : -SIGNATURE], plain[-SIGNATURE:]
        senders = [one for one in self.roster.everybody if stated[: 2 * DIGEST] == _names(one.name, self.name)]
        if not senders or COORDINATOR not in (self.name, senders[0].name):
            raise NotALetter(file, "its sender writes no letters to this member")
        if not senders[0].public.is_signed(signature, Purpose.LETTER, stated, key):
            raise NotALetter(file, f"{senders[0].name} did not sign it")
        about = [stated[at : at + DIGEST] for at in range(2 * DIGEST, 5 * DIGEST, DIGEST)]
        head = Head(senders[0].name, Subject(*about), *_STATED.unpack(stated[5 * DIGEST :]))
        if head.length + OVERHEAD != length:
            raise NotALetter(file, "it is not whole")
        return head, key

    def opened(self, file: str, head: Head, whole: bytes) -> bytes:
        """The content of the letter with that head, which this file was when its head was read."""
        found, key = self.opened_head(file, whole[:HEAD], len(whole))
        try:
            content = ChaCha20Poly1305(key).decrypt(_ONCE, whole[HEAD:], None)
        except InvalidTag:
            raise NotALetter(file, "its content is damaged") from None
        if found != head or hashlib.sha256(content).digest() != head.digest:
            raise NotALetter(file, "it is another letter than it was")
        return content


def _names(sender: str, receiver: str) -> bytes:
    return hashlib.sha256(sender.encode()).digest() + hashlib.sha256(receiver.encode()).digest()


# ---- several messages in one letter ----------------------------------------------------------------------------------

MOST_IN_ONE = 16  # messages
_COUNT, _LENGTH = struct.Struct(">B"), struct.Struct(">Q")


def bundled(messages: Sequence[Message]) -> bytes:
    """These messages end to end, each after its length."""
    if len(messages) > MOST_IN_ONE:
        raise Mistake("{count} messages do not fit into one letter", hint="this is a fault of securetm", count=len(messages))
    return _COUNT.pack(len(messages)) + b"".join(part for one in messages for part in (_LENGTH.pack(len(one)), one))


def bundle_size(longest: int) -> int:
    """The most bytes of a bundle of messages of at most so many bytes."""
    return _COUNT.size + MOST_IN_ONE * (_LENGTH.size + longest)


def unbundled(content: bytes, sender: str) -> list[bytes]:
    messages: list[bytes] = []
    at, count = _COUNT.size, content[0] if content else 0
    for _ in range(count):
        end = at + _LENGTH.size
        length = _LENGTH.unpack(content[at:end])[0] if end <= len(content) else len(content)
        messages.append(content[end : end + length])
        at = end + length
    if at != len(content) or not 0 < count <= MOST_IN_ONE:
        raise Malformed(sender, "it is no bundle of messages")
    return messages


def drawn_name() -> str:
    """The name of a file, which says nothing."""
    return OperatingSystem().bytes(NAME // 2).hex()
