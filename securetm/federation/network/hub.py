"""The coordinator's end of the network: a grpc server in a thread of its own, where the parties of the roster connect.

It decides who may connect, and carries whole messages. The coordinator itself stays in its own thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from securetm.credentials.certificates import CertificateRefused
from securetm.credentials.keys import Keys
from securetm.credentials.roster import FederationRoster
from securetm.data_classes import dataclass, field
from securetm.entropy import OperatingSystem
from securetm.errors import Failed, Malformed, Mistake, SecuretmError
from securetm.federation import health as probe
from securetm.federation.network import network_pb2 as pb
from securetm.federation.network.connections import Asked, Connected, PartySlot, Spool
from securetm.federation.network.door import Door
from securetm.federation.network.events import (
    Agreed,
    AlreadyConnected,
    Closing,
    Declined,
    NetworkEvents,
    Rejection,
    TooSlow,
    WrongFrame,
)
from securetm.federation.network.frames import EPOCH, LIMITS, NONCE, packed, rejected, unpacked
from securetm.federation.network.handshake import admitted, check_hello, make_welcome, server_credentials
from securetm.private_files import private_folder

FINISHED = "Finished"  # the reason that a party is told when the run has ended
_HELLO_SECONDS = 10.0
SERVICE = "securetm.federation.Federation"
_LIMITS: Mapping[str, int] = {
    **LIMITS,
    "grpc.max_concurrent_streams": 4,  # of one connection
    "grpc.server_handshake_timeout_ms": 10_000,
    "grpc.http2.lookahead_bytes": 1 << 18,  # read ahead of what the hub has taken
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.http2.min_ping_interval_without_data_ms": 10_000,  # by default it ends the stream of a party that waits
    "grpc.so_reuseport": 0,  # a second coordinator at the same port is a mistake
}


@dataclass(eq=False)
class Hub:
    """The server of one coordinator process. `start` it, ask through `parties`, and `close` it."""

    keys: Keys
    roster: FederationRoster
    agreed: Agreed
    spool: Path  # the folder of replies that are not whole yet
    listen: str = "0.0.0.0:0"
    events: NetworkEvents = field(default_factory=NetworkEvents)
    authorities: tuple[bytes, ...] = ()  # that issued the certificates: with them an old certificate is refused by name
    memory: int = 64 << 20  # bytes of such replies that are not on disk
    pulse: Path | None = None  # the folder in which a stamp says that the loop moves; none: nobody on this machine asks

    def __post_init__(self) -> None:
        private_folder(self.spool)
        self._spool_of = partial(Spool, self.spool, share=self.memory // max(1, len(self.roster.members)))
        self._epoch = OperatingSystem().bytes(EPOCH)
        self._slots = {name: PartySlot(name) for name in self.roster.members}
        self._door = Door(len(self.roster.members))
        self._loop = asyncio.new_event_loop()
        self._changed = threading.Condition()
        self._number, self._closing = 0, ""
        self._thread = threading.Thread(target=self._loop.run_forever, name="securetm network", daemon=True)

    # ---- called by the coordinator's thread ----

    def start(self) -> int:
        logging.getLogger("grpc").setLevel(logging.CRITICAL)  # whoever breaks off a stream would fill the log
        self._thread.start()
        return int(self._run(self._start()))

    def parties(self, deadline: float) -> NetworkParties:
        """Returns the parties as the coordinator asks them, with so many seconds for every wave of messages."""
        return NetworkParties(self, deadline)

    def present(self) -> frozenset[str]:
        return frozenset(name for name, slot in self._slots.items() if slot.connected is not None)

    def wait_for(self, names: Collection[str], timeout: float) -> frozenset[str]:
        """Waits until all of these are connected, at most so many seconds. Returns those who are."""
        wanted = frozenset(names)
        with self._changed:
            self._changed.wait_for(lambda: wanted <= self.present() or bool(self._closing), timeout)
        return wanted & self.present()

    def begin(self, requests: Mapping[str, bytes], most: int, late: Callable[[str], None] = lambda _: None) -> dict[str, Asked]:
        """Begins to send every party its request. Replies may have so many bytes at most; `late` hears whose came too late."""
        digests = {id(request): hashlib.sha256(request).digest() for request in {id(r): r for r in requests.values()}.values()}
        self._number += 1
        wave = {
            name: Asked(self._number, request, digests[id(request)], most, Future[Any](), partial(late, name))
            for name, request in requests.items()
        }
        self._soon(self._ask, dict(wave))
        return wave

    def withdraw(self, wave: Mapping[str, Asked]) -> None:
        """Waits no longer for the replies of that wave. Those that are there already are not touched."""
        self._soon(self._withdraw, dict(wave))

    def close(self, finished: bool = False) -> None:
        """Ends all streams and the server. Parties are told whether the run has ended or the coordinator will be back."""
        if not self._thread.is_alive():
            return
        self._run(self._close(FINISHED if finished else Closing.__name__))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _soon(self, call: Any, *arguments: Any) -> None:
        if self._closing:
            raise _closed()
        self._loop.call_soon_threadsafe(call, *arguments)

    # ---- runs in the loop ----

    async def _start(self) -> Any:
        most = self._door.most
        options = {**_LIMITS, "grpc.max_allowed_incoming_connections": most}
        self._server = grpc.aio.server(options=tuple(options.items()), maximum_concurrent_rpcs=most)
        handler = grpc.stream_stream_rpc_method_handler(self._join)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Join": handler}),))
        behind = self._server.add_secure_port("127.0.0.1:0", server_credentials(self.keys, self.roster, self.authorities))
        await self._server.start()
        self._pulse = asyncio.ensure_future(self._renew_stamps())
        try:
            return await self._door.listen(self.listen, behind)
        except OSError as problem:
            raise Mistake(
                "this machine does not let the coordinator listen at {address}",
                hint=(
                    "another process uses the port, or the address is not this machine's: choose another `listen` in "
                    "[coordinator]"
                ),
                address=self.listen,
            ) from problem

    async def _renew_stamps(self) -> None:
        while self.pulse is not None:
            probe.renew_stamp(self.pulse)
            await asyncio.sleep(probe.EVERY)

    async def _close(self, reason: str) -> None:
        self._closing = reason
        self._pulse.cancel()
        if self.pulse is not None:
            probe.remove_stamp(self.pulse)
        for slot in self._slots.values():
            slot.fail(_closed())
            if slot.connected is not None:
                slot.connected.stop()
                with contextlib.suppress(asyncio.TimeoutError, grpc.RpcError, grpc.aio.UsageError, grpc.aio.InternalError):
                    await asyncio.wait_for(slot.connected.stream.write(rejected(reason)), 1)
        await self._server.stop(grace=1)
        self._door.close()
        self._notify()
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others, timeout=1)

    def _ask(self, wave: Mapping[str, Asked]) -> None:
        for name, asked in wave.items():
            self._slots[name].ask(asked)

    def _withdraw(self, wave: Mapping[str, Asked]) -> None:
        for name, asked in wave.items():
            if self._slots[name].asked is asked:
                self._slots[name].withdraw()
            asked.abandon()

    async def _join(self, _: Any, stream: grpc.aio.ServicerContext) -> None:
        """Handles one stream from its first frame to its last."""
        claimed = ""
        try:
            if not self._door.came_through(stream.peer()):  # somebody on this machine went past the door
                raise WrongFrame()
            async with asyncio.timeout(_HELLO_SECONDS):
                challenge = OperatingSystem().bytes(NONCE)
                await stream.write(packed(challenge=pb.Challenge(nonce=challenge)))
                _, hello = unpacked(await stream.read(), "a party", "hello")
                claimed = hello.name
                admitted(hello, self.roster, stream.auth_context())
                version = check_hello(hello, self.roster, self.agreed, challenge)
                welcome = make_welcome(self.keys, self.roster, challenge, hello, version, self._epoch)
            await self._serve(claimed, stream, welcome)
        except TimeoutError:
            await self._reject(claimed, stream, TooSlow())
        except Malformed:
            await self._reject(claimed, stream, WrongFrame())
        except (Rejection, CertificateRefused) as refusal:
            await self._reject(claimed, stream, refusal)
        except Exception as problem:  # noqa: BLE001 - of grpc, where a stream ends while it is read or written
            self.events.refused(claimed, type(problem).__name__)

    async def _serve(self, party: str, stream: grpc.aio.ServicerContext, welcome: Any) -> None:
        slot = self._slots[party]
        if self._closing:
            raise Closing()
        if slot.taken:
            raise AlreadyConnected()
        connected = Connected(party, stream, self._spool_of, slot.idle)
        slot.taken, reason = True, "the stream ended"  # before anything is awaited, so that no other stream takes it
        self._door.keep(stream.peer())
        try:
            await stream.write(packed(welcome=welcome))
            slot.take(connected)
            self.events.connected(party)  # whoever hears of it finds the party present
            self._notify()
            await connected.serve()
        except Malformed as wrong:
            reason = str(wrong)
            slot.withdraw()
            raise
        except SecuretmError as problem:  # of this end: a full disk
            reason = str(problem)
            slot.fail(problem)
        finally:
            slot.leave(connected)
            self._door.release(stream.peer())
            self.events.lost(party, reason)
            self._notify()

    async def _reject(self, claimed: str, stream: grpc.aio.ServicerContext, refusal: SecuretmError) -> None:
        name = type(refusal).__name__
        self.events.refused(claimed, refusal.reason if isinstance(refusal, Declined) else name)
        with contextlib.suppress(grpc.RpcError, grpc.aio.UsageError, grpc.aio.InternalError, asyncio.TimeoutError):
            await asyncio.wait_for(stream.write(rejected(name)), 1)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


def _closed() -> Failed:
    hint = "start the coordinator again: the run goes on from its last checkpoint"
    return Failed("the network was closed while messages were under way", hint)


@dataclass(frozen=True)
class NetworkParties:
    """All parties of a hub. A party that is not connected is waited for until the wave's deadline."""

    hub: Hub
    deadline: float  # seconds, for a request and its reply
    arrivals: dict[str, float] = field(default_factory=dict)  # seconds after its request, of each reply of the last wave
    late: dict[str, list[float]] = field(default_factory=dict)  # the same of replies that came when nobody waited any more

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes | memoryview]]:
        """Sends the requests, and yields the replies that came in time, in the order of the roster."""
        begun = time.monotonic()
        self.arrivals.clear()

        def note(name: str, _: Future[Any]) -> None:
            self.arrivals[name] = time.monotonic() - begun

        def came_late(name: str) -> None:
            self.late.setdefault(name, []).append(time.monotonic() - begun)

        wave = self.hub.begin(requests, most, came_late)

        for name, asked in wave.items():
            asked.reply.add_done_callback(partial(note, name))
        try:
            for name in (name for name in self.hub.roster.members if name in requests):
                try:
                    spool = wave[name].reply.result(max(0.0, begun + self.deadline - time.monotonic()))
                except TooLate:
                    continue
                if spool is not None:
                    del wave[name]
                    yield name, spool.take()
        finally:
            self.hub.withdraw(wave)

    def present(self) -> frozenset[str]:
        return self.hub.present()

    def close(self) -> None:
        """Does nothing: the hub outlives the sessions, and whoever opened it closes it."""
