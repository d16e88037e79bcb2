"""What the network is given beside weights and documents: its sizes, the prior of topic shares, and each document's noise."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

from securetm.contracts import Array
from securetm.errors import BrokenPromise


@dataclass(frozen=True)
class NetworkShape:
    """The sizes of the network, from which the place of each layer in the flat vector of weights follows.

    The first layer adds what it makes of the words to what it makes of the embedding; `words_bias` is its bias.
    """

    vocabulary: int
    hidden: int
    topics: int
    embedding: int = 0  # numbers of a document's embedding that the encoder reads
    reads_words: bool = True  # whether the encoder reads words
    dimensions: int = 0  # of each topic, where these are not the words

    @functools.cached_property
    def parts(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Names and shapes of the layers, in the order of the flat vector."""
        v, h, k = self.vocabulary, self.hidden, self.topics
        words = (("words", (v, h)),) if self.reads_words else ()
        embedding = (("embedding", (self.embedding, h)),) if self.embedding else ()
        return (
            *words, *embedding, ("words_bias", (h,)), ("inner", (h, h)), ("inner_bias", (h,)),
            ("head", (h, 2 * k)), ("head_bias", (2 * k,)), ("topics", (k, self.dimensions or v)), ("background", (v,)),
        )  # fmt: skip

    @functools.cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(itertools.accumulate((math.prod(shape) for _, shape in self.parts), initial=0))

    @property
    def size(self) -> int:
        """Weights in all."""
        return self._ends[-1]

    def views(self, flat: Any) -> dict[str, Any]:
        """Each layer as a view into the flat vector (numpy or torch)."""
        cuts = zip(self.parts, self._ends, self._ends[1:], strict=False)
        return {name: flat[first:end].reshape(shape) for (name, shape), first, end in cuts}

    @classmethod
    def of(
        cls, weights: Array, hidden: int, topics: int, embedding: int = 0, reads_words: bool = True, dimensions: int = 0
    ) -> NetworkShape:
        """The shape whose flat vector has this length; the vocabulary's size follows from it."""
        return _shape(len(weights), hidden, topics, embedding, reads_words, dimensions)


@functools.lru_cache(maxsize=16)  # asked at every step, and always the same
def _shape(length: int, hidden: int, topics: int, embedding: int, reads_words: bool, dimensions: int) -> NetworkShape:
    none, one = (NetworkShape(words, hidden, topics, embedding, reads_words, dimensions) for words in (0, 1))
    words, left = divmod(length - none.size, one.size - none.size)
    if left or words < 1:
        raise BrokenPromise("weight vector", length, replace(none, vocabulary=max(words, 1)).size)
    return replace(none, vocabulary=words)


@dataclass(frozen=True)
class DocumentNoise:
    """One batch's dropout masks and reparametrisation draws, row i for document i."""

    hidden: Array
    normal: Array
    theta: Array | None


@dataclass(frozen=True)
class Prior:
    """The Gaussian that approximates the symmetric Dirichlet in softmax space, and its weight in the loss."""

    variance: float
    weight: float = 1.0

    @classmethod
    def laplace(cls, alpha: float, topics: int, weight: float = 1.0) -> Prior:
        """Laplace's approximation of Dirichlet(alpha, ..., alpha) (Srivastava and Sutton 2017, section 3.2)."""
        return cls((1.0 - 2.0 / topics) / alpha + 1.0 / (topics * alpha), weight)
