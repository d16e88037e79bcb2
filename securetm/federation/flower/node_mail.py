"""Sealed bytes to one node of a Flower run and back. It opens none of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from flwr.app import Message
from flwr.serverapp import Grid

from securetm.errors import Malformed
from securetm.federation.flower.flower_errors import NodeFailed
from securetm.federation.flower.flower_message import content_of, payload_of
from securetm.federation.flower.sealed_party import refusal_in

QUERY = "query"


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
