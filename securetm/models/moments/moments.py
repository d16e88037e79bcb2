"""Topics from one question: how often each two words stand in one document, and how many documents hold each word.

It is not a federation and knows no privacy. The answer does not depend on the model, so it is asked for once. All else is
computed from that one sum (Arora et al. 2013; Lee, Bindel and Mimno 2015 factorise such sums, without a bound on a document).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import Answer, Array, Block, ClippedSum, Memory, Public, State, Terms
from securetm.errors import BrokenPromise, check_setting
from securetm.models.estimator import Estimator
from securetm.models.gibbs.document_completion import Completion
from securetm.models.gibbs.lda_documents import LdaDocuments
from securetm.models.model_errors import TooManyPairs
from securetm.models.moments.document_pairs import LONGEST, DocumentPairs, size_of
from securetm.models.moments.pair_sums import PairSums
from securetm.models.moments.pair_topics import factorised
from securetm.models.public_knowledge import PublicKnowledge, public_fits, without_public

MOST_TOPICS = 1000
MOST_FOUND = 100  # topics, where their number follows from the noise
MOST_WORDS = 10_000  # 50 million numbers
_SHOWN = 50  # eigenvalues that are kept
_FOLDING = 100  # passes over a document, where its shares do not settle earlier
_LEAST = 1e-12  # of a word in a topic


@dataclass(frozen=True)
class Moments(Estimator):
    """Topics that explain which words stand together in documents, learned in a single round.

    With `n_topics = 0` there are as many topics as the sum shows beyond noise and chance, at least 2.
    """

    n_topics: int = 50  # of the shared model; 0: as many as stand beyond the noise, up to 100
    alpha: float = 0.1  # of the symmetric Dirichlet prior of a document's topics
    alone: float = 0.2  # the share of a document's squared row that says which words it holds; the rest says which two
    passes: int = 60  # over the topics
    threads: int = 1  # changes nothing but the time it takes
    name: ClassVar[str] = "moments"
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20}
    federated_rounds: ClassVar[int] = 1
    starts_public: ClassVar[bool] = True
    most_rounds: ClassVar[int] = 1  # the answer does not depend on the model: asked again, it is the same

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "n_topics", 0 <= self.n_topics <= MOST_TOPICS, f"must be 0 (by the noise) to {MOST_TOPICS}")
        check_setting(self, "alpha", 1e-9 <= self.alpha < np.inf, "must be at least 1e-9 and finite")
        check_setting(self, "alone", 0 < self.alone < 1, "must be above 0 and below 1")
        check_setting(self, "passes", self.passes >= 1, "must be at least 1")
        check_setting(self, "threads", self.threads >= 1, "must be at least 1")

    @property
    def most_shown_topics(self) -> int:
        """`n_topics`, or as many as the noise may leave."""
        return self.n_topics or MOST_FOUND

    # ---- contracts.TopicModel ----

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """Random topics, which the first sum replaces by those that it leads to from there."""
        words, topics = len(vocabulary), self.n_topics or 2
        if words > MOST_WORDS:
            raise TooManyPairs(words, MOST_WORDS)
        found = rng.gamma(1.0, 1.0, (topics, words)) + _LEAST
        return {
            "topics": found / found.sum(axis=1, keepdims=True),
            "prevalence": np.full(topics, 1.0 / topics),
            "together": np.ones((topics, topics)),
            "spectrum": np.zeros(min(_SHOWN, words)),
            "beyond": np.zeros(1, dtype=np.int64),
            "step": np.zeros(1, dtype=np.int64),
        }

    def started(self, vocabulary: Sequence[str], public: Public, rng: np.random.Generator) -> State:
        """The public topics until the sum is there, which is read beside what is public of words."""
        begun = {"topics": public.topics} if self.n_topics else {}
        return {**self.start(vocabulary, rng), **begun, **public.arrays()}

    def query(self, state: State) -> PairsQuery:
        """The only question: the sum of all documents' rows."""
        return PairsQuery(self, state["topics"].shape[1])

    def update(self, state: State, answer: Answer) -> State:
        """The state after the sum. A second sum replaces the first one."""
        after = {**state, "step": state["step"] + 1}
        if not answer.total:
            return after
        sums = PairSums.of(answer.total["pairs"], state["topics"].shape[1], answer.deviation, self.alone)
        return {**after, **self.learned_from(sums, state)}

    def learned_from(self, sums: PairSums, state: State) -> State:
        """What an opened sum says, from the topics of a state on."""
        public = PublicKnowledge.kept_in(state) if self.n_topics else None
        begun = public.topics / public.topics.sum(axis=0) if public else self._first_topics(state, sums.beyond_chance)
        found = factorised(sums, begun, self.passes, None if public is None else _as_frequent(public.topics, sums.frequencies))
        kept = {"topics": found.topics, "prevalence": found.prevalence, "together": found.together}
        return {**kept, "spectrum": sums.spectrum[:_SHOWN], "beyond": np.full(1, sums.beyond_chance)}

    def for_party(self, state: State, party: str) -> State:  # noqa: ARG002 - every party gets the same
        """The topics, without what is public of words: only estimates from the sum read it."""
        return without_public(state)

    def fits(self, state: State, words: int) -> bool:
        """With `n_topics = 0`, also of a state with more than two topics; and of one that began with public topics."""
        if not public_fits(state, self.most_shown_topics, words):
            return False
        state = without_public(state)
        if self.n_topics or "topics" not in state or not 2 <= len(state["topics"]) <= MOST_FOUND:
            return super().fits(state, words)
        count = len(state["topics"])
        like = {"topics": (count, words), "prevalence": (count,), "together": (count, count)}
        real, whole = {**like, "spectrum": (min(_SHOWN, words),)}, {"beyond": (1,), "step": (1,)}
        kinds = {**dict.fromkeys(real, "float64"), **dict.fromkeys(whole, "int64")}
        found = {name: (array.shape, str(array.dtype)) for name, array in state.items()}
        return found == {name: (shape, kinds[name]) for name, shape in {**real, **whole}.items()}

    def topics(self, state: State) -> Array:
        """Each topic's words, as shares."""
        if self.n_topics and len(state["topics"]) != self.n_topics:
            raise BrokenPromise("table of topics", len(state["topics"]), self.n_topics)
        found = np.clip(np.nan_to_num(state["topics"], nan=0.0), 0.0, 1.0) + _LEAST
        shares: Array = found / found.sum(axis=1, keepdims=True)
        return shares

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares under the shared topics, without random draws (CVB0 with fixed topics)."""
        by_word = self._by_word(state)
        held, alpha = LdaDocuments.of(documents.counts, len(by_word)), np.full(by_word.shape[1], self.alpha)
        return held.shares(by_word, alpha, _FOLDING, self.threads)

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words, given its seen words and how large topics are."""
        by_word = self._by_word(state)
        prior = Completion.around(by_word, state["prevalence"], len(state["prevalence"]) * self.alpha)
        shares = prior.shares(by_word, LdaDocuments.of(seen.counts, len(by_word)), self.threads)
        return LdaDocuments.of(unseen.counts, len(by_word)).log_likelihood(by_word, shares, self.threads)

    def findings(self, state: State) -> Mapping[str, Any]:
        """How large each topic is, which stand together, and how many the sum shows."""
        return {
            "topic_prevalence": np.round(state["prevalence"], 4).tolist(),
            "topics_together": np.round(state["together"], 2).tolist(),
            "topics_beyond_noise": int(state["beyond"][0]),
            "spectrum": state["spectrum"].tolist(),
        }

    # ---- for its own use ----

    def _first_topics(self, state: State, beyond: int) -> Array:
        """The topics from which a sum is factorised, with as many as stand beyond the noise where no setting does."""
        if self.n_topics or state["step"][0] != 0:
            return state["topics"]
        count = min(max(beyond, 2), MOST_FOUND)
        return np.random.default_rng([count, state["topics"].shape[1]]).gamma(1.0, 1.0, (count, state["topics"].shape[1]))

    def _by_word(self, state: State) -> Array:
        return np.ascontiguousarray(self.topics(state).T)


def _as_frequent(topics: Array, frequencies: Array) -> Array:
    """Public topics over words that are as frequent as these: each topic keeps its share of each word."""
    found = topics / topics.sum(axis=0) * frequencies
    shares: Array = found / found.sum(axis=1, keepdims=True)
    return shares


@dataclass(frozen=True)
class PairsQuery:
    """Asks how often each two words stand in one document, and how many documents hold each word, each document bounded."""

    model: Moments
    words: int

    @property
    def terms(self) -> Terms:
        """One row per document, of length 1 at most."""
        return Terms((Block("pairs", (size_of(self.words),)),), bits=64, l2=LONGEST)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Draws and remembers nothing."""
        rows = DocumentPairs.of(LdaDocuments.of(documents.counts, self.words), self.model.alone, self.words)
        clipped_sum.add_losses(rows, np.arange(len(documents)), np.zeros((len(documents), 0)))
