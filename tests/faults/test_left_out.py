"""A run that goes on without parties: who was left out is taken in again, and no start of the coordinator stops it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.coordinator import training
from securetm.federation.coordinator.coordinator import Trained
from securetm.federation.coordinator.rounds import Attendance
from securetm.federation.folder import begin
from securetm.federation.party.state import learned_in
from securetm.federation.party_store import PartyStore
from securetm.federation.store import CoordinatorStore
from securetm.sessions.survivors import SurvivorsMissing

from ..quick_part import quick
from .conftest import plan_of
from .machine import Kind, Machine, Schedule, Script, same


@pytest.fixture
def kept_after_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "SECONDS_BETWEEN_KEEPS", 0.0)


def survivors(machine: Machine) -> list[set[str]]:
    """Of each training round, in their order, as the coordinator wrote them down."""
    store = CoordinatorStore(machine.folder.coordinator)
    rows = store.rows("SELECT survivors FROM rounds WHERE question = 'train' ORDER BY serial")
    store.close()
    return [set(names.split()) for (names,) in rows]


@pytest.mark.usefixtures("kept_after_every_round")
@pytest.mark.parametrize("stage", quick(["Invite", "Prepare", "Adopt"], "Prepare"))
def test_a_party_that_missed_the_beginning_of_a_session_is_in_the_next_one(
    stage: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    folder = begin(tmp_path / "run", plan_of("masked", "prodlda", 6, tmp_path), five)
    machine = Machine(folder, Script({("west", stage): Kind.REQUEST_LOST}), Attendance(fewest=4))
    machine.train(5)
    assert "west" not in survivors(machine)[0]
    assert survivors(machine)[-1] == set(folder.members)


class Longer(Schedule):
    """Parties are away for longer than a session takes."""

    def short(self) -> int:
        return int(self._rng.integers(2, 60))


class Repeated(Script):
    """No fault: each sum has the parties that it had in another run, and a number without a sum is left out."""

    def __init__(self, of: Machine) -> None:
        super().__init__({})
        store = CoordinatorStore(of.folder.coordinator)
        rows = store.rows("SELECT question, number, survivors FROM rounds")
        store.close()
        self.lists = {f"Ask {question} {number}": set(names.split()) for question, number, names in rows}

    def due(self, name: str, stage: str) -> Kind | None:
        """What a party says that was in no sum then is lost."""
        if not stage.startswith("Ask"):
            return None
        if stage not in self.lists:
            raise SurvivorsMissing(name)
        return None if name in self.lists[stage] else Kind.REPLY_LOST


RESTARTS = (Kind.AWAY, Kind.RESTARTED, Kind.KILLED, Kind.REPLY_LOST, Kind.FROZEN)


SEEDS = [seed for seed in range(2, 27) if seed != 13]  # whose schedule strikes three times only


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.faults) for seed in SEEDS)])
@pytest.mark.parametrize(
    ("profile", "stop"),
    quick([("masked", "rounds"), ("masked", "held_out"), ("open", "held_out")], ("masked", "held_out")),
)
def test_the_coordinator_starts_anew_while_a_party_is_away(
    profile: str, stop: str, seed: int, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    """What was asked before the start and cannot be repeated is left out, and nothing that follows from it was asked yet.

    So the model is that of a run in which nothing happened but that each sum has the parties that were in it.
    """
    more = {"training__stop": stop, "training__every": 2, "training__patience": 1000, "training__held_out": 0.2}
    plan = plan_of(profile, "lda", 12, tmp_path, **more)
    schedule = Longer(seed, 12, 40, RESTARTS)
    machine = Machine(begin(tmp_path / "run", plan, five), schedule, Attendance(fewest=4))
    trained = machine.train(1000)  # where two parties are away, a start sends each one message, and they miss up to sixty
    machine.monitor.check()
    assert len(schedule.struck) > 3
    again = Machine(begin(tmp_path / "again", plan, five), Repeated(machine), Attendance(fewest=4))
    same(trained, again.train(1))


def test_an_answer_that_came_into_no_sum_leaves_nothing_behind(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """A party whose replies were lost has drawn its topics anew. It goes on from those that the sums know."""

    def trained(kind: Kind, then: Mapping[tuple[str, str], Kind]) -> Trained:
        plan = plan_of("open", "lda", 8, tmp_path)
        folder = begin(tmp_path / kind.name, plan, five)
        lost = {("west", f"Ask train {number}"): kind for number in (2, 3, 4)}
        machine = Machine(folder, Script({**lost, **then}), Attendance(fewest=4))
        ended = machine.train(2)
        assert [len(names) for names in survivors(machine)] == [5, 5, 4, 4, 4, 5, 5, 5]
        assert machine.starts == 1 + len(then)
        return ended

    killed = {("north", "Ask train 5"): Kind.RESTARTED}
    same(trained(Kind.REQUEST_LOST, {}), trained(Kind.REPLY_LOST, killed))


def test_where_the_parties_train_one_that_missed_a_sum_adds_to_no_other(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Its model is no longer that of the others, so what it would send is about another question, and it keeps no model."""
    folder = begin(tmp_path / "run", plan_of("bfv", "prodlda", 5, tmp_path), five)
    machine = Machine(folder, Script({("west", "Ask train 2"): Kind.REQUEST_LOST}), Attendance(fewest=4))
    machine.train(5)
    others = set(folder.members) - {"west"}
    assert survivors(machine) == [{*others, "west"}] * 2 + [others] * 3
    learned = {name: _learned(folder.party(name)) for name in folder.members}
    for name in others:
        np.testing.assert_array_equal(learned[name], learned["east"])
    assert not np.array_equal(learned["west"], learned["east"])
    assert {name for name in folder.members if (folder.party(name) / "vocabulary.txt").is_file()} == others


def _learned(place: Path) -> np.ndarray:
    store = PartyStore(place)
    state = learned_in(store.kept_memory(store.kept_serials()[-1])[0])
    store.close()
    return state["weights"]
