"""The nodes of a Flower run: which party is behind each, and sealed bytes to it and back.

A node id proves nothing: SuperLink gives them out. Only the signature in an answer to an offer says who is behind a node.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from flwr.app import Message
from flwr.serverapp import Grid

from securetm.contracts import Entropy
from securetm.errors import Malformed, SecuretmError
from securetm.federation.flower.flower_message import content_of, payload_of
from securetm.federation.flower.sealed_channel import LONGEST_ANSWER, OVERHEAD, CoordinatorEnd, Offer, refusal_in
from securetm.federation.network.events import NetworkEvents

QUERY = "query"


class NodeFailed(SecuretmError):
    """a node sent no sealed reply: {reason}"""

    reason: str
    hint = "look into that SuperNode's log, and whether its party's process runs and holds the same roster"


@dataclass(frozen=True)
class NodeMail:
    """The grid of a run, one message at a time, so that the ServerApp never holds two long ones."""

    grid: Grid

    def nodes(self) -> frozenset[int]:
        """Returns the nodes that are there now."""
        return frozenset(self.grid.get_node_ids())

    def push(self, node: int, payload: bytes, seconds: float) -> str:
        """Hands one message to SuperLink, which keeps it so long until its node comes for it. Returns its name there."""
        message = Message(content_of(payload), dst_node_id=node, message_type=QUERY, ttl=seconds)
        return next(iter(self.grid.push_messages([message])), "") or ""

    def pull(self, name: str, most: int) -> bytes | None:
        """Returns the sealed reply to that message, if it is there. Raises why there is none where the node failed."""
        for message in self.grid.pull_messages([name]) if name else ():
            return _sealed(message, most)
        return None

    def pull_any(self, names: Collection[str], most: int) -> Iterator[tuple[str, bytes | NodeFailed]]:
        """Returns the replies that are there, each with the name of the message that it answers."""
        for message in self.grid.pull_messages(list(names)) if names else ():
            try:
                yield message.metadata.reply_to_message_id, _sealed(message, most)
            except NodeFailed as failed:
                yield message.metadata.reply_to_message_id, failed


def _sealed(message: Message, most: int) -> bytes:
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

    def node_of(self, party: str) -> BoundNode | None:
        """Returns the party's node, or nothing where it is missing."""
        with self._lock:
            return self._bound.get(party)

    def nodes(self) -> frozenset[int]:
        """Returns all nodes that a party is bound to."""
        with self._lock:
            return frozenset(bound.node for bound in self._bound.values())


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


_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between two looks for a reply


@dataclass(frozen=True)
class FlowerParties:
    """All parties of a roster behind the nodes of a Flower run."""

    mail: NodeMail
    bound: BoundNodes
    members: tuple[str, ...]
    deadline: float  # seconds, for a request and its reply

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes]]:
        """Sends the requests, and yields the replies that came in time. SuperLink keeps those that come before their turn."""
        end, sent = time.monotonic() + self.deadline, {}
        for name, request in requests.items():
            if (bound := self.bound.node_of(name)) is not None:
                sent[name] = bound, self.mail.push(bound.node, bound.end.seal(request), self.deadline)
        for name in self.members:
            if name in sent and (reply := self._reply(name, *sent[name], most, end)) is not None:
                yield name, reply

    def present(self) -> frozenset[str]:
        """Returns the parties that can be asked now."""
        return self.bound.present

    def close(self) -> None:
        """Does nothing: the channels outlive the sessions."""

    def _reply(self, name: str, bound: BoundNode, message: str, most: int, end: float) -> bytes | None:
        """The party's reply, or nothing where it did not answer in time or its channel is gone."""
        pause = _FIRST_PAUSE
        try:
            while (sealed := self.mail.pull(message, most + OVERHEAD)) is None:
                if time.monotonic() >= end:
                    self.bound.release(name, "TooLate")  # a late reply then meets another channel
                    return None
                time.sleep(pause)
                pause = min(_LONGEST_PAUSE, pause * 1.5)
            return bound.end.unseal(sealed)
        except SecuretmError as problem:
            self.bound.release(name, type(problem).__name__)
            return None
