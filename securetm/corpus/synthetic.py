"""Documents with known topics: LDA's generative process as in section 4.1 of the gFedNTM paper. It learns nothing.

L nodes share K' of K topics; each node has (K - K') / L topics of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting


@dataclass(frozen=True)
class LdaNodes:
    """The settings of section 4.1; the defaults are the paper's, with 10 shared topics and eta = 0.01.

    `alpha` is the Dirichlet parameter of each topic that a node has; None stands for the paper's 50 / K.
    """

    nodes: int = 5
    topics: int = 50
    shared_topics: int = 10
    words: int = 5_000
    alpha: float | None = None
    eta: float = 0.01
    documents: int = 10_000
    validation_documents: int = 1_000
    shortest: int = 150
    longest: int = 250
    falling: float = 0.0  # the power of its rank by which a word is rarer, as in natural texts; 0: all words are drawn alike

    def __post_init__(self) -> None:
        private = self.topics - self.shared_topics
        if not 0 <= self.shared_topics <= self.topics or self.nodes < 1 or private % self.nodes:
            problem = f"must leave a number of private topics that {self.nodes} nodes can share out evenly"
            raise BadSetting("LdaNodes", "shared_topics", str(self.shared_topics), problem)
        if not 1 <= self.shortest <= self.longest:
            raise BadSetting("LdaNodes", "shortest", str(self.shortest), f"must lie between 1 and {self.longest}")
        for name in ("eta", "concentration", "words", "documents"):
            if not getattr(self, name) > 0:
                raise BadSetting("LdaNodes", name, str(getattr(self, name)), "must be above zero")

    @property
    def concentration(self) -> float:
        """The Dirichlet parameter of a document's topics."""
        return 50.0 / self.topics if self.alpha is None else self.alpha

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes' names."""
        return tuple(f"node-{number}" for number in range(1, self.nodes + 1))

    def topics_of(self, node: int) -> Array:
        """The numbers of the topics that a node (from 0) has: the shared ones, then its own."""
        private = (self.topics - self.shared_topics) // self.nodes
        first = self.shared_topics + node * private
        return np.concatenate([np.arange(self.shared_topics), np.arange(first, first + private)])


@dataclass(frozen=True, eq=False)
class SyntheticNodes:
    """The documents of the nodes and their true parameters: `beta` is topics x words, `theta` documents x topics.

    Columns of `beta` follow the corpora's vocabulary, which is in alphabetical order like every other vocabulary here.
    """

    settings: LdaNodes
    train: Mapping[str, Corpus]
    validation: Mapping[str, Corpus]
    beta: Array
    theta: Mapping[str, Array]
    validation_theta: Mapping[str, Array]


def lda_nodes(settings: LdaNodes, seed: int = 0) -> SyntheticNodes:
    """Draws topics, then every node's documents; the same seed gives the same documents."""
    topics_seed, *node_seeds = np.random.SeedSequence(seed).spawn(1 + settings.nodes)
    vocabulary = tuple(sorted(f"term{number}" for number in range(settings.words)))
    beta = np.random.default_rng(topics_seed).dirichlet(np.full(settings.words, settings.eta), size=settings.topics)
    if settings.falling:
        beta *= np.arange(1.0, settings.words + 1) ** -settings.falling
        beta /= beta.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(beta, axis=1)
    train, validation, theta, validation_theta = {}, {}, {}, {}
    for node, (name, node_seed) in enumerate(zip(settings.names, node_seeds, strict=True)):
        rng = np.random.default_rng(node_seed)
        theta[name] = _mixtures(settings, node, settings.documents, rng)
        train[name] = _documents(theta[name], cumulative, vocabulary, settings, name, rng)
        validation_theta[name] = _mixtures(settings, node, settings.validation_documents, rng)
        of_validation = _documents(validation_theta[name], cumulative, vocabulary, settings, f"{name} validation", rng)
        validation[name] = of_validation
    return SyntheticNodes(settings, train, validation, beta, theta, validation_theta)


def _mixtures(settings: LdaNodes, node: int, documents: int, rng: np.random.Generator) -> Array:
    present = settings.topics_of(node)
    theta = np.zeros((documents, settings.topics))
    theta[:, present] = rng.dirichlet(np.full(len(present), settings.concentration), size=documents)
    return theta


def _documents(
    theta: Array, cumulative: Array, vocabulary: tuple[str, ...], settings: LdaNodes, name: str, rng: np.random.Generator
) -> Corpus:
    lengths = rng.integers(settings.shortest, settings.longest, size=len(theta), endpoint=True)
    topics = _topic_of_each_token(theta, lengths, rng)
    by_topic = np.argsort(topics, kind="stable")
    ends = np.cumsum(np.bincount(topics, minlength=len(cumulative)))
    draws = rng.random(len(topics))
    tokens = np.empty(len(topics), dtype=np.int32)
    for topic, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        where = by_topic[start:end]
        word = np.searchsorted(cumulative[topic], draws[where] * cumulative[topic][-1], side="right")
        tokens[where] = np.minimum(word, len(vocabulary) - 1)
    return Corpus.from_tokens(tokens, np.cumsum(lengths), vocabulary, name=name, parties=np.full(len(theta), name.split()[0]))


def _topic_of_each_token(theta: Array, lengths: Array, rng: np.random.Generator) -> Array:
    """One look-up for all tokens: document d's distribution function runs from d to d + 1."""
    topics = theta.shape[1]
    steps = np.cumsum(theta, axis=1)
    steps /= steps[:, -1:]
    document = np.repeat(np.arange(len(theta)), lengths)
    found = np.searchsorted(
        (steps + np.arange(len(theta))[:, None]).ravel(), document + rng.random(len(document)), side="right"
    )
    last = topics - 1 - np.argmax(theta[:, ::-1] > 0, axis=1)  # rounding may step past the last topic that the document has
    drawn: Array = np.minimum(found - document * topics, last[document])
    return drawn.astype(np.int16)
