"""A vector of any length passes a masked sum in blocks: beside it, and beside the sum, roles need little memory.

Bytes are counted as they are allocated, by `tracemalloc`, so that no other process and no clock has a part in it.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.aggregation.masked.mask_stream import BLOCK
from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import HEADER_SIZE, Kind
from securetm.contracts import Block, Cohort, Domain, Terms
from securetm.federation.network.connections import Spool
from securetm.federation.wire import wire
from securetm.federation.wire import wire_pb2 as pb
from securetm.sessions.framing import LONG, ROOM, MessageBuffer, enclosed
from tests.aggregation.played import Played, names

SPARE = 16 * BLOCK  # bytes: two threads' keystreams, hashes, keys and shares


@dataclass
class Peak:
    """The most bytes that were allocated at once since it began."""

    reached: int = 0


@contextmanager
def allocating() -> Iterator[Peak]:
    peak = Peak()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield peak
        peak.reached = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def topics_by_words(topics: int, words: int) -> Terms:
    return Terms((Block("weights", (topics, words)),), domain=Domain.INTEGER, bits=32, reach=1000)


def one_row(terms: Terms) -> dict[str, np.ndarray]:
    """Every party's vector here: one array, so that parties differ in their masks alone."""
    return {"weights": (np.arange(terms.size, dtype=np.int32) % 1999 - 999).reshape(terms.layout[0].shape)}


def ready(parties: int, topics: int, words: int) -> tuple[Played, Cohort, Terms]:
    played = Played(MaskedSum(), names(parties), seed="long vectors").prepare(1)
    cohort = played.cohort()
    return played, cohort, MaskedSum().admit(topics_by_words(topics, words), cohort)


def open_sum(middle: Any, rounds: Any) -> None:
    """Carries the messages after the vectors, until the sum is opened."""
    waiting = middle.expire([])
    while waiting:
        for name, message in waiting:
            for _, reply in rounds[name].receive("coordinator", message):
                middle.receive(name, reply)
        waiting = middle.expire([])


def passes_in_blocks(parties: int, topics: int, words: int) -> None:
    played, cohort, terms = ready(parties, topics, words)
    row, length = one_row(terms), 4 * terms.size
    with allocating() as summing:
        middle = played.middle.round(cohort, terms, None)
        rounds = {}
        for name, session in played.parties.items():
            before, _ = tracemalloc.get_traced_memory()
            rounds[name] = session.round(cohort, terms, row)
            ((_, message),) = rounds[name].begin()
            assert len(message) == HEADER_SIZE + length
            now, _ = tracemalloc.get_traced_memory()
            assert now - before < length + SPARE  # the vector as it travels, once
            reply = wire.pack_reply(b"s" * 32, wire.Accepted((message,), b"head"))
            _, accepted = wire.unpack_reply(reply, name)
            assert isinstance(accepted, wire.Accepted)
            middle.receive(name, accepted.parcels[0])
            del message, reply, accepted
    assert summing.reached < 2 * length + SPARE  # one sum, and one vector that arrives
    with allocating() as opening:
        open_sum(middle, rounds)
    assert opening.reached < 2 * length + SPARE  # the total is in 64 bits
    total = played.middle.answer(cohort.round_id).total
    assert total is not None
    assert np.array_equal(total["weights"], row["weights"].astype(np.int64) * parties)


def test_topics_by_words_pass_a_masked_sum_in_blocks() -> None:
    passes_in_blocks(5, 50, 40_000)


@pytest.mark.slow
def test_a_thousand_topics_by_a_hundred_thousand_words_pass_in_blocks() -> None:
    passes_in_blocks(3, 1_000, 100_000)


def memory_of_coordinator(parties: int) -> int:
    """The most that a coordinator needs at once while so many vectors arrive and their sum is opened."""
    played, cohort, terms = ready(parties, 10, 40_000)
    row = one_row(terms)
    rounds = {name: session.round(cohort, terms, row) for name, session in played.parties.items()}
    most = 0
    with allocating() as peak:
        middle = played.middle.round(cohort, terms, None)
    most, held = max(most, peak.reached), peak.reached
    for name, party in rounds.items():
        ((_, message),) = party.begin()
        with allocating() as peak:
            middle.receive(name, message)
        most = max(most, held + peak.reached)
        del message
    with allocating() as peak:
        waiting = middle.expire([])
    while waiting:
        replies = [(name, reply) for name, message in waiting for _, reply in rounds[name].receive("coordinator", message)]
        with allocating() as peak:
            for name, reply in replies:
                middle.receive(name, reply)
            waiting = middle.expire([])
        most = max(most, held + peak.reached)
    assert played.middle.answer(cohort.round_id).total is not None
    return most


@pytest.mark.slow
def test_a_coordinator_of_forty_parties_needs_less_than_a_vector_more_than_one_of_ten() -> None:
    length = 4 * 400_000
    ten, forty = memory_of_coordinator(10), memory_of_coordinator(40)
    assert ten > length  # what is measured is there
    assert forty - ten < length


def test_a_reply_that_waits_on_disk_is_added_from_there(tmp_path: Path) -> None:
    """As the hub hands it to the coordinator: it is hashed and added block by block, and never read back whole."""
    played, cohort, terms = ready(3, 50, 40_000)
    row = one_row(terms)
    rounds = {name: session.round(cohort, terms, row) for name, session in played.parties.items()}
    middle = played.middle.round(cohort, terms, None)
    for name, party in rounds.items():
        ((_, message),) = party.begin()
        reply = wire.pack_reply(b"s" * 32, wire.Accepted((message,)))
        spool = Spool(tmp_path, len(reply), share=0)
        spool.add(reply)
        del message, reply
        with allocating() as reading:
            _, accepted = wire.unpack_reply(spool.take(), name)
            assert isinstance(accepted, wire.Accepted)
            middle.receive(name, accepted.parcels[0])
            del accepted
        assert reading.reached < SPARE < 4 * terms.size
    open_sum(middle, rounds)
    total = played.middle.answer(cohort.round_id).total
    assert total is not None
    assert np.array_equal(total["weights"], row["weights"].astype(np.int64) * 3)


def test_a_party_holds_no_vector_once_it_is_sent() -> None:
    played, cohort, terms = ready(3, 10, 40_000)
    vector = one_row(terms)
    party = played.parties[played.members[0]].round(cohort, terms, vector)
    with allocating():
        ((_, message),) = party.begin()
        assert message[1] == Kind.MASKED
        del message
        held, _ = tracemalloc.get_traced_memory()
    assert held < SPARE
    assert party.begin() == ()  # it sends it once


# ---- envelopes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [b"", b"h" * 200])
@pytest.mark.parametrize("length", [1, LONG - 184, LONG - 1, LONG, 3 * LONG + 5])
def test_a_reply_has_the_same_bytes_whether_its_parcel_is_copied_or_not(length: int, head: bytes) -> None:
    room = MessageBuffer(length)
    room.content[:] = np.random.default_rng(length).integers(0, 256, length, dtype=np.uint8).tobytes()
    parcel = room.enclose(b"S" * 184)
    whole = pb.Reply(version=wire.VERSION, session=b"s" * 32)
    whole.accept.parcels.append(bytes(parcel))
    whole.accept.head = head
    assert bytes(wire.pack_reply(b"s" * 32, wire.Accepted((parcel,), head))) == whole.SerializeToString()
    session, read = wire.unpack_reply(whole.SerializeToString(), "a party")
    assert isinstance(read, wire.Accepted)
    assert (session, [bytes(one) for one in read.parcels], read.head) == (b"s" * 32, [bytes(parcel)], head)


def test_an_envelope_copies_only_what_has_no_room_around_it() -> None:
    room = MessageBuffer(LONG)
    inner = room.enclose(b"inner")
    assert isinstance(inner, memoryview)
    outer = enclosed(b"outer", inner, b"behind")
    assert isinstance(outer, memoryview)
    assert outer.obj is room
    assert enclosed(b"again", inner) == b"again" + bytes(inner)  # it is no longer all that lies there
    assert bytes(outer[:10]) == b"outerinner"
    assert bytes(MessageBuffer(LONG).enclose(b"x" * (ROOM + 1))[: ROOM + 1]) == b"x" * (ROOM + 1)
    with pytest.raises(TypeError):
        outer[0] = 1  # what was handed out is read only
