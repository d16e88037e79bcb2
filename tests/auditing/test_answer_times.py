"""What the times of answers tell, in real runs by clocks that the test moves: no machine is too slow or too busy for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from securetm.auditing.attack import Proportion, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.traffic import ANSWERS
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.roles import RECORD, CountWords, counted
from securetm.auditing.views import NotTestable
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, begin
from securetm.federation.questions import TRAIN
from securetm.federation.simulation.simulation import make_party, train
from securetm.federation.store import write_json
from securetm.stages import Unwatched

from ..federation.clocked import Overheard
from ..federation.conftest import corpora, five  # noqa: F401 - fixtures
from ..federation.private import private_plan
from .conftest import adversary

LISTENER, ATTACK = adversary("network observer", "network_observer"), attack_called("answer_times")
ROUNDS = 22


@dataclass
class ByClock:
    """Parties that are asked one after the other; the time of each reply is that of its party's own clock."""

    parties: Mapping[str, Overheard]
    arrivals: dict[str, float] = field(default_factory=dict)

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes]]:
        del most
        for name, message in requests.items():
            begun = self.parties[name].hands.at
            reply = self.parties[name].handle(message)
            self.arrivals[name] = self.parties[name].hands.at - begun
            yield name, reply

    def present(self) -> frozenset[str]:
        return frozenset(self.parties)

    def close(self) -> None:
        for party in self.parties.values():
            party.close()


def timed(corpora: Mapping[str, Corpus], folder: Path, *, waiting: bool) -> RunFolder:  # noqa: F811
    """A run with a budget whose transcript has times; without waiting, answers leave as soon as they are there."""
    folder.mkdir()
    run = begin(folder / "run", private_plan(folder, "dp-distributed", training__rounds=ROUNDS), corpora, with_content=True)
    counts = {name: CountWords() for name in run.members}
    parties = ByClock({name: Overheard(counted(make_party(run, name), counts[name]), waiting=waiting) for name in run.members})
    train(run, Unwatched(), parties=parties, arrivals=parties.arrivals)
    write_json(run.path / RECORD, {name: count.words for name, count in counts.items()})
    return run


def scored(run: RunFolder, *, chance: bool = False) -> Score:
    view = view_of(run, LISTENER, ATTACK, ROUNDS)
    truth = ground_truth_of(run, questions_of(run, (TRAIN,), ROUNDS).values())
    return ATTACK.judge(ATTACK.attack(of_chance(view, 1) if chance else view, {}), truth)


def share(score: Score) -> float:
    found = score.measures[ANSWERS]
    assert isinstance(found, Proportion)
    assert found.of >= 30
    return found.hits / found.of


def test_without_a_beat_times_tell_how_much_was_sampled(five: Mapping[str, Corpus], tmp_path: Path) -> None:  # noqa: F811
    run = timed(five, tmp_path / "at once", waiting=False)
    assert share(scored(run)) > 0.8  # the clock counts documents, and the judge their words
    assert 0.2 < share(scored(run, chance=True)) < 0.8


def test_with_a_beat_times_are_no_better_than_chance(five: Mapping[str, Corpus], tmp_path: Path) -> None:  # noqa: F811
    run = timed(five, tmp_path / "at a interval", waiting=True)
    assert 0.2 < share(scored(run)) < 0.8


def test_a_simulation_has_no_times(five: Mapping[str, Corpus], tmp_path: Path) -> None:  # noqa: F811
    run = begin(tmp_path / "run", private_plan(tmp_path, "dp-distributed", training__rounds=2), five, with_content=True)
    train(run, Unwatched())
    with pytest.raises(NotTestable, match="no time was recorded"):
        ATTACK.attack(view_of(run, LISTENER, ATTACK, 2), {})


def test_a_run_that_nobody_counted_cannot_be_judged(five: Mapping[str, Corpus], tmp_path: Path) -> None:  # noqa: F811
    run = timed(five, tmp_path / "not counted", waiting=False)
    (run.path / RECORD).unlink()
    with pytest.raises(NotTestable, match="nobody knows"):
        scored(run)
