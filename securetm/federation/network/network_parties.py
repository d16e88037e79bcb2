"""The parties of a network, as the coordinator asks them: one wave of messages at a time, whole replies in roster order.

It waits and hands on. It opens no message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass, field
from typing import Any

from securetm.federation.network.connections import Asked
from securetm.federation.network.spool import Spool


@dataclass(frozen=True)
class NetworkParties:
    """All parties of a hub. A party that is not connected is waited for until the wave's deadline."""

    members: tuple[str, ...]
    deadline: float  # seconds, for a request and its reply
    begin: Callable[[Mapping[str, bytes], int], dict[str, Asked]]
    withdraw: Callable[[Mapping[str, Asked]], None]
    present: Callable[[], frozenset[str]]
    arrivals: dict[str, float] = field(default_factory=dict)  # seconds after its request, of each reply of the last wave

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes | memoryview]]:
        """Sends the requests, and yields the replies that came in time, in the order of the roster."""
        begun = time.monotonic()
        end = begun + self.deadline
        self.arrivals.clear()
        wave = self.begin(requests, most)
        for name, asked in wave.items():
            asked.reply.add_done_callback(self._noting(name, begun))
        try:
            for name in self.members:
                if name in wave and (spool := _waited(wave[name], end)) is not None:
                    del wave[name]
                    yield name, spool.take()
        finally:
            self.withdraw(wave)

    def _noting(self, name: str, begun: float) -> Callable[[Future[Any]], None]:
        """Returns what notes the time when a reply is whole."""

        def note(_: Future[Any]) -> None:
            self.arrivals[name] = time.monotonic() - begun

        return note

    def close(self) -> None:
        """Does nothing: the hub outlives the sessions, and whoever opened it closes it."""


def _waited(asked: Asked, end: float) -> Spool | None:
    try:
        return asked.reply.result(max(0.0, end - time.monotonic()))
    except TooLate:
        return None
