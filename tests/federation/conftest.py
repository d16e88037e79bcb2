"""A small federation that learns in a second: three parties that talk about different things."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.plans.recommend import plan_from_tables
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

if TYPE_CHECKING:
    from .staged import Stage

SUBJECTS = {
    "north": "river water lake boat fish storm wave harbour sail shore".split(),
    "south": "court judge trial law appeal jury verdict lawyer crime prison".split(),
    "west": "tensor matrix vector gradient loss batch layer model weight epoch".split(),
}
FIVE = {**SUBJECTS, "east": SUBJECTS["north"], "centre": SUBJECTS["south"]}  # a masked sum needs four
SHARED = "city people year day work home street market food music".split()


def texts(subject: list[str], documents: int, seed: int) -> list[str]:
    """Documents half about a subject, half about what everybody talks about."""
    rng = np.random.default_rng(seed)
    words = np.array(subject * 2 + SHARED)
    return [" ".join(rng.choice(words, size=int(rng.integers(12, 30)))) + "." for _ in range(documents)]


@pytest.fixture(scope="session")
def corpora() -> Mapping[str, Corpus]:
    """Each party's documents."""
    sizes = zip(SUBJECTS, (90, 60, 50), strict=True)
    return {name: Corpus.from_strings(texts(SUBJECTS[name], n, seed), name=name) for seed, (name, n) in enumerate(sizes)}


@pytest.fixture(scope="session")
def five(corpora: Mapping[str, Corpus]) -> Mapping[str, Corpus]:
    """Two parties more."""
    more = [name for name in FIVE if name not in corpora]
    extra = {name: Corpus.from_strings(texts(FIVE[name], 50, 7), name=name) for name in more}
    return {**corpora, **extra}


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys and a roster of five parties that join out of their own files, which every test copies."""
    from securetm.trial.files import make_trial

    folder = tmp_path_factory.mktemp("trial") / "keys"
    make_trial(folder, "masked", 2, Unwatched())
    return folder


def small_plan(**more: object) -> Plan:
    """A plan for these parties; any setting can be overridden as section__name=value or name=value."""
    tables: dict[str, Any] = {
        "profile": "open",
        "model": {"name": "prodlda", "n_topics": 3, "hidden": 8, "batch": 16},
        "training": {"rounds": 12, "held_out": 0.2},
        "vocabulary": {"min_documents": 2, "max_share": 1.0, "most_candidates": 500},  # by default the sketch has 14 MB
    }
    for name, value in more.items():
        section, _, setting = name.partition("__")
        if setting:
            tables.setdefault(section, {})[setting] = value
        else:
            tables[name] = value
    return plan_from_tables(tables, "a test")


class StopsAfter(Unwatched):
    """Presses Ctrl-C after so many training rounds."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def step(self, done: int) -> None:
        if done == self.rounds:
            raise KeyboardInterrupt


@pytest.fixture
def uninvited(corpora: Mapping[str, Corpus], tmp_path: Path) -> Iterator[Stage]:
    """A party that nobody has invited yet."""
    from .played import Played, make_party
    from .staged import Stage

    plan = small_plan()
    stage = Stage(make_party("north", plan, corpora, tmp_path), Played(plan, tuple(corpora)))
    yield stage
    stage.party.store.close()


@pytest.fixture
def stage(uninvited: Stage) -> Stage:
    """A party that joined and agreed on words."""
    from .played import settled
    from .staged import WORDS

    settled(uninvited.played, uninvited.party, WORDS)
    return uninvited
