"""Frames of the stream between coordinator and party: packed, and read from bytes that nobody trusts.

It knows the order of the frames of one message, and not what the message means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError

from securetm.credentials.hybrid_identity import FORMER_SIGNATURE, SIGNATURE
from securetm.data_classes import dataclass, field
from securetm.errors import Malformed
from securetm.federation.network import network_pb2 as pb
from securetm.federation.refusal_errors import REASONS
from securetm.federation.wire.form import begun, check_form

CHUNK = 1 << 18  # bytes of every chunk of a message but the last
LARGEST_FRAME = CHUNK + 64
LARGEST_HELLO = 8_192  # bytes of a frame before both ends have proved who they are
NONCE, EPOCH, DIGEST = 32, 16, 32
LONGEST_NAME = 100
MOST_VERSIONS = 16
METHOD = "/securetm.federation.Federation/Join"
LIMITS = {  # of grpc, at both ends
    "grpc.max_receive_message_length": LARGEST_FRAME,
    "grpc.max_send_message_length": LARGEST_FRAME,
    "grpc.max_metadata_size": 8_192,
    "grpc.absolute_max_metadata_size": 16_384,
    "grpc.http2.bdp_probe": 0,  # it would let the bytes grow that are read ahead
    "grpc.keepalive_time_ms": 20_000,
    "grpc.keepalive_timeout_ms": 10_000,
    "grpc.http2.max_pings_without_data": 0,
}

_CHUNK = pb.Frame.CHUNK_FIELD_NUMBER
_SIZES = {
    "challenge": {"nonce": NONCE},
    "hello": {"roster": DIGEST, "agreement": DIGEST, "profile": DIGEST, "nonce": NONCE},
    "welcome": {"epoch": EPOCH, "signature": SIGNATURE},
    "end": {"digest": DIGEST},
}


def packed(**body: Any) -> bytes:
    return bytes(pb.Frame(**body).SerializeToString())


def rejected(reason: str) -> bytes:
    """Returns the frame with which the coordinator ends a stream."""
    return packed(rejected=pb.Rejected(name=reason))


def frames_of(number: int, message: bytes | memoryview, digest: bytes | None = None) -> Iterator[bytes]:
    """Yields the frames of one message. Chunks are made when they are wanted, so that a slow receiver costs no memory."""
    yield packed(begin=pb.Begin(number=number, length=len(message)))
    view = memoryview(message)
    for start in range(0, len(message), CHUNK):
        part = view[start : start + CHUNK]
        yield b"".join((begun(_CHUNK, len(part)), part))
    yield packed(end=pb.End(digest=hashlib.sha256(message).digest() if digest is None else digest))


def unpacked(frame: bytes, sender: str, *kinds: str) -> tuple[str, Any]:
    """Returns the kind and the body of a frame that is one of these kinds, or refuses it."""
    if len(frame) > LARGEST_FRAME:
        raise Malformed(sender, "a frame is too long")
    if "chunk" in kinds and (chunk := _chunk_in(frame)):
        return "chunk", chunk
    check_form(pb.Frame, frame, sender, {"chunk": CHUNK} if "chunk" in kinds else {"chunk": 0, "hello": LARGEST_HELLO})
    try:
        parsed = pb.Frame.FromString(frame)
    except DecodeError as problem:
        raise Malformed(sender, "a frame cannot be decoded") from problem
    kind = parsed.WhichOneof("body")
    if kind not in kinds:
        raise Malformed(sender, f"a frame of the kind {kind} is out of order")
    body = getattr(parsed, kind)
    if any(len(getattr(body, name)) != size for name, size in _SIZES.get(kind, {}).items()):
        raise Malformed(sender, f"a field of its {kind} is of the wrong size")
    if kind == "hello":
        _check_hello(body, sender)
    if kind == "rejected" and not (body.name.isidentifier() and len(body.name) <= LONGEST_NAME):
        raise Malformed(sender, "the name of its reason is no name")
    return kind, body


def _chunk_in(frame: bytes) -> memoryview | None:
    """Returns the chunk of a frame that is written as `frames_of` writes it, without a copy. Any other goes the long way."""
    for header in range(2, 5):
        if frame[:header] == begun(_CHUNK, len(frame) - header):
            return memoryview(frame)[header:]
    return None


def _check_hello(hello: pb.Hello, sender: str) -> None:
    if not 1 <= len(hello.versions) <= MOST_VERSIONS or len(set(hello.versions)) != len(hello.versions):
        raise Malformed(sender, "its versions are none, too many or repeated")
    if len(hello.signature) not in (SIGNATURE, FORMER_SIGNATURE):  # a former one is refused by name when it is checked
        raise Malformed(sender, "a field of its hello is of the wrong size")
    if hello.declines not in ("", *REASONS):
        raise Malformed(sender, "its reason not to take part is none that is known")
    if not all(0 < len(name) <= LONGEST_NAME for name in (hello.name, hello.federation)):
        raise Malformed(sender, "a name in its hello is empty or too long")


@dataclass
class Incoming:
    """One message that is arriving. It says what may come next, and keeps no bytes itself."""

    sender: str
    length: int
    _left: int = field(init=False)

    def __post_init__(self) -> None:
        self._left, self._digest = self.length, hashlib.sha256()

    @classmethod
    def begun(cls, sender: str, begin: pb.Begin, most: int) -> Incoming:
        """Begins a message of at most so many bytes."""
        if begin.length > most:
            raise Malformed(sender, f"its message has {begin.length} bytes where at most {most} are read")
        return cls(sender, begin.length)

    @property
    def wanted(self) -> str:
        """The kind of the only frame that may come next."""
        return "chunk" if self._left else "end"

    def take(self, chunk: bytes | memoryview) -> None:
        """Takes the next chunk into account. Its size follows from the length."""
        if len(chunk) != min(CHUNK, self._left):
            raise Malformed(self.sender, "a chunk is of the wrong size")
        self._left -= len(chunk)
        self._digest.update(chunk)

    def finish(self, digest: bytes) -> None:
        """Refuses a message whose bytes are not those that were sent."""
        if digest != self._digest.digest():
            raise Malformed(self.sender, "its digest does not fit its bytes")
