"""Nothing that depends on documents leaves a party but the answer to a question; no folder knows another role's facts."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from securetm.aggregation.vectors import wire_type
from securetm.corpus.corpus import Corpus
from securetm.corpus.records import Dropped
from securetm.federation.folder import RunFolder, begin
from securetm.federation.party.party import Party
from securetm.federation.simulation.simulation import execute
from securetm.federation.transcript import Transcript
from securetm.federation.wire import wire
from securetm.stages import Unwatched

from .conftest import SHARED, SUBJECTS, small_plan, texts
from .played import Played, make_party, refusals, settled

CANARY = "zyzzyvacanary"  # one party's word, too rare for the agreed vocabulary
WORDS = tuple(sorted({*SHARED, *SUBJECTS["north"]}))
TOP = {"top": np.arange(6).reshape(2, 3)}


@pytest.fixture(scope="module")
def with_canary(corpora: Mapping[str, Corpus]) -> Mapping[str, Corpus]:
    said = [*texts(SUBJECTS["south"], 60, 1), f"court {CANARY} judge"]
    return {**corpora, "south": Corpus.from_strings(said, name="south")}


@pytest.fixture(scope="module", params=[True, False], ids=["with content", "without content"])
def folder(
    request: pytest.FixtureRequest, with_canary: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory
) -> RunFolder:
    """A finished run that was stopped by a question, so that every kind of question was asked."""
    plan = small_plan(training__stop="held_out", training__every=3, training__rounds=6)
    made = begin(tmp_path_factory.mktemp("door") / "run", plan, with_canary, with_content=request.param)
    execute(made, Unwatched(), comparison=False)
    return made


@dataclass(frozen=True)
class Message:
    serial: int
    channel: str
    sender: str
    receiver: str
    size: int
    content: bytes | None


def messages(folder: RunFolder) -> Iterator[Message]:
    transcript = Transcript(folder.path / "transcript")
    for row in transcript.rows("SELECT serial, channel, sender, receiver, bytes, content FROM messages ORDER BY at"):
        yield Message(*row)
    transcript.close()


# ---- what passes the door ------------------------------------------------------------------------------------------


def test_every_message_of_a_party_is_one_answer_of_the_promised_size(
    folder: RunFolder, with_canary: Mapping[str, Corpus]
) -> None:
    if not folder.with_content:
        pytest.skip("the content is not kept")
    coordinator = Played(folder.agreement.plan, folder.members)
    pending: dict[str, wire.Body] = {}
    answered = 0
    for message in messages(folder):
        assert message.content is not None
        if message.channel == "request":
            pending[message.receiver] = wire.unpack_request(message.content)[1]
        elif message.channel == "answer":
            answered += check_reply(coordinator, message, pending.pop(message.sender), with_canary)
        else:
            assert message.channel == "total"
    assert not pending
    questions = 2 + 6 + 2 + 2  # words, frequencies; training; two steps; the assessment
    assert answered == questions * len(folder.members)


def check_reply(coordinator: Played, message: Message, request: wire.Body, corpora: Mapping[str, Corpus]) -> int:
    """Recomputes from the plan alone how long the answer may be."""
    assert message.content is not None
    outcome = wire.unpack_reply(message.content, message.sender)[1]
    assert isinstance(outcome, wire.Accepted)
    if isinstance(request, wire.Adopt):
        coordinator.questions.adopt(tuple(request.words.decode().split("\n")), candidates=request.candidates)
    if not isinstance(request, wire.Ask):
        assert outcome.parcels == ()
        return 0
    (parcel,) = outcome.parcels
    terms = coordinator.terms(request.question, request.state)
    promised = terms.size * wire_type(terms).itemsize
    if terms.ragged:
        assert parcel == "\n".join(corpora[message.sender].vocabulary).encode()
        assert len(parcel) <= promised
    else:
        assert len(parcel) == promised
    session = wire.unpack_reply(message.content, message.sender)[0]
    assert message.content == wire.pack_reply(session, wire.Accepted((parcel,)))  # and no other field, known or not
    return 1


def test_nobody_speaks_to_anybody_but_the_coordinator(folder: RunFolder) -> None:
    for message in messages(folder):
        parties = {message.sender, message.receiver} - {"coordinator"}
        assert len(parties) == (0 if message.channel == "total" else 1)
        assert (message.content is not None) == folder.with_content
        assert message.content is None or len(message.content) == message.size


# ---- what each role keeps ------------------------------------------------------------------------------------------


def contents(path: Path) -> bytes:
    """All bytes of all files below, and all rows of all databases, whatever pages they lie on."""
    files = [file for file in path.rglob("*") if file.is_file()]
    assert files
    rows = [repr(list(dump(file))).encode() for file in files if file.suffix == ".sqlite"]
    return b"".join([file.read_bytes() for file in files] + rows)


def dump(file: Path) -> Iterator[str]:
    opened = sqlite3.connect(file)
    yield from opened.iterdump()
    opened.close()


def test_a_word_that_was_pruned_stays_where_it_was_written(folder: RunFolder) -> None:
    canary = CANARY.encode()
    assert canary in contents(folder.party("south"))
    for elsewhere in (folder.party("north"), folder.party("west")):
        assert canary not in contents(elsewhere)
    told = {found for found in messages(folder) if found.content is not None and canary in found.content}
    if folder.with_content:  # the union of vocabularies shows every word once, as the profile says, and then never again
        assert {m.serial for m in told} == {1}
    else:
        assert canary not in contents(folder.path / "transcript")
    assert canary not in contents(folder.coordinator)
    assert canary not in (folder.path / "result.json").read_bytes()


TABLES = {
    "store": {"key", "value"},
    "rounds": {"serial", "question", "number", "survivors", "bytes_up", "bytes_down", "seconds"},
    "losses": {"serial", "measure", "value"},
    "refusals": {"at", "serial", "party", "name", "reason"},
}


def test_the_coordinators_store_has_no_room_for_a_partys_own_figures(folder: RunFolder) -> None:
    opened = sqlite3.connect(folder.coordinator / "rounds.sqlite")
    names = {name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    found = {name: {column[1] for column in opened.execute(f"PRAGMA table_info({name})")} for name in names}
    assert found == TABLES
    measured = opened.execute("SELECT serial, measure, value FROM losses ORDER BY serial").fetchall()
    asked = dict(opened.execute("SELECT serial, question FROM rounds").fetchall())
    opened.close()
    assert [(asked[serial], measure) for serial, measure, _ in measured] == [("held_out", "held_out")] * 2
    for name in folder.members:
        own = sqlite3.connect(folder.party(name) / "own.sqlite")
        losses = [loss for (loss,) in own.execute("SELECT loss FROM rounds WHERE question = 'train'")]
        own.close()
        assert losses
        assert not {value for _, _, value in measured} & set(losses)


def test_the_coordinator_holds_no_other_file(folder: RunFolder) -> None:
    kept = {path.name for path in folder.coordinator.iterdir()} - {"rounds.sqlite-wal", "rounds.sqlite-shm"}
    assert kept == {"rounds.sqlite", "vocabulary.txt", "checkpoint.safetensors", "best.safetensors", "handed_out.json"}
    told = json.loads((folder.coordinator / "handed_out.json").read_text("utf-8"))
    assert told == {"parties": sorted(folder.members)}  # names that the roster has, and nothing else
    assert {path.name for path in (folder.path / "parties").iterdir()} == {folder.party(m).name for m in folder.members}


# ---- what must not matter ------------------------------------------------------------------------------------------


def replies(party: Party, coordinator: Played, questions: list[str]) -> list[bytes]:
    """A party's bytes in answer to each question."""
    settled(coordinator, party, WORDS)
    said = []
    for question in questions:
        state = TOP if question == "coherence" else {} if question in ("words", "frequencies") else coordinator.fresh()
        said.append(party.handle(wire.pack_request(coordinator.session, coordinator.ask(question, state))))
    party.store.close()
    return said


def unlike(corpus: Corpus) -> Mapping[str, Corpus]:
    """The same documents with everything else about them changed."""
    n = len(corpus)
    columns = {"labels": np.array(["secret"] * n), "parties": np.array(["x"] * n), "dates": np.array(["1999-01-01"] * n)}
    return {
        "labels, parties and dates": corpus.replace(**columns),
        "embeddings": corpus.replace(embeddings=np.ones((n, 4), np.float32)),
        "skipped documents": corpus.replace(skipped=1000, dropped=(Dropped("without text", 1000),)),
        "name": corpus.replace(name="another name"),
        "order of documents": corpus.select(np.arange(n)[::-1]),
    }


@pytest.mark.parametrize("what", ["labels, parties and dates", "embeddings", "skipped documents", "name", "order of documents"])
def test_an_answer_does_not_depend_on(what: str, corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Whole numbers add up alike in every order; sums of gradients and likelihoods do so up to rounding."""
    questions = ["words", "frequencies", "coherence"] + ([] if what == "order of documents" else ["train", "held_out"])
    plan = small_plan()
    changed = {**corpora, "north": unlike(corpora["north"])[what]}
    before = replies(make_party("north", plan, corpora, tmp_path / "a"), Played(plan, tuple(corpora)), questions)
    after = replies(make_party("north", plan, changed, tmp_path / "b"), Played(plan, tuple(corpora)), questions)
    assert before == after


def test_an_answer_does_depend_on_the_documents(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Otherwise the test above could not fail."""
    plan, questions = small_plan(), ["words", "frequencies", "coherence", "train", "held_out"]
    fewer = {**corpora, "north": corpora["north"].select(np.arange(len(corpora["north"]) - 30))}
    other = {**fewer, "north": fewer["north"].replace(vocabulary=tuple(f"{w}x" for w in fewer["north"].vocabulary))}
    said = [
        replies(make_party("north", plan, held, tmp_path / place), Played(plan, tuple(corpora)), questions)
        for place, held in (("a", corpora), ("b", fewer), ("c", other))
    ]
    assert all(one != another for one, another in zip(said[0][1:], said[1][1:], strict=True))
    assert said[0][0] != said[2][0]


def test_a_refusal_is_its_name_whatever_the_documents_are(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan()
    coordinator = Played(plan, tuple(corpora))
    coordinator.adopt(WORDS)
    asks = [coordinator.ask("train", coordinator.fresh()), coordinator.ask("words", {}, members=("south", "west"))]
    parties = {name: make_party(name, plan, corpora, tmp_path) for name in corpora}
    for ask in asks:  # nobody was invited
        said = {party.handle(wire.pack_request(coordinator.session, ask)) for party in parties.values()}
        assert said == {wire.pack_reply(coordinator.session, wire.Refusal("NotInvited"))}


# ---- models shown to one party only --------------------------------------------------------------------------------


def test_two_parties_that_are_shown_different_models_are_in_different_rounds(
    corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    """Model inconsistency: a coordinator that shows one party a model of its own cannot have both under one round id."""
    plan = small_plan()
    coordinator = Played(plan, tuple(corpora))
    parties = [make_party(name, plan, corpora, tmp_path) for name in ("north", "south")]
    for party in parties:
        settled(coordinator, party, WORDS)
    honest = coordinator.ask("train", coordinator.fresh(), serial=1)
    prepared = dict(coordinator.fresh())
    prepared["weights"] = np.zeros_like(prepared["weights"])
    other = coordinator.ask("train", prepared, serial=1)
    assert honest.round_id != other.round_id
    assert isinstance(coordinator.send(parties[0], honest), wire.Accepted)
    assert coordinator.send(parties[1], replace(honest, state=prepared)) == wire.Refusal("WrongRound")
    assert refusals(parties[1])[-1][0] == "WrongRound"
