"""Messages survive the wire as they are, and whatever else arrives ends in a named refusal: quickly, and in little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from securetm.aggregation.plain import PlainSum
from securetm.contracts import Block, Cohort, Domain, Needs, Roster, Terms
from securetm.corpus.corpus import Corpus
from securetm.errors import Malformed, Refused
from securetm.federation.party.party import Party
from securetm.federation.wire import wire
from securetm.federation.wire import wire_pb2 as pb
from securetm.models.questions.words import MOST_WORDS, merge_words
from tests.effort import worked

from .conftest import SHARED, SUBJECTS, small_plan
from .played import SESSION, Played, make_party, settled

T = TypeVar("T")
quick = settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
WORDS = tuple(sorted([*SHARED, *SUBJECTS["north"], *SUBJECTS["south"]]))

names = st.text(st.characters(codec="utf-8"), max_size=12)
members = st.lists(names, min_size=1, max_size=5, unique=True).map(tuple)
counted = st.integers(0, 2**63 - 1)
some_array = st.sampled_from(wire.DTYPES).flatmap(
    lambda kind: arrays.arrays(np.dtype(kind), arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
invites = st.builds(wire.Invite, st.binary(max_size=40), st.binary(max_size=40), members, st.integers(0, 2**64 - 1))
adoptions = st.builds(wire.Adopt, st.binary(max_size=60))
states = st.dictionaries(names, some_array, max_size=3)
asks = st.builds(wire.Ask, names, counted, counted, members, st.binary(max_size=40), states, st.booleans())
forwards = st.builds(wire.Forward, st.binary(max_size=40), st.binary(max_size=60))
signed = st.lists(st.binary(max_size=40), max_size=4).map(tuple)
linked = st.lists(st.integers(0, 3).map(lambda n: bytes(n * wire.LINK)), min_size=2, max_size=2).map(tuple)
witnesses = st.one_of(st.builds(wire.Witness, signed), st.builds(wire.Witness, st.just((b"one", b"two")), linked))
bodies = st.one_of(invites, adoptions, asks, forwards, witnesses, st.builds(wire.Links, signed))
outcomes = st.one_of(
    st.builds(wire.Accepted, st.lists(st.binary(max_size=30), max_size=4).map(tuple)),
    st.builds(wire.Refusal, st.from_regex(r"\A[A-Z][A-Za-z]{0,40}\Z")),
)


# ---- round trips ---------------------------------------------------------------------------------------------------


@quick
@given(st.binary(max_size=wire.LONGEST_SESSION), bodies)
def test_a_request_comes_back_as_it_was(session: bytes, body: wire.Body) -> None:
    said, found = wire.unpack_request(wire.pack_request(session, body))
    assert said == session
    if not isinstance(body, wire.Ask):
        assert found == body
        return
    assert isinstance(found, wire.Ask)
    assert found.state.keys() == body.state.keys()
    for name, array in body.state.items():
        assert (found.state[name].dtype, found.state[name].shape) == (array.dtype, array.shape)
        assert found.state[name].tobytes() == array.tobytes()
    rest = ("question", "number", "serial", "members", "round_id", "keep")
    assert [getattr(found, part) for part in rest] == [getattr(body, part) for part in rest]


@quick
@given(st.binary(max_size=wire.LONGEST_SESSION), outcomes)
def test_a_reply_comes_back_as_it_was(session: bytes, outcome: wire.Outcome) -> None:
    assert wire.unpack_reply(wire.pack_reply(session, outcome), "north") == (session, outcome)


# ---- hostile bytes -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def party(corpora: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Party]:
    """A party that is invited and has words, so that messages reach its innermost rooms."""
    plan = small_plan()
    made = make_party("north", plan, corpora, tmp_path_factory.mktemp("fuzzed"))
    made.store._open.execute("PRAGMA synchronous=OFF")  # thousands of refusals are written down
    settled(Played(plan, tuple(corpora)), made, WORDS)
    yield made
    made.store.close()


def played(corpora: Mapping[str, Corpus]) -> Played:
    coordinator = Played(small_plan(), tuple(corpora))
    coordinator.adopt(WORDS)
    return coordinator


def valid(coordinator: Played) -> list[bytes]:
    """One honest message of every kind and question."""
    top = {"top": np.arange(6).reshape(2, 3)}
    plain = [coordinator.ask("words", {}), coordinator.ask("frequencies", {}, keep=True), coordinator.ask("coherence", top)]
    weighty = [coordinator.ask(question, coordinator.fresh()) for question in ("train", "held_out")]
    others = [coordinator.invite(), coordinator.adopt(WORDS), wire.Forward(b"r" * 32, b"parcel")]
    return [wire.pack_request(SESSION, body) for body in [*plain, *weighty, *others]]


def answered(party: Party, message: bytes) -> wire.Outcome:
    """The party replies, and its reply is well formed."""
    return wire.unpack_reply(party.handle(message), "north")[1]


@quick
@given(st.binary(max_size=300))
def test_random_bytes_are_refused_by_name(party: Party, message: bytes) -> None:
    outcome = answered(party, message)
    assert isinstance(outcome, wire.Refusal)


@st.composite
def mutations(draw: st.DrawFn) -> tuple[int, Callable[[bytes], bytes]]:
    """Which valid message, and what is done to it."""
    place, width = draw(st.floats(0, 1, exclude_max=True)), draw(st.integers(1, 20))
    inserted, bit = draw(st.binary(min_size=1, max_size=12)), draw(st.integers(0, 7))
    kinds: dict[str, Callable[[bytes, int], bytes]] = {
        "flip": lambda m, at: m[:at] + bytes([m[at] ^ (1 << bit)]) + m[at + 1 :],
        "truncate": lambda m, at: m[:at],
        "insert": lambda m, at: m[:at] + inserted + m[at:],
        "delete": lambda m, at: m[:at] + m[at + width :],
        "repeat": lambda m, at: m[:at] + m[at : at + width] * 3 + m[at + width :],
        "twice": lambda m, at: m + m,  # every field a second time: protobuf merges them
        "overwrite": lambda m, at: m[:at] + inserted + m[at + len(inserted) :],
    }
    kind = draw(st.sampled_from(sorted(kinds)))
    return draw(st.integers(0, 7)), lambda m: kinds[kind](m, int(place * len(m)))


@pytest.mark.slow
@settings(quick, max_examples=150)
@given(mutations())
def test_a_damaged_message_ends_in_a_reply(
    party: Party, corpora: Mapping[str, Corpus], mutation: tuple[int, Callable[[bytes], bytes]]
) -> None:
    which, change = mutation
    if not party.questions.vocabulary:  # an invitation came through, so the words have to come again
        settled(played(corpora), party, WORDS)
    answered(party, change(valid(played(corpora))[which]))


ARRAY = dict[str, object]
HOSTILE: Mapping[str, list[ARRAY]] = {
    "huge length": [{"dtype": "<f4", "shape": [2**63], "data": b"1234"}],
    "product that wraps to 4": [{"dtype": "<f4", "shape": [2**32, 2**32 + 1], "data": b"1234"}],
    "product that wraps to 0": [{"dtype": "<f4", "shape": [2**32, 2**32], "data": b""}],
    "zero beside huge": [{"dtype": "<f4", "shape": [0, 2**63], "data": b""}],
    "zero beside three large": [{"dtype": "<f4", "shape": [0, 2**31, 2**31, 2**31], "data": b""}],
    "a million dimensions": [{"dtype": "<f4", "shape": [2**64 - 1] * 1_000_000, "data": b""}],
    "five dimensions": [{"dtype": "<f4", "shape": [1] * 5, "data": b"1234"}],
    "too few bytes": [{"dtype": "<f8", "shape": [2], "data": b"1234"}],
    "objects": [{"dtype": "|O", "shape": [1], "data": b"12345678"}],
    "a type of its own": [{"dtype": "<f4,<f4", "shape": [1], "data": b"12345678"}],
    "no type": [{"dtype": "", "shape": [1], "data": b"1"}],
    "100000 arrays": [{"dtype": "|u1", "shape": [0], "data": b""}],  # each with a name of its own
    "the same twice": [{"name": "a", "dtype": "|u1", "shape": [0]}] * 2,
}


@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_arrays_are_malformed_at_once(shape: str, party: Party) -> None:
    arrays = [{**HOSTILE[shape][0], "name": str(n)} for n in range(100_000)] if shape == "100000 arrays" else HOSTILE[shape]
    state = [pb.Array(**array) for array in arrays]  # type: ignore[arg-type]
    request = pb.Request(version=1, session=SESSION, ask=pb.Ask(question="train", serial=9, members=["north"], state=state))
    said = []
    assert worked(lambda: said.append(answered(party, request.SerializeToString()))) < 10
    assert said == [wire.Refusal("Malformed")]


def request(**fields: object) -> bytes:
    return bytes(pb.Request(**{"version": 1, "session": SESSION, **fields}).SerializeToString())  # type: ignore[arg-type]


MALFORMED: Mapping[str, bytes] = {
    "nothing": b"",
    "no body": request(),
    "another version": request(version=2, adopt=pb.Adopt(words=b"word")),
    "a session of a megabyte": request(session=bytes(1 << 20), adopt=pb.Adopt(words=b"word")),
    "nobody": request(ask=pb.Ask(question="train", serial=9)),
    "a member twice": request(ask=pb.Ask(question="train", serial=9, members=["north", "north"])),
    "half a million nameless": request(ask=pb.Ask(question="train", serial=9, members=[""] * 500_000)),
    "10001 members": request(ask=pb.Ask(question="train", serial=9, members=map(str, range(10_001)))),
    "a serial that no store can hold": request(ask=pb.Ask(question="words", serial=2**63, members=["north"])),
    "a number that no store can hold": request(ask=pb.Ask(question="words", number=2**64 - 1, members=["north"])),
    "rounds to go on from for nobody": request(ask=pb.Ask(question="train", serial=9, members=["north", "south"], after=[3])),
    "a round to go on from that no store can hold": request(ask=pb.Ask(question="train", members=["north"], after=[2**63])),
    "text that is not UTF-8": b"\x08\x01\x2a\x04\x0a\x02\xff\xfe",
    "a length beyond the end": b"\x08\x01\x22\xff\xff\xff\xff\x07",
    "a group that never ends": b"\x08\x01" + b"\x1b" * 5_000,
}


@pytest.mark.parametrize("message", MALFORMED)
def test_what_breaks_a_rule_of_the_wire_is_malformed(message: str, party: Party) -> None:
    assert answered(party, MALFORMED[message]) == wire.Refusal("Malformed")


def test_a_question_may_be_called_anything_but_its_name_does_not_fill_the_disk(party: Party) -> None:
    for length, refusal in ((1_000, "UnknownQuestion"), (10_000_000, "Malformed")):
        message = request(ask=pb.Ask(question="x" * length, serial=9, members=["north", "south"]))
        assert answered(party, message) == wire.Refusal(refusal)
    (longest,) = party.store.rows("SELECT MAX(LENGTH(reason)) FROM refusals")[0]
    assert longest <= 500


@pytest.mark.parametrize(
    ("word_bytes", "name"),
    [
        (b"\n" * (1 << 22), "BadState"),
        (b"a\n" * (MOST_WORDS + 1), "BadState"),
        (b"a" * (1 << 22), "BadWordList"),
        (b"a" * (1 << 23), "Malformed"),
    ],
)
def test_a_flood_of_words_is_refused_in_little_memory(word_bytes: bytes, name: str, party: Party) -> None:
    message = request(adopt=pb.Adopt(words=word_bytes))
    outcome, peak = traced(lambda: answered(party, message))
    assert outcome == wire.Refusal(name)
    assert peak < 12 * len(word_bytes)


def test_a_large_array_is_held_at_most_a_few_times() -> None:
    array = pb.Array(name="weights", dtype="<f4", shape=[1 << 22], data=bytes(1 << 24))
    message = request(ask=pb.Ask(question="train", serial=9, members=["north", "south"], state=[array]))
    (_, body), peak = traced(lambda: wire.unpack_request(message))
    assert isinstance(body, wire.Ask)
    assert body.state["weights"].nbytes == 1 << 24
    assert peak < 4 * (1 << 24)


def traced(act: Callable[[], T]) -> tuple[T, int]:
    tracemalloc.start()
    try:
        return act(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_after_all_that_the_party_still_answers(corpora: Mapping[str, Corpus], party: Party) -> None:
    settled(coordinator := Played(small_plan(), tuple(corpora)), party, WORDS)
    outcome = coordinator.send(party, coordinator.ask("coherence", {"top": np.arange(6).reshape(2, 3)}))
    assert isinstance(outcome, wire.Accepted)
    assert len(outcome.parcels) == 1


# ---- hostile replies -----------------------------------------------------------------------------------------------

VALID_REPLIES = [
    wire.pack_reply(SESSION, wire.Accepted((b"one", b"two"))),
    wire.pack_reply(SESSION, wire.Refusal("WrongRound")),
    wire.pack_reply(SESSION, wire.Accepted()),
]


@settings(quick, max_examples=150)
@given(st.one_of(st.binary(max_size=120), mutations().map(lambda found: found[1](VALID_REPLIES[found[0] % 3]))))
def test_whatever_a_party_replies_is_read_or_refused(message: bytes) -> None:
    try:
        session, outcome = wire.unpack_reply(message, "north")
    except Malformed:
        return
    assert isinstance(session, bytes)
    assert isinstance(outcome, wire.Accepted | wire.Refusal)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "Wrong\x1b[31mRound", "the word is river"])
def test_a_refusal_carries_a_name_and_nothing_else(name: str) -> None:
    with pytest.raises(Malformed, match="neither an answer nor a refusal"):
        wire.unpack_reply(wire.pack_reply(SESSION, wire.Refusal(name)), "north")


REAL = Terms((Block("gradient", (3, 2)), Block("documents", (1,))))
WHOLE = Terms((Block("documents", (1,)), Block("frequencies", (4,))), domain=Domain.INTEGER, bits=64)
LISTS = Terms((Block("words", (64,)),), needs=Needs.EACH, ragged=True, domain=Domain.INTEGER, bits=8)
PAIR = Cohort(b"r" * 32, 0, ("north", "south"))


@settings(quick, max_examples=100)
@given(st.sampled_from([REAL, WHOLE, LISTS]), st.sampled_from(["north", "south", "stranger"]), st.binary(max_size=90))
def test_whatever_is_poured_into_a_plain_sum_is_added_or_refused(terms: Terms, sender: str, message: bytes) -> None:
    exchange = PlainSum().coordinator(Roster(b"", b"", PAIR.members), None).round(PAIR, terms, None)  # type: ignore[arg-type]
    try:
        assert exchange.receive(sender, message) == ()
    except Refused:
        return
    assert sender != "stranger"
    with pytest.raises(Refused, match="twice"):
        exchange.receive(sender, message)


@quick
@given(st.binary(max_size=80))
def test_whatever_list_of_words_a_party_sends_is_united_or_refused(message: bytes) -> None:
    seat = PlainSum().coordinator(Roster(b"", b"", PAIR.members), None)  # type: ignore[arg-type]
    try:
        seat.round(PAIR, LISTS, None).receive("north", message)
        union = merge_words(seat.answer(PAIR.round_id))
    except Refused:
        return
    assert all(word.isprintable() and word == word.strip() and word for word in union)
