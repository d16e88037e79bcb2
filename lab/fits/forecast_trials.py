"""What a forecast of usefulness is fitted to: private models on made-up documents and on corpora, with and without noise.

All documents are in one place and the noise is a plain Gaussian, as under `dp-central`. A trial's words are frequent ones of
the corpus itself, which is no private choice. What follows from the rows is in `forecast.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from lab.documents import by_frequencies, classified, held_out, vague_vectors
from lab.fits.forecast import (
    GENERAL_WORDS,
    PROFILE_RADIUS,
    Point,
    by_chance,
    by_model,
    decided_by_words,
    fit,
    judged,
    points_of_frontier,
    points_of_trials,
    ranked,
    summary,
)
from lab.keeping import KeptRows, Key, made
from lab.measuring import OnProgress, Row, committed
from lab.reproduce.contenders import DELTA, MOMENTS, PLAIN, PUBLIC, STARTED, STARTED_PLAIN
from lab.research_corpora import FILE, M10, SMS, docstrings, public_words, read_newsgroups, research_corpus
from lab.research_corpora import PUBLIC as FILES
from lab.synthetic_documents import LdaNodes, SyntheticNodes, lda_nodes
from lab.training import exact_sum, noised
from lab.training import trained as trained_further
from securetm.contracts import Array, State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.corpus.public_words import frequent_words, public_shares
from securetm.corpus.tokeniser import Tokeniser, prune
from securetm.corpus.word_vectors import GLOVE, read_vectors
from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.moments import LONGEST, Moments, TopicsBefore
from securetm.models.nmf import NMF
from securetm.models.public_knowledge import PublicKnowledge, public_knowledge
from securetm.plans.rules import USUAL_START, noise_of_one_round, noise_of_start, rounds_for, totals_for

SHORT, MIDDLE, LONG = "made-up documents of 5 to 10 words", "made-up documents of 15 to 75", "made-up documents of 80 to 240"
CLEAR = "made-up documents of 15 to 60 on clear subjects"
MANY = "made-up documents over 4,000 words"
NEWS_POSTS, SNIPPETS = "20 Newsgroups", "TagMyNews"
TITLES, PAPERS, DOCSTRINGS, MESSAGES = "StackOverflow titles", "M10", "docstrings", "SMS"
LDA_COUNTS, FACTORS = "lda", "nmf"
EPSILONS = (0.5, 1.0, 3.0, 8.0)
RADIUS, TOPICS, WORDS = 2.0, 20, 1_000
_LENGTHS = {SHORT: (5, 10), MIDDLE: (15, 75), LONG: (80, 240), CLEAR: (15, 60)}
_MIXED = {SHORT: (0.1, 0.05), MIDDLE: (0.3, 0.1), LONG: (0.5, 0.1), CLEAR: (0.1, 0.05)}  # alpha and eta
_JUDGES = 1_500  # documents that judge a model
_WITHOUT = 20  # rounds where there is no noise
_MOST_SHARE = 0.5  # of documents that a word of a public list is in
_STARTED = (STARTED, STARTED_PLAIN)  # lda-vi at topics that `moments` finds first
_RANKED = (PUBLIC, PLAIN, MOMENTS, STARTED, STARTED_PLAIN)  # which `choose` chooses from
_OTHERS = 10  # rounds of `lda` and of factors without noise


@dataclass(frozen=True)
class ForecastTrial:
    """One training. `rounds` of 0 are as many as the package's own rule says."""

    corpus: str
    documents: int
    model: str
    epsilon: float | None
    words: int = WORDS
    topics: int = TOPICS
    radius: float = RADIUS
    seed: int = 0

    def key(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class ForecastDocuments:
    """Documents to train on, documents to predict and to classify, and their words' public vectors."""

    train: Corpus
    held: Corpus
    vectors: Array
    shares: Array  # of words in general texts

    @property
    def frequencies(self) -> float:
        """The log-likelihood of a held-out word by word frequencies."""
        return by_frequencies(self.train, self.held)


def row(key: Key) -> Row:
    trial = ForecastTrial(**key)
    documents = documents_of(trial.corpus, trial.documents, trial.words)
    model = model_of(trial)
    rounds = rounds_of(trial, len(documents.train), len(documents.train.vocabulary))
    state, deviation = trained(model, documents, trial, rounds)
    held = held_out(model, state, documents.held)
    return {
        **trial.key(),
        "documents": len(documents.train),
        "words": len(documents.train.vocabulary),
        "length": round(float(documents.train.lengths().mean()), 2),
        "rounds": rounds,
        "deviation": round(deviation, 4),
        "held_out": round(held, 4),
        "frequencies": round(documents.frequencies, 4),
        "f1": round(classified(model.infer(state, documents.held), np.asarray(documents.held.labels)), 4),
    }


def model_of(trial: ForecastTrial) -> TopicModel:
    if trial.model == MOMENTS:
        return Moments(n_topics=trial.topics)
    if trial.model == LDA_COUNTS:
        return LDA(n_topics=trial.topics, sweeps=5)
    if trial.model == FACTORS:
        return NMF(n_topics=trial.topics, **(NMF.budget_defaults if trial.epsilon else {}))
    noise = noise_of_one_round(trial.epsilon, DELTA) / for_rounds(trial) ** 0.5 if trial.epsilon else 0.0
    asked = trial.model in _STARTED
    known = {"plain": trial.model == PLAIN, "after_pairs": asked}
    totals = totals_for(trial.documents, trial.topics, trial.words, noise, **known) if noise else 0.0
    return VariationalLDA(n_topics=trial.topics, **{**VariationalLDA.budget_defaults, "totals": totals})


def rounds_of(trial: ForecastTrial, documents: int, words: int) -> int:
    if trial.model == MOMENTS:
        return 1
    if trial.model in (LDA_COUNTS, FACTORS) and trial.epsilon is None:
        return _OTHERS
    if trial.epsilon is None:
        return _WITHOUT
    noise = noise_of_one_round(trial.epsilon, DELTA) / for_rounds(trial) ** 0.5
    return rounds_for(documents, trial.topics, words, noise, plain=trial.model in (PLAIN, LDA_COUNTS, FACTORS))


def for_rounds(trial: ForecastTrial) -> float:
    """The share of the budget that the rounds have, in squares of noise."""
    return 1.0 - USUAL_START if trial.model in _STARTED else 1.0


def trained(
    model: TopicModel, documents: ForecastDocuments, trial: ForecastTrial, rounds: int, left: float = 1.0
) -> tuple[State, float]:
    """The state after so many rounds with the budget's noise, and the deviation of that noise.

    Of the budget, in squares of noise, finding words has `left` such a share.
    """
    rng = np.random.default_rng([trial.seed, rounds])
    radius = 1.0 if trial.model in (MOMENTS, FACTORS) else trial.radius  # rows of these have that length under a budget
    noise = 0.0 if trial.epsilon is None else noise_of_one_round(trial.epsilon, DELTA)
    deviation = noise * (rounds / for_rounds(trial) / left) ** 0.5 * radius  # Gaussians compose as one
    state = _started(model, documents, trial, rng)
    within = radius if trial.epsilon is not None else np.inf
    return trained_further(model, documents.train, state, rounds, within, deviation, rng), deviation


def _started(model: TopicModel, documents: ForecastDocuments, trial: ForecastTrial, rng: np.random.Generator) -> State:
    words = documents.train.vocabulary
    if trial.model not in (PUBLIC, MOMENTS, *_STARTED):
        return model.start(words, rng)
    known: PublicKnowledge = public_knowledge(documents.vectors, trial.topics, documents.shares)
    if trial.model not in _STARTED:
        return model.started(words, known, rng)
    # what the noised answer to the question of `moments` says
    before = TopicsBefore(trial.topics)
    noise = noise_of_start(trial.epsilon, DELTA, USUAL_START) if trial.epsilon is not None else 0.0
    exact = exact_sum(before.question(len(words), 0.0), documents.train, rng, LONGEST)
    return model.started(words, before.found(words, noised(exact, noise, rng), known if trial.model == STARTED else None), rng)


# ---- documents ---------------------------------------------------------------------------------------------------------


@cache
def documents_of(name: str, documents: int, words: int) -> ForecastDocuments:
    """So many documents of a corpus over so many words; the same in every process."""
    return _made_up(name, documents, words) if name in _LENGTHS else _chosen(name, documents, words)


def _made_up(name: str, documents: int, words: int) -> ForecastDocuments:
    """Documents of LDA's own process, and word vectors that know vaguely which words go together."""
    (shortest, longest), (alpha, eta) = _LENGTHS[name], _MIXED[name]
    size = LdaNodes(nodes=1, topics=TOPICS, words=words, alpha=alpha, eta=eta)
    size = replace(size, documents=documents, validation_documents=_JUDGES, shortest=shortest, longest=longest)
    made = lda_nodes(size, seed=7)
    (train,), (held,), (theta,) = made.train.values(), made.validation.values(), made.validation_theta.values()
    return ForecastDocuments(
        train, held.replace(labels=theta.argmax(axis=1)), vague_vectors(made.beta), _vague_shares(made.beta)
    )


def _chosen(name: str, documents: int, words: int) -> ForecastDocuments:
    """Some documents of a corpus over its own frequent words or those of general English, and public vectors of these."""
    corpus = whole(name.removesuffix(GENERAL_WORDS))
    if name.endswith(GENERAL_WORDS):
        chosen = frequent_words("en", words, Tokeniser(), _MOST_SHARE)
    else:
        others = _WORDS_OF_OTHERS.get(name)
        chosen = tuple(sorted(public_words(words, of=others) if others else prune(corpus, max_words=words)))
    counted = corpus.project(chosen)
    counted = counted.select(np.flatnonzero(counted.lengths() >= 2))
    order = np.random.default_rng(0).permutation(len(counted))
    judges, rest = order[:_JUDGES], order[_JUDGES : _JUDGES + documents]
    if name == MANY:  # some of the made-up words
        made = _many_words()
        places = {word: n for n, word in enumerate(made.train["node-1"].vocabulary)}
        at = [places[word] for word in chosen]
        vectors, shares = vague_vectors(made.beta)[at], _vague_shares(made.beta)[at]
        shares = shares / shares.sum()
    else:
        vectors, shares = known_of(chosen)
    return ForecastDocuments(counted.select(np.sort(rest)), counted.select(np.sort(judges)), vectors, shares)


def known_of(words: tuple[str, ...]) -> tuple[Array, Array]:
    """Public vectors and frequencies of English words, as a run has them."""
    shares = public_shares(words, "en", Tokeniser())
    filled = np.where(shares > 0, shares, shares[shares > 0].min() / 2)
    return np.asarray(read_vectors(GLOVE, words).matrix(words)), np.asarray(filled / filled.sum())


@cache
def whole(name: str) -> Corpus:
    return WHOLE[name]()


@lru_cache(2)
def with_judges(name: str, most: int, judges: int) -> tuple[Corpus, Corpus]:
    """So many documents to train on, or all that are there, and others that judge the topics; over all their words."""
    corpus = whole(name)
    order = np.random.default_rng(0).permutation(len(corpus))
    return corpus.select(np.sort(order[judges : judges + most])), corpus.select(np.sort(order[:judges]))


def _vague_shares(topics: Array) -> Array:
    """Frequencies that are off as those of general texts are."""
    found = topics.sum(axis=0) * np.random.default_rng(9).lognormal(0.0, 1.0, topics.shape[1])
    least = np.maximum(found / found.sum(), 1e-7)
    shares: Array = least / least.sum()
    return shares


def _over_many_words() -> Corpus:
    """Made-up documents whose list of words can be cut."""
    made = _many_words()
    return made.train["node-1"].replace(labels=made.theta["node-1"].argmax(axis=1))


@cache
def _many_words() -> SyntheticNodes:
    size = LdaNodes(nodes=1, topics=TOPICS, words=4_000, alpha=0.3, eta=0.1, falling=0.7)
    return lda_nodes(replace(size, documents=14_000, validation_documents=1, shortest=15, longest=75), seed=9)


def _read(file: str) -> Callable[[], Corpus]:
    return lambda: research_corpus(file)


_WORDS_OF_OTHERS = {NEWS_POSTS: FILE, SNIPPETS: FILES[0]}
WHOLE: Mapping[str, Callable[[], Corpus]] = {
    NEWS_POSTS: read_newsgroups,
    SNIPPETS: _read(FILES[0]),
    DOCSTRINGS: partial(docstrings, DOCSTRINGS),
    PAPERS: _read(M10),
    MANY: _over_many_words,
    TITLES: _read(FILES[1]),
    MESSAGES: _read(SMS),
}


def reproduce(on_progress: OnProgress | None = None, keep: Path | None = None, workers: int = 1) -> Row:
    """Carries out every trial; rows in the file `keep` are not made again. Then the fit, and how it does on other corpora."""
    rows = made([trial.key() for trial in trials()], row, KeptRows(keep), workers, on_progress)
    return found(rows)


def points_of(rows: Sequence[Row]) -> list[Point]:
    """The outcomes of these trials, of those of the settings' rule, which vary words and topics, and of the frontier."""
    settings, frontier = (committed(f"reproduce-{name}")["rows"] for name in ("settings-rule", "private-frontier"))
    return [*points_of_trials([*rows, *settings]), *points_of_frontier(frontier)]


def found(rows: Sequence[Row]) -> Row:
    points = points_of(rows)
    told = judged(points)
    tables = {
        "How often the outcome lay in its band, on corpora left out": summary(told),
        "The same by model": by_model(told),
        "How many were of use, by the chance that was said": by_chance(told),
        "F1 of the setting that is ranked first, over the best of those tried, on corpora left out": ranked(
            [one for one in points if one.model in _RANKED]
        ),
        "F1 of the one of lda-vi and moments that is taken, over the better one's": decided_by_words(points, told),
    }
    read = "20 Newsgroups, TagMyNews, StackOverflow titles, M10, SMS, docstrings of installed packages, made-up documents"
    return {
        "corpus": read,
        "reproduction": "usefulness-forecast",
        "fitted": fit(points),
        "tables": tables,
        "judged": told,
        "rows": list(rows),
    }


# ---- which trials there are --------------------------------------------------------------------------------------------

_CORPORA = (DOCSTRINGS, TITLES, PAPERS)
_BEGUN = (*_LENGTHS, *_CORPORA, *(name + GENERAL_WORDS for name in _CORPORA))  # on which every one of the first models is tried
_TEXTS = (*_CORPORA, MESSAGES, NEWS_POSTS, SNIPPETS)
_MODELS, _FURTHER = (PUBLIC, MOMENTS, PLAIN), (LDA_COUNTS, FACTORS)


def trials() -> list[ForecastTrial]:
    """All of them: epsilons on every corpus, then other numbers of documents, words and topics, then further models."""
    ends = (1.0, 8.0, None)
    shapes = [(250, TOPICS), (2_000, TOPICS), (WORDS, 5), (WORDS, 50)]
    english = tuple(name + GENERAL_WORDS for name in _CORPORA)
    each_english = tuple(name + GENERAL_WORDS for name in _TEXTS)
    longer = tuple(name for name in each_english if name not in english[1:])  # others have too few of a short list's words
    few: dict[str, Any] = {"models": (PLAIN,), "radius": PROFILE_RADIUS}
    return [
        *_block(_BEGUN, 2_000, (0.5, 3.0, None)),
        *_block((MESSAGES + GENERAL_WORDS, MESSAGES, NEWS_POSTS, SNIPPETS), 2_000, (*EPSILONS, None)),
        *_block((SHORT, MIDDLE, CLEAR, *_CORPORA, *english), 8_000, ends),
        *(one for words, topics in shapes for one in _block(english[:1], 4_000, (1.0, None), words=words, topics=topics)),
        *_block((DOCSTRINGS, PAPERS, MIDDLE), 4_000, ends, models=_FURTHER),
        *_block((*_TEXTS, MIDDLE), 2_000, (0.5, 3.0, 8.0, None), models=(*_FURTHER, *_STARTED)),
        *_block((*english, MESSAGES + GENERAL_WORDS), 2_000, (0.5, 3.0, None), models=_STARTED),
        *_block((*_CORPORA, NEWS_POSTS, SNIPPETS, MIDDLE), 8_000, ends, models=_STARTED),
        *_block((*_CORPORA, NEWS_POSTS, SNIPPETS), 8_000, ends, models=_FURTHER),
        *_block((english[0],), 500, (3.0, None)),
        *_block((CLEAR,), 20_000, (1.0, None)),
        *_block(longer, 4_000, (3.0,), words=250, topics=5, **few),
        *_block(each_english, 4_000, (3.0,), topics=5, **few),
        *_block(each_english, 4_000, (3.0,), words=500, topics=10, **few),
        *_block(_TEXTS, 4_000, (3.0,), words=250, topics=5, **few),
    ]


def _block(
    corpora: Sequence[str], size: int, epsilons: Sequence[float | None], models: Sequence[str] = _MODELS, **more: Any
) -> list[ForecastTrial]:
    return [ForecastTrial(name, size, model, epsilon, **more) for name in corpora for model in models for epsilon in epsilons]
