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

from securetm.contracts import Answer, State
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.errors import SecuretmError
from securetm.federation import wire
from securetm.federation.coordinator import Coordinator
from securetm.federation.folder import begin
from securetm.federation.parties import InProcess
from securetm.federation.questions import COHERENCE, HELD_OUT, TRAIN
from securetm.federation.simulation import make_party
from securetm.federation.store import CoordinatorStore
from securetm.models.neural.prodlda_losses import Shape

from .conftest import SUBJECTS
from .private import PUBLIC, private_plan

WORD = "storm"  # of the first party's documents alone
Reply = tuple[str, str, int]  # who, how it ended, and how many bytes


@dataclass
class Overheard:
    """The real parties, and what each reply of theirs shows to whoever carries it."""

    inside: InProcess
    replies: list[Reply] = field(default_factory=list)

    def ask(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes]:
        replies = self.inside.ask(requests)
        for name, reply in replies.items():
            outcome = wire.unpack_reply(reply, name)[1]
            self.replies.append((name, outcome.name if isinstance(outcome, wire.Refusal) else "", len(reply)))
        return replies

    def close(self) -> None:
        self.inside.close()


class Nobody:
    def round_begins(self, serial: int) -> None:
        """Nothing is kept."""

    def opened(self, serial: int, answer: Answer) -> None:
        """Nothing is kept."""

    def trained(self, done: int, total: int) -> None:
        """Nothing is kept."""


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
        layers = Shape.of(weights, hidden, topics).views(weights)
        layers["words"][PUBLIC.index(WORD)] = value
        return weights

    return made


def everywhere(value: float) -> Callable[[State, int, int], np.ndarray]:
    return lambda state, hidden, topics: np.full_like(state["weights"], value)


def decoder(state: State, hidden: int, topics: int) -> np.ndarray:
    """Documents with the word get infinite logits, others ordinary ones."""
    weights = np.array(state["weights"])
    layers = Shape.of(weights, hidden, topics).views(weights)
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
    coordinator = Coordinator(
        run.members, run.plan, run.plan.make_profile(), parties, store, OperatingSystem(), Nobody(), run.keys
    )
    coordinator._tell(wire.Invite(run.plan.agreement(), coordinator.profile.digest, run.members, 0))
    coordinator._adopt(coordinator._agree_on_words())
    for question, state in _asked(coordinator):
        try:
            coordinator.ask(question, state)
        except SecuretmError as ended:
            parties.replies.append(("the coordinator", type(ended).__name__, 0))
    parties.close()
    store.close()
    return parties.replies


def _asked(coordinator: Coordinator) -> Iterator[tuple[str, State]]:
    state = coordinator.model.start(PUBLIC, np.random.default_rng(coordinator.plan.seed))
    if coordinator._blind:  # no weights of a coordinator's own: the parties learn, and what they learn may diverge
        yield from [(TRAIN, state)] * 4
        yield HELD_OUT, state
        return
    hidden, topics = (int(coordinator.plan.model.settings[name]) for name in ("hidden", "n_topics"))
    for made in HOSTILE.values():
        yield TRAIN, {**state, "weights": made(state, hidden, topics)}
    if not coordinator.questions.paid:
        yield HELD_OUT, {**state, "weights": decoder(state, hidden, topics)}
        yield COHERENCE, {"top": np.array([[PUBLIC.index(WORD), PUBLIC.index("court")]])}


QUICK, SLOW = ("open", "masked", "bfv", "dp-distributed"), ("masked_strict", "ckks", "dp-local", "dp-central")
PROFILES = (*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW))


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


@pytest.mark.parametrize("profile", ["bfv", "ckks"])
def test_what_diverges_at_the_parties_changes_no_reply(profile: str, six: Mapping[str, Corpus], tmp_path: Path) -> None:
    for place in ("calm", "wild"):
        (tmp_path / place).mkdir()
    calm, wild = overheard(profile, six, tmp_path / "calm"), overheard(profile, six, tmp_path / "wild", 1e38)
    assert calm == wild
