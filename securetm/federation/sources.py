"""Reads the documents of a simulation and deals them out to the parties. No party is asked anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from securetm.corpus import docstrings, partitions
from securetm.corpus.corpus import Corpus
from securetm.corpus.readers import read_corpus
from securetm.plans import CorpusChoice, Plan
from securetm.stages import Stages
from securetm.toml_settings import require

DOCSTRINGS = "docstrings"


def corpora_of(plan: Plan, stages: Stages) -> Mapping[str, Corpus]:
    """Returns each party's documents, by its name."""
    if plan.corpus.source == DOCSTRINGS:
        return _first(plan.corpus.parties, docstrings.docstring_parties(on_progress=_Packages(stages)))
    choice = plan.corpus
    columns: dict[str, Any] = {
        role: getattr(choice, role) or None for role in ("text", "label", "party", "date", "person", "embedding")
    }
    reading = _Reading(f"reading {Path(choice.source).name}", stages)
    corpus = read_corpus(choice.source, tokeniser=plan.tokeniser.make(), on_progress=reading, **columns)
    return partition(corpus, choice, plan.seed)


def _first(parties: int, packages: Mapping[str, Corpus]) -> Mapping[str, Corpus]:
    """Returns as many packages as are asked for, or all that are installed if these are fewer."""
    most = len(docstrings.PACKAGES) + 1  # and the standard library
    require(parties <= most, "[corpus]", "parties", parties, f"must be at most {most}, the packages whose docstrings are read")
    return dict(list(packages.items())[:parties])


def partition(corpus: Corpus, choice: CorpusChoice, seed: int) -> Mapping[str, Corpus]:
    """Deals the documents out as the plan says."""
    if choice.partition == "column":
        by_label = not choice.party and corpus.parties is None and corpus.labels is not None
        return partitions.by_column(corpus, "label" if by_label else "party")
    if choice.partition == "equal":
        return partitions.equal(corpus, choice.parties, seed)
    return partitions.dirichlet(corpus, choice.parties, choice.alpha, seed)


def words_of_a_sentence(corpora: Mapping[str, Corpus]) -> float:
    """Returns the median length of a sentence in words; a document without sentence ends is one sentence."""
    lengths = [np.diff(ends, prepend=0) for ends in (corpus.sentence_ends for corpus in corpora.values()) if ends is not None]
    whole = np.concatenate(lengths) if lengths else np.zeros(0)
    return float(np.median(whole)) if len(whole) else 0.0


class _Packages:
    """A stage for each package whose docstrings are read for the first time."""

    def __init__(self, stages: Stages) -> None:
        self._stages, self._now = stages, ""

    def __call__(self, package: str, done: int, total: int) -> None:
        if package != self._now:
            self._stages.stage(f"reading the docstrings of {package}", total)
            self._now = package
        self._stages.step(done)


class _Reading:
    """A stage of its own, in the units that the reader counts in."""

    def __init__(self, title: str, stages: Stages) -> None:
        self._title, self._stages, self._total = title, stages, -1

    def __call__(self, done: int, total: int) -> None:
        if total != self._total:
            self._stages.stage(self._title, total)
            self._total = total
        self._stages.step(done)
