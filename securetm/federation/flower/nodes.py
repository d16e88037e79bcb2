"""The nodes of a Flower run: which party is behind each, and sealed bytes to it and back.

A node id proves nothing: SuperLink gives them out. Only the signature in an answer to an offer says who is behind a node.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from flwr.app import Message
from flwr.serverapp import Grid

from securetm.data_classes import dataclass, field
from securetm.errors import Malformed, SecuretmError
from securetm.federation.flower.flower_message import content_of, payload_of
from securetm.federation.flower.sealed_channel import LONGEST_ANSWER, OVERHEAD, CoordinatorEnd, Offer, refusal_in
from securetm.federation.network.events import NetworkEvents

LOOKS = 1.0  # seconds between two looks for new nodes and answers
PATIENCE = 60.0  # seconds until a node that did not answer gets another offer
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between two looks for a reply


class NodeFailed(SecuretmError):
    """a node sent no sealed reply: {reason}"""

    reason: str
    hint = "look into that SuperNode's log, and whether its party's process runs and holds the same roster"


def sealed_in(message: Message, most: int) -> bytes:
    """The sealed bytes of a reply. Nobody signed an error or a refusal: either says no more than that the party is missing."""
    if message.has_error():
        raise NodeFailed(str(message.error.reason)[:200])
    try:
        payload = payload_of(message, "a node", most)
        refusal = refusal_in(payload)
    except Malformed as problem:
        raise NodeFailed(str(problem)) from problem
    if refusal:
        raise NodeFailed(refusal)
    return payload


@dataclass(frozen=True)
class _Offered:
    offer: Offer
    message: str  # its name at SuperLink
    ends: float


@dataclass
class FlowerParties:
    """All parties of a roster behind the nodes of a Flower run (federation.transcript.Parties).

    A thread introduces the coordinator to the nodes; the coordinator's own thread asks.
    """

    grid: Grid
    members: tuple[str, ...]
    keys: Mapping[str, bytes]  # each member's public identity
    identity: bytes = field(repr=False)  # the coordinator's own, 32 secret bytes
    roster: bytes = field(repr=False)  # the digest of the roster
    deadline: float  # seconds, for a request and its reply
    events: NetworkEvents
    _bound: dict[str, tuple[int, CoordinatorEnd]] = field(default_factory=dict)  # the node of each party that proved its name
    _lock: threading.Lock = field(default_factory=threading.Lock)  # of what is bound
    _offered: dict[int, _Offered] = field(default_factory=dict)  # by node

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes]]:
        """Sends the requests, and yields the replies that came in time. SuperLink keeps those that come before their turn.

        It sends one message at a time, so that the ServerApp never holds two long ones.
        """
        end, sent = time.monotonic() + self.deadline, {}
        for name, request in requests.items():
            with self._lock:
                bound = self._bound.get(name)
            if bound is not None:
                sent[name] = bound[1], self._push(bound[0], bound[1].seal(request), self.deadline)
        for name in self.members:
            if name in sent and (reply := self._reply(name, *sent[name], most, end)) is not None:
                yield name, reply

    def present(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._bound)

    def close(self) -> None:
        """Does nothing: the channels outlive the sessions."""

    def _push(self, node: int, payload: bytes, seconds: float) -> str:
        """Hands one message to SuperLink, which keeps it so long until its node comes for it. Returns its name there."""
        message = Message(content_of(payload), dst_node_id=node, message_type="query", ttl=seconds)
        return next(iter(self.grid.push_messages([message])), "") or ""

    def _reply(self, name: str, channel: CoordinatorEnd, message: str, most: int, end: float) -> bytes | None:
        """The party's reply, or nothing where it did not answer in time or its channel is gone."""
        pause = _FIRST_PAUSE
        try:
            while True:
                for came in self.grid.pull_messages([message]) if message else ():
                    return channel.unseal(sealed_in(came, most + OVERHEAD))
                if time.monotonic() >= end:
                    self._release(name, "TooLate")  # a late reply then meets another channel
                    return None
                time.sleep(pause)
                pause = min(_LONGEST_PAUSE, pause * 1.5)
        except SecuretmError as problem:
            self._release(name, type(problem).__name__)
            return None

    def _release(self, party: str, reason: str) -> None:
        """Forgets the party's node and channel: it is missing until it proves again who it is."""
        with self._lock:
            gone = self._bound.pop(party, None)
        if gone is not None:
            self.events.lost(party, reason)

    # ---- introductions -------------------------------------------------------------------------------------------------

    @contextmanager
    def introduced(self) -> Iterator[None]:
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
        there = frozenset(self.grid.get_node_ids())
        with self._lock:
            bound = {party: node for party, (node, _) in self._bound.items()}
        for party in (party for party, node in bound.items() if node not in there):
            self._release(party, "NodeGone")
        self._offered = {node: offered for node, offered in self._offered.items() if node in there}
        for node in sorted(there - set(bound.values()) - self._offered.keys()):
            offer = Offer.make(self.identity, self.roster)
            name = self._push(node, offer.message, PATIENCE)
            self._offered[node] = _Offered(offer, name, time.monotonic() + PATIENCE)
        nodes = {offered.message: node for node, offered in self._offered.items() if offered.message}
        for answer in self.grid.pull_messages(list(nodes)) if nodes else ():
            self._take(nodes[answer.metadata.reply_to_message_id], answer)
        now = time.monotonic()
        self._offered = {node: offered for node, offered in self._offered.items() if now < offered.ends}

    def _take(self, node: int, answer: Message) -> None:
        """Binds the party that signed this answer to its node, in the place of the one that it was behind before.

        A node that failed gets another offer when this one has ended.
        """
        try:
            end = self._offered[node].offer.opened(sealed_in(answer, LONGEST_ANSWER), self.keys)
        except SecuretmError as problem:
            self.events.refused("", type(problem).__name__)
            return
        del self._offered[node]
        with self._lock:
            self._bound[end.party] = node, end
        self.events.connected(end.party)  # without the lock: who is told may ask who is present
