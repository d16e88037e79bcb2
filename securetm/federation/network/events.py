"""The two ends of a channel: what both must hold alike besides the roster, and who is told what happens. It opens no socket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Agreed:
    """What both ends of a channel must hold alike, besides the roster."""

    agreement: bytes  # digest of the plan
    profile: bytes  # digest of the profile


class NetworkEvents(Protocol):
    """Is told what happens on the network, for logs and metrics. It may be called from any thread, and must return at once.

    At a party's end the other end is called `coordinator`.
    """

    def connected(self, party: str) -> None:
        """Called when a stream is open and both ends have proved who they are."""
        ...

    def lost(self, party: str, reason: str) -> None:
        """Called when such a stream has ended."""
        ...

    def refused(self, party: str, reason: str) -> None:
        """Called when an end is not let in; the name is the one that it claims, or empty."""
        ...

    def carried(self, party: str, received: int, sent: int) -> None:
        """Called when a message has passed as a whole, with its bytes."""
        ...


@dataclass(frozen=True)
class NobodyWatches:
    """Ignores all events."""

    def connected(self, party: str) -> None:
        """Does nothing."""

    def lost(self, party: str, reason: str) -> None:
        """Does nothing."""

    def refused(self, party: str, reason: str) -> None:
        """Does nothing."""

    def carried(self, party: str, received: int, sent: int) -> None:
        """Does nothing."""
