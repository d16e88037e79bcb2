"""Carries messages to the parties of a simulation, in this process or in worker processes. No network.

A worker takes bytes and returns bytes, as a remote party would. Documents stay in the process that holds them.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from securetm.errors import Failed, SecuretmError

if TYPE_CHECKING:  # a worker imports what its party needs, and nothing before
    from securetm.federation.party.party import Party


@dataclass
class InProcess:
    """All parties in this process, asked one after the other in roster order."""

    parties: Mapping[str, Party]

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes | memoryview]]:  # noqa: ARG002 - it is in memory already
        """Asks every party when its reply is wanted."""
        return ((name, self.parties[name].handle(message)) for name, message in requests.items())

    def present(self) -> frozenset[str]:
        """Returns all parties."""
        return frozenset(self.parties)

    def close(self) -> None:
        """Closes the parties' stores."""
        for party in self.parties.values():
            party.close()


@dataclass
class Workers:
    """Parties in processes of their own. `make` builds one party by name inside its worker."""

    make: Callable[..., Party]
    arguments: Mapping[str, tuple[Any, ...]]
    workers: int
    _at: dict[str, Connection] = field(default_factory=dict)
    _processes: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Starts the workers; a spawned process inherits nothing but what it is given."""
        context = multiprocessing.get_context("spawn")
        names = list(self.arguments)
        for first in range(min(self.workers, len(names))):
            here, there = context.Pipe()
            share = {name: self.arguments[name] for name in names[first :: self.workers]}
            process = context.Process(target=_serve, args=(there, self.make, share), daemon=True)
            process.start()
            there.close()
            self._processes.append(process)
            self._at.update(dict.fromkeys(share, here))

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes | memoryview]]:  # noqa: ARG002 - it is in memory already
        """The workers run side by side, and each gets its next request when its last reply is taken.

        Two long messages that meet in one pipe would otherwise wait for each other without end.
        """
        waiting: dict[Connection, list[str]] = {}
        for name in requests:
            waiting.setdefault(self._at[name], []).append(name)
        under_way: dict[Connection, str] = {}

        def send_next(pipe: Connection) -> None:
            if waiting[pipe]:
                under_way[pipe] = waiting[pipe].pop(0)
                self._send(under_way[pipe], requests)

        for pipe in waiting:
            send_next(pipe)
        try:
            for name in requests:  # one at a time: the other workers wait with their replies
                del under_way[self._at[name]]
                reply = self._receive(name)
                send_next(self._at[name])
                yield name, reply
        finally:  # whoever stops listening leaves no reply behind for the next question
            for name in under_way.values():
                self._receive(name)

    def present(self) -> frozenset[str]:
        """Returns all parties."""
        return frozenset(self._at)

    def close(self) -> None:
        """Ends every worker and waits for it."""
        for pipe in set(self._at.values()):
            pipe.close()
        for process in self._processes:
            process.join()

    def _send(self, name: str, requests: Mapping[str, bytes]) -> None:
        try:
            self._at[name].send((name, requests[name]))
        except OSError as problem:
            raise self._ended(name) from problem

    def _receive(self, expected: str) -> bytes:
        try:
            failed, reply = self._at[expected].recv(), self._at[expected].recv_bytes()
        except (EOFError, OSError) as problem:
            raise self._ended(expected) from problem
        if isinstance(failed, SecuretmError):
            raise failed
        return reply

    def _ended(self, name: str) -> Failed:
        """The failure of that party's worker, and so of all its parties."""
        parties = ", ".join(n for n, pipe in self._at.items() if pipe is self._at[name])
        hint = "look for its last message above; continue with `securetm run --resume`"
        return Failed("the worker process of {parties} ended", hint, parties=parties)


def _serve(pipe: Connection, make: Callable[..., Party], share: Mapping[str, tuple[Any, ...]]) -> None:
    """Runs in a worker: answers for its parties until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the coordinator ends its workers in order
    parties = {name: make(*arguments) for name, arguments in share.items()}
    failed: SecuretmError | None
    while (request := _next(pipe)) is not None:
        name, message = request
        failed = None
        reply: bytes | memoryview = b""
        try:
            reply = parties[name].handle(message)
        except SecuretmError as failure:
            failed = failure
        with suppress(BrokenPipeError):  # the coordinator has ended meanwhile; the next request will say so
            pipe.send(failed)
            pipe.send_bytes(reply)
    for party in parties.values():
        party.close()


def _next(pipe: Connection) -> tuple[str, bytes] | None:
    try:
        return pipe.recv()  # type: ignore[no-any-return]
    except (EOFError, ConnectionResetError):
        return None
