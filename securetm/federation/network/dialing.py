"""The party's end of the network: it dials the coordinator, answers one request at a time, and dials again when a stream ends.

It runs in the thread that calls it, and so does what answers the requests. It reads no message.
"""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import grpc

from securetm.credentials.diagnosis import check_own, now_utc
from securetm.credentials.keys import Keys
from securetm.credentials.roster import FederationRoster
from securetm.data_classes import dataclass, field
from securetm.entropy import OperatingSystem
from securetm.errors import Failed, Malformed, SecuretmError, error_class
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
from securetm.federation.network.frames import CHUNK, LIMITS, METHOD, NONCE, Incoming, frames_of, packed, unpacked
from securetm.federation.network.handshake import CertificateNotAccepted, channel_credentials, diagnosed, is_welcome, make_hello

FINISHED = "Finished"  # the reason that a party is told when the run has ended
AGAIN = frozenset(kind.__name__ for kind in (AlreadyConnected, Closing, TooSlow, WrongFrame))  # the party dials again
_HELLO_SECONDS = 20.0
_UNACCEPTED = 5  # handshakes in a row that the coordinator ends, before the party gives up
_UNACCEPTED_SECONDS = 2.0  # that they must last
_LIMITS: Mapping[str, Any] = {
    **LIMITS,
    "grpc.http2.lookahead_bytes": 4 * CHUNK,
    "grpc.enable_retries": 0,  # a lost stream begins with a hello again
    "grpc.use_local_subchannel_pool": 1,  # every attempt is a connection of its own
}


class CoordinatorEnded(SecuretmError):
    """the coordinator ended the stream: {reason}"""

    reason: str
    hint = "the page of errors says what each reason means"


class StreamLost(SecuretmError):
    """the stream to the coordinator was lost: {why}"""

    why: str
    hint = "the party dials again by itself"


def channel_options(roster: FederationRoster) -> dict[str, Any]:
    """Returns how grpc has to dial the coordinator of this roster."""
    return {**_LIMITS, "grpc.ssl_target_name_override": roster.coordinator.certificate.names[0]}


@dataclass(frozen=True)
class BackOff:
    """How long a party waits before it dials again: drawn between 0 and a bound that doubles, so that not all come at once."""

    first: float = 0.5  # seconds
    most: float = 30.0

    def seconds(self, failures: int) -> float:
        bound = min(self.most, self.first * 2.0 ** min(failures, 30))
        return bound * secrets.randbelow(1 << 20) / (1 << 20)


@dataclass(eq=False)
class Dialer:
    """A party's connection to its coordinator, over all streams of one process."""

    name: str
    keys: Keys
    roster: FederationRoster
    agreed: Agreed
    most_bytes: Callable[[], int]  # of the longest request that the party reads now
    events: NetworkEvents = field(default_factory=NetworkEvents)
    back_off: BackOff = field(default_factory=BackOff)
    # The last request, by epoch, number and digest, and its reply, which is sent again if the request comes again.
    _answered: tuple[tuple[bytes, int, bytes], bytes | memoryview] | None = None
    _failures: int = 0
    _unaccepted: int = 0
    _unaccepted_since: float = 0.0
    _welcomed: bool = False  # by this coordinator, since the process began

    def run(self, handle: Callable[[bytes], bytes | memoryview], stop: threading.Event) -> bool:
        """Answers requests until `stop` is set, or until the coordinator says that the run has ended. Returns whether it has.

        Raises what a further attempt would not cure, by name.
        """
        while not stop.is_set():
            if self._connection(handle, stop):
                return True
            stop.wait(self.back_off.seconds(self._failures))
            self._failures += 1
        return False

    def _connection(self, handle: Callable[[bytes], bytes | memoryview], stop: threading.Event) -> bool:
        """Answers requests on one stream until it ends. Returns whether the run has ended."""
        check_own(self.name, self.keys, self.roster, now_utc())
        conversation, reason = _Conversation(self.name, self.keys, self.roster), "the stream ended"
        try:
            with conversation.open(stop):
                epoch = self._hello(conversation)
                self._welcomed, self._unaccepted = True, 0
                self.events.connected("coordinator")
                try:
                    while True:
                        self._answer(conversation, epoch, handle, stop)
                        self._failures = 0  # not before: a stream that ends at once would be dialed again at once
                finally:
                    self.events.lost("coordinator", reason)
        except CoordinatorEnded as end:
            return self._ended(end.reason)
        except Malformed as wrong:
            self.events.refused("coordinator", str(wrong))
        except StreamLost as lost:
            if not conversation.begun and not stop.is_set():
                self._diagnose(lost)
        return False

    def _diagnose(self, lost: StreamLost) -> None:
        """Raises why no stream came about, if a further attempt would not cure it.

        A coordinator that is just starting, or overloaded, ends handshakes too.
        """
        self.events.refused("coordinator", lost.why)
        problem = diagnosed(self.roster)
        if isinstance(problem, CertificateNotAccepted):
            if not self._is_turned_away(lost.why):
                return
        else:
            self._unaccepted = 0
        if problem is not None:
            raise problem from lost

    def _is_turned_away(self, why: str) -> bool:
        """Whether handshakes ended several times in a row, and for seconds: a quick party may dial often while an end starts.

        Where time ran out, the end is busy. One that does not accept a certificate ends the handshake at once.
        """
        if why.startswith(("CANCELLED", "DEADLINE_EXCEEDED")) or "timed out" in why.lower():  # given up after a wait
            return False
        if not self._unaccepted:
            self._unaccepted_since = time.monotonic()
        self._unaccepted += 1
        lasts = time.monotonic() - self._unaccepted_since >= _UNACCEPTED_SECONDS
        return lasts and self._unaccepted >= _UNACCEPTED and not self._welcomed

    def _ended(self, reason: str) -> bool:
        """Returns whether the run has ended. Raises a rejection that a further attempt would not cure."""
        if reason == FINISHED:
            return True
        self.events.refused("coordinator", reason)
        if reason in AGAIN:
            return False
        kind = error_class(reason)
        if kind is not None and issubclass(kind, Rejection):
            raise kind()
        raise Failed(
            "the coordinator rejected this party: {reason}",
            hint="{what_to_do}",
            reason=reason,
            what_to_do="compare the rosters, the plans and the versions of securetm on both sides",
        )

    def decline(self, reason: str) -> bool:
        """Tells the coordinator, signed, why this party does not take part. Returns whether it heard so."""
        conversation, stop = _Conversation(self.name, self.keys, self.roster), threading.Event()
        try:
            with conversation.open(stop):
                self._hello(conversation, reason)
        except CoordinatorEnded as end:
            return end.reason == Declined.__name__
        except (Malformed, StreamLost):
            return False
        return False

    def _hello(self, conversation: _Conversation, declines: str = "") -> bytes:
        """Proves who this party is, and checks that the coordinator is the roster's. Returns the coordinator's epoch."""
        with conversation.within(_HELLO_SECONDS):
            challenge, nonce = conversation.read("challenge").nonce, OperatingSystem().bytes(NONCE)
            hello = make_hello(self.name, self.keys, self.roster, self.agreed, challenge, nonce, declines)
            conversation.send(iter([packed(hello=hello)]))
            welcome = conversation.read("welcome")
        if not is_welcome(welcome, self.roster, challenge, hello):
            raise Failed(
                "the coordinator at {address} did not prove that it is the one of the roster",
                hint="somebody else may answer there: compare the coordinator's fingerprint by telephone before you go on",
                address=self.roster.address,
            )
        return bytes(welcome.epoch)

    def _answer(
        self, conversation: _Conversation, epoch: bytes, handle: Callable[[bytes], bytes | memoryview], stop: threading.Event
    ) -> None:
        """Reads one request, and sends the reply to it; none once the party leaves, as it may be there before its interval."""
        begin = conversation.read("begin")
        request, digest = conversation.message(begin, self.most_bytes())
        self.events.carried("coordinator", len(request), 0)
        asked, answered = (epoch, begin.number, digest), self._answered
        if answered is None or answered[0] != asked:
            self._answered = answered = None  # the memory of the last reply is free before the next one is made
            self._answered = answered = asked, handle(request)
        if stop.is_set():
            raise StreamLost("this party leaves")
        conversation.send(frames_of(begin.number, answered[1]))
        self.events.carried("coordinator", 0, len(answered[1]))


@dataclass(eq=False)
class _Conversation:
    me: str
    keys: Keys
    roster: FederationRoster
    begun: bool = False  # whether a frame has come, so that TLS is not what went wrong

    @contextmanager
    def open(self, stop: threading.Event) -> Iterator[None]:
        """Opens a connection and the stream on it, until `stop` is set at the latest."""
        self._out: queue.SimpleQueue[Iterator[bytes] | None] = queue.SimpleQueue()
        options = channel_options(self.roster)
        credentials = channel_credentials(self.me, self.keys, self.roster)
        with grpc.secure_channel(self.roster.address, credentials, tuple(options.items())) as channel:
            self._call = channel.stream_stream(METHOD)(chain.from_iterable(iter(self._out.get, None)))
            ended = threading.Event()

            def end_when_stopped() -> None:
                while not ended.is_set():
                    if stop.wait(0.2):
                        self._call.cancel()
                        return

            watcher = threading.Thread(target=end_when_stopped, daemon=True)
            watcher.start()
            try:
                yield
            finally:
                self._out.put(None)
                self._call.cancel()
                ended.set()
                watcher.join()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Ends the stream unless the block is done in time."""
        timer = threading.Timer(seconds, self._call.cancel)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def send(self, frames: Iterator[bytes]) -> None:
        """Sends these frames. They are made as the network takes them."""
        self._out.put(frames)

    def read(self, *kinds: str) -> Any:
        """Waits for the next frame, which must be of one of these kinds."""
        try:
            frame = next(self._call)
        except StopIteration:
            raise StreamLost("the coordinator ended it") from None
        except grpc.RpcError as problem:
            raise StreamLost(f"{problem.code().name}: {problem.details()}") from None
        self.begun = True
        kind, body = unpacked(frame, "the coordinator", "rejected", *kinds)
        if kind == "rejected":
            raise CoordinatorEnded(body.name)
        return body

    def message(self, begin: Any, most: int) -> tuple[bytes, bytes]:
        incoming, parts = Incoming.begun("the coordinator", begin, most), []
        while incoming.wanted == "chunk":
            parts.append(self.read("chunk"))
            incoming.take(parts[-1])
        digest = self.read("end").digest
        incoming.finish(digest)
        return b"".join(parts), digest
