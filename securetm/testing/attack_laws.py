"""The laws of every attack: it is repeatable, judges what it declares, and beats its control where nothing is protected.

Subclass `AttackLaws` and give `attack`. An audit measures how strong an attack is against a protected run; laws do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import binom

from securetm.auditing.attack import EVERY_MODEL, Attack, GroundTruth, Proportion, Score
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.views import AdversaryView
from securetm.contracts import Adversary
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import train
from securetm.plans.recommend import plan_from_tables
from securetm.stages import Unwatched

PARTIES = ("east", "north", "south", "west")
LUCK = 1e-9  # the chance that an honest attack fails a law


def some_texts(seed: int, documents: int = 30, words: int = 60) -> list[str]:
    """Texts of a few words each; some words are frequent, most are rare."""
    rng = np.random.default_rng(seed)
    names = [f"{chr(97 + n // 26)}{chr(97 + n % 26)}word" for n in range(words)]
    chances = 1.0 / np.arange(3, words + 3)
    return [" ".join(rng.choice(names, size=int(rng.integers(4, 15)), p=chances / chances.sum())) for _ in range(documents)]


class AttackLaws:
    """Laws of one attack, tried on a recorded run without protection."""

    settings: ClassVar[Mapping[str, Any]] = {}  # tables of the run's plan, such as {"model": {"name": "lda"}}
    effort: ClassVar[Mapping[str, int]] = {"rounds": 2}
    chance: ClassVar[float] = 0.0  # the probability that a blind guess is right

    @pytest.fixture
    def attack(self) -> Attack:
        raise NotImplementedError("a subclass gives the attack")

    @pytest.fixture
    def run(self, attack: Attack, tmp_path: Path) -> RunFolder:
        """A recorded run under the profile `open`, of the first model that the attack is for."""
        tables = {
            "profile": "open",
            "model": {"name": "lda" if attack.models == EVERY_MODEL else attack.models[0], "n_topics": 3},
            "training": {"rounds": 3, "held_out": 0.2},
            "vocabulary": {"min_documents": 1, "max_share": 1.0},
            **self.settings,
        }
        corpora = {name: Corpus.from_strings(some_texts(seed), name=name) for seed, name in enumerate(PARTIES)}
        folder = begin(tmp_path / "run", plan_from_tables(tables, "the laws of attacks"), corpora, with_content=True)
        train(folder, Unwatched())
        return folder

    def view(self, attack: Attack, run: RunFolder) -> tuple[AdversaryView, GroundTruth]:
        """What a coordinator sees that reads every channel, and the truth that the attack is judged by."""
        channels = tuple(dict.fromkeys((*attack.needs, *attack.either)))
        view = view_of(run, Adversary("coordinator", "honest-but-curious", channels), attack, self.effort["rounds"])
        truth = ground_truth_of(run, questions_of(run, attack.questions, self.effort["rounds"]).values())
        if attack.pose is not None:
            posed = attack.pose(truth, self.effort, np.random.default_rng(1))
            view, truth = replace(view, question=posed.question, redrawn=posed.redrawn), replace(truth, answer=posed.answer)
        if attack.prepare is not None:
            view = replace(view, prepared=attack.prepare(replace(view, seen={}, weights=None), self.effort))
        return view, truth

    def scored(self, attack: Attack, run: RunFolder, *, control: bool = False) -> Score:
        view, truth = self.view(attack, run)
        return attack.judge(attack.attack(of_chance(view, 3) if control else view, self.effort), truth)

    def test_it_says_what_it_is_for(self, attack: Attack) -> None:
        assert attack.models
        assert attack.measures
        assert attack.needs or attack.either
        assert set(attack.efforts) <= set(self.effort)
        for sentence in (attack.title, attack.citation, attack.cost, attack.given):
            assert sentence.strip()

    def test_it_judges_the_measures_that_it_declares(self, attack: Attack, run: RunFolder) -> None:
        for control in (False, True):
            found = self.scored(attack, run, control=control).measures
            assert set(found) == set(attack.measures)
            for worth in found.values():
                assert not isinstance(worth, Proportion) or 0 <= worth.hits <= worth.of

    def test_the_same_view_gives_the_same_score(self, attack: Attack, run: RunFolder) -> None:
        assert self.scored(attack, run).measures == self.scored(attack, run).measures

    def test_it_is_silent_on_a_control(self, attack: Attack, run: RunFolder) -> None:
        """On random numbers it is right no more often than a guess."""
        for name, worth in self.scored(attack, run, control=True).measures.items():
            if isinstance(worth, Proportion):
                assert binom.sf(worth.hits - 1, worth.of, self.chance) >= LUCK, name

    def test_it_finds_more_than_its_control_where_nothing_is_protected(self, attack: Attack, run: RunFolder) -> None:
        found, control = (self.scored(attack, run, control=control).measures for control in (False, True))
        assert any(_share(found[name]) > _share(control[name]) for name in found)


def _share(worth: Any) -> float:
    return worth.hits / max(worth.of, 1) if isinstance(worth, Proportion) else float(worth.value)
