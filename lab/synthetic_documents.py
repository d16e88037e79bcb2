"""Documents with known topics: LDA's generative process as in section 4.1 of the gFedNTM paper, and a seeded stream of them.

Of L nodes that share K' of K topics each has (K - K') / L topics of its own. In the stream, each block is made of the seed and
its own number: the first token of a document draws a topic, each later one takes that of an earlier token or draws anew, as a
Polya urn does, which needs no shares of topics. Words of a topic fall by Zipf's law.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.document_names import content_keys, secret_of
from securetm.corpus.store import WORDS, BlockEntry, BlockLayout, Manifest, digest_of, shard_name, size_of_block, write_whole
from securetm.corpus.tokeniser import Tokeniser
from securetm.private_files import private_folder, writing


@dataclass(frozen=True)
class LdaNodes:
    """How documents are drawn; lengths, concentrations and numbers are the paper's unless they are given.

    `alpha` is the Dirichlet parameter of each topic; None stands for the paper's 50 / K.
    """

    nodes: int = 5
    topics: int = 50
    words: int = 5_000
    alpha: float | None = None
    eta: float = 0.01
    documents: int = 10_000
    validation_documents: int = 1_000
    shortest: int = 150
    longest: int = 250
    shared: int | None = None  # topics that all nodes have; the others are dealt out to them. None: every node has every topic
    falling: float = 0.0  # the power of its rank by which a word is rarer, as in natural texts; 0: all words are drawn alike

    @property
    def concentration(self) -> float:
        """The Dirichlet parameter of a document's topics."""
        return 50.0 / self.topics if self.alpha is None else self.alpha

    def topics_of(self, node: int) -> Array:
        if self.shared is None:
            return np.arange(self.topics)
        own = (self.topics - self.shared) // self.nodes
        return np.append(np.arange(self.shared), self.shared + node * own + np.arange(own))


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
    for number, node_seed in enumerate(node_seeds, 1):
        name, rng = f"node-{number}", np.random.default_rng(node_seed)
        held = settings.topics_of(number - 1)
        theta[name] = _mixtures(settings, held, settings.documents, rng)
        train[name] = _documents(theta[name], cumulative, vocabulary, settings, name, rng)
        validation_theta[name] = _mixtures(settings, held, settings.validation_documents, rng)
        validation[name] = _documents(validation_theta[name], cumulative, vocabulary, settings, f"{name} validation", rng)
    return SyntheticNodes(settings, train, validation, beta, theta, validation_theta)


def _mixtures(settings: LdaNodes, held: Array, documents: int, rng: np.random.Generator) -> Array:
    theta = np.zeros((documents, settings.topics))
    theta[:, held] = rng.dirichlet(np.full(len(held), settings.concentration), size=documents)
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


BLOCK = 65_536  # documents
_ETA = 0.1  # of the Dirichlet distribution that a topic's preference for each word is drawn from
_TWO_53 = 2.0**-53


@dataclass(frozen=True)
class SyntheticStream:
    """So many documents of one length. The same settings give the same documents, whichever blocks are asked for."""

    documents: int
    words: int = 2_000
    topics: int = 50
    length: int = 60
    alpha: float = 0.1
    seed: int = 0
    block_documents: int = BLOCK

    @property
    def name(self) -> str:
        """What the documents' keys are made of: equal streams have equal keys."""
        return f"synthetic {self.seed}"

    @property
    def blocks(self) -> int:
        return -(-self.documents // self.block_documents)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """The words, in alphabetical order, which is also that of their frequency."""
        width = len(str(self.words - 1))
        return tuple(f"term{number:0{width}d}" for number in range(self.words))

    @cached_property
    def beta(self) -> Array:
        """Topics x words: the share of each word in each topic."""
        rng = np.random.default_rng([self.seed, self.words, self.topics])
        drawn = rng.gamma(_ETA, size=(self.topics, self.words)) / np.arange(1.0, self.words + 1) + 1e-9
        shares: Array = drawn / drawn.sum(axis=1, keepdims=True)
        return shares

    @cached_property
    def _tables(self) -> tuple[Array, Array]:
        return _alias_tables(self.beta)

    def tokens(self, block: int) -> Array:
        """The word of each token of a block: documents x length, int32."""
        first = block * self.block_documents
        out = np.empty((min(self.block_documents, self.documents - first), self.length), dtype=np.int32)
        start = np.random.SeedSequence([self.seed, block]).generate_state(1, np.uint64)[0]
        _draw(start, self.topics * self.alpha, *self._tables, out)
        return out

    def block(self, number: int) -> Corpus:
        """The documents of a block, in reading order and counted."""
        tokens = self.tokens(number)
        rows = np.arange(len(tokens)) + number * self.block_documents
        ends = np.arange(1, len(tokens) + 1) * self.length
        return Corpus.from_tokens(tokens.ravel(), ends, self.vocabulary, keys=self._keys(rows), name=self.name)

    def __iter__(self) -> Iterator[Corpus]:
        return (self.block(number) for number in range(self.blocks))

    def corpus(self) -> Corpus:
        tokens = np.concatenate([self.tokens(number).ravel() for number in range(self.blocks)])
        ends = np.arange(1, self.documents + 1) * self.length
        keys = self._keys(np.arange(self.documents))
        return Corpus.from_tokens(tokens, ends, self.vocabulary, keys=keys, name=self.name)

    def _keys(self, rows: Array) -> Array:
        """A document's number in the stream is its id: without another one it would be the same."""
        return content_keys(secret_of(self.name), stream_digests(rows), np.zeros(len(rows), np.int64))


def stream_digests(rows: Array) -> Array:
    """What documents of a stream are called by: their numbers, and zeros."""
    return np.column_stack([rows.astype("<u8"), np.zeros(len(rows), "<u8")]).view(np.uint8)


def _alias_tables(shares: Array) -> tuple[Array, Array]:
    """Walker's alias tables of several laws: with which chance a place keeps its own number, and its other number."""
    laws, size = shares.shape
    keeps, others = np.ones((laws, size)), np.tile(np.arange(size, dtype=np.int32), (laws, 1))
    for law in range(laws):
        _fill(shares[law] * size, keeps[law], others[law])
    return keeps, others


@njit(cache=True)
def _fill(weights: Array, keeps: Array, others: Array) -> None:
    small, large = np.empty(len(weights), np.int64), np.empty(len(weights), np.int64)
    poor = rich = 0
    for i in range(len(weights)):
        if weights[i] < 1.0:
            small[poor] = i
            poor += 1
        else:
            large[rich] = i
            rich += 1
    while poor and rich:
        poor -= 1
        low, high = small[poor], large[rich - 1]
        keeps[low], others[low] = weights[low], high
        weights[high] -= 1.0 - weights[low]
        if weights[high] < 1.0:
            rich -= 1
            small[poor] = high
            poor += 1


@njit(cache=True, nogil=True)
def _draw(start: Any, concentration: float, keeps: Array, others: Array, out: Array) -> None:
    topics, words = keeps.shape
    drawn = np.empty(out.shape[1], np.int64)
    state = np.uint64(start)
    for d in range(out.shape[0]):
        for i in range(out.shape[1]):
            state, chance = _next(state)
            place = chance * (i + concentration)
            topic = drawn[int(place)] if place < i else min(int((place - i) / concentration * topics), topics - 1)
            drawn[i] = topic
            state, chance = _next(state)
            place = chance * words
            word = min(int(place), words - 1)
            out[d, i] = word if place - word < keeps[topic, word] else others[topic, word]


@njit(cache=True, inline="always")
def _next(state: Any) -> Any:
    state = np.uint64(state + np.uint64(0x9E3779B97F4A7C15))
    z = state
    z = np.uint64((z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    z = np.uint64((z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB))
    z = z ^ (z >> np.uint64(31))
    return state, np.float64(z >> np.uint64(11)) * _TWO_53


_SHARD_BLOCKS = 16  # blocks in a file
_LAYOUT = BlockLayout.of((), 0, counted=True)


def write_stream(stream: SyntheticStream, folder: Path) -> Manifest:
    """Writes all documents. Equal streams give equal bytes."""
    private_folder(folder)
    blocks: list[BlockEntry] = []
    shards = [min(_SHARD_BLOCKS, stream.blocks - first) for first in range(0, stream.blocks, _SHARD_BLOCKS)]
    for number, held in enumerate(shards):
        with writing(folder / shard_name(number)) as file:
            for _ in range(held):
                columns = _columns(stream.block(len(blocks)), len(blocks) * stream.block_documents)
                blocks.append(BlockEntry(size_of_block(columns), _LAYOUT.write(file, columns)))
    words = write_whole(folder / WORDS, {"vocabulary": stream.vocabulary})
    manifest = Manifest(
        name=stream.name,
        block_documents=stream.block_documents,
        tokeniser=Tokeniser().settings() or {},
        columns={},
        names=(),
        width=0,
        words=stream.words,
        words_digest=digest_of(words),
        read=stream.documents,
        dropped=(),
        blocks=tuple(blocks),
        shards=tuple(shards),
    ).sealed()
    manifest.write(folder)
    return manifest


def _columns(documents: Corpus, first: int) -> dict[str, Array]:
    counts, numbers = documents.counts, np.arange(first, first + len(documents))
    return {
        "rows": numbers,
        "texts": np.column_stack([documents.keys, ~documents.keys]).view(np.uint8),
        "digests": stream_digests(numbers),
        "copies": np.zeros(len(numbers), np.int32),
        "token_ends": documents.token_ends,
        "sentence_ends": documents.sentence_ends,
        "tokens": documents.tokens,
        "starts": counts.indptr,
        "words": counts.indices,
        "times": counts.data,
    }
