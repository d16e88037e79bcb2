"""How much a message may bring: it follows from the plan, and what is more is refused before memory or disk is spent on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.processes import measurable, peak_mebibytes
from securetm.corpus.corpus import Corpus
from securetm.errors import Malformed
from securetm.federation.limits import state_bytes
from securetm.federation.party_store import PartyStore
from securetm.federation.questions import Questions
from securetm.federation.refusal_errors import BadState
from securetm.federation.store import FIRST_KEPT, LAST_KEPT, CoordinatorStore
from securetm.federation.wire import wire
from securetm.federation.wire import wire_pb2 as pb
from securetm.models import MODELS
from securetm.models.questions.word_sums import OPEN, OPEN_BYTES
from securetm.plans.agreement import agree
from securetm.plans.profiles import make_model

from ..forking import forking
from .conftest import SUBJECTS, small_plan, texts
from .played import SESSION, Played, make_party, refusals, settled

LARGE = 10_000_000  # bytes of a hostile message
HOME = b"\x08\x01\x12\x20" + SESSION  # version and session


def field(number: int, content: bytes) -> bytes:
    """A field of bytes, as protobuf writes it."""
    return bytes([number << 3 | 2]) + length(len(content)) + content


def length(number: int) -> bytes:
    parts = [number >> shift & 0x7F for shift in range(0, 35, 7)]
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return bytes([part | 0x80 for part in parts[:-1]] + parts[-1:])


def repeated(piece: bytes) -> bytes:
    return piece * (LARGE // len(piece))


def asking(content: bytes) -> bytes:
    return HOME + field(5, content)


REQUESTS: Mapping[str, Callable[[], bytes]] = {
    "empty arrays": lambda: asking(repeated(field(6, b""))),
    "arrays without values": lambda: asking(repeated(field(6, field(1, b"a") + field(2, b"<f4") + field(3, b"\x00")))),
    "members without a name": lambda: asking(repeated(field(4, b""))),
    "witnesses of nothing": lambda: asking(repeated(field(8, b""))),
    "an array of ten million lengths": lambda: asking(field(6, field(3, repeated(b"\x01")))),
    "lengths one by one": lambda: asking(field(6, repeated(b"\x18\x01"))),
    "a long name of a question": lambda: asking(field(1, repeated(b"x"))),
    "a long name of a member": lambda: asking(field(4, repeated(b"x"))),
    "a long name of an array": lambda: asking(field(6, field(1, repeated(b"x")))),
    "a field that nobody knows": lambda: HOME + repeated(b"\x98\x06\x01"),
    "a field that nobody knows, inside": lambda: asking(repeated(b"\x98\x06\x01")),
    "one question after another": lambda: HOME + repeated(field(5, b"")),
    "one session after another": lambda: repeated(field(2, b"")) + HOME + field(4, b""),
    "groups in groups": lambda: HOME + b"\x1b" * LARGE,
    "an invitation of empty names": lambda: HOME + field(3, repeated(field(3, b""))),
    "a parcel nobody asked for": lambda: HOME + field(6, field(2, bytes(LARGE))),
    "heads of nobody": lambda: HOME + field(8, repeated(field(1, b""))),
    "a state beyond the plan": lambda: asking(
        field(1, b"train") + field(4, b"north") + field(6, field(1, b"weights") + field(2, b"|u1") + field(4, bytes(LARGE)))
    ),
}
REPLIES: Mapping[str, Callable[[], bytes]] = {
    "empty parcels": lambda: HOME + field(3, repeated(field(1, b""))),
    "a long head": lambda: HOME + field(3, field(2, bytes(LARGE))),
    "a long name of a refusal": lambda: HOME + field(4, field(1, repeated(b"x"))),
    "one answer after another": lambda: HOME + repeated(field(3, b"")),
    "a parcel beyond the question": lambda: HOME + field(3, field(1, bytes(LARGE))),
}


def small_corpora() -> Mapping[str, Corpus]:
    return {name: Corpus.from_strings(texts(words, 30, 1), name=name) for name, words in SUBJECTS.items()}


def hearing(folder: Path, which: tuple[str, ...]) -> Callable[[], object]:
    """A party that hears all these messages; what it holds before does not count."""
    corpora, plan = small_corpora(), small_plan()
    party, played = make_party("north", plan, corpora, folder), Played(plan, tuple(corpora))
    settled(played, party, sorted({word for words in SUBJECTS.values() for word in words}))
    party.handle(HOME)  # what a first refusal sets up is not the message's doing
    messages = [REQUESTS[name]() for name in which]

    def hear() -> None:
        for name, message in zip(which, messages, strict=True):
            said = wire.unpack_reply(party.handle(message), "north")[1]
            assert said == wire.Refusal("Malformed"), (name, refusals(party)[-1])

    return hear


def reading(which: tuple[str, ...]) -> Callable[[], object]:
    """A coordinator that reads all these replies to a question whose answers are a thousand bytes long."""
    messages = [REPLIES[name]() for name in which]

    def read() -> None:
        for message in messages:
            with pytest.raises(Malformed):
                wire.unpack_reply(message, "north", most=1_000)

    return read


@pytest.fixture(autouse=True)
def _loaded() -> None:
    """Peaks are measured in processes that have loaded everything."""
    forking()


needs_peaks = pytest.mark.skipif(not measurable(), reason="this system does not measure the peak of a process's memory")


@needs_peaks
def test_a_party_spends_no_memory_on_messages_that_no_plan_asks_for(tmp_path: Path) -> None:
    """Each is ten megabytes that are already there; the party adds less than a tenth to any of them."""
    assert peak_mebibytes(hearing, tmp_path, tuple(REQUESTS)) < 1.0


@needs_peaks
def test_a_coordinator_spends_none_on_replies_beyond_the_question() -> None:
    assert peak_mebibytes(reading, tuple(REPLIES)) < 1.0


# ---- limits that follow from the plan ---------------------------------------------------------------------------------


def test_a_party_takes_the_plans_own_messages_and_not_a_byte_of_state_more(
    corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = small_plan()
    party, played = make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora))
    settled(played, party, sorted({word for words in SUBJECTS.values() for word in words}))
    asked = played.ask("train", played.fresh())
    assert party.most_bytes < 2 * len(wire.pack_request(SESSION, asked)) + (1 << 27)
    larger = {name: np.concatenate([array.ravel(), np.zeros(4_000, array.dtype)]) for name, array in asked.state.items()}
    assert played.send(party, played.altered(asked, state=larger)) == wire.Refusal("Malformed")
    assert "plan" in refusals(party)[-1][1]
    assert isinstance(played.send(party, asked), wire.Accepted)


def test_before_there_are_words_no_question_may_bring_a_state(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan()
    party, played = make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora))
    played.send(party, played.invite())
    asked = wire.Ask("words", 0, 1, played.members, bytes(32), {"weights": np.zeros(4_000)})
    assert played.send(party, asked) == wire.Refusal("Malformed")


@pytest.mark.parametrize("name", MODELS.own)
def test_the_bound_on_a_state_is_that_of_the_plans_model(name: str) -> None:
    """Exactly what is shown in training, or what a question about the whole model or its top words may bring."""
    named = {"module": "tests.models.torch_module.networks:SmallNetwork"} if name == "torch-module" else {}
    model = make_model(name, {"n_topics": 30, **named})
    fresh = model.for_party(model.start([f"word {n}" for n in range(201)], np.random.default_rng(1)), "")
    shown = sum(array.nbytes for array in fresh.values())
    bound = state_bytes(model, 201)
    assert shown <= bound
    assert hasattr(model, "fits") or bound == shown


# ---- lists of words -----------------------------------------------------------------------------------------------------


def sixteen() -> list[str]:
    """As many words of sixteen letters, with what ends them, as a list may hold."""
    return [f"{number:015x}" for number in range(250_000)]


def listing(folder: Path, words: str, name: str) -> Callable[[], object]:
    """A party that hears one list of candidates, and says what it says."""
    corpora, plan = small_corpora(), small_plan(vocabulary__source="union")
    party, played = make_party("north", plan, corpora, folder), Played(plan, tuple(corpora))
    played.send(party, played.invite())
    message = wire.pack_request(SESSION, wire.Adopt(words.encode(), True))

    def hear() -> None:
        said = wire.unpack_reply(party.handle(message), "north")[1]
        assert (getattr(said, "name", "taken")) == name, refusals(party)

    return hear


@needs_peaks
@pytest.mark.parametrize("last", ["river", "\U0001d538"])  # a letter beyond the basic plane makes a text four times as wide
def test_the_largest_list_of_words_takes_less_than_sixty_four_mebibytes(last: str, tmp_path: Path) -> None:
    assert peak_mebibytes(listing, tmp_path, "\n".join([*sixteen()[:-1], last]), "taken") < 64.0


@needs_peaks
def test_a_list_of_more_words_than_are_counted_is_refused_before_words_are_made_of_it(tmp_path: Path) -> None:
    words = "\n".join(f"{number:06x}" for number in range(500_000))
    assert peak_mebibytes(listing, tmp_path, words, "BadState") < 4 * len(words) / 2**20


def test_a_list_longer_than_the_plan_says_is_not_read(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(vocabulary__max_words=3)
    party, played = make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora))
    played.send(party, played.invite())
    assert played.send(party, wire.Adopt(b"boat\nlake\nriver\n\xff")) == wire.Refusal("BadState")
    assert "longer" in refusals(party)[-1][1]


def test_candidates_bring_no_state_with_them(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(vocabulary__source="union")
    party, played = make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora))
    played.send(party, played.invite())
    before = party.limits.of_bodies()["ask"]
    assert played.send(party, played.adopt(["boat", "river"], candidates=True)) == wire.Accepted()
    assert party.limits.of_bodies()["ask"] == before


@pytest.mark.parametrize("question", ["words", "frequencies"])
def test_a_question_that_is_about_nothing_brings_nothing(question: str, corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(vocabulary__source="union")
    party, played = make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora))
    settled(played, party, sorted({word for words in SUBJECTS.values() for word in words}))
    asked = played.ask(question, {})
    assert played.send(party, played.altered(asked, state={"junk": np.zeros(9)})) == wire.Refusal("BadState")
    assert "about nothing but" in refusals(party)[-1][1]
    assert isinstance(played.send(party, asked), wire.Accepted)


def test_the_joint_table_of_words_is_about_nothing_either() -> None:
    plan = small_plan(profile="masked", vocabulary__source="joint")
    questions = Questions(agree(plan))
    questions.make("joint", {})
    with pytest.raises(BadState, match="about nothing but"):
        questions.make("joint", {"junk": np.zeros(9)})


def test_a_noised_sum_of_words_is_about_any_bits_of_the_right_form() -> None:
    questions = Questions(agree(small_plan(profile="dp-distributed", training__rounds=2)))
    for state in ({}, {OPEN: np.zeros(OPEN_BYTES, dtype=np.uint8)}, {OPEN: np.full(OPEN_BYTES, 255, dtype=np.uint8)}):
        assert questions.make("joint", state).terms.l2 == 1.0
    for shape, kind in ((OPEN_BYTES - 1, np.uint8), (OPEN_BYTES, np.int64), ((2, 9), np.uint8)):
        with pytest.raises(BadState, match="open words"):
            questions.make("joint", {OPEN: np.zeros(shape, dtype=kind)})
    with pytest.raises(BadState, match="open words"):
        questions.make("joint", {"junk": np.zeros(OPEN_BYTES, dtype=np.uint8)})


# ---- refusals on disk ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [PartyStore, CoordinatorStore])
def test_the_first_and_the_last_refusals_are_kept_and_the_rest_counted(store: Any, tmp_path: Path) -> None:
    kept = store(tmp_path / "role")
    facts = {"serial": 1, "party": "north"} if store is CoordinatorStore else {}
    told = FIRST_KEPT + LAST_KEPT + 25
    for number in range(told):
        kept.note("refusals", {**facts, "name": "Malformed", "reason": str(number)})
    kept.keep()
    reasons = [int(reason) for (reason,) in kept.rows("SELECT reason FROM refusals ORDER BY at")]
    assert reasons == [*range(FIRST_KEPT), *range(told - LAST_KEPT, told)]
    assert kept.noted("refusals") == told
    kept.close()


def test_a_party_that_is_flooded_keeps_its_disk(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    party = make_party("north", small_plan(), corpora, tmp_path)
    party.store._open.execute("PRAGMA synchronous=OFF")
    told = FIRST_KEPT + LAST_KEPT + 100
    for _ in range(told):
        party.handle(pb.Request(version=1).SerializeToString())
    assert len(refusals(party)) == FIRST_KEPT + LAST_KEPT
    assert party.store.noted("refusals") == told


def test_refusals_that_a_full_disk_cannot_take_do_not_pile_up(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    party = make_party("north", small_plan(), corpora, tmp_path)
    pages = party.store.rows("PRAGMA page_count")[0][0]
    party.store.rows(f"PRAGMA max_page_count = {pages}")
    for _ in range(200):  # more than fit into what is left of the last page
        assert wire.unpack_reply(party.handle(HOME), "north")[1] == wire.Refusal("Malformed")
    assert len(refusals(party)) < 200
    assert party.store._waiting == []
