"""The parties as a coordinator reaches them through Flower: one node each, found by what the party signs, never by its node id.

It carries sealed bytes. Who must answer, and what a message means, is decided by the coordinator.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from logging import getLogger

from flwr.app import Message
from flwr.serverapp import Grid

from securetm.contracts import Entropy
from securetm.errors import SecuretmError
from securetm.federation.flower.flower_message import content_of, payload_of
from securetm.federation.flower.sealed_channel import CoordinatorEnd, Offer
from securetm.federation.flower.sealed_party import refusal_in

QUERY = "query"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between two looks for a reply
_LONGEST_OFFER = 60.0  # seconds until a silent node gets another offer
_log = getLogger(__name__)


@dataclass(frozen=True)
class _Offered:
    """An offer that a node has not answered yet."""

    offer: Offer
    message: str  # its id at SuperLink
    ends: float


@dataclass
class FlowerParties:
    """All parties of a roster behind the nodes of a Flower run."""

    grid: Grid
    keys: Mapping[str, bytes]  # each member's public identity, in the order of the roster
    identity: bytes  # the coordinator's own, 32 secret bytes
    roster: bytes  # the digest of the roster
    entropy: Entropy
    deadline: float = 600.0  # seconds for one wave
    _nodes: dict[str, int] = field(default_factory=dict)  # by party
    _ends: dict[str, CoordinatorEnd] = field(default_factory=dict)
    _offered: dict[int, _Offered] = field(default_factory=dict)  # by node

    def present(self) -> frozenset[str]:
        """Returns the parties that can be asked now. It offers a channel to each node that has none, and waits for nobody."""
        there = set(self.grid.get_node_ids())
        for party in [party for party, node in self._nodes.items() if node not in there]:
            self._forget(party)
        self._offered = {node: offered for node, offered in self._offered.items() if node in there}
        for node in sorted(there - set(self._nodes.values()) - set(self._offered)):
            self._offer(node)
        for node, offered in list(self._offered.items()):
            self._look(node, offered)
        return frozenset(self._nodes)

    def await_all(self, patience: float) -> frozenset[str]:
        """Waits until all parties are there, or its patience is at an end. Returns those that are there."""
        ends = time.monotonic() + patience
        while len(here := self.present()) < len(self.keys) and time.monotonic() < ends:
            time.sleep(_LONGEST_PAUSE)
        return here

    def ask(self, requests: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
        """Sends every request, and returns the replies in the order of the roster. SuperLink keeps those that came before."""
        ends, sent = time.monotonic() + self.deadline, {}
        for party, request in requests.items():
            if party in self._nodes:
                sent[party] = self._push(self._nodes[party], self._ends[party].seal(request))
        for party in self.keys:
            if party in sent and (reply := self._reply(party, sent[party], ends)) is not None:
                yield party, reply

    def close(self) -> None:
        """Forgets all channels. Parties end by themselves."""
        self._nodes.clear()
        self._ends.clear()

    # ---- introductions -------------------------------------------------------------------------------------------------

    def _offer(self, node: int) -> None:
        offer = Offer.make(self.identity, self.roster, self.entropy)
        ends = time.monotonic() + min(self.deadline, _LONGEST_OFFER)
        self._offered[node] = _Offered(offer, self._push(node, offer.message), ends)

    def _look(self, node: int, offered: _Offered) -> None:
        """Binds the party that signed the answer to this node. A node without a proper answer gets another offer later."""
        for message in self._pulled(offered.message):
            with self._logged(f"node {node}"):
                if (answer := _payload(message)) is not None:
                    end = offered.offer.opened(answer, self.keys)
                    self._nodes[end.party], self._ends[end.party] = node, end
                    del self._offered[node]
                    return
        if time.monotonic() >= offered.ends:
            del self._offered[node]

    def _forget(self, party: str) -> None:
        self._nodes.pop(party, None)
        self._ends.pop(party, None)

    @contextmanager
    def _logged(self, who: str) -> Iterator[None]:
        """Logs what a node sent wrong, and goes on: it is missing then."""
        try:
            yield
        except SecuretmError as problem:
            _log.warning("%s: %s: %s", who, type(problem).__name__, problem)

    # ---- messages ------------------------------------------------------------------------------------------------------

    def _push(self, node: int, payload: bytes) -> str:
        """Hands one message to SuperLink, which keeps it until its node comes for it. One at a time bounds the memory."""
        message = Message(content_of(payload), dst_node_id=node, message_type=QUERY, ttl=self.deadline)
        return next(iter(self.grid.push_messages([message])), "") or ""

    def _pulled(self, message: str) -> list[Message]:
        return list(self.grid.pull_messages([message])) if message else []

    def _reply(self, party: str, message: str, ends: float) -> bytes | None:
        """The party's reply, or nothing where it did not answer in time or its channel is gone."""
        pause = _FIRST_PAUSE
        while not (replies := self._pulled(message)) and message and time.monotonic() < ends:
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 1.5)
        for reply in replies:
            with self._logged(party):
                if (sealed := _payload(reply)) is not None:
                    return self._ends[party].unseal(sealed)
        self._forget(party)  # a late reply then meets another channel
        return None


def _payload(message: Message) -> bytes | None:
    """The sealed bytes of a reply, or nothing where the node failed or refused: nobody signed that."""
    if message.has_error():
        _log.warning("a node failed: %s", message.error.reason)
        return None
    payload = payload_of(message, "a node")
    if refusal := refusal_in(payload):
        _log.warning("a node refused: %s", refusal)
        return None
    return payload
