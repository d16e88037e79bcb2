"""Checks the form of a message's bytes before protobuf parses them. It reads no value.

A field of two bytes can become an object of eighty. So repeated fields are counted first, and no field may be longer than the
longest that is accepted. Unknown fields are refused, and fields that occur twice where one is allowed.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from securetm.data_classes import dataclass, field
from securetm.errors import Malformed

MOST_MEMBERS = 10_000
MOST_ARRAYS = 1_000  # in a state
MOST_DIMENSIONS = 4
SHORT = 1_024  # bytes of a name, a hash, a signed head
MOST_SIGNED = 4_096  # bytes of a signature by both keys of an identity
WHOLE = 1 << 31  # protobuf's own limit: these are as long as the message, which the role's limit bounds
REPEATED: Mapping[str, int] = {
    "Invite.members": MOST_MEMBERS,
    "Ask.members": MOST_MEMBERS,
    "Ask.witnesses": MOST_MEMBERS,
    "Ask.after": MOST_MEMBERS,
    "Ask.state": MOST_ARRAYS,
    "Finish.state": MOST_ARRAYS,
    "Share.state": MOST_ARRAYS,
    "Array.shape": MOST_DIMENSIONS,
    "Witness.heads": MOST_MEMBERS,
    "Witness.links": MOST_MEMBERS,
    "Links.statements": MOST_MEMBERS,
    "Accept.parcels": MOST_MEMBERS,
}
LONG: Mapping[str, int] = {
    "Adopt.words": WHOLE,
    "Array.data": WHOLE,
    "Array.shape": 10 * MOST_DIMENSIONS,  # packed, ten bytes each at most
    "Ask.after": 10 * MOST_MEMBERS,  # packed, ten bytes each at most
    "Forward.parcel": WHOLE,
    "Accept.parcels": WHOLE,
    "Witness.links": WHOLE,
    "Frame.chunk": WHOLE,
    "Hello.signature": MOST_SIGNED,
    "Welcome.signature": MOST_SIGNED,
}
_NUMBER, _BYTES = 0, 2  # how a field begins: with a number, or with a length
ACCEPT, PARCELS = "Reply.accept", "Accept.parcels"


class Span(NamedTuple):
    """Where a field lies in a message: where its key begins, where its content does, and where both end."""

    key: int
    content: int
    end: int


def begun(number: int, size: int) -> bytes:
    """Returns how protobuf begins a field of so many bytes, so that its content is not copied into a message first."""
    packed = bytearray((number << 3 | _BYTES,))
    while size > 0x7F:
        packed.append(size & 0x7F | 0x80)
        size >>= 7
    packed.append(size)
    return bytes(packed)


@dataclass
class Walk:
    message: bytes | memoryview
    sender: str
    at: int = 0
    spanned: Collection[str] = ()  # fields of which it notes where they lie
    spans: dict[str, array[int]] = field(default_factory=dict)  # three numbers each: many empty fields take no memory

    def refuse(self, problem: str) -> Malformed:
        return Malformed(self.sender, problem)

    def number(self, end: int) -> int:
        """Reads the next number: seven bits a byte, at most ten bytes."""
        found = 0
        for shift in range(0, 70, 7):
            if self.at >= end:
                raise self.refuse("it is cut off")
            byte = self.message[self.at]
            self.at += 1
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
        raise self.refuse("a number in it never ends")

    def through(self, kind: Any, end: int) -> dict[str, int]:
        """Checks every field of one message of that kind up to `end`, and its length."""
        seen, sizes = Counter[str](), dict[str, int]()
        while self.at < end:
            begin, key = self.at, self.number(end)
            known = kind.fields_by_number.get(key >> 3)
            if known is None:
                raise self.refuse("it has a field that nobody knows here")
            name, choice = f"{kind.name}.{known.name}", known.containing_oneof
            for counted in (name, *([choice.name] if choice is not None and len(choice.fields) > 1 else [])):
                seen[counted] += 1
                if seen[counted] > REPEATED.get(counted, 1):
                    raise self.refuse(f"{counted} occurs in it too often")
            size = sizes[known.name] = self._value(key & 7, known, name, end)
            if name in self.spanned:
                self.spans.setdefault(name, array("q")).extend((begin, self.at - size, self.at))
        return sizes

    def _value(self, how: int, known: Any, name: str, end: int) -> int:
        if how == _NUMBER:
            self.number(end)
            return 0
        if how != _BYTES:
            raise self.refuse(f"{name} is no such field")
        size = self.number(end)
        if size > end - self.at:
            raise self.refuse("it is cut off")
        if known.message_type is not None:
            self.through(known.message_type, self.at + size)
        elif size > LONG.get(name, SHORT):
            raise self.refuse(f"{name} is too long")
        else:
            self.at += size
        return size


def check_form(
    kind: Any, message: bytes | memoryview, sender: str, limits: Mapping[str, int], spanned: Collection[str] = ()
) -> Mapping[str, Sequence[Span]]:
    """Refuses bytes that are no message of that kind, or that have a field longer than the role reads now.

    Returns where these fields lie, each list in the order of the message.
    """
    walk = Walk(message, sender, spanned=spanned)
    for name, size in walk.through(kind.DESCRIPTOR, len(message)).items():
        if size > limits.get(name, WHOLE):
            raise Malformed(sender, f"its {name} has {size} bytes where the plan gives at most {limits[name]}")
    return {name: [Span(*numbers[at : at + 3]) for at in range(0, len(numbers), 3)] for name, numbers in walk.spans.items()}


def fields_in(kind: Any, message: bytes, sender: str) -> frozenset[str]:
    """Returns the names of the fields in bytes of the form of such a message, however long they are."""
    return frozenset(Walk(message, sender).through(kind.DESCRIPTOR, len(message)))
