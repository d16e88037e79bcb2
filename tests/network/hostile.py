"""What a hostile end sends: frames out of order, changed, cut and too long over grpc, and anything at all over TLS and TCP.

An insider holds the keys of a member. A stranger holds none. Whatever the other end answers is fine.
"""

from __future__ import annotations

import queue
import random
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import grpc

from securetm.errors import Malformed
from securetm.federation.network import network_pb2 as pb
from securetm.federation.network.dialing import channel_options
from securetm.federation.network.frames import CHUNK, METHOD, frames_of, packed, unpacked
from securetm.federation.network.handshake import channel_credentials, make_hello

from .at_work import LARGEST, answered
from .meeting import AGREED, Meeting

SECONDS = 3.0  # for one attempt
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@dataclass
class Insider:
    """A member of the federation that sends what it likes."""

    meeting: Meeting
    name: str
    rng: random.Random

    def attempts(self) -> dict[str, Callable[[], None]]:
        """All of them, by name."""
        return {
            "garbage before the hello": lambda: self.before(self.garbage(1, 300_000)),
            "a frame that is too long": lambda: self.before(self.garbage(1 << 20, 4 << 20)),
            "a changed hello": lambda: self.before(None, self.changed),
            "a hello cut off": lambda: self.before(None, lambda frame: frame[: self.rng.randrange(len(frame))]),
            "a hello twice": lambda: self.after(lambda number: [packed(hello=pb.Hello(name=self.name))]),
            "silence before the hello": lambda: self.before(b""),
            "long headers": lambda: self.before(b"", metadata=(("x", "y" * 60_000),)),
            "another method": lambda: self.before(b"\x00" * 5, method="/securetm.federation.Federation/Leave"),
            "a hundred streams": self.many_streams,
            "a chunk without a beginning": lambda: self.after(lambda number: [packed(chunk=bytes(100))]),
            "a reply to another request": lambda: self.after(lambda number: frames_of(number + 1, b"x" * 100)),
            "a reply without end": lambda: self.after(lambda number: [self.begin(number, 1 << 62)]),
            "a reply that is too long": lambda: self.after(lambda number: [self.begin(number, LARGEST + 1)]),
            "a chunk that is too short": lambda: self.after(lambda n: [self.begin(n, 10_000), packed(chunk=bytes(9_999))]),
            "a chunk that is too long": lambda: self.after(lambda n: [self.begin(n, 10_000), packed(chunk=bytes(10_001))]),
            "an early end": lambda: self.after(lambda n: [self.begin(n, 10_000), packed(end=pb.End(digest=bytes(32)))]),
            "a wrong digest": lambda: self.after(lambda n: frames_of(n, bytes(CHUNK + 1), bytes(32))),
            "two beginnings": lambda: self.after(lambda n: [self.begin(n, 10), self.begin(n, 10)]),
            "empty frames": lambda: self.after(lambda n: [b""] * 1_000),
            "empty chunks": lambda: self.after(lambda n: [self.begin(n, 10), *([packed(chunk=b"")] * 1_000)]),
            "a reply that stops": lambda: self.after(lambda n: [self.begin(n, LARGEST), packed(chunk=bytes(CHUNK))]),
            "a changed reply": lambda: self.after(self.changed_reply),
            "a right reply, and garbage": lambda: self.after(
                lambda n: [*frames_of(n, answered(b"x")), *[self.garbage(1, 900)]]
            ),
        }

    def garbage(self, least: int, most: int) -> bytes:
        """Random bytes."""
        return self.rng.randbytes(self.rng.randint(least, most))

    def changed(self, frame: bytes) -> bytes:
        """A frame with some bytes changed, put in or taken out."""
        content = bytearray(frame)
        for _ in range(self.rng.randint(1, 8)):
            at = self.rng.randrange(len(content) + 1)
            content[at : at + self.rng.randrange(3)] = self.rng.randbytes(self.rng.randrange(4))
        return bytes(content)

    def changed_reply(self, number: int) -> list[bytes]:
        """A reply of which one frame is changed."""
        frames = list(frames_of(number, self.rng.randbytes(2 * CHUNK + 5)))
        at = self.rng.randrange(len(frames))
        return [*frames[:at], self.changed(frames[at][:200]), *frames[at + 1 :]]

    @staticmethod
    def begin(number: int, length: int) -> bytes:
        return packed(begin=pb.Begin(number=number, length=length))

    def before(
        self,
        frame: bytes | None,
        change: Callable[[bytes], bytes] | None = None,
        method: str = METHOD,
        metadata: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Sends one frame in place of the hello, or a changed hello."""
        with self.stream(method, metadata) as (call, out):
            challenge = next(call)
            if frame is None:
                assert change is not None
                frame = change(self.hello(challenge))
            out.put(frame)
            next(call)

    def after(self, frames: Callable[[int], Iterator[bytes] | list[bytes]]) -> None:
        """Says a proper hello, and sends these frames once something is asked."""
        with self.stream() as (call, out):
            out.put(self.hello(next(call)))
            if unpacked(next(call), "the coordinator", "welcome", "rejected")[0] == "rejected":
                return  # the place is taken by the last attempt, which the hub has not noticed yet
            number = unpacked(next(call), "the coordinator", "begin")[1].number
            for frame in frames(number):
                out.put(frame)
            for _ in call:
                pass

    def hello(self, challenge: bytes) -> bytes:
        """A proper hello to this challenge."""
        nonce = unpacked(challenge, "the coordinator", "challenge")[1].nonce
        keys = self.meeting.keys[self.name]
        return packed(hello=make_hello(self.name, keys, self.meeting.roster, AGREED, nonce, self.rng.randbytes(32)))

    def many_streams(self) -> None:
        """Opens a hundred streams on one connection, and says nothing on any."""
        with self.channel() as channel:
            calls = [channel.stream_stream(METHOD)(iter([]), timeout=SECONDS) for _ in range(100)]
            for call in calls:
                with suppress(grpc.RpcError, StopIteration):
                    next(call)

    def channel(self) -> grpc.Channel:
        credentials = channel_credentials(self.name, self.meeting.keys[self.name], self.meeting.roster)
        options = {
            **channel_options(self.meeting.roster),
            "grpc.max_send_message_length": -1,
            "grpc.max_metadata_size": 1 << 20,
        }
        return grpc.secure_channel(self.meeting.roster.address, credentials, tuple(options.items()))

    @contextmanager
    def stream(self, method: str = METHOD, metadata: tuple[tuple[str, str], ...] = ()) -> Iterator[tuple[Any, Any]]:
        """One stream: what comes in, and a queue for what goes out. Whatever the other end does is fine."""
        out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        with self.channel() as channel:
            call = channel.stream_stream(method)(iter(out.get, None), timeout=SECONDS, metadata=metadata)
            try:
                with suppress(grpc.RpcError, StopIteration, Malformed):
                    yield call, out
            finally:
                out.put(None)
                call.cancel()


@dataclass
class Stranger:
    """Somebody on the network, who may hold the TLS key of a member."""

    meeting: Meeting
    rng: random.Random
    held: list[socket.socket] = field(default_factory=list)

    def attempts(self) -> dict[str, Callable[[], None]]:
        """All of them, by name."""
        return {
            "a connection that says nothing": lambda: self.hold(b""),
            "a part of a handshake": lambda: self.hold(
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + self.rng.randbytes(40)
            ),
            "garbage in place of a handshake": lambda: self.plain(self.rng.randbytes(self.rng.randint(1, 100_000))),
            "a web browser": lambda: self.plain(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"),
            "TLS without a certificate": lambda: self.secured(b"", ""),
            "garbage in place of HTTP/2": lambda: self.secured(self.rng.randbytes(self.rng.randint(1, 100_000))),
            "frames of HTTP/2 at random": lambda: self.secured(PREFACE + b"".join(self.http2() for _ in range(200))),
            "settings without end": lambda: self.secured(PREFACE + self.frame(4, 0, 0, bytes(6)) * 20_000),
            "pings without end": lambda: self.secured(
                PREFACE + self.frame(4, 0, 0, b"") + self.frame(6, 0, 0, bytes(8)) * 20_000
            ),
            "headers without end": lambda: self.secured(
                PREFACE
                + self.frame(4, 0, 0, b"")
                + self.frame(1, 0, 1, bytes(900))
                + self.frame(9, 0, 1, self.rng.randbytes(16_000)) * 60
            ),
            "streams opened and reset": lambda: self.secured(
                PREFACE + self.frame(4, 0, 0, b"") + b"".join(self.opened_and_reset(number) for number in range(1, 4_001, 2))
            ),
        }

    def connect(self) -> socket.socket:
        host, _, port = self.meeting.roster.address.rpartition(":")
        return socket.create_connection((host, int(port)), SECONDS)

    def hold(self, first: bytes) -> None:
        """Keeps the connection open, as far as it is let; `release` ends it."""
        with suppress(OSError):
            held = self.connect()
            self.held.append(held)
            held.sendall(first)

    def release(self) -> None:
        for held in self.held:
            held.close()
        self.held.clear()

    def plain(self, content: bytes) -> None:
        with suppress(OSError), self.connect() as connection:
            connection.sendall(content)
            _drain(connection)

    def secured(self, content: bytes, name: str = "north") -> None:
        """Speaks TLS with a member's certificate, and anything at all inside."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        if name:
            folder = self.meeting.keys[name].folder
            certificate = folder / "shown.pem"
            certificate.write_bytes(self.meeting.roster.member(name).certificate.pem)
            context.load_cert_chain(certificate, folder / "tls.pem")
        with suppress(OSError), self.connect() as plain, context.wrap_socket(plain) as connection:
            connection.sendall(content)
            _drain(connection)

    def http2(self) -> bytes:
        """A frame of any kind, flags and stream, whose length may be a lie."""
        content = self.rng.randbytes(self.rng.randrange(200))
        frame = self.frame(self.rng.randrange(12), self.rng.randrange(256), self.rng.randrange(9), content)
        return frame if self.rng.random() < 0.9 else self.rng.randbytes(3) + frame[3:]

    @staticmethod
    def frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
        return len(content).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + content

    def opened_and_reset(self, number: int) -> bytes:
        """A stream that is opened and at once reset, which costs the other end more than this one."""
        headers = b"\x83\x87\x04\x2b" + METHOD.encode()[:43].ljust(43, b"x") + b"\x01\x01x"
        return self.frame(1, 4, number, headers) + self.frame(3, 0, number, bytes(4))


def _drain(connection: socket.socket) -> None:
    """Reads what comes, so that the other end is not stopped by this one, until it ends the connection or says nothing more."""
    connection.settimeout(0.2)
    with suppress(OSError):
        while connection.recv(1 << 16):
            pass
