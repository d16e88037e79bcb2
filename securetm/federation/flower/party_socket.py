"""A party on a Unix socket of its own machine: a process hands it bytes and gets bytes back. It reads no message.

The socket separates what holds documents and keys from what runs code that others sent, so both may belong to different users.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Self

from securetm.credentials.keys import Keys
from securetm.credentials.roster import COORDINATOR, FederationRoster
from securetm.data_classes import dataclass
from securetm.errors import FileNotWritten, Mistake, SecuretmError, refused_as
from securetm.federation.flower.sealed_channel import LONGEST_OFFER, OVERHEAD, PartyEnd
from securetm.federation.network.events import NetworkEvents

_LENGTH = 8
_PATIENCE = 30.0  # seconds for a process on the same machine that has begun a message
_LOOKS = 0.25  # seconds between two looks whether it has ended
_BY_DESCRIPTOR = Path("/proc/self/fd")  # on Linux


class PartyNotReached(SecuretmError):
    """the party's process does not answer at {socket}: {problem}"""

    socket: str
    problem: str
    hint = "start it: `securetm join PARTY.toml --socket {socket}`"


@dataclass(frozen=True)
class Door:
    """What answers on a socket, and how many bytes it reads of a message now."""

    handle: Callable[[bytes], bytes | memoryview]
    most_bytes: Callable[[], int]

    @classmethod
    def sealed(cls, end: PartyEnd, answer: Callable[[bytes], bytes | memoryview], most: Callable[[], int]) -> Self:
        """What answers for a party behind a relay: it opens channels, and the party gets what was sealed."""
        return cls(lambda message: end.handle(message, answer), lambda: max(LONGEST_OFFER, most() + OVERHEAD))


@contextmanager
def opened(path: Path, mode: int = 0o600) -> Iterator[socket.socket]:
    """A listening socket at that path, for its owner alone unless another mode is given. It is removed at the end."""
    with ExitStack() as stack:
        near = stack.enter_context(_near(path))
        if _answers(near):
            raise Mistake(
                "another process answers at {socket} already",
                hint="one process holds a party's home; end the other one first",
                socket=str(path),
            )
        listening = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        before = os.umask(0o177)  # nobody else may open it at any moment
        try:
            with refused_as(FileNotWritten, path):
                with suppress(FileNotFoundError):  # a process that was killed may have left its own behind
                    os.unlink(near)
                listening.bind(near)
                path.chmod(mode)
        finally:
            os.umask(before)
        stack.callback(path.unlink, missing_ok=True)
        listening.listen(64)
        yield listening


def serve(
    doors: Mapping[socket.socket, Door], until: IO[bytes] | None = None, ended: Callable[[], bool] = lambda: False
) -> None:
    """Answers one message after the other, until it has ended, or what is given as `until` can be read or is at its end."""
    with selectors.DefaultSelector() as waiting:
        for listening, door in doors.items():
            waiting.register(listening, selectors.EVENT_READ, door)
        if until is not None:
            waiting.register(until, selectors.EVENT_READ, None)
        while not ended():
            for key, _ in waiting.select(_LOOKS):
                if key.data is None:
                    return
                caller, _ = key.fileobj.accept()  # type: ignore[union-attr]
                caller.settimeout(_PATIENCE)
                with caller, suppress(OSError):  # who hangs up or stays silent gets no answer
                    if (request := _received(caller, key.data.most_bytes())) is not None:
                        _send(caller, key.data.handle(request))


def ask(path: Path, request: bytes, timeout: float | None = None) -> bytes:
    """Hands the party at that socket one message, and returns its reply."""
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    caller.settimeout(timeout)
    with refused_as(PartyNotReached, path), caller, _near(path) as near:
        caller.connect(near)
        _send(caller, request)
        reply = _received(caller, 1 << 31)
    if reply is None:
        raise PartyNotReached(str(path), "it hung up")
    return reply


def answers(path: Path) -> bool:
    with suppress(OSError), _near(path) as near:
        return _answers(near)
    return False


def _answers(near: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        return caller.connect_ex(near) == 0


@contextmanager
def _near(path: Path) -> Iterator[str]:
    """A short name of a path: the address of a socket has room for 107 bytes only."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}" if _BY_DESCRIPTOR.is_dir() else str(path)
    finally:
        os.close(folder)


def _send(to: socket.socket, content: bytes | memoryview) -> None:
    to.sendall(len(content).to_bytes(_LENGTH, "big"))
    if content:  # who has read that a message is empty may have hung up
        to.sendall(content)


def _received(caller: socket.socket, most: int) -> bytes | None:
    """One message, or nothing where it is cut off or too long."""
    with caller.makefile("rb") as stream:
        counted = stream.read(_LENGTH)
        if len(counted) < _LENGTH or (length := int.from_bytes(counted, "big")) > most:
            return None
        content = stream.read(length)
    return content if len(content) == length else None


@dataclass(frozen=True)
class SocketCarrier:
    """Answers on one socket until it is stopped, or the party has what the run ends with."""

    path: Path
    mode: int  # of the socket
    name: str
    keys: Keys
    roster: FederationRoster
    most_bytes: Callable[[], int]
    finished: Callable[[], bool]
    events: NetworkEvents

    def run(self, handle: Callable[[bytes], bytes | memoryview], stop: threading.Event) -> bool:
        def counted(request: bytes) -> bytes | memoryview:
            reply = handle(request)
            self.events.carried(COORDINATOR, len(request), len(reply))
            return reply

        coordinator = self.roster.coordinator.identity
        greeted = partial(self.events.connected, COORDINATOR)
        end = PartyEnd(self.name, self.keys.identity, coordinator, self.roster.digest, opened=greeted)
        with opened(self.path, self.mode) as listening:
            doors = {listening: Door.sealed(end, counted, self.most_bytes)}
            serve(doors, ended=lambda: stop.is_set() or self.finished())
        return self.finished()
