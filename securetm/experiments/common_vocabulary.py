"""How many words five parties find in one noised sum, beside a curator who has all documents and knows the exact words.

The whole budget is spent on words, so that the rows compare selections alone. The curator weighs words as the parties do, adds
the same Gaussian noise to exact sums, and keeps what a word of a single document reaches with a chance of `miss` only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from dp_accounting import GaussianDpEvent
from scipy import sparse

from securetm.accounting.calibration import noise_for
from securetm.accounting.spends import Spend
from securetm.clipped_sum import ClippedRowSum
from securetm.contracts import Array, Cohort
from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import equal
from securetm.corpus.public_words import ranked_words
from securetm.corpus.tokeniser import Tokeniser
from securetm.experiments.bench_frame import OnProgress, Row, told
from securetm.experiments.newsgroups import read_newsgroups
from securetm.mechanisms.central_noise import CentralNoise
from securetm.mechanisms.clipping import at_most
from securetm.mechanisms.noise_shares import NoiseShares
from securetm.mechanisms.word_selection import WordSelection
from securetm.models.word_sums import WordSums, weights_of
from securetm.profiles import cohort_of, read_profile
from securetm.route import compile_route

PARTIES, DELTA, EPSILONS = 5, 1e-5, (1.0, 3.0, 8.0)
PER_DOCUMENT, MISS = 30, 1e-12  # of the profiles' selection of words
LARGER_MISS = 1e-6  # a tenth of delta: the most that a selection may reasonably spend of it
PROFILES = ("dp-central", "dp-distributed", "fortress")


@dataclass(frozen=True)
class Collected:
    """The same documents as parties and as one curator have them."""

    parts: Sequence[Corpus]
    words: tuple[str, ...]  # all that occur
    exact: Array  # the weight of each
    cells: Array  # the sum of the parties' rows
    listed: tuple[str, ...]


def reproduce(
    epsilons: Sequence[float] = EPSILONS, documents: int | None = None, seed: int = 0, on_progress: OnProgress | None = None
) -> Row:
    """One row for each epsilon and way to select: by a party itself, by all parties in one sum, by the curator."""
    whole = read_newsgroups()
    whole = whole if documents is None else whole.select(np.arange(0, len(whole), max(len(whole) // documents, 1)))
    collected = collect(whole, ranked_words("english", Tokeniser()))
    rows = [row for epsilon in told(epsilons, on_progress) for row in _rows(collected, epsilon, seed)]
    noises = {"noise_multipliers": {f"{epsilon:g}": round(noise_of(epsilon), 4) for epsilon in epsilons}}
    held = {"documents": len(whole), "parties": PARTIES, "delta": DELTA, "listed": len(collected.listed)}
    return {"reproduction": "common-vocabulary", **held, "miss": MISS, "larger_miss": LARGER_MISS, **noises, "rows": rows}


def collect(whole: Corpus, listed: tuple[str, ...]) -> Collected:
    """Deals the documents out in equal parts, and sums what the parties and the curator sum."""
    parts = list(equal(whole, PARTIES, 0).values())
    held = sparse.csr_array(whole.counts > 0, dtype=np.float64)
    scale = 1 / np.sqrt(np.maximum(np.asarray(held.sum(axis=1)).ravel(), 1))
    exact = np.asarray((sparse.diags_array(scale) @ held).sum(axis=0)).ravel()
    return Collected(parts, whole.vocabulary, exact, np.sum([_cells(part) for part in parts], axis=0), listed)


def noise_of(epsilon: float) -> float:
    """The noise multiplier at which one Gaussian answer spends the whole budget."""
    return noise_for(lambda noise: [Spend(GaussianDpEvent(noise))], epsilon, DELTA, 0.05, 1000.0)


def _cells(part: Corpus) -> Array:
    added = ClippedRowSum(WordSums().terms, 1.0)
    WordSums().answer(part, added, {}, np.random.default_rng(0))
    return added.vector()


def _rows(collected: Collected, epsilon: float, seed: int) -> list[Row]:
    noise, rng, names = noise_of(epsilon), np.random.default_rng(seed), np.asarray(collected.words, dtype=object)
    noised = collected.exact + rng.normal(0, noise, len(collected.exact))
    curators = {miss: set(names[noised > 1 + _least(miss) * noise]) for miss in (MISS, LARGER_MISS)}
    alone = [_selected(part, noise, rng) for part in collected.parts]
    found = {
        "party alone": alone[0],
        "parties apart": set().union(*alone),
        "curator": curators[MISS],
        "curator, larger miss": curators[LARGER_MISS],
        **{f"sum, {profile}": _found(collected, profile, noise, rng) for profile in PROFILES},
    }
    return [
        {
            "epsilon": epsilon,
            "selection": name,
            "words": len(words),
            "of_curator": _share(words, curators[MISS]),
            "larger_miss": _share(words, curators[LARGER_MISS]),
            "of_nobody": len(words - set(collected.words)),
        }
        for name, words in found.items()
    ]


def _share(words: set[str], kept: set[str]) -> float:
    return round(len(words & kept) / max(len(kept), 1), 3)


def _least(miss: float) -> float:
    return -NormalDist().inv_cdf(miss / PER_DOCUMENT)


def _selected(part: Corpus, noise: float, rng: np.random.Generator) -> set[str]:
    """The words that a party names by itself, as each does under dp-local."""
    selection = WordSelection(PER_DOCUMENT, noise, MISS)
    held = sparse.csr_array(part.counts > 0, dtype=np.int64)
    kept = np.asarray(at_most(held, PER_DOCUMENT, 1).sum(axis=0)).ravel()
    noised = kept + np.rint(rng.normal(0, noise * PER_DOCUMENT**0.5, len(kept)))
    return {part.vocabulary[n] for n in np.flatnonzero((kept > 0) & (noised > selection.threshold))}


def _found(collected: Collected, profile: str, noise: float, rng: np.random.Generator) -> set[str]:
    """The words that the federation finds in the sum, with the noise of this profile when nobody is missing."""
    deviation = deviation_of(profile, noise)
    weights = weights_of(collected.cells + rng.normal(0, deviation, len(collected.cells)), collected.listed, deviation)
    return {collected.listed[n] for n in np.flatnonzero(weights)}


def deviation_of(profile: str, noise: float) -> float:
    """The deviation of the noise in the sum over all parties, in rows of one document."""
    chosen = read_profile(profile, {"words": noise})
    cohort: Cohort = cohort_of(chosen, tuple(f"party {n}" for n in range(PARTIES)))
    route = compile_route(WordSums().terms, chosen, cohort)
    last = route.steps[-1]
    if isinstance(last.mechanism, CentralNoise):
        return float(last.mechanism.total_deviation(last.after) * route.terms.grid)
    assert isinstance(last.mechanism, NoiseShares)
    return float(last.mechanism.noise(last.before, cohort).deviation * PARTIES**0.5 * route.terms.grid)
