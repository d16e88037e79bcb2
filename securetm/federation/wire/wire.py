"""Packs messages into bytes and unpacks them. It checks shapes; the roles decide what a message means.

Incoming bytes are untrusted: sizes are bounded, types are from a short list, and everything else is `Malformed`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, get_args

import numpy as np
from google.protobuf.message import DecodeError

from securetm.contracts import Array, Message, State
from securetm.data_classes import dataclass, fields
from securetm.errors import Malformed
from securetm.federation.wire import wire_pb2 as pb
from securetm.federation.wire.form import ACCEPT, MOST_DIMENSIONS, MOST_MEMBERS, PARCELS, Span, begun, check_form, fields_in
from securetm.sessions.framing import LONG, enclosed

VERSION = 1
MOST_BYTES = 1 << 31  # protobuf's own limit
LONGEST_SESSION = 64
LONGEST_SIGNED = 256  # bytes of a ledger's head or of what is signed of it
LINK = 32  # bytes: the digest of one entry
MOST_LINKS = 1024  # from one head of a ledger to a later one; more of them need several messages
MOST_LINKED = 1 << 20  # bytes of all links in one message
MOST_COUNTED = 1 << 63  # what a store can write down
DTYPES = ("<f4", "<f8", "<i4", "<i8", "<u8", "|u1")


@dataclass(frozen=True)
class Invite:
    """Opens a session, or resumes the training after a round that both sides kept."""

    agreement: bytes
    profile: bytes
    members: tuple[str, ...]
    resume_from: int = 0


@dataclass(frozen=True)
class Adopt:
    """The vocabulary that all parties use from now on, one word a line, or the candidates for it."""

    words: bytes
    candidates: bool = False  # these are only counted, and the vocabulary will be some of them


@dataclass(frozen=True)
class Ask:
    """One question to the documents."""

    question: str
    number: int
    serial: int
    members: tuple[str, ...]
    round_id: bytes
    state: State
    keep: bool = False
    after: tuple[int, ...] = ()  # by member, the last answer that is in a sum, where some may not be; the party goes on from it
    witnesses: tuple[bytes, ...] = ()  # what other parties signed of this party's ledger
    least_parties: int = 0  # in the sum, beyond what the profile demands
    least_documents: int = 0


@dataclass(frozen=True)
class Witness:
    """The heads of the other parties' ledgers, each signed by its owner, and the links that lead there."""

    heads: tuple[bytes, ...]
    links: tuple[bytes, ...] = ()  # as many as heads, or none: digests of the entries after the last that the party saw


@dataclass(frozen=True)
class Links:
    """What others signed of this party's ledger. The party must show how the present head follows from it."""

    statements: tuple[bytes, ...]


@dataclass(frozen=True)
class Prepare:
    """The aggregation's set-up, before the first round and whenever what it prepared is used up."""

    exchange: bytes
    number: int
    rounds: int


@dataclass(frozen=True)
class Share:
    """An exchange of the parties among themselves, which the coordinator carries and cannot read."""

    exchange: bytes
    purpose: str
    state: State


@dataclass(frozen=True)
class Forward:
    """A further message of an exchange."""

    round_id: bytes
    parcel: bytes


@dataclass(frozen=True)
class Finish:
    """The training has ended. The state is that of the shared model, empty where the parties hold it themselves."""

    state: State
    rounds: int


@dataclass(frozen=True)
class Accepted:
    """A party's answer, or its consent without one."""

    parcels: tuple[Message, ...] = ()
    head: bytes = b""  # of the party's ledger, signed, where a budget is spent
    least_parties: int = 0  # that the party demands of every sum with its documents: said to an invitation
    least_documents: int = 0


@dataclass(frozen=True)
class Refusal:
    """A party's refusal: a name without details."""

    name: str


M = TypeVar("M", pb.Request, pb.Reply)
Body = Invite | Adopt | Ask | Prepare | Forward | Witness | Links | Finish | Share
BODIES: Mapping[str, type[Body]] = {kind.__name__.lower(): kind for kind in get_args(Body)}  # protobuf has the same fields
Outcome = Accepted | Refusal


def pack_request(session: bytes, body: Body) -> bytes:
    """Packs one request from the coordinator to one party. It is filled in place: a copy of a state is megabytes."""
    request = pb.Request(version=VERSION, session=session)
    packed = getattr(request, type(body).__name__.lower())
    packed.SetInParent()  # a body without content is a body too
    for name, value in vars(body).items():
        if name == "state":
            for called, array in value.items():  # a bare number stays without dimensions
                little = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
                kind = str(np.lib.format.dtype_to_descr(little.dtype))
                packed.state.add(name=called, dtype=kind, shape=little.shape, data=little.tobytes())
        elif isinstance(value, tuple):
            getattr(packed, name).extend(value)
        else:
            setattr(packed, name, value)
    return bytes(request.SerializeToString())


def body_of(message: bytes) -> str:
    """Returns which body a request has, however long it is; empty if it has none. Nothing of it is parsed."""
    return next((name for name in fields_in(pb.Request, message, "the coordinator") if name in BODIES), "")


def unpack_request(message: bytes, limits: Mapping[str, int] | None = None) -> tuple[bytes, Body]:
    """Returns the session and the body of a request. A party runs it on bytes that it does not trust.

    The `limits` are the most bytes of each kind of body.
    """
    request = _parsed(pb.Request, message, "the coordinator", limits or {})
    name = request.WhichOneof("body")
    if name is None:
        raise Malformed("the coordinator", "it asks for nothing")
    packed = getattr(request, name)
    values = {field.name: getattr(packed, field.name) for field in fields(BODIES[name])}
    body = BODIES[name](**{field: _checked(field, value) for field, value in values.items()})
    if max([value for value in vars(body).values() if isinstance(value, int)], default=0) >= MOST_COUNTED:
        raise Malformed("the coordinator", "a number is too large")
    if isinstance(body, Ask) and (len(body.after) not in (0, len(body.members)) or max(body.after, default=0) >= MOST_COUNTED):
        raise Malformed("the coordinator", "the rounds to go on from are not one for each party")
    if isinstance(body, Witness) and len(body.links) not in (0, len(body.heads)):
        raise Malformed("the coordinator", _LINKS)
    return request.session, body


def pack_reply(session: bytes, outcome: Outcome) -> Message:
    """Packs one party's reply. A long parcel is not copied where its buffer has room around it."""
    reply = pb.Reply(version=VERSION, session=session)
    if isinstance(outcome, Accepted) and len(outcome.parcels) == 1 and len(outcome.parcels[0]) >= LONG:
        behind = pb.Accept(head=outcome.head).SerializeToString()
        parcel = begun(pb.Accept.PARCELS_FIELD_NUMBER, len(outcome.parcels[0]))
        accept = begun(pb.Reply.ACCEPT_FIELD_NUMBER, len(parcel) + len(outcome.parcels[0]) + len(behind))
        return enclosed(reply.SerializeToString() + accept + parcel, outcome.parcels[0], behind)
    if isinstance(outcome, Refusal):
        reply.refusal.name = outcome.name
    else:
        reply.accept.SetInParent()  # an empty answer is an answer too
        reply.accept.parcels.extend(map(bytes, outcome.parcels))
        reply.accept.head = outcome.head
        reply.accept.least_parties, reply.accept.least_documents = outcome.least_parties, outcome.least_documents
    return bytes(reply.SerializeToString())


def unpack_reply(message: Message, sender: str, most: int = MOST_BYTES) -> tuple[bytes, Outcome]:
    """Returns the session and the outcome of a reply of at most so many bytes. The coordinator does not trust the bytes.

    Of a long reply the parcels are not copied.
    """
    if len(message) >= LONG:
        return _unpacked_in_place(memoryview(message), sender, most)
    reply = _parsed(pb.Reply, bytes(message), sender, {"accept": most})
    kind = reply.WhichOneof("body")
    if kind == "accept" and len(reply.accept.head) <= LONGEST_SIGNED:
        return reply.session, _accepted(reply.accept, tuple(reply.accept.parcels), sender)
    if kind == "refusal" and reply.refusal.name.isidentifier() and len(reply.refusal.name) <= 64:
        return reply.session, Refusal(reply.refusal.name)
    raise Malformed(sender, _NEITHER)


def _unpacked_in_place(message: memoryview, sender: str, most: int) -> tuple[bytes, Outcome]:
    """Reads a reply whose parcels stay where they are: protobuf reads what is left without them."""
    if len(message) >= MOST_BYTES:
        raise Malformed(sender, "it is too long")
    spans = check_form(pb.Reply, message, sender, {"accept": most}, (ACCEPT, PARCELS))
    accepted, parcels = spans.get(ACCEPT, []), spans.get(PARCELS, [])
    reply = _decoded(pb.Reply, _without(message, 0, len(message), accepted), sender)
    if not accepted:
        raise Malformed(sender, _NEITHER)
    accept = pb.Accept.FromString(_without(message, accepted[0].content, accepted[0].end, parcels))
    if len(accept.head) > LONGEST_SIGNED:
        raise Malformed(sender, _NEITHER)
    return reply.session, _accepted(accept, tuple(message[one.content : one.end] for one in parcels), sender)


def _accepted(accept: pb.Accept, parcels: tuple[Message, ...], sender: str) -> Accepted:
    if max(accept.least_parties, accept.least_documents) >= MOST_COUNTED:
        raise Malformed(sender, "a number is too large")
    return Accepted(parcels, accept.head, accept.least_parties, accept.least_documents)


def _without(message: memoryview, start: int, end: int, cut: Sequence[Span]) -> bytes:
    """Returns the bytes from start to end, but for those of these fields."""
    starts, ends = [start, *(one.end for one in cut)], [*(one.key for one in cut), end]
    return b"".join(message[first:last] for first, last in zip(starts, ends, strict=True))


def _state(arrays: Sequence[pb.Array]) -> State:
    state = {array.name: _array(array) for array in arrays}
    if len(state) != len(arrays):
        raise Malformed("the coordinator", "an array occurs twice in the state")
    return state


def _array(packed: pb.Array) -> Array:
    if packed.dtype not in DTYPES:
        raise Malformed("the coordinator", "an array is of an unknown type")
    if len(packed.shape) > MOST_DIMENSIONS:  # packed, more of them have room
        raise Malformed("the coordinator", "an array has too many dimensions")
    kind, shape = np.dtype(packed.dtype), tuple(packed.shape)
    beside_zero = math.prod(length or 1 for length in shape)  # an array without values may still be too wide for numpy
    if math.prod(shape) * kind.itemsize != len(packed.data) or beside_zero > MOST_BYTES:
        raise Malformed("the coordinator", "the shape of an array does not fit its bytes")
    return np.frombuffer(packed.data, dtype=kind).reshape(shape).copy()  # its own memory, which torch may wrap


_NEITHER = "it is neither an answer nor a refusal"
_LINKS = "the links between heads of ledgers are too long, too many or broken off"
_SIGNED = (lambda parts: all(len(part) <= LONGEST_SIGNED for part in parts), "a signed head of a ledger is too long")
_LISTS: Mapping[str, tuple[Callable[[Sequence[Any]], bool], str]] = {  # of every body: what a list must be, or the refusal
    "members": (
        lambda names: 1 <= len(names) <= MOST_MEMBERS and len(set(names)) == len(names),
        "the list of members is empty, too long or repeats a name",
    ),
    "after": (lambda _: True, ""),
    "witnesses": _SIGNED,
    "heads": _SIGNED,
    "statements": _SIGNED,
    "links": (
        lambda links: (
            all(len(one) % LINK == 0 and len(one) <= MOST_LINKS * LINK for one in links) and sum(map(len, links)) <= MOST_LINKED
        ),
        _LINKS,
    ),
}


def _checked(field: str, value: Any) -> Any:
    if field == "state":
        return _state(value)
    if field not in _LISTS:
        return value
    fits, problem = _LISTS[field]
    if not fits(value):
        raise Malformed("the coordinator", problem)
    return tuple(value)


def _parsed(kind: type[M], message: bytes, sender: str, limits: Mapping[str, int]) -> M:
    if len(message) >= MOST_BYTES:
        raise Malformed(sender, "it is too long")
    check_form(kind, message, sender, limits)
    return _decoded(kind, message, sender)


def _decoded(kind: type[M], message: bytes, sender: str) -> M:
    try:
        parsed: M = kind.FromString(message)
    except DecodeError as problem:
        raise Malformed(sender, "it cannot be decoded") from problem
    if parsed.version != VERSION:
        raise Malformed(sender, f"it is of version {parsed.version} of the messages, and this is version {VERSION}")
    if len(parsed.session) > LONGEST_SESSION:  # the reply repeats it
        raise Malformed(sender, "its session is too long")
    return parsed
