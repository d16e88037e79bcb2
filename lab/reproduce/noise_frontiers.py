"""Utility against epsilon on 20 Newsgroups: one federation of five parties for each model, form of noise, epsilon and seed.

`lda-frontier` has LDA by Gibbs sampling over bounded counts and by variational inference; `privacy-utility` has ProdLDA, which
is no statement about other models: it has tens of thousands of weights, and noise grows with their number. What was tried by
hand beside them (all documents in one place, seed 0, plain Gaussian noise) is kept with the committed results.
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

from lab.documents import JudgedDocuments, by_frequencies
from lab.federations import dealt_out, federated
from lab.measuring import OnProgress, Row, committed, told
from lab.research_corpora import public_words, read_newsgroups
from securetm.corpus.corpus import Corpus
from securetm.plans.profiles import cohort_of, make_model, read_profile
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
        x = "epsilon per document"  # a line for each model and form of noise, and one for each model without noise
        plots = [{"title": TITLES[of], "x": x, "y": of, "lines": dict(self._lines(rows, of))} for of in self.design.plotted]
        return {"reproduction": self.design.name, **facts, "rows": rows, "runs": list(runs), "plots": plots}

    def row(self, case: Case, seed: int) -> Row:
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
            run = federated(dealt_out(self.raw, PARTIES), self.words, tables)
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


# ---- lda-frontier --------------------------------------------------------------------------------------------------------

FORMS = ("dp-central", "dp-distributed", "dp-local")
MODELS: Mapping[str, Mapping[str, Any]] = {
    "lda": {"n_topics": TOPICS, "sweeps": 5},
    "lda-vi": {"n_topics": TOPICS, "eta": 1.0, "repeats": 1, "passes": 20},
}
RADIUS = 2.0  # of the clip: in 1,000 words, nine documents of ten have a longer row, so that nearly all weigh alike
LDA = Design(
    "lda-frontier",
    MODELS,
    FORMS,
    20,
    {"delta": DELTA, "radius": RADIUS},
    fewer_rounds={1.0: 7, 3.0: 10},  # where noise is large
    lines=[*product(("lda-vi",), FORMS), ("lda", "dp-central")],
)


def lda_frontier(
    seeds: Sequence[int] = (0, 1), epsilons: Sequence[float] = EPSILONS, on_progress: OnProgress | None = None
) -> Row:  # fmt: skip
    """Trains both models under every form of noise, epsilon and seed; rows are means over the seeds, with curves to plot."""
    frontier = Frontier(LDA, read_newsgroups())
    result = frontier.reproduced(seeds, epsilons, on_progress)
    return {**result, "nothing_learned": nothing_learned(frontier), "tried": committed("reproduce-lda-frontier")["tried"]}


def nothing_learned(frontier: Frontier) -> Row:
    """What the measures say of topics drawn at random; likelihood is that of every word as frequent as it is overall."""
    settings = frontier.design.models["lda-vi"]
    model = make_model("lda-vi", settings)
    topics = np.random.default_rng(0).dirichlet(np.full(len(frontier.words), 0.05), settings["n_topics"])
    state = {**model.start(frontier.words, np.random.default_rng(0)), "counts": 1000 * topics}
    known, held = frontier.judged.held_back(0.9, 0)
    figures = {**frontier.judged.figures(model, state, held), "held_out": by_frequencies(known, held)}
    return {name: round(value, 4) for name, value in figures.items()}


# ---- privacy-utility -----------------------------------------------------------------------------------------------------

RATE, ROUNDS, HIDDEN = 0.1, 200, 16
SETTINGS = {"n_topics": TOPICS, "hidden": HIDDEN, "learning_rate": 1e-2, "dropout": 0.0, "theta_dropout": 0.0}


def prodlda(documents: int) -> Design:
    """ProdLDA with batches of one size, under every form of noise."""
    forms = (FORMS[0], ALL_THERE, *FORMS[1:])
    return Design(
        "privacy-utility",
        {"prodlda": {**SETTINGS, "batch": round(RATE * documents / PARTIES)}},
        forms,
        ROUNDS,
        {"delta": DELTA, "rate": RATE},
        spread="f1",
        plotted=("f1", "npmi", "diversity"),
        lines=[("prodlda", form) for form in forms],
    )


def privacy_utility(
    seeds: Sequence[int] = (0, 1, 2), epsilons: Sequence[float] = EPSILONS, on_progress: OnProgress | None = None
) -> Row:  # fmt: skip
    """Trains under every form of noise, epsilon and seed; rows are means over the seeds, with the curves to plot."""
    raw = read_newsgroups()
    result = Frontier(prodlda(len(raw)), raw).reproduced(seeds, epsilons, on_progress)
    return {
        **result,
        "distributed_to_central": _against_central(result["rows"]),
        "tried": committed("reproduce-privacy-utility")["tried"],
    }


def _against_central(rows: Sequence[Row]) -> list[Row]:
    """Noise in shares, nobody missing, against noise by a trusted coordinator, at the same epsilon."""
    at = {(row["profile"], row["epsilon"]): row for row in rows}
    asked = [epsilon for form, epsilon in at if form == ALL_THERE]
    pairs = [(epsilon, at[ALL_THERE, epsilon], at["dp-central", epsilon]) for epsilon in asked]
    measures = ("noise", "f1", "npmi", "diversity")
    return [{"epsilon": epsilon, **{m: round(ours[m] / theirs[m], 3) for m in measures}} for epsilon, ours, theirs in pairs]
