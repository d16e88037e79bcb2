"""Servers that a party takes for its coordinator, and that send it anything at all. Each serves until the party has come."""

from __future__ import annotations

import random
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import grpc

from securetm.federation.network import network_pb2 as pb
from securetm.federation.network.frames import CHUNK, frames_of, packed, rejected, unpacked
from securetm.federation.network.handshake import make_welcome, server_credentials

from .at_work import LARGEST
from .meeting import PATIENCE, Meeting

_SERVICE = "securetm.federation.Federation"


def lies(meeting: Meeting, rng: random.Random) -> Iterator[Callable[[], None]]:
    """All lies, one after the other."""
    for content in (b"", rng.randbytes(5_000), b"HTTP/1.1 200 OK\r\n\r\n", bytes(9) * 1_000):
        yield lambda content=content: _raw(meeting, content)
    for frames in _before_the_welcome(rng):
        yield lambda frames=frames: _over_grpc(meeting, lambda *_: iter(frames))
    for frames in _requests(rng):
        yield lambda frames=frames: _over_grpc(meeting, lambda hello, nonce: iter([_welcome(meeting, hello, nonce), *frames]))


def _before_the_welcome(rng: random.Random) -> list[list[bytes]]:
    return [
        [rng.randbytes(rng.randint(1, 3_000))],
        [bytes(1 << 20)],
        [packed(begin=pb.Begin(number=1, length=10))],
        [rejected("Closing")],
        [packed(rejected=pb.Rejected(name="no name; at all"))],
        [],
    ]


def _requests(rng: random.Random) -> list[list[bytes]]:
    whole = list(frames_of(1, rng.randbytes(CHUNK + 99)))
    return [
        [packed(begin=pb.Begin(number=1, length=1 << 62))],
        [packed(begin=pb.Begin(number=1, length=LARGEST + 1))],
        [packed(chunk=bytes(9))],
        [whole[0], whole[2], whole[1]],
        [whole[0], whole[1][:-1]],
        [whole[0], whole[0]],
        [*whole[:-1], packed(end=pb.End(digest=bytes(32)))],
        [b""] * 1_000,
        [bytes(4 << 20)],
        [*whole, rng.randbytes(200)],
        [*(frame for number in range(2, 30) for frame in frames_of(number, bytes(9)))],
    ]


def _welcome(meeting: Meeting, hello: bytes, nonce: bytes) -> bytes:
    _, body = unpacked(hello, "a party", "hello")
    return packed(welcome=make_welcome(meeting.keys["coordinator"], meeting.roster, nonce, body, body.versions[-1], bytes(16)))


def _over_grpc(meeting: Meeting, answer: Callable[[bytes, bytes], Iterator[bytes]]) -> None:
    """Serves one stream with the coordinator's own keys."""
    came = threading.Event()

    def join(requests: Iterator[bytes], _: Any) -> Iterator[bytes]:
        nonce = bytes(32)
        yield packed(challenge=pb.Challenge(nonce=nonce))
        with suppress(Exception):
            hello = next(requests)
            came.set()
            yield from answer(hello, nonce)

    server = grpc.server(ThreadPoolExecutor(4), options=(("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)))
    handler = grpc.stream_stream_rpc_method_handler(join)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {"Join": handler}),))
    server.add_secure_port(meeting.roster.address, server_credentials(meeting.keys["coordinator"], meeting.roster, ()))
    server.start()
    assert came.wait(PATIENCE)
    server.stop(0.2).wait(PATIENCE)


def _raw(meeting: Meeting, content: bytes) -> None:
    """Serves one connection with TLS, and no HTTP/2 in it."""
    folder = meeting.keys["coordinator"].folder
    certificate = folder / "shown.pem"
    certificate.write_bytes(meeting.roster.coordinator.certificate.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, folder / "tls.pem")
    context.set_alpn_protocols(["h2"])
    host, _, port = meeting.roster.address.rpartition(":")
    with socket.create_server((host, int(port))) as server:
        server.settimeout(PATIENCE)
        came, _ = server.accept()
        came.settimeout(1)
        with suppress(OSError), came, context.wrap_socket(came, server_side=True) as secured:
            secured.sendall(content)
            secured.recv(1 << 16)
