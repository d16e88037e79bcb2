"""One attack on one recorded run as an audit tries it, with its control, for tests that look at the figures themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from securetm.auditing.attack import Estimate, GroundTruth, Proportion, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.ground_truth import colluding_parties_of, ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.views import AdversaryView
from securetm.contracts import Adversary
from securetm.federation.folder import RunFolder

EYES = Adversary("coordinator", "honest-but-curious", ("request", "answer", "sealed", "total", "vocabulary"), 4)


def counted(score: Score, measure: str) -> Proportion:
    """Hits and tries of a measure that counts."""
    found = score.measures[measure]
    assert isinstance(found, Proportion)
    return found


def share(score: Score, measure: str) -> float:
    """Hits among tries; 0 where nothing could be tried."""
    found = counted(score, measure)
    return found.hits / found.of if found.of else 0.0


def scored(folder: RunFolder, name: str, effort: Mapping[str, int], who: Adversary, chance: int = 0) -> Score:
    """What the attack is worth on this run, or on random numbers of this seed."""
    attack = attack_called(name)
    view = view_of(folder, who, attack, effort["rounds"])
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, effort["rounds"]).values())
    return attack.judge(attack.attack(of_chance(view, chance) if chance else view, effort), truth)


@dataclass(frozen=True)
class Tried:
    """What the attack reached, and what it made of random numbers."""

    told: Score
    chance: Score
    view: AdversaryView
    truth: GroundTruth

    def share(self, measure: str, *, by_chance: bool = False) -> float:
        """Hits among tries; there must have been some to try."""
        score = self.chance if by_chance else self.told
        assert counted(score, measure).of
        return share(score, measure)

    def hits(self, measure: str) -> int:
        """How often it succeeded."""
        return counted(self.told, measure).hits

    def bounded(self, measure: str) -> Estimate:
        """A measure with an interval of its own."""
        found = self.told.measures[measure]
        assert isinstance(found, Estimate)
        return found


def tried(
    folder: RunFolder,
    name: str,
    effort: Mapping[str, int],
    *,
    helpers: int = 0,
    again: RunFolder | None = None,
    confidence: float = 0.95,
    eyes: Adversary = EYES,
) -> Tried:
    """The attack on this run by this adversary, with so many parties helping."""
    attack, rounds = attack_called(name), effort["rounds"]
    insiders = colluding_parties_of(folder, helpers)
    view = replace(view_of(folder, eyes, attack, rounds), insiders=insiders)
    if again is not None:
        view = replace(view, again=view_of(again, eyes, attack, rounds))
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, rounds).values())
    truth = replace(truth, helpers=tuple(one.name for one in insiders), confidence=confidence)
    if attack.pose is not None:
        posed = attack.pose(truth, effort, np.random.default_rng(1))
        view, truth = replace(view, question=posed.question), replace(truth, answer=posed.answer)
    told, chance = (attack.judge(attack.attack(seen, effort), truth) for seen in (view, of_chance(view, 3)))
    return Tried(told, chance, view, truth)


def reachable(thing: Any) -> Iterator[Any]:
    """Everything that whoever holds this can come to."""
    waiting, seen = [thing], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, tuple | list | set | frozenset):
            waiting += list(one)
        elif hasattr(one, "__dict__") and not isinstance(one, type):
            waiting += list(vars(one).values())


def source(documents: Path) -> dict[str, Any]:
    """A plan's settings for documents of several parties in that file."""
    return {"corpus.source": str(documents), "corpus.party": "party", "corpus.partition": "column"}


def settings(documents: Path, **more: Any) -> dict[str, Any]:
    """A plan's settings over the documents of that file, with a public list of all their words."""
    return {
        **source(documents),
        "model.name": "prodlda",
        "model.n_topics": 5,
        "vocabulary.source": "file",
        "vocabulary.min_documents": 1,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
