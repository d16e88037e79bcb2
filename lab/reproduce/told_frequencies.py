"""What word frequencies that sums of words told are worth in training, beside those of general texts. It sends no message.

A curator finds words in sums with a quarter of epsilon, as the parties do, and trains `lda-vi` over them with the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from lab.judged_documents import JudgedDocuments, per_word
from lab.measuring import Row
from lab.reproduce.contenders import RADIUS
from securetm.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array, State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.corpus.word_vectors import installed_vectors
from securetm.models.public_knowledge import public_knowledge
from securetm.models.questions.word_sums import WordSearch
from securetm.plans.agreement import agree
from securetm.plans.profiles import rounds_under
from securetm.plans.reading import plan_from_tables

TOPICS, MOST_WORDS, HELD_OUT = 20, 2_000, 0.1
OF_WORDS = 0.25  # of epsilon, as runs spend it


def likelihoods(whole: Corpus, search: WordSearch, epsilon: float, noise_of: Callable[[float], float], seed: int) -> Row:
    """Log-likelihood of each held-out word by the model that began at either frequencies, and by word frequencies alone."""
    words, weights, _ = search.words()
    words = tuple(words[n] for n in np.sort(np.argsort(-weights, kind="stable")[:MOST_WORDS]))
    tables = {"profile": "dp-central", "model": {"name": "lda-vi", "n_topics": TOPICS}, "privacy": {"epsilon": epsilon}}
    plan = plan_from_tables({**tables, "vocabulary": {"source": "file", "file": "english"}}, "the experiment's settings")
    agreement = agree(plan, listed=words)
    documents = JudgedDocuments(whole, words)
    known, held = documents.held_back(HELD_OUT, seed)
    rounds = rounds_under(agreement.profile, len(known), TOPICS, len(words))
    left = 1 / noise_of(epsilon) ** 2 - 1 / noise_of(OF_WORDS * epsilon) ** 2
    deviation = math.sqrt(rounds / left) * RADIUS
    usual = agreement.frequencies(words)
    begun = {"of_general_texts": usual, "of_sums": search.frequencies(words, usual)}
    found = {name: _likelihood(agreement.model, known, held, begun[name], rounds, deviation, seed) for name in begun}
    alone = documents.by_frequencies(known, held)
    return {"epsilon": epsilon, "words": len(words), "rounds": rounds, **found, "by_frequencies": alone}


def _likelihood(
    model: TopicModel, known: Corpus, held: Corpus, frequencies: Array | None, rounds: int, deviation: float, seed: int
) -> float:
    words, rng = known.vocabulary, np.random.default_rng(seed + 100)
    vectors = installed_vectors()
    assert vectors is not None
    public = public_knowledge(vectors.read(words).matrix(words), TOPICS, frequencies)
    state = model.started(words, public, np.random.default_rng(0))
    for number in range(rounds):
        state = model.update(state, Answer(_sum(model, state, known, number, rng, deviation), deviation=deviation))
    return per_word(*held.halves(0), lambda seen, unseen: model.log_likelihood(state, seen, unseen))


def _sum(
    model: TopicModel, state: State, known: Corpus, number: int, rng: np.random.Generator, deviation: float
) -> Mapping[str, Array]:
    query = model.query(state)
    added = ClippedRowSum(query.terms, RADIUS)
    query.answer(known, added, {}, np.random.default_rng(number))
    exact = added.vector()
    return {"counts": (exact + rng.normal(0, deviation, len(exact))).reshape(TOPICS, -1)}
