"""The door before the coordinator's server: it lets connections through, and only those of members stay.

It reads nothing but how long the first message of a handshake is, and passes nothing on before that message is whole. A
connection is a stranger's until the server behind the door has seen a member's hello on it. Strangers are few at any time,
fewer from each address, and none stays long. When there are too many, one of those that are the least far goes, the oldest
first. So whoever keeps connections open keeps nobody else out.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import cast

MOST_STRANGERS = 256
PATIENCE = 20.0  # seconds for a handshake and a hello
_TLS = 0x16  # with which a handshake begins
_HEADER = 5  # bytes before its first message; the last two say how long that is
_LONGEST = 1 << 14
SILENT, SPOKE, WENT_ON = range(3)  # how far a stranger is: no whole message yet, one, one more after the server's answer
_LAST_WORDS = 5.0  # seconds
_ROOM = 1 << 18  # bytes that wait in one direction, until the sender waits too
_SPARE = 256  # files that the process needs besides
_BACKLOG = 4_096


@dataclass(eq=False)
class Stranger(asyncio.Protocol):
    """One connection from outside, and the one behind the door that its bytes go to."""

    door: Door
    address: str = ""
    outside: asyncio.Transport | None = None
    inside: asyncio.Transport | None = None
    port: int = 0  # of its connection behind the door, by which the server knows it
    timer: asyncio.TimerHandle | None = None
    stage: int = SILENT
    answered: bool = False  # by the server
    _first: bytearray = field(default_factory=bytearray)
    _opening: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes a place among the strangers."""
        self.outside = cast("asyncio.Transport", transport)
        self.outside.set_write_buffer_limits(_ROOM)
        self.address = str((self.outside.get_extra_info("peername") or ("",))[0])
        self.door.entered(self)

    def data_received(self, data: bytes) -> None:
        """Passes bytes on. What does not begin as a handshake does not pass."""
        if self.inside is not None:
            self.inside.write(data)
            if self.stage == SPOKE and self.answered:
                self.door.went_on(self, WENT_ON)
            return
        self._first += data
        length = int.from_bytes(self._first[3:_HEADER], "big") if len(self._first) >= _HEADER else 0
        if self._first[0] != _TLS or length > _LONGEST:
            self.end()
        elif length and len(self._first) >= _HEADER + length and self._opening is None and self.outside is not None:
            self.outside.pause_reading()
            self.door.went_on(self, SPOKE)
            self._opening = asyncio.ensure_future(self._open())

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: Behind(self), "127.0.0.1", self.door.server_port)
        except OSError:
            self.end()
            return
        if self.inside is not None and self.outside is not None and not self.outside.is_closing():
            self.inside.write(bytes(self._first))
            self._first.clear()
            self.outside.resume_reading()
        else:
            self.end()

    def pause_writing(self) -> None:
        """The other end does not read: the server waits."""
        if self.inside is not None:
            self.inside.pause_reading()

    def resume_writing(self) -> None:
        """The other end reads again."""
        if self.inside is not None:
            self.inside.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        del exc
        self.outside = None
        self.end()

    def end(self) -> None:
        """Ends both connections. What was written before still leaves, if the other end reads it soon."""
        self.door.left(self)
        for transport in (self.inside, self.outside):
            if transport is not None and not transport.is_closing():
                transport.close()
                if transport.get_write_buffer_size():
                    asyncio.get_running_loop().call_later(_LAST_WORDS, transport.abort)

    def abort(self) -> None:
        """Ends both connections at once."""
        self.door.left(self)
        for transport in (self.inside, self.outside):
            if transport is not None:
                transport.abort()


@dataclass(eq=False)
class Behind(asyncio.Protocol):
    """The connection of a stranger behind the door."""

    stranger: Stranger

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The server will know the stranger by this connection's port."""
        inside = cast("asyncio.Transport", transport)
        inside.set_write_buffer_limits(_ROOM)
        self.stranger.inside, self.stranger.port = inside, int(inside.get_extra_info("sockname")[1])
        self.stranger.door.opened(self.stranger)

    def data_received(self, data: bytes) -> None:
        """Passes bytes on."""
        self.stranger.answered = True
        if self.stranger.outside is not None:
            self.stranger.outside.write(data)

    def pause_writing(self) -> None:
        """The server does not read: the other end waits."""
        if self.stranger.outside is not None:
            self.stranger.outside.pause_reading()

    def resume_writing(self) -> None:
        """The server reads again."""
        if self.stranger.outside is not None:
            self.stranger.outside.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The server has ended the connection."""
        del exc
        self.stranger.inside = None
        self.stranger.end()


@dataclass(eq=False)
class Door:
    """Listens where the parties connect. It runs in the hub's loop."""

    members: int
    server_port: int = 0
    patience: float = PATIENCE
    _strangers: tuple[dict[Stranger, None], ...] = field(default_factory=lambda: ({}, {}, {}))  # by stage, the oldest first
    _from: Counter[str] = field(default_factory=Counter)  # strangers by their address
    _by_port: dict[int, Stranger] = field(default_factory=dict)
    _listening: asyncio.Server | None = None

    @property
    def most_strangers(self) -> int:
        """At any time: all members may come at once."""
        return MOST_STRANGERS + self.members

    @property
    def most_of_address(self) -> int:
        """At any time, from one address: all members may be behind it."""
        return MOST_STRANGERS // 8 + self.members

    @property
    def most(self) -> int:
        """Connections behind the door at any time. A member has one, and may come anew before the old one is found dead."""
        return self.most_strangers + 2 * self.members

    async def listen(self, address: str, server_port: int) -> int:
        """Begins to let connections through to the server at that port of this machine. Returns its own port."""
        self.server_port = server_port
        _allow_files(3 * self.most + _SPARE)
        host, _, port = address.rpartition(":")
        loop = asyncio.get_running_loop()
        inner = host[1:-1] if host.startswith("[") else host
        self._listening = await loop.create_server(lambda: Stranger(self), inner, int(port), backlog=_BACKLOG)
        return int(self._listening.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Lets nobody in any more, and ends all connections."""
        if self._listening is not None:
            self._listening.close()
        for one in [*chain(*self._strangers), *self._by_port.values()]:
            one.end()

    # ---- what the server says of a connection, by its peer ----

    def came_through(self, peer: str) -> bool:
        """Whether a connection of the server is one of this door's."""
        return _port(peer) in self._by_port

    def keep(self, peer: str) -> None:
        """A member has said its hello on this connection: it stays."""
        if (one := self._by_port.get(_port(peer))) is not None:
            self._no_stranger(one)

    def release(self, peer: str) -> None:
        """The member's stream has ended: the connection is a stranger's again."""
        if (one := self._by_port.get(_port(peer))) is not None and one not in self._strangers[one.stage]:
            self.entered(one)

    # ---- what connections say ----

    def entered(self, one: Stranger) -> None:
        """Takes a stranger in, and sends one away where there are too many."""
        self._strangers[one.stage][one] = None
        self._from[one.address] += 1
        one.timer = asyncio.get_running_loop().call_later(self.patience, one.abort)
        if self._from[one.address] > self.most_of_address:
            next(other for other in chain(*self._strangers) if other.address == one.address).abort()
        elif sum(map(len, self._strangers)) > self.most_strangers:
            next(chain(*self._strangers)).abort()

    def went_on(self, one: Stranger, stage: int) -> None:
        """The stranger is further in its handshake."""
        if one in self._strangers[one.stage]:
            del self._strangers[one.stage][one]
            self._strangers[stage][one] = None
        one.stage = stage

    def opened(self, one: Stranger) -> None:
        """The connection behind the door is open."""
        self._by_port[one.port] = one

    def left(self, one: Stranger) -> None:
        """The connection has ended."""
        self._no_stranger(one)
        if self._by_port.get(one.port) is one:
            del self._by_port[one.port]

    def _no_stranger(self, one: Stranger) -> None:
        if one not in self._strangers[one.stage]:
            return
        del self._strangers[one.stage][one]
        self._from[one.address] -= 1
        if not self._from[one.address]:
            del self._from[one.address]
        if one.timer is not None:
            one.timer.cancel()


def _port(peer: str) -> int:
    """Returns the port of a peer as grpc writes it: `ipv4:127.0.0.1:50112`."""
    last = peer.rpartition(":")[2]
    return int(last) if last.isdecimal() else 0


def _allow_files(needed: int) -> None:
    """Allows this process as many open files as it needs, as far as its user may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):  # a limit that may not change stays, and files run out later
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
