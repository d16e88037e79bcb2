"""Utility against epsilon: one federation for each model, form of noise, epsilon and seed, over 20 Newsgroups.

Every federation has five parties with ledgers of their own. Which models and forms are tried is said elsewhere.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from lab.federations import federated
from lab.judged_documents import JudgedDocuments
from lab.measuring import OnProgress, Row, told
from lab.research_corpora import public_words
from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import equal
from securetm.plans.profiles import cohort_of, read_profile
from securetm.resources import named_toml

PARTIES, TOPICS, WORDS, DELTA = 5, 20, 1_000, 1e-5
EPSILONS = (1.0, 3.0, 8.0)
WITHOUT = "masked"
ALL_THERE = "dp-distributed, all there"  # sized for no dropout and nobody who helps the coordinator
TITLES = {
    "f1": "classification (macro F1)",
    "npmi": "coherence (document NPMI; below 0 is drawn as 0)",
    "diversity": "diversity (25 words)",
}
MEASURES = ("npmi", "diversity", "held_out", "f1")

Case = tuple[str, str, float | None]  # model, form of noise, epsilon


@dataclass(frozen=True)
class Design:
    """What an experiment tries: models with their settings, forms of noise, rounds, and what its plots show."""

    name: str
    models: Mapping[str, Mapping[str, Any]]
    forms: Sequence[str]
    rounds: int
    privacy: Mapping[str, float]  # settings beside epsilon
    fewer_rounds: Mapping[float, int] = field(default_factory=dict)  # by epsilon: each round must be paid for
    spread: str = "npmi"  # the measure whose range over the seeds is reported
    plotted: Sequence[str] = ("npmi", "f1")
    lines: Sequence[tuple[str, str]] = ()  # of models and forms; more than a few lines nobody could tell apart

    def cases(self, epsilons: Sequence[float]) -> list[Case]:
        """Each model without noise, and under every form of it."""
        return [(model, *more) for model in self.models for more in [(WITHOUT, None), *product(self.forms, epsilons)]]


@dataclass(frozen=True)
class Frontier:
    """The corpus, and one federation after another over it. Each has new ledgers: they are alternatives, not a sequence."""

    design: Design
    raw: Corpus
    most_words: int = WORDS

    @cached_property
    def words(self) -> tuple[str, ...]:
        """A public list: the words that are most frequent in two other corpora, so that no document of this one chose them."""
        return tuple(sorted(public_words(self.most_words)))

    @cached_property
    def judged(self) -> JudgedDocuments:
        """All documents over the public words."""
        return JudgedDocuments(self.raw, self.words)

    def reproduced(self, seeds: Sequence[int], epsilons: Sequence[float], on_progress: OnProgress | None = None) -> Row:
        """Trains every case with every seed."""
        cases = self.design.cases(epsilons)
        runs = [self.row(case, seed) for seed, case in told(list(product(seeds, cases)), on_progress)]
        return self.found(runs, cases)

    def found(self, runs: Sequence[Row], cases: Sequence[Case]) -> Row:
        """The result of runs that were made: means of each case over the seeds, and the curves to plot."""
        of_case = {case: [r for r in runs if (r["model"], r["profile"], r["epsilon"]) == case] for case in cases}
        rows = [self._mean(each) for each in of_case.values()]
        facts = {"documents": len(self.raw), "parties": PARTIES, "words": self.most_words, **self.design.privacy}
        facts |= {"topics": TOPICS, "seeds": len({run["seed"] for run in runs})}
        return {"reproduction": self.design.name, **facts, "rows": rows, "runs": list(runs), "plots": self._plots(rows)}

    def row(self, case: Case, seed: int) -> Row:
        """One federation: trained, judged, and what its first party's ledger says."""
        model, form, epsilon = case
        design = self.design
        with tempfile.TemporaryDirectory() as place:
            tables = {
                "seed": seed,
                "profile": str(profile_for(Path(place), form)),
                "model": {"name": model, **design.models[model]},
                "training": {"rounds": design.fewer_rounds.get(epsilon or 0.0, design.rounds), "start": "plain"},
                "privacy": {} if epsilon is None else {"epsilon": epsilon, **design.privacy},
            }
            parties = {f"party {n + 1}": part for n, part in enumerate(equal(self.raw, PARTIES, seed=0).values())}
            run = federated(parties, self.words, tables)
        held = self.judged.held_back(1 - run.plan.training.held_out, run.plan.seed)[1]
        facts = {"model": model, "profile": form, "epsilon": epsilon, "seed": seed, "noise": run.plan.privacy.noise}
        return {**facts, "spent": run.spent, "rounds": run.rounds, **self.judged.figures(run.model, run.state, held)}

    def _mean(self, runs: Sequence[Row]) -> Row:
        """One row a case: means over the seeds, and how far apart the seeds are."""
        first, spread = runs[0], self.design.spread
        same = {name: first[name] for name in ("model", "profile", "epsilon", "noise", "rounds")}
        same["noise_in_sum"] = round(first["noise"] * noise_in_sum(first["profile"]), 3)
        same["spent"] = max(run["spent"] for run in runs) if first["epsilon"] else None
        figures = {name: round(float(np.mean([run[name] for run in runs])), 4) for name in MEASURES}
        return {**same, **figures, f"{spread}_spread": round(float(np.ptp([run[spread] for run in runs])), 4)}

    def _plots(self, rows: Sequence[Row]) -> list[Row]:
        """Each measure against epsilon, a line for each model and form of noise and one for each model without noise."""
        common = {"x": "epsilon per document"}
        return [
            {"title": TITLES[name], **common, "y": name, "lines": dict(self._lines(rows, name))} for name in self.design.plotted
        ]

    def _lines(self, rows: Sequence[Row], measure: str) -> Iterator[tuple[str, list[tuple[float, float]]]]:
        most = max(row["epsilon"] for row in rows if row["epsilon"])
        for model, form in self.design.lines:
            mine = [row for row in rows if (row["model"], row["profile"]) == (model, form)]
            yield f"{model}, {form}", [(row["epsilon"], max(row[measure], 0.0)) for row in mine]
        for model in self.design.models:
            without = next(row[measure] for row in rows if row["model"] == model and row["epsilon"] is None)
            yield f"{model}, no noise", [(0.0, without), (most, without)]


def profile_for(place: Path, form: str) -> Path:
    """A shipped profile, or the distributed one with nobody who may drop out or help the coordinator."""
    if form != ALL_THERE:
        return named_toml("protocols", form, below="profiles", kind="profile")
    text = named_toml("protocols", "dp-distributed", below="profiles", kind="profile").read_text("utf-8")
    for name, value in (("threshold_share", "1.0"), ("colluding", "0")):
        text, changed = re.subn(rf"^{name} *=.*$", f"{name} = {value}", text, flags=re.MULTILINE)
        assert changed == 1, name
    written = place / "dp-all-there.toml"
    written.write_text(text, "utf-8")
    return written


def noise_in_sum(form: str) -> float:
    """How much larger the noise in the opened sum is than what epsilon asks for, when all parties take part."""
    if form == "dp-local":
        return math.sqrt(PARTIES)  # each party adds all of it
    if form != "dp-distributed":
        return 1.0
    cohort = cohort_of(read_profile(form), tuple(map(str, range(PARTIES))))
    return math.sqrt(PARTIES / (PARTIES - cohort.colluding))  # what is there for missing parties is taken off again
