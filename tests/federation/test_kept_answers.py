"""An answer that a budget paid for is given again as it was: the same vector, one entry in the ledger, whoever was killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from securetm.contracts import Answer, State
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.coordinator.training import start
from securetm.federation.coordinator.words import agree_on_words, tell_words
from securetm.federation.folder import RunFolder, begin
from securetm.federation.party.party import Party
from securetm.federation.party_store import PartyStore
from securetm.federation.questions import TRAIN
from securetm.federation.simulation.simulation import InProcess, make_party
from securetm.federation.store import CoordinatorStore
from securetm.federation.transcript import Watch
from securetm.sessions.identities import IDENTITY

from ..quick_part import quick
from .private import private_plan

NORTH = "north"


@dataclass
class Watching(Watch):
    """Keeps every opened total."""

    totals: list[State] = field(default_factory=list)

    def opened(self, serial: int, answer: Answer) -> None:
        if answer.total is not None:
            self.totals.append({name: block.copy() for name, block in answer.total.items()})


@dataclass
class Site:
    """The processes of one federation, which can all be ended and begun again over what is on disk."""

    folder: RunFolder
    members: tuple[str, ...] = ()
    watching: Watching = field(default_factory=Watching)
    parties: dict[str, Party] = field(default_factory=dict)

    def begin(self, change: Callable[[Party], Party] = lambda party: party) -> Coordinator:
        """New processes: nothing is left in memory of those before."""
        self.end()
        self.parties = {name: make_party(self.folder, name) for name in self.folder.members}
        self.parties[NORTH] = change(self.parties[NORTH])
        self.store = CoordinatorStore(self.folder.coordinator)
        made = self.folder.members, self.folder.agreement, InProcess(self.parties), self.store, OperatingSystem()
        coordinator = Coordinator(*made, self.watching, self.folder.keys)
        coordinator.invite()
        tell_words(coordinator, agree_on_words(coordinator))
        return coordinator

    def end(self) -> None:
        for party in self.parties.values():
            party.close()
        if self.parties:
            self.store.close()
        self.parties = {}

    def spent(self, name: str = NORTH) -> int:
        """How many answers that party paid for."""
        ledger = self.parties[name].ledger
        assert ledger is not None
        return sum(spend.count for spend in ledger.spends(self.parties[name].run))

    def state(self, coordinator: Coordinator) -> State:
        return start(coordinator, coordinator.questions.vocabulary)


@pytest.fixture(params=quick(("dp-distributed", "dp-local"), "dp-distributed"))
def site(request: pytest.FixtureRequest, five: Mapping[str, Corpus], tmp_path: Path) -> Iterator[Site]:
    made = Site(begin(tmp_path / "run", private_plan(tmp_path, request.param, training__rounds=4), five))
    yield made
    made.end()


def test_asked_again_after_everybody_was_restarted_it_is_the_same_value_for_one_entry(site: Site) -> None:
    coordinator = site.begin()
    coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    again = site.begin()
    again.ask(TRAIN, site.state(again), keep=True)
    first, second = site.watching.totals
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert {name: site.spent(name) for name in site.parties} == dict.fromkeys(site.parties, 1)


def test_with_another_organisation_in_a_members_place_the_number_is_not_answered_again(site: Site) -> None:
    """That one has kept no answer. If the others gave theirs again, their shares of noise would be in two different sums."""
    coordinator = site.begin()
    coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    site.end()
    new = Ed25519PrivateKey.generate()
    store = PartyStore(site.folder.party("south"))
    store.put(IDENTITY, new.private_bytes_raw())
    store.close()
    site.folder = replace(site.folder, keys={**site.folder.keys, "south": new.public_key().public_bytes_raw()})
    again = site.begin()
    with pytest.raises(PartyRefused, match="AnotherCohort"):
        again.ask(TRAIN, site.state(again), keep=True)
    assert {name: site.spent(name) for name in site.parties} == dict.fromkeys(site.parties, 1)


def test_the_next_number_is_another_value_and_is_paid_for(site: Site) -> None:
    coordinator = site.begin()
    for _ in range(2):
        coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    first, second = site.watching.totals
    assert not all(np.array_equal(first[name], second[name]) for name in first)
    assert site.spent() == 2


def test_another_state_of_the_same_number_is_refused_and_costs_nothing(site: Site) -> None:
    coordinator = site.begin()
    coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    again = site.begin()
    other = {name: array + 1 if array.dtype.kind == "f" else array for name, array in site.state(again).items()}
    with pytest.raises(PartyRefused, match="AskedOtherwise"):
        again.ask(TRAIN, other, keep=True)
    assert site.spent() == 1


def test_a_damaged_kept_answer_is_not_computed_anew(site: Site) -> None:
    coordinator = site.begin()
    coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    path = site.folder.party(NORTH) / "kept-train.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    again = site.begin()
    with pytest.raises(PartyRefused, match="Failed"):
        again.ask(TRAIN, site.state(again), keep=True)
    assert site.spent() == 1


def test_an_earlier_number_gets_no_new_share_of_noise(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """The others may hold their old answers to it, and two sums that share these would differ in two shares of noise only."""
    site = Site(begin(tmp_path / "run", private_plan(tmp_path, "dp-distributed", training__rounds=4), five))
    coordinator = site.begin()
    for _ in range(2):
        coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    again = site.begin()
    with pytest.raises(PartyRefused, match="CannotTakePart"):
        again.ask(TRAIN, site.state(again), keep=True)
    assert site.spent() == 2
    site.end()


def test_noise_that_the_coordinator_adds_is_in_no_kept_answer(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Asked twice, the coordinator releases the sum twice, each time behind other noise: that is paid for twice."""
    site = Site(begin(tmp_path / "run", private_plan(tmp_path, "dp-central", training__rounds=4), five))
    for _ in range(2):
        coordinator = site.begin()
        coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    assert site.spent() == 2
    site.end()


def test_what_the_model_remembers_comes_with_the_kept_answer(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """The topics of the words are drawn anew in each answer; the next one must follow from those that were sent."""
    settings = {"model": {"name": "lda", "n_topics": 3}, "training__rounds": 4}
    site = Site(begin(tmp_path / "run", private_plan(tmp_path, "dp-distributed", **settings), five))
    coordinator = site.begin()
    coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    before = {name: array.copy() for name, array in site.parties[NORTH].store.memory.items()}
    again = site.begin()
    again.ask(TRAIN, site.state(again), keep=True)
    after = site.parties[NORTH].store.memory
    assert before
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert site.spent() == 1
    site.end()


def test_the_question_before_the_training_is_kept_too(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    model = {"name": "lda-vi", "n_topics": 3}
    start = {"training__start": "moments", "training__vectors": "none", "training__rounds": 2}
    plan = private_plan(tmp_path, "dp-distributed", model=model, **start)
    site = Site(begin(tmp_path / "run", plan, five))
    for _ in range(2):
        site.state(site.begin())
    first, second = site.watching.totals
    assert np.array_equal(first["pairs"], second["pairs"])
    assert site.spent() == 1
    site.end()
