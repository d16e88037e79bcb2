"""What a topic model is to the federation: the documents it reads, the questions it asks, the state it keeps.

A model knows neither mechanisms nor aggregations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np

from securetm.contracts.terms import Answer, Array, Memory, Rows, State, Terms


class Perturbed(Protocol):
    """The words of token slots behind noise: each slot holds weights of words, and which word it really held is nowhere in it.

    How many slots each document and each sentence has is public (`token_ends` and `sentence_ends` count slots then).
    """

    @property
    def whole(self) -> bool: ...  # weights are whole numbers
    def __len__(self) -> int: ...  # slots
    def between(self, first: int, last: int) -> tuple[Array, Array, Array]: ...  # CSR: int64 ends, int32 words, float64


class Documents(Protocol):
    """What a part may ask of a corpus. Row i of everything is document i."""

    @property
    def counts(self) -> Any: ...  # scipy CSR, documents x vocabulary
    @property
    def vocabulary(self) -> tuple[str, ...]: ...
    @property
    def keys(self) -> Array: ...  # uint64, stays with a document wherever it moves
    @property
    def tokens(self) -> Array | None: ...  # int32 word ids in reading order, documents end to end
    @property
    def token_ends(self) -> Array | None: ...  # where each document ends in `tokens`
    @property
    def sentence_ends(self) -> Array | None: ...  # where each sentence ends in `tokens`
    @property
    def embeddings(self) -> Array | None: ...
    @property
    def persons(self) -> Array | None: ...  # whose document this is, as small integers
    @property
    def perturbed(self) -> Perturbed | None: ...  # instead of tokens, where noise stands in for the words themselves
    def __len__(self) -> int: ...
    def select(self, rows: Array) -> Self: ...
    def halves(self, seed: int) -> tuple[Self, Self]: ...  # words to see and words to predict, for document completion


class Losses(Protocol):
    """One differentiable loss per document, and what a clip must know of their gradients: no row is materialised."""

    @property
    def values(self) -> Array: ...  # one loss per document; stays at the party
    def norms(self, owners: Array) -> Array: ...  # l2 norm of each owner's summed gradient, owners in sorted order
    def gradient(self, weights: Array) -> Array: ...  # sum over documents of weight x gradient, flat


class ClippedSum(Protocol):
    """All that a model ever meets of privacy: it pours rows in, bounded and summed they come out elsewhere."""

    def add(self, rows: Rows, owners: Array) -> None: ...
    def add_losses(self, losses: Losses, owners: Array, beside: Array) -> None: ...  # beside: the row's other coordinates
    def named(self, rows: Rows, owners: Array, numbers: Array) -> Array: ...  # sums over a party's own words; 0: not named


class Query(Protocol):
    """A question whose answer is a sum of one row per document, person or party."""

    @property
    def terms(self) -> Terms: ...
    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None: ...


class TopicModel(Protocol):
    """A model as the federation sees it. It knows neither privacy nor network; all it knows is in the state."""

    @property
    def name(self) -> str: ...
    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State: ...
    def query(self, state: State) -> Query: ...
    def update(self, state: State, answer: Answer) -> State: ...
    def for_party(self, state: State, party: str) -> State: ...  # what travels to one party: no optimiser memory
    def topics(self, state: State) -> Array: ...  # topics x vocabulary, rows sum to one
    def infer(self, state: State, documents: Any) -> Array: ...  # documents x topics, rows sum to one
    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array: ...  # of unseen words given the seen
