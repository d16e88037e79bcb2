"""The carrier of a party whose messages come through Flower: a socket of its own on this machine, and sealed bytes on it.

The party never connects to anybody. Its organisation's SuperNode brings requests and takes replies (`client_app.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from securetm.credentials.key_files import Keys
from securetm.credentials.member_names import COORDINATOR
from securetm.credentials.roster import FederationRoster
from securetm.entropy import OperatingSystem
from securetm.federation.flower.party_socket import Door, opened, serve
from securetm.federation.flower.sealed_channel import PartyEnd
from securetm.federation.flower.sealed_party import SealedParty
from securetm.federation.network.events import NetworkEvents


@dataclass(frozen=True)
class SocketCarrier:
    """Answers on one socket until it is stopped, or the party has what the run ends with."""

    path: Path
    mode: int  # of the socket
    name: str
    keys: Keys
    roster: FederationRoster
    most_bytes: Callable[[], int]
    finished: Callable[[], bool]
    events: NetworkEvents

    def run(self, handle: Callable[[bytes], bytes | memoryview], stop: threading.Event) -> bool:
        """Answers requests until `stop` is set or the run has ended. Returns whether it has."""
        entropy, coordinator = OperatingSystem(), self.roster.coordinator.identity
        end = PartyEnd(self.name, self.keys.identity, coordinator, self.roster.digest, entropy, opened=self._opened)
        sealed = SealedParty(end, self._counting(handle), self.most_bytes)
        with opened(self.path, self.mode) as listening:
            door = Door(sealed.handle, sealed.most_bytes)
            serve({listening: door}, ended=lambda: stop.is_set() or self.finished())
        return self.finished()

    def _opened(self) -> None:
        self.events.connected(COORDINATOR)

    def _counting(self, handle: Callable[[bytes], bytes | memoryview]) -> Callable[[bytes], bytes | memoryview]:
        def counted(request: bytes) -> bytes | memoryview:
            reply = handle(request)
            self.events.carried(COORDINATOR, len(request), len(reply))
            return reply

        return counted
