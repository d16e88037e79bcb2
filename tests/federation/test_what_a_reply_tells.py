"""What a party's reply tells beside the answer: nothing of its documents, whatever weights a coordinator makes up.

Two corpora differ in one word, or in one document. The same hostile questions must end alike for both: the same outcome, of the
same size. Every question passes the real door, from the coordinator's own code to the party's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.aggregation.homomorphic import encrypted_sum
from securetm.answers.route import compile_route
from securetm.contracts import RoundContext, State
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.errors import CannotWrite, CountsNotWhole, Failed, Malformed, SecuretmError
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.coordinator.words import new_words, tell_words
from securetm.federation.folder import begin, reopen
from securetm.federation.party.answering import Answering
from securetm.federation.party.documents import read_documents
from securetm.federation.party.failure_log import failures_in, lost_in
from securetm.federation.party.party import Party
from securetm.federation.party.session import JoinedSession
from securetm.federation.questions import COHERENCE, HELD_OUT, TRAIN, Questions
from securetm.federation.simulation.simulation import InProcess, make_party, train
from securetm.federation.store import CoordinatorStore
from securetm.federation.transcript import Watch
from securetm.federation.wire import wire
from securetm.models.gradients import StepQuery
from securetm.models.neural.network import NetworkShape
from securetm.plans.profiles import cohort_of
from securetm.stages import Unwatched

from .conftest import SUBJECTS, small_plan
from .private import PUBLIC, paying_parties, private_plan
from .staged import Stage

WORD = "storm"  # of the first party's documents alone
Reply = tuple[str, str, int]  # who, how it ended, and how many bytes


@dataclass
class Overheard:
    """The real parties, and what each reply of theirs shows to whoever carries it."""

    inside: InProcess
    replies: list[Reply] = field(default_factory=list)

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes]]:
        for name, reply in self.inside.ask(requests, most):
            outcome = wire.unpack_reply(reply, name)[1]
            self.replies.append((name, outcome.name if isinstance(outcome, wire.Refusal) else "", len(reply)))
            yield name, reply

    def present(self) -> frozenset[str]:
        return self.inside.present()

    def close(self) -> None:
        self.inside.close()


def with_word(corpora: Mapping[str, Corpus]) -> Mapping[str, Corpus]:
    """The same documents, but that one document of one party has one word more."""
    return {**corpora, "south": Corpus.concat([corpora["south"], Corpus.from_strings([f"court {WORD} judge"])])}


def without_word(corpora: Mapping[str, Corpus]) -> Mapping[str, Corpus]:
    return {**corpora, "south": Corpus.concat([corpora["south"], Corpus.from_strings(["court judge"])])}


def one_less(corpora: Mapping[str, Corpus]) -> Mapping[str, Corpus]:
    return corpora


def weights_of(value: float) -> Callable[[State, int, int], np.ndarray]:
    """Weights of one size for all that leads from the word to the answer, and nothing of other words."""

    def made(state: State, hidden: int, topics: int) -> np.ndarray:
        weights = np.array(state["weights"])
        layers = NetworkShape.from_weights(weights, hidden, topics).views(weights)
        layers["words"][PUBLIC.index(WORD)] = value
        return weights

    return made


def everywhere(value: float) -> Callable[[State, int, int], np.ndarray]:
    return lambda state, hidden, topics: np.full_like(state["weights"], value)


def decoder(state: State, hidden: int, topics: int) -> np.ndarray:
    """Documents with the word get infinite logits, others ordinary ones."""
    weights = np.array(state["weights"])
    layers = NetworkShape.from_weights(weights, hidden, topics).views(weights)
    layers["topics"][:, PUBLIC.index(WORD)] = 3e38
    layers["background"][PUBLIC.index(WORD)] = -3e38
    return weights


HOSTILE: Mapping[str, Callable[[State, int, int], np.ndarray]] = {
    "3e38 for the word": weights_of(3e38),
    "1e30 for the word": weights_of(1e30),
    "3e38 everywhere": everywhere(3e38),
    "an infinite decoder": decoder,
}


def overheard(profile: str, corpora: Mapping[str, Corpus], folder: Path, learning_rate: float = 0.002) -> list[Reply]:
    """Every reply to every hostile question under that profile."""
    settings: dict[str, Any] = {"model__batch": 64, "training__rounds": 6, "model__learning_rate": learning_rate}
    run = begin(folder / "run", private_plan(folder, profile, **settings), corpora)
    parties = Overheard(InProcess({name: make_party(run, name) for name in run.members}))
    store = CoordinatorStore(run.coordinator)
    coordinator = Coordinator(run.members, run.agreement, parties, store, OperatingSystem(), Watch(), run.keys)
    coordinator.tell(wire.Invite(run.agreement.digest, coordinator.agreement.profile.digest, run.members, 0))
    tell_words(coordinator, new_words(coordinator))
    for question, state in _asked(coordinator):
        try:
            coordinator.ask(question, state)
        except SecuretmError as ended:
            parties.replies.append(("the coordinator", type(ended).__name__, 0))
    parties.close()
    store.close()
    return parties.replies


def _asked(coordinator: Coordinator) -> Iterator[tuple[str, State]]:
    state = coordinator.agreement.model.start(PUBLIC, np.random.default_rng(coordinator.agreement.plan.seed))
    if coordinator.parties_open:  # no weights of a coordinator's own: the parties learn, and what they learn may diverge
        yield from [(TRAIN, state)] * 4
        yield HELD_OUT, state
        return
    hidden, topics = (int(coordinator.agreement.plan.model.settings[name]) for name in ("hidden", "n_topics"))
    for made in HOSTILE.values():
        yield TRAIN, {**state, "weights": made(state, hidden, topics)}
    if not coordinator.questions.paid:
        yield HELD_OUT, {**state, "weights": decoder(state, hidden, topics)}
        yield COHERENCE, {"top": np.array([[PUBLIC.index(WORD), PUBLIC.index("court")]])}


SLOW = ("open", "masked_strict", "bfv", "ckks", "dp-local", "dp-central")
PROFILES = ("masked", "dp-distributed", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW))


@pytest.fixture(scope="module")
def six(five: Mapping[str, Corpus]) -> Mapping[str, Corpus]:
    """Documents of five parties, of whom one says the word; the others' subjects are without it."""
    said = {name: Corpus.from_strings([" ".join(SUBJECTS["south"])] * 90, name=name) for name in five}
    return {**said, "north": five["north"]}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_word_in_one_document_changes_no_reply(profile: str, six: Mapping[str, Corpus], tmp_path: Path) -> None:
    told = [
        overheard(profile, change(six), tmp_path / place)
        for place, change in (("with", with_word), ("without", without_word), ("one less", one_less))
        if not (tmp_path / place).mkdir()
    ]
    assert told[0] == told[1] == told[2]
    assert all(how == "" for _, how, _ in told[0])  # every question was answered


@pytest.mark.parametrize("profile", ["bfv", pytest.param("ckks", marks=pytest.mark.slow)])
def test_what_diverges_at_the_parties_changes_no_reply(profile: str, six: Mapping[str, Corpus], tmp_path: Path) -> None:
    for place in ("calm", "wild"):
        (tmp_path / place).mkdir()
    calm, wild = overheard(profile, six, tmp_path / "calm"), overheard(profile, six, tmp_path / "wild", 1e38)
    assert calm == wild


_ANSWER = StepQuery.answer


class Fails:
    """A question that ends in an exception as soon as a document has the word."""

    def __init__(self, failure: BaseException) -> None:
        self.failure = failure

    def __call__(self, query: StepQuery, documents: Any, *others: Any) -> None:
        if WORD in documents.vocabulary and documents.counts[:, [documents.vocabulary.index(WORD)]].sum():
            raise self.failure
        _ANSWER(query, documents, *others)


FAILURES = [RuntimeError("storm"), MemoryError(), CountsNotWhole(), ZeroDivisionError(), Malformed("nobody", "storm")]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_whatever_fails_over_a_document_changes_no_reply(
    failure: Exception, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, party = stage.played, stage.party
    before = played.send(party, played.ask("train", played.fresh()))
    monkeypatch.setattr(StepQuery, "answer", lambda *given: Fails(failure)(*given))
    after = played.send(party, played.ask("train", played.fresh(), number=1))
    assert isinstance(before, wire.Accepted)
    assert isinstance(after, wire.Accepted)
    assert list(map(len, after.parcels)) == list(map(len, before.parcels))
    assert np.frombuffer(after.parcels[0], np.float32).any()  # the other documents have their part in it
    assert party.store.rows("SELECT COUNT(*) FROM lost WHERE numbers > 0") == [(1,)]
    assert [one.name for one in failures_in(party.store.folder)] == [type(failure).__name__]


@pytest.mark.parametrize("profile", ["dp-local", "dp-distributed"])
def test_what_fails_under_a_budget_is_an_answer_with_its_noise(
    profile: str, five: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    party = next(iter(paying_parties(private_plan(tmp_path, profile), five, tmp_path).values()))
    party.questions.adopt(PUBLIC)
    party.documents = read_documents(PUBLIC, party.corpus, party.agreement, party.failure_log)
    query = party.questions.make(TRAIN, party.questions.agreement.model.for_party(fresh(party), ""))
    cohort = cohort_of(party.agreement.profile, party.members, round_id=bytes(32))
    route = compile_route(query.terms, party.agreement.profile, cohort)
    context = RoundContext(cohort, party.entropy, party.store)
    monkeypatch.setattr(StepQuery, "answer", lambda *given: Fails(MemoryError())(*given))
    ask = wire.Ask(TRAIN, 0, 0, party.members, cohort.round_id, {}, False)
    session = JoinedSession.begin(party, bytes(32))
    answering = Answering(session, ask, query, cohort, route)
    drawn = (answering.clipped_answer(party.documents.for_question(TRAIN), context) for _ in range(100))
    answer = next(one for one in drawn if one.lost)  # a secret sample has the document in it, or not
    assert {name: block.shape for name, block in answer.vector.items()} == {
        block.name: block.shape for block in route.terms.layout
    }
    assert [one.name for one in answer.failures] == ["MemoryError"]
    assert np.concatenate([block.ravel() for block in answer.vector.values()]).any()  # noise
    party.close()


def fresh(party: Party) -> State:
    return party.questions.agreement.model.start(PUBLIC, np.random.default_rng(0))


def test_what_fails_before_documents_are_touched_is_one_refusal(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    asked = stage.played.ask("train", stage.played.fresh())
    monkeypatch.setattr(Questions, "numbers", broken)
    assert stage.says(asked) == wire.Refusal("Failed")
    monkeypatch.undo()
    stage.answers(asked)


def test_a_full_disk_ends_in_the_same_refusal(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise CannotWrite("own.sqlite", "no space left")

    monkeypatch.setattr(type(stage.party.store), "now", full)
    assert stage.says(stage.played.ask("train", stage.played.fresh())) == wire.Refusal("Failed")
    assert stage.says(wire.Forward(bytes(32), b"")) == wire.Refusal("UnknownRound")
    monkeypatch.undo()
    stage.answers(stage.played.ask("train", stage.played.fresh()))


def test_whoever_runs_all_roles_is_told_by_name(
    corpora: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StepQuery, "answer", lambda *given: Fails(ZeroDivisionError("by a storm"))(*given))
    folder = begin(tmp_path / "run", small_plan(training__rounds=1), corpora)
    with pytest.raises(Failed, match="north logged a failure of its own: ZeroDivisionError: by a storm"):
        train(folder, Unwatched())


def test_what_was_not_finite_is_counted_at_home(six: Mapping[str, Corpus], tmp_path: Path) -> None:
    overheard("masked", six, tmp_path)
    lost = {name: lost_in(folder) for name, folder in _folders(tmp_path / "run").items()}
    assert lost["north"] > 0


def _folders(run: Path) -> Mapping[str, Path]:
    opened = reopen(run)
    return {name: opened.party(name) for name in opened.members}


@pytest.mark.slow
def test_a_sum_that_will_not_open_changes_no_reply(
    six: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether ciphertexts of a coordinator's own open would tell of the key."""

    def broken(*_: object) -> None:
        raise ValueError("no plaintext")

    for place in ("one", "two"):
        (tmp_path / place).mkdir()
    before = overheard("bfv", six, tmp_path / "one")
    monkeypatch.setattr(encrypted_sum, "decrypt", broken)
    assert overheard("bfv", six, tmp_path / "two") == before
