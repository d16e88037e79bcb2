"""Mutated messages at both roles: nothing but named refusals, no hang, no large allocation, never a wrong sum."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import Kind
from securetm.errors import Refused, SecuretmError, TooFewParties
from securetm.sessions.framing import VERSION, Reader
from securetm.sessions.identities import SIGNATURE, identity_of
from tests.aggregation.played import (
    COORDINATOR,
    STAGES,
    TERMS,
    Played,
    flat,
    names,
    own_store,
    plain_sum,
    signed_again,
    vectors_of,
)

N = 4
FROM_COORDINATOR = (Kind.COMMITS, Kind.REVEALS, Kind.DELIVERY, Kind.ADVANCE, Kind.SURVIVORS, Kind.UNMASK)

Change = Callable[[bytes], bytes]


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """Bits turned, parts cut out, doubled, lengthened, or replaced by noise."""
    how = draw(st.sampled_from(("flip", "cut", "double", "noise", "number", "empty")))
    at, n = draw(st.floats(0, 1)), draw(st.integers(1, 90))
    noise = draw(st.binary(min_size=1, max_size=40))

    def change(message: bytes) -> bytes:
        where = int(at * (len(message) - 1))
        made = {
            "flip": message[:where] + bytes([message[where] ^ (1 << n % 8)]) + message[where + 1 :],
            "cut": message[:where] + message[where + n :],
            "double": message[: where + n] + message[where:],
            "noise": message[:where] + noise + message[where + len(noise) :],
            "number": message[: min(where, 120)] + b"\xff\xff" + message[min(where, 120) + 2 :],
            "empty": message[: n - 1],
        }
        return made[how]

    return change


def played_with(kind: Kind, change: Change, resign: bool) -> tuple[Played, dict[str, np.ndarray]]:
    """A session in which one message of that kind, to or from the second party, is altered."""
    played = Played(MaskedSum(consistency=True), names(N))
    who = played.members[1]
    signer = identity_of(who, played.roster, own_store(who))

    def altered(name: str, message: bytes) -> bytes:
        if name != who or len(message) < 2 or message[1] != kind:
            return message
        return signed_again(signer, change(message[:-SIGNATURE]) + bytes(SIGNATURE)) if resign else change(message)

    played.change = played.change_up = altered
    vectors = vectors_of(played.members)
    return played, vectors


def ends_well(kind: Kind, change: Change, resign: bool) -> None:
    played, vectors = played_with(kind, change, resign)
    refusal: SecuretmError | None = None
    try:
        answer = played.prepare(1).play(played.cohort(), vectors)
    except SecuretmError as named:
        refusal = named
    if refusal is None:
        assert np.array_equal(flat(answer), plain_sum(vectors, answer.survivors))
        return
    assert isinstance(refusal, Refused | TooFewParties)
    assert type(refusal) is not Refused
    assert str(refusal)
    assert refusal.advice()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from((*STAGES, *FROM_COORDINATOR)), changes())
def test_altered_messages_end_in_a_named_refusal_or_do_nothing(kind: Kind, change: Change) -> None:
    ends_well(kind, change, resign=False)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.sampled_from((Kind.COMMIT, Kind.SHARES, Kind.STORED, Kind.UNMASKED)), changes())
def test_a_party_that_signs_nonsense_spoils_no_sum(kind: Kind, change: Change) -> None:
    ends_well(kind, change, resign=True)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.binary(max_size=300), st.sampled_from(sorted(Kind)), st.booleans())
def test_noise_ends_in_a_named_refusal_at_every_step(noise: bytes, kind: Kind, headed: bool) -> None:
    message = bytes((VERSION, kind)) + noise if headed else noise
    for receive in STEPS:
        with pytest.raises(Refused):
            receive(message)


def steps() -> list[Callable[[bytes], object]]:
    """Every role, waiting for something: a set-up at each of its steps, and a round."""
    waiting: list[Callable[[bytes], object]] = []
    for stop in range(3):
        played = Played(MaskedSum(consistency=True), names(N))
        middle, parties = played.middle.prepare(1), {m: session.prepare(1) for m, session in played.parties.items()}
        out = {m: party.begin()[0][1] for m, party in parties.items()}
        for _ in range(stop):
            for name, message in out.items():
                middle.receive(name, message)
            out = {name: parties[name].receive(COORDINATOR, message)[0][1] for name, message in middle.expire(())}
        first = played.members[0]
        waiting += [lambda m, party=parties[first]: party.receive(COORDINATOR, m), lambda m, o=middle, f=first: o.receive(f, m)]
    played = Played(MaskedSum(consistency=True), names(N)).prepare(1)
    middle, parties = played.begin(played.cohort(), vectors_of(played.members), MaskedSum().admit(TERMS, played.cohort()))
    party = parties[played.members[0]]
    party.begin()
    return [*waiting, lambda m: party.receive(COORDINATOR, m), lambda m: middle.receive(played.members[0], m)]


STEPS = steps()


@pytest.mark.parametrize("kind", sorted(Kind))
def test_a_small_message_that_promises_much_takes_no_memory(kind: Kind) -> None:
    promise = bytes((VERSION, kind)) + b"\xff" * 200
    tracemalloc.start()
    for receive in STEPS:
        with pytest.raises(Refused):
            receive(promise)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize("kind", sorted(Kind))
def test_a_large_message_is_held_at_most_once_more(kind: Kind) -> None:
    """Where a signature stands at the end of a message, what it signs is one copy of it."""
    message = bytes((VERSION, kind)) + b"\xff" * (1 << 22)
    tracemalloc.start()
    for receive in STEPS:
        with pytest.raises(Refused):
            receive(message)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.25 * len(message)


def test_a_list_longer_than_the_roster_is_refused_before_it_is_read() -> None:
    with pytest.raises(Refused, match="too long"):
        Reader(bytes((VERSION, Kind.UNMASK)) + b"\xff\xff", "somebody").places(5)
