"""Which node each party is behind, and the channel to it. It is changed by two threads, and decides nothing."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field

from securetm.federation.flower.sealed_channel import CoordinatorEnd
from securetm.federation.network.events import NetworkEvents


@dataclass(frozen=True)
class BoundNode:
    """One party's node, and the coordinator's end of the channel."""

    node: int
    end: CoordinatorEnd


@dataclass
class BoundNodes:
    """The nodes of all parties that proved who they are."""

    events: NetworkEvents
    present: frozenset[str] = frozenset()
    _bound: dict[str, BoundNode] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def bind(self, node: int, end: CoordinatorEnd) -> None:
        """Binds a party to its node, in the place of the node that it was behind before."""
        with self._lock:
            self._bound[end.party] = BoundNode(node, end)
            self.present = frozenset(self._bound)
        self.events.connected(end.party)  # without the lock: who is told may ask who is present

    def release(self, party: str, reason: str) -> None:
        """Forgets the party's node and channel: it is missing until it proves again who it is."""
        with self._lock:
            gone = self._bound.pop(party, None)
            self.present = frozenset(self._bound)
        if gone is not None:
            self.events.lost(party, reason)

    def release_others(self, nodes: Collection[int]) -> None:
        """Forgets all parties whose node is none of these."""
        with self._lock:
            gone = [party for party, bound in self._bound.items() if bound.node not in nodes]
        for party in gone:
            self.release(party, "NodeGone")

    def of(self, party: str) -> BoundNode | None:
        """Returns the party's node, or nothing where it is missing."""
        with self._lock:
            return self._bound.get(party)

    def nodes(self) -> frozenset[int]:
        """Returns all nodes that a party is bound to."""
        with self._lock:
            return frozenset(bound.node for bound in self._bound.values())
