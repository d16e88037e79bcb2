"""A back-off n-gram model of text, adapted to a document by a topic model (iFTM's Equations 30 and 31).

It gives probabilities of words. Word error rates need a speech recogniser, which is not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from securetm.contracts import Array, State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.errors import BadSetting, BrokenPromise
from securetm.models.batches import with_zero

LAMBDA = 0.1  # the topic model's weight, as iFTM sets it
REACH = 500  # words of a document before a sentence, from which its topics are inferred
_LEAST = 0.05  # the least discount of a count
ELSEWHERE = -1  # the number of a word that a topic model does not have


@dataclass(frozen=True)
class NGramLevel:
    """All n-grams of one length in the text, as sorted numbers, and the probability that histories leave to shorter ones."""

    ngrams: Array
    shares: Array  # of its history's counts, after the discount
    histories: Array
    rests: Array  # the probability that a history leaves to the level below

    @classmethod
    def from_counts(cls, ngrams: Array, counts: Array, symbols: int) -> Self:
        """The level of these counts by modified Kneser-Ney smoothing (Chen and Goodman 1998)."""
        histories, place = np.unique(ngrams // symbols, return_inverse=True)
        taken = _discounts(counts)[np.minimum(counts, 3).astype(np.int64)]
        whole = np.bincount(place, counts)
        return cls(ngrams, (counts - taken) / whole[place], histories, np.bincount(place, taken) / whole)

    def chances(self, ngrams: Array, histories: Array, below: Array) -> Array:
        """The chance of each n-gram's last word after the others, where the level below gives it `below`."""
        rest = _found(self.histories, self.rests, histories, 1.0)  # a new history leaves all to shorter ones
        chances: Array = _found(self.ngrams, self.shares, ngrams, 0.0) + rest * below
        return chances


@dataclass(frozen=True)
class NGrams:
    """Interpolated Kneser-Ney: the chance of a word after the words before it in its sentence. Words are 0 to `words` - 1."""

    words: int
    levels: tuple[NGramLevel, ...]  # of single words first

    @classmethod
    def from_tokens(cls, tokens: Array, sentence_ends: Array, words: int, order: int = 3) -> Self:
        """Counts n-grams of words in reading order. The place before a sentence is a symbol of its own."""
        _check(order, words, tokens)
        ngrams, counts = np.unique(_numbered(tokens, sentence_ends, words, order), return_counts=True)
        levels = [NGramLevel.from_counts(ngrams, counts, words + 1)]
        for length in range(order - 1, 0, -1):
            ngrams, counts, kinds = _shortened(ngrams, counts, words, length)
            levels.append(NGramLevel.from_counts(ngrams, kinds, words + 1))
        return cls(words, tuple(reversed(levels)))

    @property
    def order(self) -> int:
        return len(self.levels)

    def chances(self, tokens: Array, sentence_ends: Array) -> Array:
        """The probability of each word of a text, given the words before it in its sentence."""
        _check(self.order, self.words, tokens)
        return self._chances(_numbered(tokens, sentence_ends, self.words, self.order))

    def after(self, history: Array) -> Array:
        """The probability of every word after these. Fewer words than the order needs begin a sentence."""
        _check(self.order, self.words, np.asarray(history, dtype=np.int64))
        known = np.concatenate([np.full(self.order - 1, self.words), np.asarray(history, dtype=np.int64)])
        last = known[len(known) - self.order + 1 :]
        number = int(last @ (self.words + 1) ** np.arange(self.order - 2, -1, -1)) if self.order > 1 else 0
        return self._chances(number * (self.words + 1) + np.arange(self.words))

    def _chances(self, ngrams: Array) -> Array:
        chances = np.full(len(ngrams), 1.0 / self.words)
        for length, level in enumerate(self.levels, start=1):
            own = ngrams % (self.words + 1) ** length
            chances = level.chances(own, own // (self.words + 1), chances)
        return chances


def _check(order: int, words: int, tokens: Array) -> None:
    if order < 1 or words < 1 or (words + 1) ** order >= 1 << 63:
        raise BadSetting(
            "n-grams", "order", str(order), f"must be at least 1, and leave a number for each n-gram of {words} words"
        )
    if tokens.min(initial=0) < 0 or tokens.max(initial=0) >= words:
        raise BrokenPromise("vocabulary", int(tokens.max(initial=0)) + 1, words)


def _numbered(tokens: Array, sentence_ends: Array, words: int, order: int) -> Array:
    """The n-gram that ends at each word, as one number: the last word is its lowest digit, the beginning the digit `words`."""
    before = np.arange(len(tokens)) - _begun(len(tokens), sentence_ends)
    numbers = np.asarray(tokens, dtype=np.int64).copy()
    for back in range(1, order):
        digit = np.full(len(tokens), words, dtype=np.int64)
        digit[back:] = np.where(before[back:] >= back, tokens[: max(len(tokens) - back, 0)], words)
        numbers += digit * (words + 1) ** back
    return numbers


def _begun(count: int, ends: Array) -> Array:
    """Where the sentence of each word begins."""
    starts = with_zero(ends)
    return starts[np.searchsorted(starts, np.arange(count), side="right") - 1]


def _shortened(ngrams: Array, counts: Array, words: int, length: int) -> tuple[Array, Array, Array]:
    """N-grams without their first word: the number of each, and the number of words before it, which Kneser and Ney count.

    An n-gram at the beginning of a sentence has one word before it only, so there all occurrences are counted.
    """
    shorter, place = np.unique(ngrams % (words + 1) ** length, return_inverse=True)
    often, kinds = np.bincount(place, counts), np.bincount(place)
    first = shorter // (words + 1) ** (length - 1) == words
    return shorter, often, np.where(first, often, kinds)


def _discounts(counts: Array) -> Array:
    """The discount of a count of 0, 1, 2, and more; in a text too small to estimate it, one half.

    Each discount is above 0: otherwise a new word after a history would have probability 0.
    """
    once, twice, thrice, more = (int((counts == n).sum()) for n in (1, 2, 3, 4))
    if not (once and twice and thrice):
        return np.array([0.0, 0.5, 0.5, 0.5])
    share = once / (once + 2 * twice)
    fair = [0.0, 1 - 2 * share * twice / once, 2 - 3 * share * thrice / twice, 3 - 4 * share * more / thrice]
    return np.clip(fair, [0.0, *[_LEAST] * 3], [0.0, 0.99, 1.99, 2.99])


def _found(known: Array, values: Array, wanted: Array, otherwise: float) -> Array:
    if not len(known):
        return np.full(len(wanted), otherwise)
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[place] == wanted, values[place], otherwise)


def contexts(tokens: Array, token_ends: Array, sentence_ends: Array, vocabulary: tuple[str, ...], reach: int = REACH) -> Any:
    """Documents for a topic model: for each sentence the words before it in its document, at most the last `reach`.

    Words are numbered by the topic model's vocabulary; those that are ELSEWHERE are left out.
    """
    first, last = _spans(token_ends, sentence_ends, reach)
    lengths = last - first
    place = np.repeat(first - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
    kept = tokens[place] != ELSEWHERE
    inside = np.searchsorted(np.flatnonzero(kept), np.cumsum(lengths))  # where each context ends among the words that are kept
    sentence = np.searchsorted(np.asarray(sentence_ends), place[kept], side="right")  # of each kept word
    borders = np.unique(np.concatenate([np.flatnonzero(np.diff(sentence)) + 1, inside]))
    words = np.asarray(tokens[place[kept]], dtype=np.int32)
    rows = np.repeat(np.arange(len(inside)), np.diff(inside, prepend=0))
    shape = (len(inside), len(vocabulary))
    counts = sparse.csr_array((np.ones(len(words), np.int32), (rows, words)), shape=shape)
    return Corpus(
        HeldDocuments(counts, vocabulary, np.arange(1, len(inside) + 1, dtype=np.uint64), words, inside, borders[borders > 0])
    )


def _spans(token_ends: Array, sentence_ends: Array, reach: int) -> tuple[Array, Array]:
    """Of each sentence: from where and up to where its document's words before it go."""
    begun, documents = with_zero(sentence_ends)[:-1], with_zero(token_ends)
    opened = documents[np.searchsorted(documents, begun, side="right") - 1]
    return np.maximum(opened, begun - reach), begun


def topical(
    model: TopicModel, state: State, tokens: Array, token_ends: Array, sentence_ends: Array, reach: int = REACH
) -> Array:
    """Equation 30: the probability of each word under the topics of the document's sentences before it.

    `tokens` are numbered as the topic model numbers words; a word that it does not have is ELSEWHERE, with probability 0.
    """
    topics = model.topics(state)
    names = tuple(str(word) for word in range(topics.shape[1]))
    shares = model.infer(state, contexts(tokens, token_ends, sentence_ends, names, reach))
    own = np.flatnonzero(tokens != ELSEWHERE)
    sentence = np.searchsorted(np.asarray(sentence_ends), own, side="right")
    out, by_word = np.zeros(len(tokens)), np.ascontiguousarray(topics.T)
    for part in np.array_split(np.arange(len(own)), len(own) // 100_000 + 1):
        out[own[part]] = np.einsum("ij,ij->i", by_word[tokens[own[part]]], shares[sentence[part]])
    return out


def adapted(by_topics: Array, by_ngrams: Array, weight: float = LAMBDA) -> Array:
    """Equation 31: the probability of a word by both models; `weight` is the topic model's."""
    if not 0 <= weight <= 1:
        raise BadSetting("adapted n-grams", "weight", str(weight), "must be 0 to 1")
    mixed: Array = weight * by_topics + (1 - weight) * by_ngrams
    return mixed
