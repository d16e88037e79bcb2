"""How many rounds of `lda-vi` predict best under a budget where no public vectors say how to begin.

It is the fit of that part of the rule in `models/rounds_rule.py`, on the corpora of the rule for public starts. Topics
begin at random, or at those of pairs of words, which have their usual share of the budget. All documents are in one
place, and the noise is a plain Gaussian.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np

from lab.fits.rounds import (
    CORPORA,
    DELTA,
    EPSILONS,
    FEW,
    FITTED,
    RADIUS,
    TOPICS,
    WORDS,
    KnownWords,
    few_of,
    fitted,
    given_up,
)
from lab.fits.start import AskedFirst
from lab.keeping import KeptRows, Key, made
from lab.measuring import OnProgress, Row
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.rounds_rule import noise_of_one_round, rounds_of_signal, signal, totals_for
from securetm.models.start_share import USUAL_START

PLAIN, PAIRS = "plain", "moments without vectors"
ROUNDS = (1, 2, 3, 4, 6, 8, 12, 20)
EACH = tuple(round(0.05 * 1.2**n, 3) for n in range(18))  # rounds for each unit of the signal, that are tried


@dataclass(frozen=True)
class BegunWithoutVectors:
    """Documents, and how a training on them begins."""

    known: KnownWords
    start: str

    @property
    def share(self) -> float:
        """What the question before the training has of the budget."""
        return USUAL_START if self.start == PAIRS else 0.0

    def held_out(self, epsilon: float, rounds: int, seed: int) -> float:
        """The log-likelihood of a held-out word after so many rounds."""
        begun = AskedFirst(self.known, vectors=False).begun(epsilon, self.share, seed)
        return self.known.held_out(self.model(epsilon), epsilon, rounds, seed, self.share, begun, plain=begun is None)

    def model(self, epsilon: float) -> VariationalLDA:
        """As a plan under a budget has it that says how many documents there are."""
        size, words, pairs = len(self.known.train), len(self.known.train.vocabulary), self.start == PAIRS
        totals = totals_for(size, TOPICS, words, self.noise(epsilon), plain=not pairs, after_pairs=pairs)
        return VariationalLDA(n_topics=TOPICS, **{**VariationalLDA.budget_defaults, "totals": totals})

    def noise(self, epsilon: float) -> float:
        """That of one round with all that the question leaves."""
        return noise_of_one_round(epsilon, DELTA) / sqrt(1.0 - self.share)


def row(key: Key) -> Row:
    """One corpus with one start and one epsilon, by the number of rounds."""
    known = CASES[key["corpus"]]()
    case = BegunWithoutVectors(known, key["start"])
    found = {n: float(np.mean([case.held_out(key["epsilon"], n, seed) for seed in range(key["seeds"])])) for n in ROUNDS}
    size, words = len(known.train), len(known.train.vocabulary)
    return {
        **key,
        "documents": size,
        "words": words,
        "signal": round(signal(size, TOPICS, words, case.noise(key["epsilon"])), 2),
        "held_out": {str(n): round(value, 4) for n, value in found.items()},
        "frequencies": round(known.frequencies, 4),
    }


def reproduce(seeds: int = 2, on_progress: OnProgress | None = None, keep: Path | None = None, workers: int = 1) -> Row:
    """Every case with every start and epsilon, the fit for each start, and what its rule gives up on each row."""
    keys = [
        {"corpus": name, "start": start, "epsilon": epsilon, "seeds": seeds}
        for name in CASES
        for start in (PLAIN, PAIRS)
        for epsilon in EPSILONS
    ]
    return judged(made(keys, row, KeptRows(keep), workers, on_progress))


def judged(rows: Sequence[Row]) -> Row:
    """The result: the fit for each start, and what its rule gives up."""
    rules = {start: fitted([one for one in rows if one["start"] == start], ROUNDS, EACH) for start in (PLAIN, PAIRS)}
    settings = {"topics": TOPICS, "words": WORDS, "delta": DELTA, "radius": RADIUS}
    tables = [{"start": start, "rounds_each": each, "most_rounds": most} for start, (each, most) in rules.items()]
    found = [_judged(one, *rules[one["start"]]) for one in rows]
    return {"reproduction": "rounds-without-vectors", **settings, "tables": {"Rules": tables}, "rows": found}


def _judged(one: Row, each: float, most: int) -> Row:
    return {**one, "rounds": rounds_of_signal(one["signal"], each, most), "given_up": round(given_up(one, each, most), 4)}


CASES: Mapping[str, Callable[[], KnownWords]] = {
    **{name: CORPORA[name] for name in FITTED},
    **{f"{FEW:,} of {name}": few_of(CORPORA[name]) for name in FITTED},
}
