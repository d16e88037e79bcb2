"""What the coordinator of a masked sum collects in one wave: one message from each party it asked. It keeps no vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from securetm.errors import Duplicate, Malformed, TooFewParties
from securetm.sessions.identities import PinnedRoster, signed_parts
from securetm.sessions.session_errors import UnexpectedMessage

COORDINATOR = "coordinator"


@dataclass
class Wave:
    """One message from each that is asked; `take` checks it and says what of it is kept."""

    register: PinnedRoster
    asked: frozenset[int]
    take: Callable[[int, str, bytes], Any]
    got: dict[int, Any] = field(default_factory=dict)

    def receive(self, sender: str, message: bytes) -> None:
        """A message that is refused changes nothing, so that its sender counts as silent."""
        place = self.register.place(sender)
        if place in self.got:
            raise Duplicate(sender)
        if place not in self.asked:
            raise UnexpectedMessage(sender)
        self.got[place] = self.take(place, sender, message)

    def close(self, need: int) -> Mapping[int, Any]:
        """What came, in the order of the roster; too little is a named error, and the wave takes no more."""
        self.asked = frozenset()
        if len(self.got) < need:
            raise TooFewParties(len(self.got), len(self.register), need)
        return dict(sorted(self.got.items()))

    def signed(self, place: int, sender: str, message: bytes, what: str, most: int, context: bytes = b"") -> bytes:
        """The signed part of a message of at most so many bytes, once its signature is checked."""
        if len(message) > most:
            raise Malformed(sender, "it is too long")
        body, signature = signed_parts(message, sender)
        self.register.verify(place, body, signature, context, what)
        return body
