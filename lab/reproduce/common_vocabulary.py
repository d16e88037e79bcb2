"""How many words five parties find in noised sums, beside a curator who has all documents and knows the exact words.

Three sums are asked for, each about the words that the sums before left open. Beside them stand one sum with the whole budget,
and exact sums in which words that are frequent in public count less. The whole budget is spent on words, so that the rows
compare selections alone. The curator weighs words as the parties do in one sum, adds the same Gaussian noise to exact sums, and
keeps what a word of a single document reaches with a chance of `miss` only. For words on no list it states a bound: what a
decoder that wastes nothing would find for a share of the budget, and what that share finds of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np
from dp_accounting import GaussianDpEvent
from scipy import sparse

from lab.documents import JudgedDocuments, by_frequencies, held_out
from lab.measuring import OnProgress, Row, told
from lab.reproduce.contenders import RADIUS
from lab.research_corpora import FILE, INSTEAD, M10, PUBLIC, SMS, newsgroups_file, research_corpus
from lab.training import exact_sum, noised
from securetm.accounting.calibration import noise_for
from securetm.accounting.spends import Spend
from securetm.answers.route import compile_route
from securetm.contracts import Answer, Array, Cohort, State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.corpus.docstrings import docstring_parties
from securetm.corpus.partitions import equal
from securetm.corpus.public_words import public_shares, ranked_words
from securetm.corpus.tokeniser import Tokeniser
from securetm.corpus.word_vectors import installed_vectors
from securetm.mechanisms.clipping import at_most
from securetm.mechanisms.gaussian_noise import CentralNoise
from securetm.mechanisms.noise_shares import NoiseShares
from securetm.mechanisms.word_selection import WordSelection
from securetm.models.public_knowledge import public_knowledge
from securetm.models.questions.word_sums import CHANCES, OPEN, ROUNDS, Searched, WordSearch, WordSums, required
from securetm.plans.agreement import agree
from securetm.plans.profiles import cohort_of, noise_of_whole_budget, read_profile
from securetm.plans.recommend import plan_from_tables
from securetm.plans.rules import rounds_for

PARTIES, DELTA, EPSILONS = 5, 1e-5, (1.0, 3.0, 8.0)
PER_DOCUMENT, MISS = 30, 1e-12  # of the profiles' selection of words
LARGER_MISS = 1e-6  # a tenth of delta: the most that a selection may reasonably spend of it
PROFILES = ("dp-central", "dp-distributed", "fortress")
NEWS = "20 Newsgroups"
JUDGED, CHOSEN_ON = {NEWS: FILE, "TagMyNews": PUBLIC[0]}, {"StackOverflow titles": PUBLIC[1], "SMS": SMS, "M10": M10}
SHARES, DECODED, SOME = (0.1, 0.25), 5.6, 5  # of the budget; deviations that tell a word from 10^8 others; documents
TOPICS, MOST_WORDS, HELD_OUT = 20, 2_000, 0.1  # of trainings that begin at frequencies which sums told
OF_WORDS = 0.25  # of epsilon, as runs spend it
LIGHTER, OF_SHARE = 0.25, 1e-5  # a word whose public share is 16 times this one counts half as much


@dataclass(frozen=True)
class Collected:
    """The same documents as parties and as one curator have them."""

    parts: Sequence[Corpus]
    words: tuple[str, ...]  # all that occur
    exact: Array  # the weight of each
    by_public: Array  # the same where words that are frequent in public count less
    of_listed: Array  # the same where words on no list add nothing
    of_unlisted: Array  # the same where words on a list add nothing
    documents: Array  # that each word is in
    listed: tuple[str, ...]

    @property
    def least(self) -> Array:
        """By how many deviations each word must stand out; words on no list never do."""
        ranks = {word: n for n, word in enumerate(self.listed)}
        needed = required(len(self.listed))
        return np.array([needed[ranks[word]] if word in ranks else np.inf for word in self.words])

    def decoded(self, epsilon: float, share: float) -> Row:
        """What a share of the budget for words on no list finds at most, and what it costs of the others in exact sums."""
        noise, some = noise_of(epsilon), (self.of_unlisted > 0) & (self.documents >= SOME)
        whole, left = ((self.of_listed > self.least * noise / part**0.5).sum() for part in (1.0, 1.0 - share))
        found = (self.of_unlisted > DECODED * noise / share**0.5).sum()
        counts = {"occurring": some.sum(), "found_at_most": found, "listed_words_lost": whole - left, "listed_words": whole}
        return {"epsilon": epsilon, "share": share, **{name: int(number) for name, number in counts.items()}}


def reproduce(
    epsilons: Sequence[float] = EPSILONS, documents: int | None = None, seed: int = 0, on_progress: OnProgress | None = None
) -> Row:
    """One row for each corpus, epsilon and way to select: by a party itself, by all parties in sums, by the curator."""
    listed, read = ranked_words("english", Tokeniser()), _corpora()
    names = [NEWS] if documents is not None and NEWS in read else list(read)
    rows, told_by, unlisted, held = [], [], [], {}
    for name in told(names, on_progress):
        parts = _fewer(read[name](), documents)
        held[name] = sum(map(len, parts))
        collected = collect(parts, listed)
        rows += [{"corpus": name, **row} for epsilon in epsilons for row in _rows(collected, epsilon, seed, name == NEWS)]
        told_by += [{"corpus": name, **row} for row in _told(name, collected, epsilons, seed)]
        unlisted += [{"corpus": name, **collected.decoded(epsilon, share)} for epsilon in epsilons for share in SHARES]
    noises = {"noise_multipliers": {f"{epsilon:g}": round(noise_of(epsilon), 4) for epsilon in epsilons}}
    facts = {"documents": held, "judged": list(JUDGED), "parties": PARTIES, "delta": DELTA, "listed": len(listed)}
    return {
        "reproduction": "common-vocabulary",
        **facts,
        "miss": MISS,
        "larger_miss": LARGER_MISS,
        **noises,
        "rows": rows,
        "words_on_no_list": unlisted,
        "frequencies": told_by,
    }


def _told(name: str, collected: Collected, epsilons: Sequence[float], seed: int) -> Iterator[Row]:
    """What frequencies that the sums told are worth, on corpora of which one word in a document already tells much."""
    if name not in CHOSEN_ON or installed_vectors() is None:
        return
    whole = Corpus.concat(list(collected.parts), name=name)
    for epsilon in epsilons:
        search = _searched(collected, "dp-central", noise_of(OF_WORDS * epsilon), np.random.default_rng(seed))
        told_of = likelihoods(whole, search, epsilon, seed)
        yield {key: round(value, 4) if isinstance(value, float) else value for key, value in told_of.items()}


def _corpora() -> Mapping[str, Callable[[], list[Corpus]]]:
    """Each corpus as its parties hold it; docstrings alone where the research corpora are not here."""
    own = {INSTEAD: lambda: list(docstring_parties().values())}
    files = {**JUDGED, **CHOSEN_ON} if newsgroups_file() else {}
    return {**{name: partial(_dealt_out, file) for name, file in files.items()}, **own}


def _dealt_out(file: str) -> list[Corpus]:
    return list(equal(research_corpus(file), PARTIES, 0).values())


def _fewer(parts: list[Corpus], documents: int | None) -> list[Corpus]:
    each = max(map(len, parts)) if documents is None else documents // len(parts)
    return [part.select(np.arange(0, len(part), max(len(part) // each, 1))) for part in parts]


def collect(parts: Sequence[Corpus], listed: tuple[str, ...]) -> Collected:
    """Sums what the curator sums."""
    whole = Corpus.concat(list(parts), name="whole")
    shares = np.maximum(public_shares(whole.vocabulary, "en", Tokeniser()), 1e-12)
    known = set(listed)
    there = np.array([word in known for word in whole.vocabulary], dtype=np.float64)
    each = (np.ones(len(there)), there * np.minimum(1, (OF_SHARE / shares) ** LIGHTER), there, 1 - there)
    held, sums = sparse.csr_array(whole.counts > 0, dtype=np.float64), list[Array]()
    for weights in each:
        squares = held @ weights**2
        scale = 1 / np.sqrt(np.where(squares > 0, squares, np.inf))
        sums.append(weights * np.asarray((sparse.diags_array(scale) @ held).sum(axis=0)).ravel())
    exact, by_public, of_listed, of_unlisted = sums
    documents = whole.document_frequencies()
    return Collected(parts, whole.vocabulary, exact, by_public, of_listed, of_unlisted, documents, listed)


def noise_of(epsilon: float) -> float:
    """The noise multiplier at which one Gaussian answer spends the whole budget."""
    return noise_for(lambda noise: [Spend(GaussianDpEvent(noise))], epsilon, DELTA, 0.05, 1000.0)


def _rows(collected: Collected, epsilon: float, seed: int, every_profile: bool) -> list[Row]:
    noise, rng, names = noise_of(epsilon), np.random.default_rng(seed), np.asarray(collected.words, dtype=object)
    noised = collected.exact + rng.normal(0, noise, len(collected.exact))
    least = {miss: -NormalDist().inv_cdf(miss / PER_DOCUMENT) for miss in (MISS, LARGER_MISS)}
    curators = {miss: set(names[noised > 1 + deviations * noise]) for miss, deviations in least.items()}
    profiles = PROFILES if every_profile else PROFILES[:2]
    alone = [_selected(part, noise, rng) for part in collected.parts]
    by_public = collected.by_public + rng.normal(0, noise, len(names))
    found = {
        "party alone": alone[0],
        "parties apart": set().union(*alone),
        "curator": curators[MISS],
        "curator, larger miss": curators[LARGER_MISS],
        "exact words, all alike": set(names[noised > collected.least * noise]),
        "exact words, lighter where frequent in public": set(names[by_public > collected.least * noise]),
        "one sum, dp-central": _found_in_one(collected, "dp-central", noise, rng),
        "one sum, dp-distributed": _found_in_one(collected, "dp-distributed", noise, rng),
        **{f"sum, {name}": set(_searched(collected, name, noise, rng).words()[0]) for name in profiles},
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


def _selected(part: Corpus, noise: float, rng: np.random.Generator) -> set[str]:
    """The words that a party names by itself, as each does under dp-local."""
    selection = WordSelection(PER_DOCUMENT, noise, MISS)
    held = sparse.csr_array(part.counts > 0, dtype=np.int64)
    kept = np.asarray(at_most(held, PER_DOCUMENT, 1).sum(axis=0)).ravel()
    noised = kept + np.rint(rng.normal(0, noise * PER_DOCUMENT**0.5, len(kept)))
    return {part.vocabulary[n] for n in np.flatnonzero((kept > 0) & (noised > selection.threshold))}


def _searched(collected: Collected, profile: str, noise: float, rng: np.random.Generator) -> WordSearch:
    search, deviation = WordSearch(collected.listed), deviation_of(profile, noise)
    for _ in range(ROUNDS):
        cells = _cells(collected.parts, search.about)
        search.take(Answer({"cells": cells + rng.normal(0, deviation, len(cells))}, deviation=deviation))
    return search


def _found_in_one(collected: Collected, profile: str, noise: float, rng: np.random.Generator) -> set[str]:
    """The words that one sum with the whole budget shows, where noise alone brings as many words as in all sums."""
    search, deviation = WordSearch(collected.listed), deviation_of(profile, noise) / ROUNDS**0.5
    cells = _cells(collected.parts, {})
    noised = cells + rng.normal(0, deviation, len(cells))
    found = Searched.in_cells(noised, search.places, search.signs, deviation, search.found, sum(CHANCES))
    return {search.candidates[n] for n in np.flatnonzero(found.weights)}


def _cells(parts: Sequence[Corpus], about: State) -> Array:
    query = WordSums(about.get(OPEN))
    cells = np.zeros(query.terms.size)
    for part in parts:
        cells += exact_sum(query, part, np.random.default_rng(0), 1.0)["cells"]
    return cells


def deviation_of(profile: str, noise: float) -> float:
    """The deviation of the noise in each sum over all parties, in rows of one document."""
    chosen = read_profile(profile, {"words": noise})
    cohort: Cohort = cohort_of(chosen, PARTIES)
    route = compile_route(WordSums().terms, chosen, cohort)
    last = route.steps[-1]
    if isinstance(last.mechanism, CentralNoise):
        return float(last.mechanism.total_deviation(last.after) * route.terms.grid)
    assert isinstance(last.mechanism, NoiseShares)
    return float(last.mechanism.noise(last.before, cohort).deviation * PARTIES**0.5 * route.terms.grid)


# ---- what word frequencies that sums told are worth in training, beside those of general texts -------------------------


def likelihoods(whole: Corpus, search: WordSearch, epsilon: float, seed: int) -> Row:
    """Log-likelihood of each held-out word by the model that began at either frequencies, and by word frequencies alone.

    A curator finds words in sums with a quarter of epsilon, as the parties do, and trains `lda-vi` over them with the rest.
    """
    words, weights, _ = search.words()
    words = tuple(words[n] for n in np.sort(np.argsort(-weights, kind="stable")[:MOST_WORDS]))
    tables = {"profile": "dp-central", "model": {"name": "lda-vi", "n_topics": TOPICS}, "privacy": {"epsilon": epsilon}}
    plan = plan_from_tables({**tables, "vocabulary": {"source": "file", "file": "english"}}, "the experiment's settings")
    agreement = agree(plan, listed=words)
    documents = JudgedDocuments(whole, words)
    known, held = documents.held_back(HELD_OUT, seed)
    rounds = rounds_for(len(known), TOPICS, len(words), noise_of_whole_budget(agreement.profile))
    left = 1 / noise_of(epsilon) ** 2 - 1 / noise_of(OF_WORDS * epsilon) ** 2
    deviation = math.sqrt(rounds / left) * RADIUS
    usual = agreement.frequencies(words)
    begun = {"of_general_texts": usual, "of_sums": search.frequencies(words, usual)}
    found = {name: _likelihood(agreement.model, known, held, shares, rounds, deviation, seed) for name, shares in begun.items()}
    alone = by_frequencies(known, held)
    return {"epsilon": epsilon, "words": len(words), "rounds": rounds, **found, "by_frequencies": alone}


def _likelihood(
    model: TopicModel, known: Corpus, held: Corpus, frequencies: Array | None, rounds: int, deviation: float, seed: int
) -> float:
    words, rng, vectors = known.vocabulary, np.random.default_rng(seed + 100), installed_vectors()
    assert vectors is not None
    public = public_knowledge(vectors.read(words).matrix(words), TOPICS, frequencies)
    state = model.started(words, public, np.random.default_rng(0))
    for number in range(rounds):
        exact = exact_sum(model.query(state), known, np.random.default_rng(number), RADIUS)
        state = model.update(state, noised(exact, deviation, rng))
    return held_out(model, state, held)
