"""A party behind a channel: sealed requests in, sealed replies out. It raises nothing, and a refusal has a name only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from securetm.errors import Malformed, Refused
from securetm.federation.flower.sealed_channel import LONGEST_OFFER, OFFER, OVERHEAD, REFUSED, VERSION, PartyEnd


@dataclass(frozen=True)
class SealedParty:
    """One party and its end of the channel."""

    end: PartyEnd
    answer: Callable[[bytes], bytes | memoryview]  # of the party, to what was sealed
    most: Callable[[], int]  # bytes that the party reads of one request now

    def handle(self, message: bytes) -> bytes:
        """Answers an offer or a sealed request. A message that the relay changed or repeats is refused, without effect."""
        try:
            if message[:2] == bytes((VERSION, OFFER)):
                return self.end.answer(message)
            return self.end.seal(bytes(self.answer(self.end.unseal(message))))
        except Refused as refusal:
            return bytes((VERSION, REFUSED)) + type(refusal).__name__.encode()

    def most_bytes(self) -> int:
        """The bytes of the longest message that it reads now."""
        return max(LONGEST_OFFER, self.most() + OVERHEAD)


def refusal_in(reply: bytes) -> str:
    """The name of the refusal that a reply is, or nothing. Nobody signed it: it says no more than that the channel is gone."""
    if reply[:2] != bytes((VERSION, REFUSED)):
        return ""
    name = reply[2:66].decode("ascii", "replace")
    if not name.isidentifier():
        raise Malformed("a node", "its refusal has no name")
    return name
