"""Offers every new node a channel, and binds the party that signed the answer to it. It runs beside the coordinator's thread.

A node id proves nothing: SuperLink gives them out. Only the signature in an answer says which party is behind a node.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from securetm.contracts import Entropy
from securetm.errors import SecuretmError
from securetm.federation.flower.bound_nodes import BoundNodes
from securetm.federation.flower.flower_errors import NodeFailed
from securetm.federation.flower.node_mail import NodeMail
from securetm.federation.flower.sealed_channel import LONGEST_ANSWER, Offer

LOOKS = 1.0  # seconds between two looks for new nodes and answers
PATIENCE = 60.0  # seconds until a node that did not answer gets another offer


@dataclass(frozen=True)
class _Offered:
    offer: Offer
    message: str  # its name at SuperLink
    ends: float


@dataclass
class Greeter:
    """Introduces the coordinator to the nodes of a run."""

    mail: NodeMail
    bound: BoundNodes
    keys: Mapping[str, bytes]  # each member's public identity
    identity: bytes = field(repr=False)  # the coordinator's own, 32 secret bytes
    roster: bytes = field(repr=False)  # the digest of the roster
    entropy: Entropy = field(repr=False)
    _offered: dict[int, _Offered] = field(default_factory=dict)  # by node

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Looks every second for nodes and answers, until the block ends."""
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(LOOKS):
                self.look()

        thread = threading.Thread(target=look, name="greeter", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def look(self) -> None:
        """Offers each node without a party a channel, and takes the answers that came. It waits for none."""
        there = self.mail.nodes()
        self.bound.release_others(there)
        self._offered = {node: offered for node, offered in self._offered.items() if node in there}
        for node in sorted(there - self.bound.nodes() - self._offered.keys()):
            offer = Offer.make(self.identity, self.roster, self.entropy)
            name = self.mail.push(node, offer.message, PATIENCE)
            self._offered[node] = _Offered(offer, name, time.monotonic() + PATIENCE)
        nodes = {offered.message: node for node, offered in self._offered.items() if offered.message}
        for name, answer in self.mail.pull_any(nodes, LONGEST_ANSWER):
            self._take(nodes[name], answer)
        now = time.monotonic()
        self._offered = {node: offered for node, offered in self._offered.items() if now < offered.ends}

    def _take(self, node: int, answer: bytes | NodeFailed) -> None:
        """Binds the party that signed this answer. A node that failed gets another offer when this one has ended."""
        try:
            if isinstance(answer, NodeFailed):
                raise answer
            end = self._offered[node].offer.opened(answer, self.keys)
        except SecuretmError as problem:
            self.bound.events.refused("", type(problem).__name__)
            return
        del self._offered[node]
        self.bound.bind(node, end)
