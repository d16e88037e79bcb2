"""One attack on one recorded run as an audit tries it, with its control, for tests that look at the figures themselves."""

from __future__ import annotations

from collections.abc import Mapping
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


@dataclass(frozen=True)
class Tried:
    """What the attack reached, and what it made of random numbers."""

    told: Score
    chance: Score
    view: AdversaryView
    truth: GroundTruth

    def share(self, measure: str, *, by_chance: bool = False) -> float:
        """Hits among tries; there must have been some to try."""
        counted = (self.chance if by_chance else self.told).measures[measure]
        assert isinstance(counted, Proportion)
        assert counted.of
        return counted.hits / counted.of

    def hits(self, measure: str) -> int:
        """How often it succeeded."""
        counted = self.told.measures[measure]
        assert isinstance(counted, Proportion)
        return counted.hits

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
) -> Tried:
    """The attack on this run, with so many parties helping."""
    attack, rounds = attack_called(name), effort["rounds"]
    insiders = colluding_parties_of(folder, helpers)
    view = replace(view_of(folder, EYES, attack, rounds), insiders=insiders)
    if again is not None:
        view = replace(view, again=view_of(again, EYES, attack, rounds))
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, rounds).values())
    truth = replace(truth, helpers=tuple(one.name for one in insiders), confidence=confidence)
    if attack.pose is not None:
        posed = attack.pose(truth, effort, np.random.default_rng(1))
        view, truth = replace(view, question=posed.question), replace(truth, answer=posed.answer)
    told, chance = (attack.judge(attack.attack(eyes, effort), truth) for eyes in (view, of_chance(view, 3)))
    return Tried(told, chance, view, truth)


def settings(documents: Path, **more: Any) -> dict[str, Any]:
    """A plan's settings over the documents of that file, with a public list of all their words."""
    return {
        "corpus.source": str(documents),
        "corpus.party": "party",
        "corpus.partition": "column",
        "model.name": "prodlda",
        "model.n_topics": 5,
        "vocabulary.source": "file",
        "vocabulary.min_documents": 1,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
