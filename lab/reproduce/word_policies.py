"""How many words noised sums show where nobody has a list: policies of what a document adds, at the same total budget.

Words are hashed under a key into buckets, and all buckets of a sum are noised, so which of them hold anything is a matter of
noise alone: a bucket counts as found where noise alone would bring half a bucket on average. A document's row has an l2 norm of
at most 1, whatever its policy is, so every sum has a sensitivity of 1 for one document, and sums with shares of the budget
compose to the whole as one Gaussian answer does. What is open in a later sum follows from earlier noised sums alone.

Beside today's kind, a bounded number of words of each document, stand the weighted Gaussian (Gopi et al. 2020), iterated
selection (Swanberg, Desfontaines and Haney 2023), and iterated selection that closes hopeless words too and weighs by need (in
the manner of Chen, Cohen-Addad and Epasto 2025).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy import sparse

from lab.measuring import OnProgress, Row, told
from lab.reproduce.common_vocabulary import noise_of
from lab.research_corpora import FILE, INSTEAD, M10, PUBLIC, SMS, newsgroups_file, research_corpus
from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.docstrings import docstring_parties

BUCKETS, FALSE = 1 << 22, 0.5
EPSILONS, SEEDS = (0.1, 0.5, 1.0), (0, 1, 2)
CHOSEN_ON, JUDGED = {"TagMyNews": PUBLIC[0], "StackOverflow titles": PUBLIC[1], "20 Newsgroups": FILE}, {"SMS": SMS, "M10": M10}


@dataclass(frozen=True)
class Policy:
    """What a document adds to each of some sums."""

    shares: Sequence[float] = (1.0,)  # of the budget
    closed_below: Sequence[float] = ()  # deviations; after each sum, what stands out less is closed
    need: float = 0.0  # the power of how far a word stands out, with which it weighs later
    most: int = 0  # words of a document; 0: all

    def found(self, held: Any, noise: float, rng: np.random.Generator) -> Array:
        """Which words are found. All sums so far are taken together, those behind less noise weighing more."""
        held = _at_most(held, self.most, rng) if self.most else held
        parts = np.array(self.shares) / sum(self.shares)
        words = held.shape[1]
        found, is_open, weights = np.zeros(words, dtype=bool), np.ones(words, dtype=bool), np.ones(words)
        tops, precisions = np.zeros(words), np.full(words, 1e-12)
        for number, part in enumerate(parts):
            deviation, gain = noise / part**0.5, 1 + 0.75 * number  # open words grow heavier as others are closed
            seen = _summed(held, is_open * weights, self.most) + rng.normal(0, deviation, words)
            tops += is_open * gain * seen / deviation**2
            precisions += is_open * (gain / deviation) ** 2
            stand = tops / np.sqrt(precisions)
            found |= is_open & (stand > required(FALSE * part))
            if number < len(self.closed_below):
                is_open = ~found & (stand > self.closed_below[number])
                weights = np.maximum(stand, 0.25) ** self.need
        return found


POLICIES: Mapping[str, Policy] = {
    "10 words of a document": Policy(most=10),
    "50 words of a document": Policy(most=50),
    "all words, one sum": Policy(),
    "iterated, 3 sums": Policy((1, 2, 4), (-np.inf, -np.inf)),
    "iterated, hopeless words closed, 2 sums": Policy((1, 2), (1.4,)),
    "iterated, hopeless words closed, 3 equal sums": Policy((1, 1, 1), (0.7, 1.3)),
    "iterated, hopeless words closed, 3 sums": Policy((1, 2, 4), (0.7, 1.8)),
    "iterated, hopeless words closed, by need, 3 sums": Policy((1, 2, 4), (0.7, 1.8), need=0.5),
    "iterated, hopeless words closed, 4 sums": Policy((1, 2, 3, 4), (0.4, 0.9, 1.6)),
}


def reproduce(epsilons: Sequence[float] = EPSILONS, documents: int | None = None, on_progress: OnProgress | None = None) -> Row:
    """One row for each corpus, epsilon and policy: the words that it finds, on average over the seeds."""
    read, rows, held = _corpora(), [], {}
    names = list(read) if documents is None else list(read)[:1]
    for name in told(names, on_progress):
        corpus = read[name]()
        counts = sparse.csr_array(corpus.counts > 0, dtype=np.float64)[: documents or None]
        held[name] = counts.shape[0]
        rows += [
            {"corpus": name, "epsilon": epsilon, "policy": policy, "words": round(float(np.mean(found)), 1)}
            for epsilon in epsilons
            for policy, one in POLICIES.items()
            for found in [[one.found(counts, noise_of(epsilon), np.random.default_rng(seed)).sum() for seed in SEEDS]]
        ]
    facts = {"documents": held, "chosen_on": list(CHOSEN_ON), "buckets": BUCKETS, "seeds": list(SEEDS)}
    return {"reproduction": "word-policies", **facts, "rows": rows}


def required(false: float) -> float:
    """By how many deviations a bucket must stand out, so that noise alone brings so many."""
    return -NormalDist().inv_cdf(false / BUCKETS)


def _corpora() -> Mapping[str, Callable[[], Corpus]]:
    if not newsgroups_file():
        return {INSTEAD: lambda: Corpus.concat(list(docstring_parties().values()), name=INSTEAD)}
    return {name: lambda file=file: research_corpus(file) for name, file in {**CHOSEN_ON, **JUDGED}.items()}  # type: ignore[misc]


def _summed(held: Any, weights: Array, most: int) -> Array:
    """The sum of all rows: of norm 1, or under a bound on words each word as heavy as in the fullest row."""
    squares = held @ weights**2
    norms = np.full(held.shape[0], most**0.5) if most else np.sqrt(np.where(squares > 0, squares, np.inf))
    summed: Array = weights * (held.T @ (1 / norms))
    return summed


def _at_most(held: Any, most: int, rng: np.random.Generator) -> Any:
    """So many words of each document, by chance."""
    rows = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
    order = np.lexsort((rng.random(held.nnz), rows))
    place = np.arange(held.nnz) - np.repeat(held.indptr[:-1], np.diff(held.indptr))
    kept = np.sort(order[place < most])
    return sparse.csr_array((held.data[kept], (rows[kept], held.indices[kept])), shape=held.shape)
