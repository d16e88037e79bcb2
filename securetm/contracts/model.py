"""The contract of a topic model: the documents that it reads, the questions that it asks, the state that it keeps.

A model knows neither mechanisms nor aggregations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from securetm.contracts.terms import Answer, Array, Memory, Rows, State, Terms

MOST_TOPICS = 1000  # where a model does not say how many it has


class Perturbed(Protocol):
    """The token slots of noised documents: each slot holds weights of words in place of its word.

    The number of slots of each document and sentence is public (`token_ends` and `sentence_ends` then count slots).
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
    def perturbed(self) -> Perturbed | None: ...  # instead of tokens, where the words are noised
    def __len__(self) -> int: ...
    def select(self, rows: Array) -> Self: ...
    def halves(self, seed: int) -> tuple[Self, Self]: ...  # words to see and words to predict, for document completion


class Public(Protocol):
    """What is known of words before any document is read. Words are those of one vocabulary, in its order."""

    @property
    def topics(self) -> Array: ...  # topics x words: rows sum to one
    @property
    def vectors(self) -> Array: ...  # words x dimensions: rows of length 1, or zeros
    @property
    def frequencies(self) -> Array | None: ...  # of words; they sum to one
    def arrays(self) -> Mapping[str, Array]: ...  # all of it, for a state
    def counts(self, each: float) -> Array: ...  # the topics, with so many counts a word on average


class Losses(Protocol):
    """One differentiable loss per document, and what a clip needs of the gradients. No row is materialised."""

    @property
    def values(self) -> Array: ...  # one loss per document; stays at the party
    def norms(self, owners: Array) -> Array: ...  # l2 norm of each owner's summed gradient, owners in sorted order
    def gradient(self, weights: Array) -> Array: ...  # sum over documents of weight x gradient, flat


class ClippedSum(Protocol):
    """Clips each owner's row and adds it to the sum. A model adds its rows and never reads the sum."""

    def add(self, rows: Rows, owners: Array) -> None: ...
    def add_losses(self, losses: Losses, owners: Array, beside: Array) -> None: ...  # beside: the other coordinates
    def named(self, rows: Rows, owners: Array, numbers: Array) -> Array: ...  # sums over own words; 0: not named


class Query(Protocol):
    """A question whose answer is a sum of one row per document, person or party."""

    @property
    def terms(self) -> Terms: ...
    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None: ...


class NamingQuery(Query, Protocol):
    """A question about words that only a party knows (`terms.names_words`). Its `answer` is these two steps.

    Between them, mechanisms say which words may be named. The documents may be in several blocks, whose counts are added first.
    """

    def own_words(self, documents: Any) -> tuple[Rows, Array, Array]: ...  # what `ClippedSum.named` is given
    def row(self, words: Sequence[str], counts: Array, documents: int) -> Array: ...  # of the party; it has so many documents


class Reads(Enum):
    """What documents must have for a model to learn from them."""

    COUNTS = "counts"
    SENTENCES = "sentences"  # where each sentence ends
    EMBEDDINGS = "embeddings"


class TopicModel(Protocol):
    """A model of the federation. It knows neither privacy nor network, and all that it learned is in its state.

    A model derives from this class and is a frozen dataclass, whose fields are its public settings. Members that it does not
    declare have the defaults given here.
    """

    name: ClassVar[str]  # under which it is declared, and kept in files
    reads: ClassVar[frozenset[Reads]] = frozenset({Reads.COUNTS})
    reads_words: ClassVar[bool] = True  # whether `infer` reads words; learning always does
    federated_defaults: ClassVar[Mapping[str, Any]] = {}  # settings of a federation that differ from those of one machine
    federated_rounds: ClassVar[int] = 1000  # of training, where a plan does not say
    budget_defaults: ClassVar[Mapping[str, Any]] = {}  # settings that differ further where documents or persons have a budget
    budget_rounds: ClassVar[int] = 0  # of training there, where a plan does not say; 0: as without a budget
    short_by_pairs: ClassVar[bool] = False  # begins by the rule for short texts at topics of pairs of words
    most_rounds: ClassVar[int] = 0  # after which nothing more can be learned, whatever a plan says; 0: no such number
    federated_epochs: ClassVar[float] = 0.0  # instead of rounds, where the number of documents is public; 0: rounds
    party_models: ClassVar[bool] = False  # whether each party trains a model of its own, and is asked about another state
    gains_topics: ClassVar[bool] = False  # whether it can go on from a state with fewer topics, which keep their numbers

    @property
    def starts_public(self) -> bool:
        """Whether it can begin from public topics (`started`)."""
        return self.needs_public

    @property
    def needs_public(self) -> bool:
        """Whether answers read public word vectors. Each party then has its own, and adds them to the state that it gets."""
        return False

    @property
    def in_fixed_order(self) -> bool:
        """Whether it adds numbers in a fixed order, so that the row of a document depends on no other document."""
        return True

    @property
    def epochs_per_round(self) -> int:
        """How often a party's documents are read in a round that is asked about all of them."""
        return 1

    @property
    def embedding_size(self) -> int:
        """How many numbers of a document's embedding it reads; 0: none."""
        return 0

    @property
    def most_shown_topics(self) -> int:
        """The most topics that `topics` may ever have."""
        return MOST_TOPICS

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State: ...
    def query(self, state: State) -> Query: ...
    def update(self, state: State, answer: Answer) -> State: ...
    def for_party(self, state: State, party: str) -> State: ...  # what travels to one party: no optimiser memory
    def topics(self, state: State) -> Array: ...  # topics x vocabulary, rows sum to one
    def infer(self, state: State, documents: Any) -> Array: ...  # documents x topics, rows sum to one
    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array: ...  # of unseen words given the seen

    def above_noise(self, state: State) -> Array | None:
        """Topics x words: whether a word stands above the noise in a topic, at a false-discovery rate; None: not tested."""
        return None

    def shared(self, state: State) -> State:
        """The part of a state that every party may see."""
        return self.for_party(state, "")

    def started(self, vocabulary: Sequence[str], public: Public, rng: np.random.Generator) -> State:
        """The state from which a training begins at public topics, as many as the model has. No document made them.

        A model that does not declare `starts_public` begins without them.
        """
        return self.start(vocabulary, rng)

    def going_on(self, earlier: State, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """The state from which a training begins that goes on from an earlier one, over the same words.

        It has the earlier weights, without the memory of an optimiser. Steps count anew.
        """
        kept = {name: array for name, array in self.shared(earlier).items() if name not in ("step", "seed")}
        return {**self.start(vocabulary, rng), **kept}

    def weighing_earlier(self, state: State, weight: float) -> State:
        """The state of a training that goes on, in which each earlier document counts as `weight` documents in every update.

        A model that cannot weigh them begins with what it had learned of them, and they count no more.
        """
        return state

    def fits(self, state: State, words: int) -> bool:
        """Whether a state, such as one from a file, has the names, shapes and types of a state over so many words."""
        fresh = self.start([f"word{number}" for number in range(words)], np.random.default_rng(0))
        return {n: (a.shape, a.dtype) for n, a in fresh.items()} == {n: (a.shape, a.dtype) for n, a in state.items()}

    def findings(self, state: State) -> Mapping[str, Any]:
        """What the model reports of its training beside its topics, by name, ready for JSON."""
        return {}
