"""Documents that experiments judge topics by, over a public list of words.

Coherence is measured on documents that nobody trained on: topics fit the pairs of words of the documents that they come from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.metrics import f1_score
from sklearn.svm import LinearSVC

from lab.measuring import Row
from securetm.contracts import Array, State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.models.quality import diversity, document_npmi, top_words

VAGUE = 2.5  # deviations of what blurs vectors: such topics predict worse than word frequencies, as those of public vectors do


_LEAST_SHARE, _FINENESS = 1e-12, 1000.0


def relevant_words(topics: Array, n: int = 10, weight: float = 0.6) -> Array:
    """The n most relevant words of each topic (Sievert and Shirley 2014): heavy ones that are heavier than in other topics.

    It reads the topics alone, and takes them as equally large. So it is one rule with and without noise. Relevance is rounded,
    so that a last bit decides nothing.
    """
    shares = np.maximum(np.asarray(topics), _LEAST_SHARE)
    relevance = np.log(shares) - (1.0 - weight) * np.log(shares.mean(axis=0))
    return top_words(np.rint(_FINENESS * relevance), n)


@dataclass(frozen=True, eq=False)
class JudgedDocuments:
    raw: Corpus
    words: tuple[str, ...]

    @cached_property
    def all(self) -> Corpus:
        """All documents over the public words; some may be empty."""
        return self.raw.project(self.words)

    @cached_property
    def labels(self) -> Array:
        return np.asarray(self.raw.labels)

    def held_back(self, share: float, seed: int) -> tuple[Corpus, Corpus]:
        """The documents that parties train on, and the rest: a document's own key says which, so all of them agree."""
        return self.all.select(np.flatnonzero(self.all.lengths() > 0)).split(share, seed)

    def figures(self, model: TopicModel, state: State, held: Corpus) -> Row:
        """Coherence and diversity of topics, likelihood of words of documents that nobody trained on, and classification."""
        return {**coherence(model.topics(state), self.all, held), **self.predictions(model, state, held)}

    def predictions(self, model: TopicModel, state: State, held: Corpus) -> Row:
        """What the topics say of documents: likelihood of unseen words, and classification."""
        return {
            "held_out": held_out(model, state, held),
            "f1": classified(model.infer(state, self.all), self.labels),
        }


def coherence(topics: Array, everything: Corpus, held: Corpus) -> Row:
    """Coherence over all documents and over the held-out ones alone, and diversity.

    Each is that of the heaviest words, and that of the words that are most relevant to it, as the page of topics shows them.
    """
    found: dict[str, float] = {}
    for which, top in (("", top_words(topics, 25)), ("_relevant", relevant_words(topics, 25))):
        found |= {
            f"npmi{which}": float(document_npmi(top[:, :10], everything.counts).mean()),
            f"npmi_held_out{which}": float(document_npmi(top[:, :10], held.counts).mean()),
            f"diversity{which}": float(diversity(top)),
        }
    return found


def per_word(seen: Corpus, unseen: Corpus, likelihood: Callable[[Corpus, Corpus], Array]) -> float:
    """Log-likelihood of each unseen word, on average."""
    return float(np.sum(likelihood(seen, unseen)) / unseen.counts.sum())


def held_out(model: TopicModel, state: State, held: Corpus) -> float:
    """Log-likelihood of each word of half of each held-out document, given the other half."""
    return per_word(*held.halves(0), lambda seen, unseen: model.log_likelihood(state, seen, unseen))


def by_frequencies(known: Corpus, held: Corpus) -> float:
    """The same where every word is as frequent as it is in the known documents."""
    shares = np.asarray(known.counts.sum(axis=0)).ravel() + 0.5
    return per_word(*held.halves(0), lambda _, unseen: unseen.counts @ np.log(shares / shares.sum()))


def vague_vectors(topics: Array) -> Array:
    """Vectors of made-up words that know as vaguely as public ones which words go together."""
    rng = np.random.default_rng(8)
    vectors = (topics / topics.sum(axis=0)).T @ rng.normal(size=(len(topics), 50)) / 50**0.5
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Array = vectors + VAGUE * rng.normal(size=vectors.shape) / 50**0.5
    return found


def classified(shares: Array, labels: Array) -> float:
    """Macro F1 of a linear classifier on the topics of three quarters of the documents, tried on the last quarter."""
    order = np.random.default_rng(0).permutation(len(labels))
    known, tried = np.split(order, [3 * len(order) // 4])
    logs = np.log(shares + 1e-4)
    scaled = (logs - logs[known].mean(axis=0)) / (logs[known].std(axis=0) + 1e-9)
    said = LinearSVC(C=0.1, dual=False).fit(scaled[known], labels[known]).predict(scaled[tried])
    return float(f1_score(labels[tried], said, average="macro"))
