"""What both ends of a channel must hold alike besides the roster, and who is told what happens on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Agreed:
    """What both ends of a channel must hold alike, besides the roster."""

    agreement: bytes  # digest of the plan
    profile: bytes  # digest of the profile


class NetworkEvents:
    """Is told what happens on the network, for logs and metrics; this one ignores it. Any thread may call, and none may wait.

    At a party's end the other end is called `coordinator`.
    """

    def connected(self, party: str) -> None:
        """Called when a stream is open and both ends have proved who they are."""

    def lost(self, party: str, reason: str) -> None:
        """Called when such a stream has ended."""

    def refused(self, party: str, reason: str) -> None:
        """Called when an end is not let in; the name is the one that it claims, or empty."""

    def carried(self, party: str, received: int, sent: int) -> None:
        """Called when a message has passed as a whole, with its bytes."""
