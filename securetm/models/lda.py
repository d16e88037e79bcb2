"""Latent Dirichlet allocation by Gibbs sampling, in the aligned form: all parties draw from one shared table of counts.

It is not a federation and knows no privacy; what it asks of documents it asks through a query (Newman et al. 2009).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from securetm.contracts import Answer, Array, Block, Domain, Memory, State, Tally, Terms
from securetm.errors import BadSetting, BrokenPromise
from securetm.models.document_noise import starts_of
from securetm.models.estimator import Estimator
from securetm.models.lda_documents import MOST_TOPICS, NEVER, Assignments, Bags
from securetm.models.lda_kernels import fold_in, resample, rows_of, said

_DRAWS = 0  # the stream of a document's noise
_CHUNK = 1 << 20  # tokens poured at a time, so that memory does not grow with the corpus
_PASSES = 100  # of folding in, where a document's topics do not settle earlier


@dataclass(frozen=True)
class LDA(Estimator):
    """LDA whose answer is a sum over documents: fields are public settings, all that it learns is in the state.

    In a round each document draws the topics of its tokens anew, `sweeps` times, given the shared counts of the round before
    and its own, and gives its new counts. What the other documents draw meanwhile it learns a round later, as processors do
    in approximate distributed LDA; here each document is a processor, so given the state no document's counts depend on
    another's, and who holds which does not matter: a federation learns what one machine would, count for count.
    """

    n_topics: int = 50
    alpha: float = 0.1  # of the symmetric Dirichlet prior of a document's topics
    eta: float = 0.01  # of a topic's words
    sweeps: int = 2
    threads: int = 1  # changes nothing but the time it takes
    name: ClassVar[str] = "lda"

    def __post_init__(self) -> None:
        self._check("n_topics", 1 <= self.n_topics <= MOST_TOPICS, f"must be 1 to {MOST_TOPICS}")
        self._check("alpha", 1e-9 <= self.alpha < math.inf, "must be at least 1e-9 and finite")
        self._check("eta", 1e-9 <= self.eta < math.inf, "must be at least 1e-9 and finite")
        self._check("sweeps", self.sweeps >= 1, "must be at least 1")
        self._check("threads", self.threads >= 1, "must be at least 1")

    def _check(self, setting: str, fine: bool, problem: str) -> None:
        if not fine:
            raise BadSetting(type(self).__name__, setting, str(getattr(self, setting)), problem)

    # ---- contracts.TopicModel ----

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """Nothing is counted yet: each document's first draws, from the seed, are what sets topics apart."""
        return {
            "counts": np.zeros((self.n_topics, len(vocabulary)), dtype=np.int64),
            "step": np.zeros(1, dtype=np.int64),
            "seed": rng.integers(0, 2**64, 1, dtype=np.uint64),
        }

    def query(self, state: State) -> CountsQuery:
        """The next question: how often each word has each topic once every document has drawn anew."""
        return CountsQuery(self, state)

    def update(self, state: State, answer: Answer) -> State:
        """The total is the next state's table. Noise may have made a count negative, or left it between whole numbers."""
        after = {**state, "step": state["step"] + 1}
        if not answer.total:
            return after
        return {**after, "counts": np.maximum(np.rint(answer.total["counts"]), 0).astype(np.int64)}

    def for_party(self, state: State, party: str) -> State:  # noqa: ARG002 - every party gets the same
        """Everything travels: the table of counts, the step and the seed."""
        return dict(state)

    def topics(self, state: State) -> Array:
        """Each topic's words: its counts, smoothed by eta."""
        smooth = self._counts(state) + self.eta
        shares: Array = smooth / smooth.sum(axis=1, keepdims=True)
        return shares

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares under the shared topics, without chance (CVB0 with the topics held fixed)."""
        return self._shares(Bags.of(documents.counts, state["counts"].shape[1]), self._by_word(state))

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """Of each document's unseen words, given the topic shares of its seen ones."""
        by_word, words = self._by_word(state), state["counts"].shape[1]
        shares = self._shares(Bags.of(seen.counts, words), by_word)
        bags, out = Bags.of(unseen.counts, words), np.zeros(len(unseen))
        self.on_ranges(bags, lambda a, b: said(a, b, bags.ends, bags.words, bags.counts, by_word, shares, out))
        return out

    # ---- what the query shares ----

    def redrawn(self, state: State, bags: Bags, old: Assignments) -> Assignments:
        """Every token's topic after this round's sweeps, from the state's counts, the old topics and public noise."""
        step, topics = int(state["step"][0]), old.topics.copy()
        # Seeded by name: two documents with one key must not draw alike.
        noise = starts_of(int(state["seed"][0]), step, old.names, _DRAWS)
        known, counted = old.steps != NEVER, old.steps == step - 1  # what was given a round ago is in the table
        counts = self._counts(state)
        table = (np.ascontiguousarray(counts.T + self.eta), counts.sum(axis=1))
        facts = (bags.ends, bags.words, bags.counts, bags.token_ends, noise, known, counted, *table)
        prior = (self.alpha, self.eta, self.sweeps)
        self.on_ranges(bags, lambda first, last: resample(first, last, *facts, *prior, topics))
        return replace(old, steps=np.full(len(bags), step), topics=topics)

    def on_ranges(self, bags: Bags, work: Callable[[int, int], None]) -> None:
        """Documents are shared out among threads; no document's result depends on it."""
        with ThreadPoolExecutor(self.threads) as pool:
            for done in [pool.submit(work, first, last) for first, last in bags.ranges(self.threads)]:
                done.result()

    def _shares(self, bags: Bags, by_word: Array) -> Array:
        out = np.empty((len(bags), self.n_topics))
        prior = (self.alpha, _PASSES)
        self.on_ranges(bags, lambda a, b: fold_in(a, b, bags.ends, bags.words, bags.counts, by_word, *prior, out))
        return out

    def _by_word(self, state: State) -> Array:
        return np.ascontiguousarray(self.topics(state).T)

    def _counts(self, state: State) -> Array:
        """The table as it came, perhaps from a coordinator that one need not trust with its sign."""
        if state["counts"].shape[0] != self.n_topics:
            raise BrokenPromise("table of topics", state["counts"].shape[0], self.n_topics)
        return np.maximum(state["counts"], 0).astype(np.float64)


@dataclass(frozen=True)
class CountsQuery:
    """Asks how often each word has each topic, in all documents together, after they have drawn their topics anew."""

    model: LDA
    state: State

    @property
    def terms(self) -> Terms:
        """One row per document: whole numbers, as many in all as it has words. How many these are is bounded elsewhere."""
        return Terms((Block("counts", self.state["counts"].shape),), domain=Domain.INTEGER)

    def answer(self, documents: Any, tally: Tally, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Draws come from public noise by document, not from the rng; the topics stay in the party's memory."""
        k, vocabulary = self.state["counts"].shape
        bags = Bags.of(documents.counts, vocabulary)
        before = Assignments.remembered(memory)
        fresh = self.model.redrawn(self.state, bags, before.recall(bags, bags.names(documents.keys)))
        before.keep(memory, fresh)
        for rows in bags.chunks(documents.persons, _CHUNK):
            found = rows_of(rows, bags.ends, bags.words, bags.counts, bags.token_ends, fresh.topics, vocabulary, k)
            tally.add(sparse.csr_array(found, shape=(len(rows), k * vocabulary)), rows)
