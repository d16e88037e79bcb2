"""The parties as a coordinator asks them through Flower: one wave of messages at a time, whole replies in roster order.

It carries sealed bytes. Who must answer, and what a message means, is decided by the coordinator.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from securetm.errors import SecuretmError
from securetm.federation.flower.bound_nodes import BoundNode, BoundNodes
from securetm.federation.flower.node_mail import NodeMail
from securetm.federation.flower.sealed_channel import OVERHEAD

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
            if (bound := self.bound.of(name)) is not None:
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
