"""Parties in this process that vanish and come back when a test says so. It stands in for a network."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from securetm.federation.coordinator.status import RunStatus
from securetm.federation.folder import RunFolder
from securetm.federation.party.party import Party
from securetm.federation.questions import TRAIN
from securetm.federation.simulation.simulation import make_party


@dataclass
class ComingAndGoing:
    """All parties of a simulated run, each of which can be away, and may have forgotten its session when it is back."""

    folder: RunFolder
    status: RunStatus | None = None
    before_wave: Callable[[int], None] = lambda _: None
    waves: int = 0
    garbled: str = ""  # a party whose replies are nonsense
    slow: str = ""  # a party whose answers to the questions of the training come after the deadline
    takes: float = 64.25  # seconds that they take
    late: dict[str, list[float]] = field(default_factory=dict)  # as the network's parties note it
    here: set[str] = field(default_factory=set)
    _parties: dict[str, Party] = field(default_factory=dict)
    _alone: threading.Lock = field(default_factory=threading.Lock)

    def come(self, *names: str) -> None:
        """These parties start, and connect."""
        for name in names:
            with self._alone:
                if name not in self._parties:
                    self._parties[name] = make_party(self.folder, name)
                self.here.add(name)
            if self.status is not None:
                self.status.connected(name)

    def go(self, *names: str, killed: bool = False) -> None:
        """The connections of these parties end; their processes too, if they are killed."""
        for name in names:
            with self._alone:
                self.here.discard(name)
                if killed and name in self._parties:
                    self._parties.pop(name).close()
            if self.status is not None:
                self.status.lost(name, "the stream ended")

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes]]:
        """Asks the parties that are here, in roster order."""
        del most
        self.waves += 1
        self.before_wave(self.waves)
        for name, message in requests.items():
            if name in self.here:
                reply = self._parties[name].handle(message)
                if name == self.slow and self._parties[name].heard == TRAIN:
                    self.late.setdefault(name, []).append(self.takes)
                    continue
                yield name, reply[::-1] if name == self.garbled else reply

    def present(self) -> frozenset[str]:
        """Returns the parties that are here."""
        return frozenset(self.here)

    def close(self) -> None:
        """Ends all parties."""
        for party in self._parties.values():
            party.close()
        self._parties.clear()
