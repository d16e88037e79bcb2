"""Topics as clusters of meaning: a document belongs to the nearest of K centres of embeddings, and a centre is a noisy mean.

It is spherical k-means (Dhillon and Modha 2001) whose every round is one sum over documents. A document's row holds its
embedding at its centre and at those that are nearly as near, the number 1 and 1 / sqrt(n) for each of its n distinct words at
the nearest, each part times the root of its share. As the shares sum to one, so does the squared length of the row, however
long the document is. Numbers are cut off towards zero at public grids of powers of two: a row is no longer than 1, and sums
are exact in 64 bits in any order.

What an opened sum says of a centre is read beside the public centre that it began at: the part across that is believed as far
as its length is more than the noise, whose size is known, would give. The centre of the round before would be a nearer guess,
but a pull towards it slows every move: at epsilon 1 on titles, normalised mutual information with their labels was 0.54 with
that pull and 0.57 with this one. Documents between two centres then raised it to 0.62: noise moves fewer of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from securetm.compiled import njit
from securetm.contracts import MOST_TOPICS, Answer, Array, Block, Public, Reads, State, Terms
from securetm.data_classes import dataclass
from securetm.errors import BrokenPromise, Mistake
from securetm.models.batches import grouped
from securetm.models.estimator import Count, Finite, Inside
from securetm.models.fixed_order import plus, product_transposed
from securetm.models.given_documents import check_embeddings
from securetm.models.mixed_topics import BagDocuments, Completion, MixedTopics
from securetm.models.noisy_counts import NoisedCounts, likely_counts, public_words
from securetm.models.public_knowledge import ROWS, TOPICS, clusters, of_length_one, row_sums
from securetm.settings import require, within

_GRID, _PART_GRID = 2.0**-14, 2.0**-10  # of an embedding's numbers, and of by how much of it a centre gets
_ROOM = 1.0 - 2.0**-30  # for the rounding of lengths, so that no row is clipped
_LEAST = 1e-9  # of a word in a topic, beside the others
_WORD_SHARPNESS = 20.0  # by which cosines of words and centres are multiplied before they become shares


# ---- rows of documents: no row is made -------------------------------------------------------------------------------------


class DocumentRows(NamedTuple):
    """What the rows of documents hold."""

    topics: Array  # of each document, the nearest
    parts: Array  # documents x centres: how much of a document each centre gets
    vectors: Array  # documents x numbers
    size: float  # what a document adds to the size of its topic
    ends: Array  # where each document begins in `words`, and where the last one ends
    words: Array
    each: Array  # of each document, the number of each of its words


@njit(cache=True, nogil=True)
def set_vectors(embeddings: Array, length: float, out: Array) -> None:
    """Embeddings of that length, cut off towards zero at the grid; zeros for one whose length is zero or no number."""
    for d in range(len(embeddings)):
        squares = 0.0
        for i in range(embeddings.shape[1]):
            squares += np.float64(embeddings[d, i]) ** 2
        factor = length / math.sqrt(squares) / _GRID if 0.0 < squares < np.inf else 0.0
        for i in range(embeddings.shape[1]):
            out[d, i] = np.trunc(factor * np.float64(embeddings[d, i])) * _GRID if factor > 0.0 else 0.0


@njit(cache=True, nogil=True)
def set_parts(near: Array, within: float, out: Array) -> None:
    """How much of each document each centre gets: most of the nearest, none of one that is nearer by `within` less.

    Their squares sum to 1.
    """
    for d in range(len(near)):
        best, squares = near[d].max(), 0.0
        for z in range(near.shape[1]):
            out[d, z] = max(1.0 - (best - near[d, z]) / within, 0.0)
            squares += out[d, z] ** 2
        for z in range(near.shape[1]):
            out[d, z] = math.floor(out[d, z] / math.sqrt(squares) / _PART_GRID) * _PART_GRID


@njit(cache=True, nogil=True)
def add_row(d: int, weight: float, rows: DocumentRows, centres: Array, sizes: Array, of_words: Array) -> None:
    """Adds one document's row, times a weight."""
    z = rows.topics[d]
    for near in range(len(centres)):
        part = weight * rows.parts[d, near]
        if part != 0.0:
            for i in range(centres.shape[1]):
                centres[near, i] += part * rows.vectors[d, i]
    sizes[z] += weight * rows.size
    for i in range(rows.ends[d], rows.ends[d + 1]):
        of_words[z, rows.words[i]] += weight * rows.each[d]


@njit(cache=True, nogil=True)
def take_squares(d: int, rows: DocumentRows, centres: Array, sizes: Array, of_words: Array, squares: float) -> float:
    """Adds the squares of the numbers that a document's row is in, and sets these to zero: none counts twice."""
    z = rows.topics[d]
    lost = 0.0
    for near in range(len(centres)):
        if rows.parts[d, near] != 0.0:
            for i in range(centres.shape[1]):
                squares, lost = plus(squares, lost, centres[near, i] ** 2)
                centres[near, i] = 0.0
    squares, lost = plus(squares, lost, sizes[z] ** 2)
    sizes[z] = 0.0
    for i in range(rows.ends[d], rows.ends[d + 1]):
        squares, lost = plus(squares, lost, of_words[z, rows.words[i]] ** 2)
        of_words[z, rows.words[i]] = 0.0
    return squares + lost


@njit(cache=True, nogil=True)
def summed(rows: DocumentRows, weights: Array, words: int) -> tuple[Array, Array, Array]:
    """The weighted sum of the documents' rows: centres (k x numbers), sizes (k), words (k x words)."""
    k, numbers = rows.parts.shape[1], rows.vectors.shape[1]
    centres, sizes, of_words = np.zeros((k, numbers)), np.zeros(k), np.zeros((k, words))
    for d in range(len(weights)):
        if weights[d] != 0.0:
            add_row(d, weights[d], rows, centres, sizes, of_words)
    return centres, sizes, of_words


@njit(cache=True, nogil=True)
def length_of(d: int, rows: DocumentRows) -> float:
    """The l2 norm of one document's row."""
    parts, numbers, squares, lost = 0.0, 0.0, rows.size**2, 0.0
    for z in range(rows.parts.shape[1]):
        parts += rows.parts[d, z] ** 2  # exact, as are the squares of numbers on a grid
    for i in range(rows.vectors.shape[1]):
        numbers += np.float64(rows.vectors[d, i]) ** 2
    squares, lost = plus(squares, lost, parts * numbers)
    squares, lost = plus(squares, lost, (rows.ends[d + 1] - rows.ends[d]) * rows.each[d] ** 2)
    return math.sqrt(squares + lost)


@njit(cache=True, nogil=True)
def lengths_of(order: Array, groups: Array, rows: DocumentRows, words: int) -> Array:
    """The l2 norm of each group's summed rows; group g is documents `order[groups[g]:groups[g + 1]]`."""
    k, numbers = rows.parts.shape[1], rows.vectors.shape[1]
    centres, sizes, of_words = np.zeros((k, numbers)), np.zeros(k), np.zeros((k, words))
    out = np.empty(len(groups) - 1)
    for g in range(len(out)):
        squares = 0.0
        if groups[g + 1] - groups[g] == 1:
            out[g] = length_of(order[groups[g]], rows)
            continue
        for d in order[groups[g] : groups[g + 1]]:
            add_row(d, 1.0, rows, centres, sizes, of_words)
        for d in order[groups[g] : groups[g + 1]]:
            squares = take_squares(d, rows, centres, sizes, of_words, squares)
        out[g] = math.sqrt(squares)
    return out


def _cut_off(values: Array) -> Array:
    """The values towards zero at the grid: none becomes larger."""
    return np.trunc(_ROOM * values / _GRID) * _GRID


@dataclass(frozen=True)
class SemanticTopics(MixedTopics):
    """Topics are clusters of documents whose embeddings are alike, each with the words of its documents.

    A training begins at clusters of the vocabulary's words, embedded by the same sentence model: no document made them.
    """

    n_topics: Annotated[int, within(1, MOST_TOPICS)] = 20
    embedding_size: Count = 384  # numbers of a document's embedding; all-MiniLM-L6-v2 gives 384
    shared_within: Finite = 0.05  # of cosine: a centre that is further from a document by more gets nothing of it
    sharpness: Finite = 10.0  # by which cosines are multiplied before they become shares (softmax)
    kept: Inside = 0.75  # how much the words of a round count beside those of the next
    of_words: Inside = 0.25  # the share of a document's squared row that says which words it holds
    of_sizes: Inside = 0.02  # the share that counts the documents of a topic; the rest is its embedding
    name: ClassVar[str] = "semantic"
    reads: ClassVar[frozenset[Reads]] = frozenset({Reads.COUNTS, Reads.EMBEDDINGS})
    reads_words: ClassVar[bool] = False
    learns_words_only: ClassVar[bool] = False
    among_embeddings: ClassVar[bool] = True
    federated_rounds: ClassVar[int] = 8

    def __post_init__(self) -> None:
        """Refuses shares that leave nothing for the embedding: a row would be longer than 1."""
        super().__post_init__()
        problem = f"must leave a share for the embedding beside of_words, which is {self.of_words:g}"
        require(self.of_words + self.of_sizes < 1, type(self).__name__, "of_sizes", self.of_sizes, problem)

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """Random directions, and all words alike in each topic."""
        words, centres = len(vocabulary), of_length_one(rng.standard_normal((self.n_topics, self.embedding_size)))
        return {
            "centres": centres,
            "begun": centres,
            "sizes": np.zeros(self.n_topics),
            "counts": np.full((self.n_topics, words), 1.0 / words),
            "step": np.zeros(1, dtype=np.int64),
        }

    def started(self, vocabulary: Sequence[str], public: Public, rng: np.random.Generator) -> State:
        """Clusters of words: their middles, and their words as the first guess of each topic's."""
        rows = public.rows
        if rows.shape[1] != self.embedding_size:
            raise Mistake(
                "the word vectors have {found:number|numbers} each, and the documents' embeddings {size}: a word and a text "
                "with the same meaning must be near each other",
                hint="take the vectors of the same sentence model (training.vectors: minilm, or its folder), or begin without "
                "any: --start plain",
                found=rows.shape[1],
                size=self.embedding_size,
            )
        fresh = self.start(vocabulary, rng)
        middles = clusters(rows[rows.any(axis=1)], self.n_topics)
        centres = np.vstack([middles, fresh["centres"][len(middles) :]])
        near = near_words(centres, rows)
        counts = near / near.sum(axis=1, keepdims=True)
        known = {**public.arrays(), ROWS: rows.astype(np.float32)}
        return {**fresh, "centres": centres, "begun": centres, "counts": counts, **known}

    def going_on(self, earlier: State, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """The earlier centres, towards which new ones are pulled."""
        return {**super().going_on(earlier, vocabulary, rng), "begun": earlier["centres"]}

    def terms(self, state: State) -> Terms:
        """One row per document, of length 1 at most: its embedding, itself and its words, at the topic it is nearest to."""
        k, numbers, words = self.n_topics, self.embedding_size, state["counts"].shape[1]
        return Terms((Block("centres", (k, numbers)), Block("sizes", (k,)), Block("counts", (k, words))), bits=64, l2=1.0)

    def losses_of(self, state: State, documents: Any) -> DocumentClusters:
        """Each document's row at the centres that it is near to."""
        shares, words = self.shares_of_parts, state["counts"].shape[1]
        embeddings = check_embeddings(documents.embeddings, self.embedding_size)
        vectors = np.empty(embeddings.shape, dtype=np.float32)  # which holds every number of the grid
        set_vectors(embeddings, _ROOM * shares["centres"], vectors)
        near = product_transposed(vectors, (self.checked(state["centres"]) / shares["centres"]).astype(np.float32))
        parts = np.empty_like(near)
        set_parts(near, self.shared_within, parts)
        ends, named, _ = BagDocuments.from_counts(documents.counts, words).bags
        each = _cut_off(shares["counts"] / np.sqrt(np.maximum(np.diff(ends), 1)))
        size = float(_cut_off(np.array(shares["sizes"])))
        rows = DocumentRows(near.argmax(axis=1), parts, vectors, size, ends, named, each)
        return DocumentClusters(1.0 - near.max(axis=1).astype(np.float64), rows, words)

    def update(self, state: State, answer: Answer) -> State:
        """The state after one sum. A topic without documents keeps its centre and its words."""
        after = {**state, "step": state["step"] + 1}
        if not answer.total:
            return after
        shares = self.shares_of_parts
        centres, sizes, words = (answer.total[part] / scale for part, scale in shares.items())
        noise = {part: answer.deviation / scale for part, scale in shares.items()}
        near, asked = self.checked(state["begun"]), self.checked(state["centres"])
        moved = likely_centres(near, centres, noise["centres"], unmoved=asked)
        noised = NoisedCounts.after(state, words, noise["counts"], self.kept)
        if noised is None:
            found: State = {"counts": np.maximum(words, 0.0)}
        else:  # the words of all rounds, beside what the centres are near in public
            frequencies, vectors = public_words(state)
            expected = near_words(asked, state[ROWS]) if ROWS in state else np.ones_like(words)
            totals = noised.weight * noised.word_totals(frequencies)
            likely = likely_counts(noised.counts, np.sqrt(noised.variance), expected, totals, vectors)
            found = {**noised.arrays(), "counts": likely / noised.weight}
        return {**after, **found, "centres": moved, "sizes": np.maximum(sizes, 0.0)}

    def fits(self, state: State, words: int) -> bool:
        """Public knowledge has the words among the embeddings."""
        rows = state.get(ROWS, np.zeros((0, self.embedding_size)))
        return super().fits(state, words) and rows.shape[1] == self.embedding_size and (ROWS in state) == (TOPICS in state)

    def topics(self, state: State) -> Array:
        """Each topic's words, as shares: the more, the more frequent a word is in it, and the less it is in all (c-TF-IDF)."""
        frequent = self.frequencies(state)
        usual = frequent.sum(axis=0) / frequent.sum()
        weighed = frequent * np.log1p(1.0 / (self.n_topics * usual))
        found: Array = weighed / weighed.sum(axis=1, keepdims=True)
        return found

    def frequencies(self, state: State) -> Array:
        """How frequent each word is in the documents of each topic: each row sums to one."""
        if len(state["counts"]) != self.n_topics:
            raise BrokenPromise("table of topics", len(state["counts"]), self.n_topics)
        found = np.maximum(np.nan_to_num(state["counts"], nan=0.0, posinf=0.0), 0.0)
        found = found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300) + _LEAST
        result: Array = found / found.sum(axis=1, keepdims=True)
        return result

    def by_word(self, state: State) -> Array:
        return np.ascontiguousarray(self.frequencies(state).T)

    def nearness(self, state: State, documents: Any) -> Array:
        """The cosine of each document's embedding with the nearest centre."""
        found: Array = product_transposed(self.read(documents), self.checked(state["centres"])).max(axis=1)
        return found

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares: how near its embedding is to each centre, whatever its words are."""
        near = self.sharpness * product_transposed(self.read(documents), self.checked(state["centres"]))
        shares: Array = np.exp(near - near.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words under the topics that its embedding is near."""
        by_word = self.by_word(state)
        held = BagDocuments.from_counts(unseen.counts, len(by_word))
        return held.log_likelihood(by_word, self.infer(state, seen), self.threads)

    def completing(self, state: State) -> tuple[Array, Completion]:
        """Around the topics' sizes."""
        by_word = self.by_word(state)
        return by_word, Completion.around(by_word, state["sizes"], 1.0)

    def findings(self, state: State) -> Mapping[str, Any]:
        """How many documents each topic has, behind the noise."""
        return {"documents_of_topics": np.round(state["sizes"]).astype(np.int64).tolist()}

    @property
    def shares_of_parts(self) -> Mapping[str, float]:
        """By what each part of a document's row is multiplied: the root of its share of the squared row."""
        rest = 1.0 - self.of_words - self.of_sizes
        return {"centres": math.sqrt(rest), "sizes": math.sqrt(self.of_sizes), "counts": math.sqrt(self.of_words)}

    def checked(self, centres: Array) -> Array:
        """The centres, which may be forged: finite, and of length 1 or 0."""
        if centres.shape != (self.n_topics, self.embedding_size):
            raise BrokenPromise("table of centres", centres.size, self.n_topics * self.embedding_size)
        return of_length_one(np.clip(np.nan_to_num(centres), -1.0, 1.0))

    def read(self, documents: Any) -> Array:
        """The documents' embeddings, of length 1, or zeros where a number is not finite."""
        rows = check_embeddings(documents.embeddings, self.embedding_size)
        return of_length_one(np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0).astype(np.float64))


def likely_centres(near: Array, sums: Array, deviation: float, unmoved: Array) -> Array:
    """The centres after sums of their documents' embeddings with such noise in each number, of length 1.

    They are expected near `near`. The part of a sum across that is noise and a distance. The noise alone has a known square,
    so as much of the part is believed as its square is larger (Wiener's filter). Where nothing is left, a centre stays
    `unmoved`.
    """
    along = row_sums(sums * near)[:, None]
    across = sums - along * near
    squares = row_sums(np.square(across))[:, None]
    noise = (sums.shape[1] - 1) * deviation**2
    believed = np.maximum(squares - noise, 0.0) / np.maximum(squares, 1e-300)
    found = (np.maximum(along, deviation) if deviation else along) * near + believed * across
    return of_length_one(np.where(found.any(axis=1, keepdims=True), found, unmoved))


def near_words(centres: Array, rows: Array) -> Array:
    """How near each word is to each centre: topics x words. A word without a vector is as near to all."""
    return np.exp(_WORD_SHARPNESS * (product_transposed(centres, rows.astype(np.float64)) - 1.0))


@dataclass(frozen=True)
class DocumentClusters:
    """The rows of documents as gradients of losses (contracts.Losses): no row is materialised."""

    values: Array  # of each document, how far the nearest centre is: 1 - cosine
    rows: DocumentRows
    words: int  # of the vocabulary

    def norms(self, owners: Array) -> Array:
        return lengths_of(*grouped(owners), self.rows, self.words)

    def gradient(self, weights: Array) -> Array:
        return np.concatenate([part.ravel() for part in summed(self.rows, weights.astype(np.float64), self.words)])
