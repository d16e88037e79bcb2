"""Packs messages into bytes and unpacks them. It checks shapes; the roles decide what a message means.

Incoming bytes are untrusted: sizes are bounded, types are from a short list, and everything else is `Malformed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from google.protobuf.message import DecodeError

from securetm.contracts import Array, State
from securetm.errors import Malformed
from securetm.federation import wire_pb2 as pb
from securetm.federation.wire_form import MOST_DIMENSIONS, MOST_MEMBERS, check_form

VERSION = 1
MOST_BYTES = 1 << 31  # protobuf's own limit
LONGEST_SESSION = 64
LONGEST_SIGNED = 256  # bytes of a ledger's head or of what is signed of it
LINK = 32  # bytes: the digest of one entry
MOST_LINKS = 1024  # from one head of a ledger to a later one; a longer way is gone in parts
MOST_LINKED = 1 << 20  # bytes of all links in one message
MOST_COUNTED = 1 << 63  # what a store can write down
DTYPES = ("<f4", "<f8", "<i4", "<i8", "<u8", "|u1")


@dataclass(frozen=True)
class Invite:
    """Opens a session, or resumes it after a round that both sides kept."""

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
    witnesses: tuple[bytes, ...] = ()  # what other parties signed of this party's ledger


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
class Forward:
    """A further message of the aggregation's exchange."""

    round_id: bytes
    parcel: bytes


@dataclass(frozen=True)
class Accepted:
    """A party's answer, or its consent without one."""

    parcels: tuple[bytes, ...] = ()
    head: bytes = b""  # of the party's ledger, signed, where a budget is spent


@dataclass(frozen=True)
class Refusal:
    """A party's refusal: a name without details."""

    name: str


M = TypeVar("M", pb.Request, pb.Reply)
Body = Invite | Adopt | Ask | Prepare | Forward | Witness | Links
Outcome = Accepted | Refusal


def pack_request(session: bytes, body: Body) -> bytes:
    """One request from the coordinator to one party; filled in place, since every copy of a state is a megabyte."""
    request = pb.Request(version=VERSION, session=session)
    match body:
        case Invite(agreement, profile, members, resume_from):
            request.invite.MergeFrom(pb.Invite(agreement=agreement, profile=profile, members=members, resume_from=resume_from))
        case Adopt(words, candidates):
            request.adopt.MergeFrom(pb.Adopt(words=words, candidates=candidates))
        case Ask():
            _fill(request.ask, body)
        case Prepare(exchange, number, rounds):
            request.prepare.MergeFrom(pb.Prepare(exchange=exchange, number=number, rounds=rounds))
        case Forward(round_id, parcel):
            request.forward.round_id, request.forward.parcel = round_id, parcel
        case Witness(heads, links):
            request.witness.MergeFrom(pb.Witness(heads=heads, links=links))
        case Links(statements):
            request.links.MergeFrom(pb.Links(statements=statements))
    return bytes(request.SerializeToString())


def _fill(ask: pb.Ask, body: Ask) -> None:
    ask.question, ask.number, ask.serial = body.question, body.number, body.serial
    ask.round_id, ask.keep = body.round_id, body.keep
    ask.members.extend(body.members)
    ask.witnesses.extend(body.witnesses)
    for name, array in body.state.items():
        little = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")  # keeps a bare number without dimensions
        kind = str(np.lib.format.dtype_to_descr(little.dtype))
        ask.state.add(name=name, dtype=kind, shape=little.shape, data=little.tobytes())


def unpack_request(message: bytes, limits: Mapping[str, int] | None = None) -> tuple[bytes, Body]:
    """The session and body of a request; run by a party on bytes it does not trust. `limits`: bytes of each kind of body."""
    request = _parsed(pb.Request, message, "the coordinator", limits or {})
    kind = request.WhichOneof("body")
    if kind == "invite":
        invite = request.invite
        return request.session, Invite(invite.agreement, invite.profile, _members(invite.members), invite.resume_from)
    if kind == "adopt":
        return request.session, Adopt(request.adopt.words, request.adopt.candidates)
    if kind == "ask":
        return request.session, _unpacked_ask(request.ask)
    if kind == "prepare":
        prepare = request.prepare
        return request.session, Prepare(prepare.exchange, prepare.number, prepare.rounds)
    if kind == "forward":
        return request.session, Forward(request.forward.round_id, request.forward.parcel)
    if kind == "witness":
        return request.session, Witness(_signed(request.witness.heads), _linked(request.witness))
    if kind == "links":
        return request.session, Links(_signed(request.links.statements))
    raise Malformed("the coordinator", "it asks for nothing")


def pack_reply(session: bytes, outcome: Outcome) -> bytes:
    """One party's reply."""
    reply = pb.Reply(version=VERSION, session=session)
    if isinstance(outcome, Refusal):
        reply.refusal.name = outcome.name
    else:
        reply.accept.SetInParent()  # an empty answer is an answer too
        reply.accept.parcels.extend(outcome.parcels)
        reply.accept.head = outcome.head
    return bytes(reply.SerializeToString())


def unpack_reply(message: bytes, sender: str, most: int = MOST_BYTES) -> tuple[bytes, Outcome]:
    """The session and outcome of a reply of at most so many bytes; run by the coordinator on bytes it does not trust."""
    reply = _parsed(pb.Reply, message, sender, {"accept": most})
    kind = reply.WhichOneof("body")
    if kind == "accept" and len(reply.accept.head) <= LONGEST_SIGNED:
        return reply.session, Accepted(tuple(reply.accept.parcels), reply.accept.head)
    if kind == "refusal" and reply.refusal.name.isidentifier() and len(reply.refusal.name) <= 64:
        return reply.session, Refusal(reply.refusal.name)
    raise Malformed(sender, "it is neither an answer nor a refusal")


def _unpacked_ask(ask: pb.Ask) -> Ask:
    if max(ask.number, ask.serial) >= MOST_COUNTED:
        raise Malformed("the coordinator", "a number is too large")
    names = [array.name for array in ask.state]
    if len(set(names)) != len(names):
        raise Malformed("the coordinator", "an array stands twice in the state")
    state = {array.name: _array(array) for array in ask.state}
    members, witnesses = _members(ask.members), _signed(ask.witnesses)
    return Ask(ask.question, ask.number, ask.serial, members, ask.round_id, state, ask.keep, witnesses)


def _signed(parts: Sequence[bytes]) -> tuple[bytes, ...]:
    if any(len(part) > LONGEST_SIGNED for part in parts):
        raise Malformed("the coordinator", "a signed head of a ledger is too long")
    return tuple(parts)


def _linked(witness: pb.Witness) -> tuple[bytes, ...]:
    links = tuple(witness.links)
    whole = all(len(one) % LINK == 0 and len(one) <= MOST_LINKS * LINK for one in links)
    if len(links) not in (0, len(witness.heads)) or not whole or sum(map(len, links)) > MOST_LINKED:
        raise Malformed("the coordinator", "the links between heads of ledgers are too long, too many or broken off")
    return links


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


def _members(names: Sequence[str]) -> tuple[str, ...]:
    if not 1 <= len(names) <= MOST_MEMBERS or len(set(names)) != len(names):
        raise Malformed("the coordinator", "the list of members is empty, too long or repeats a name")
    return tuple(names)


def _parsed(kind: type[M], message: bytes, sender: str, limits: Mapping[str, int]) -> M:
    if len(message) >= MOST_BYTES:
        raise Malformed(sender, "it is too long")
    check_form(kind, message, sender, limits)
    try:
        parsed: M = kind.FromString(message)
    except DecodeError as problem:
        raise Malformed(sender, "it cannot be decoded") from problem
    if parsed.version != VERSION:
        raise Malformed(sender, f"it speaks version {parsed.version} where {VERSION} is spoken here")
    if len(parsed.session) > LONGEST_SESSION:  # the reply repeats it
        raise Malformed(sender, "its session is too long")
    return parsed
