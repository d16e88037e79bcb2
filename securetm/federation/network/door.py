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
from itertools import chain

from securetm.data_classes import dataclass, field

MOST_STRANGERS = 256
PATIENCE = 20.0  # seconds for a handshake and a hello
_TLS = 0x16  # with which a handshake begins
_HEADER = 5  # bytes before its first message; the last two say how long that is
_LONGEST = 1 << 14
SILENT, SPOKE, WENT_ON = range(3)  # how far a stranger is: no whole message yet, one, one more after the server's answer
_LAST_WORDS = 5.0  # seconds
_ROOM = 1 << 18  # bytes that wait in one direction, until the sender waits too
_SPARE = 256  # files that the process needs besides


@dataclass(eq=False)
class Stranger:
    outside: asyncio.StreamWriter
    address: str
    inside: asyncio.StreamWriter | None = None
    port: int = 0  # of its connection behind the door, by which the server knows it
    timer: asyncio.TimerHandle | None = None
    stage: int = SILENT
    answered: bool = False  # by the server

    def end(self) -> None:
        """Ends both connections. What was written before still leaves, if the other end reads it soon."""
        for writer in (self.inside, self.outside):
            if writer is not None and not writer.transport.is_closing():
                writer.close()
                if writer.transport.get_write_buffer_size():
                    asyncio.get_running_loop().call_later(_LAST_WORDS, writer.transport.abort)


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
    def most(self) -> int:
        """Connections behind the door at any time. A member has one, and may come anew before the old one is found dead."""
        return self.most_strangers + 2 * self.members

    async def listen(self, address: str, server_port: int) -> int:
        """Begins to let connections through to the server at that port of this machine. Returns its own port."""
        self.server_port = server_port
        allow_files(3 * self.most + _SPARE)
        host, _, port = address.rpartition(":")
        inner = host[1:-1] if host.startswith("[") else host
        self._listening = await asyncio.start_server(self._serve, inner, int(port), backlog=4_096)
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
            self._enter(one)

    # ---- a connection, from its first byte to its last ----

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(_ROOM)
        one = Stranger(writer, str((writer.get_extra_info("peername") or ("",))[0]))
        self._enter(one)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._carry(one, reader)
        finally:
            self._left(one)
            one.end()

    def _enter(self, one: Stranger) -> None:
        """Takes a stranger in, and sends one away where there are too many."""
        self._strangers[one.stage][one] = None
        self._from[one.address] += 1
        one.timer = asyncio.get_running_loop().call_later(self.patience, self._send_away, one)
        if self._from[one.address] > MOST_STRANGERS // 8 + self.members:  # all members may be behind one address
            self._send_away(next(other for other in chain(*self._strangers) if other.address == one.address))
        elif sum(map(len, self._strangers)) > self.most_strangers:
            self._send_away(next(chain(*self._strangers)))

    async def _carry(self, one: Stranger, reader: asyncio.StreamReader) -> None:
        """Passes bytes on in both directions until one end is gone. What does not begin as a handshake does not pass."""
        first = await reader.readexactly(1)
        if first[0] != _TLS:
            return
        first += await reader.readexactly(_HEADER - 1)
        length = int.from_bytes(first[3:], "big")
        if not 0 < length <= _LONGEST:
            return
        first += await reader.readexactly(length)
        self._goes_on(one, SPOKE)
        answers, one.inside = await asyncio.open_connection("127.0.0.1", self.server_port)
        one.inside.transport.set_write_buffer_limits(_ROOM)
        one.port = int(one.inside.get_extra_info("sockname")[1])
        self._by_port[one.port] = one
        one.inside.write(first)
        ways = [asyncio.ensure_future(way) for way in (self._inwards(one, reader, one.inside), self._outwards(one, answers))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()

    async def _inwards(self, one: Stranger, reader: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_ROOM):
                to.write(data)
                if one.stage == SPOKE and one.answered:
                    self._goes_on(one, WENT_ON)
                await to.drain()

    async def _outwards(self, one: Stranger, answers: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while data := await answers.read(_ROOM):
                one.answered = True
                one.outside.write(data)
                await one.outside.drain()

    def _goes_on(self, one: Stranger, stage: int) -> None:
        if one in self._strangers[one.stage]:
            del self._strangers[one.stage][one]
            self._strangers[stage][one] = None
        one.stage = stage

    def _send_away(self, one: Stranger) -> None:
        self._left(one)
        for writer in (one.inside, one.outside):
            if writer is not None:
                writer.transport.abort()

    def _left(self, one: Stranger) -> None:
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


def allow_files(needed: int) -> None:
    """Allows this process as many open files as it needs, as far as its user may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):  # a limit that may not change stays, and files run out later
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
