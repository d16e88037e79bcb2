"""One party's place in the hub: the request that it is to answer, and the stream on which it is connected now.

All of it runs in the hub's loop. A request outlives a stream: it is offered again on the next one, and the party that has
answered it already sends the same reply.
"""

from __future__ import annotations

import asyncio
import mmap
import tempfile
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import BinaryIO

import grpc
import grpc.aio

from securetm.contracts import Message
from securetm.data_classes import dataclass, field
from securetm.errors import Failed, Malformed, SecuretmError
from securetm.federation.network.frames import Incoming, frames_of, unpacked


@dataclass
class Spool:
    """The bytes of one message of a known length: in memory if that is within its share, or else in a file without a name."""

    folder: Path
    length: int
    share: int  # bytes
    _parts: list[Message] = field(default_factory=list)
    _file: BinaryIO | None = None

    def __post_init__(self) -> None:
        if self.length > self.share:
            try:
                self._file = tempfile.TemporaryFile(dir=self.folder, buffering=0)  # noqa: SIM115 - `close` does
            except OSError as problem:
                raise self._full(problem) from problem

    def add(self, part: Message) -> None:
        if self._file is None:
            self._parts.append(part)
            return
        try:
            self._file.write(part)
        except OSError as problem:
            raise self._full(problem) from problem

    def take(self) -> Message:
        """Returns the whole message and closes the spool: of what is on disk a view, and the file goes with it."""
        try:
            if self._file is None:
                return b"".join(self._parts)
            return memoryview(mmap.mmap(self._file.fileno(), self.length, access=mmap.ACCESS_READ))
        except OSError as problem:
            raise self._full(problem) from problem
        finally:
            self.close()

    def close(self) -> None:
        self._parts = []
        if self._file is not None:
            self._file.close()

    def _full(self, problem: OSError) -> Failed:
        return Failed(
            "there is no room for the replies of the parties in {folder}: {why}",
            hint="make room on the disk; the run goes on from its last checkpoint when the coordinator starts again",
            folder=str(self.folder),
            why=problem.strerror or type(problem).__name__,
        )


@dataclass(eq=False)
class Asked:
    """One request to one party, and the place where its reply goes."""

    number: int
    request: bytes
    digest: bytes
    most: int  # bytes of the reply
    reply: Future[Spool | None]
    late: Callable[[], None] = lambda: None  # is called when the reply comes and nobody waits for it any more

    def settle(self, reply: Spool | None) -> None:
        """Gives the reply to whoever waits for it, or nothing where there will be none."""
        if not self.reply.done():
            self.reply.set_result(reply)
        elif reply is not None:
            reply.close()

    def abandon(self) -> None:
        """Forgets the reply, which nobody will take."""
        self.settle(None)
        if self.reply.exception() is None and (spool := self.reply.result()) is not None:
            spool.close()

    def fail(self, problem: SecuretmError) -> None:
        """Raises a problem of this end where the reply is waited for."""
        if not self.reply.done():
            self.reply.set_exception(problem)


@dataclass(eq=False)
class Connected:
    """One open stream of a party. At most one request is under way on it; a reply that comes too late is read and dropped."""

    party: str
    stream: grpc.aio.ServicerContext
    spool_of: Callable[[int], Spool]  # a message of that length
    idle: Callable[[Connected], None]  # is called when a further request may be sent
    asked: Asked | None = None
    _arriving: Incoming | None = None
    _spool: Spool | None = None
    _sending: asyncio.Task[None] | None = None
    _serving: asyncio.Task[None] | None = None

    def send(self, asked: Asked) -> None:
        self.asked = asked
        self._sending = asyncio.ensure_future(self._send(asked))

    async def _send(self, asked: Asked) -> None:
        try:
            for frame in frames_of(asked.number, asked.request, asked.digest):
                await self.stream.write(frame)
        except (grpc.RpcError, grpc.aio.UsageError, grpc.aio.InternalError):  # so that the request is offered on another stream
            if self._serving is not None:
                self._serving.cancel()
            return

    async def serve(self) -> None:
        """Reads frames until the stream ends."""
        self._serving = asyncio.current_task()
        try:
            while isinstance(frame := await self.stream.read(), bytes):
                self._take(frame)
        finally:
            self.stop()

    def stop(self) -> None:
        """Sends nothing more, and forgets what has arrived."""
        self.drop()
        if self._sending is not None:
            self._sending.cancel()

    def drop(self) -> None:
        """Forgets what has arrived of a reply. The rest of it is read and dropped."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def _take(self, frame: bytes) -> None:
        asked = self.asked
        if asked is None:
            raise Malformed(self.party, "a frame came where nothing was asked")
        if self._arriving is None:
            _, begin = unpacked(frame, self.party, "begin")
            if begin.number != asked.number:
                raise Malformed(self.party, "its reply is to another request")
            self._arriving = Incoming.begun(self.party, begin, asked.most)
            if not asked.reply.done():
                self._spool = self.spool_of(begin.length)
            return
        kind, body = unpacked(frame, self.party, self._arriving.wanted)
        if kind == "chunk":
            self._arriving.take(body)
            if self._spool is not None:
                self._spool.add(body)
            return
        self._arriving.finish(body.digest)
        spool, self._spool, self._arriving, self.asked = self._spool, None, None, None
        if spool is not None:
            asked.settle(spool)
        else:
            asked.late()
        self.idle(self)


@dataclass(eq=False)
class PartySlot:
    """The place of one party. It holds at most one request that is not answered, and at most one stream."""

    party: str
    asked: Asked | None = None
    connected: Connected | None = None
    taken: bool = False  # by a stream, also while its welcome is on the way

    def ask(self, asked: Asked) -> None:
        """Has this request answered, on the present stream or on the next one."""
        self.asked = asked
        self._offer()

    def withdraw(self) -> None:
        """Waits no longer for the reply: the party has dropped out of the wave."""
        if self.asked is not None:
            self.asked.settle(None)
            if self.connected is not None and self.connected.asked is self.asked:
                self.connected.drop()
        self.asked = None

    def fail(self, problem: SecuretmError) -> None:
        """Ends the wait with a problem of this end."""
        if self.asked is not None:
            self.asked.fail(problem)
        self.asked = None

    def take(self, connected: Connected) -> None:
        self.connected = connected
        self._offer()

    def leave(self, connected: Connected) -> None:
        """The stream has ended. What was asked waits for the next one."""
        if self.connected is connected:
            self.connected = None
        self.taken = False

    def idle(self, connected: Connected) -> None:
        """A further request may be sent."""
        if self.asked is not None and self.asked.reply.done():
            self.asked = None
        if self.connected is connected:
            self._offer()

    def _offer(self) -> None:
        if self.connected is not None and self.connected.asked is None and self.asked is not None:
            self.connected.send(self.asked)
