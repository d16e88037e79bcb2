"""The types in which models, mechanisms and aggregations meet. They decide nothing.

Every federated topic model learns from sums over documents. A mechanism changes what can be learned from a sum. An aggregation
changes who sees the sum. `Terms` travel through all of them, so that no privacy number is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from securetm.data_classes import dataclass, field

if TYPE_CHECKING:  # dp_accounting takes longer to import than `securetm --help` may take in all
    from dp_accounting import DpEvent

Array = NDArray[Any]
Rows = Any  # an Array or a scipy sparse matrix, one row per item; scipy ships no types
State = Mapping[str, Array]  # all that a model knows, by name: plain arrays, so it is stored and sent without pickle
Memory = dict[str, Array]  # what a party remembers between rounds (topic assignments, NMF's H); it never leaves the party
INF = float("inf")
PART = 64  # bytes that reveal one part of a party's noise: its seed, and the hash of what was drawn from it


class Domain(Enum):
    REAL = "real"
    INTEGER = "integer"


class Unit(Enum):
    """Whose presence a bound or a guarantee is about. Each row of the sum belongs to one of these."""

    WORD = "word"
    SENTENCE = "sentence"
    DOCUMENT = "document"
    PERSON = "person"
    PARTY = "party"

    @property
    def whole_documents(self) -> bool:
        """Whether protecting one unit protects at least one whole document."""
        return self not in (Unit.WORD, Unit.SENTENCE)


def unit_name(unit: Unit) -> str:
    """The name of a unit in sentences: a budget of unit word is about single occurrences of words."""
    return "word occurrence" if unit is Unit.WORD else unit.value


class Noised(Enum):
    NOT = "not"
    SHARE = "share"  # a share of distributed noise: only the sum over enough parties is private
    WHOLE = "whole"


class Needs(Enum):
    SUM = "sum"
    EACH = "each"  # every party's own vector (iFTM's matching, a union of vocabularies): no secure sum admits it


@dataclass(frozen=True)
class Block:
    """One named array inside a vector. In ragged terms its shape is an upper bound."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Terms:
    """What is publicly promised about a vector before any document is read."""

    layout: tuple[Block, ...]
    needs: Needs = Needs.SUM
    ragged: bool = False  # parties may send smaller first dimensions; only where the query needs each
    data_only: bool = False  # does not depend on the model's state, so it is answered once per corpus
    names_words: bool = False  # the vector names words that only parties know, and these words are private
    counts_words: bool = False  # rows of words in public cells, with noise of their own and not that of the training
    multiplier: float = 0.0  # noise multiplier of this question; 0: that of the mechanism that adds the noise
    part: float = 1.0  # of the budget of its kind that this question spends: the noise is 1 / sqrt(part) times as large
    batch: int = 0  # documents each party is asked to draw for it; 0: all of them
    domain: Domain = Domain.REAL
    bits: int = 32  # width of one value on the wire
    grid: float = 0.0  # step of the integer grid behind a REAL vector; 0: not on a grid
    unit: Unit = Unit.DOCUMENT
    sampling: float = 1.0  # probability that a unit takes part, secret and independent; 1: no amplification
    reach: float = INF  # largest absolute value of a coordinate of one party's vector; larger values are clamped
    noised: Noised = Noised.NOT
    deviation: float = 0.0  # standard deviation of the noise already in every coordinate
    surplus: tuple[int, ...] = ()  # parts of that noise which a sum over so many parties or more does not need
    l1: float = INF  # bounds on one unit's row, and so on the sum's sensitivity (add or remove one)
    l2: float = INF
    linf: float = INF

    @property
    def size(self) -> int:
        """Coordinates of the flat vector (the most there can be, if ragged)."""
        return sum(int(np.prod(block.shape)) for block in self.layout)

    @property
    def at_once(self) -> bool:
        """Whether a party needs all its documents at once: its row is not a sum over them."""
        return (self.unit is Unit.PARTY or self.ragged) and not self.names_words

    def unneeded(self, survivors: int) -> tuple[int, ...]:
        """The parts of the noise, by their place in `surplus`, that a sum over so many parties does not need."""
        return tuple(part for part, parties in enumerate(self.surplus) if survivors >= parties)


@dataclass(frozen=True)
class Least:
    """What a sum must hold at least before any party helps to open it, beyond what the profile demands."""

    parties: int = 0
    documents: int = 0  # as the roster announces them


@dataclass(frozen=True)
class Cohort:
    """The public facts of one round."""

    round_id: bytes  # binds session, number, question, terms and profile hash
    number: int  # how often this question was asked before in the session
    members: tuple[str, ...]
    threshold: int = 1
    colluding: int = 0
    seed: int = 0  # public: for batches and model noise, never for privacy
    question: bytes = b""  # its name, equal in every session: a party opens it for one list of survivors only
    identities: tuple[bytes, ...] = ()  # the members' public keys, in their order: a name may pass to another organisation
    least: Least = Least()  # of its sum; every party of the round enforces it

    @property
    def fewest(self) -> int:
        """The fewest survivors over whom a party opens the sum, whatever the aggregation needs besides."""
        return max(self.threshold, self.least.parties)

    @property
    def who(self) -> tuple[str, ...]:
        """Each member as its name and its public key, by which it is the same organisation as before."""
        keys = self.identities or (b"",) * len(self.members)
        return tuple(f"{member} {key.hex()}" for member, key in zip(self.members, keys, strict=True))


@dataclass(frozen=True)
class Roster:
    """Who may take part in a session: every role holds the same, and joins under no other."""

    session: bytes  # 32 bytes, chosen for this session
    profile: bytes  # hash of the profile
    members: tuple[str, ...]
    keys: Mapping[str, bytes] = field(default_factory=dict)  # each member's pinned Ed25519 public key, 32 raw bytes
    documents: Mapping[str, int] = field(default_factory=dict)  # how many documents each member announced at least


@dataclass(frozen=True)
class Answer:
    """What a round opens, block by block: the sum, or each party's own blocks where the query needs them."""

    total: Mapping[str, Array] | None
    each: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    survivors: tuple[str, ...] = ()
    deviation: float = 0.0  # standard deviation of the noise in every coordinate of the total, from what added it
    words_noised: bool = False  # whether noise took the place of the words of the documents that it is about
    revealed: Mapping[str, Sequence[bytes]] = field(default_factory=dict)  # by party: its noise that the sum does not need


@dataclass(frozen=True)
class Claim:
    """What is promised against whom, with how many parties helping the adversary."""

    what: str
    against: str
    colluding: int = 0
    unit: Unit | None = None


# ---- models: the documents that they read, the questions that they ask, the state that they keep --------------------------


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
    @property
    def rows(self) -> Array: ...  # the vectors as they came: words x numbers, of length 1, or zeros
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
    learns_words_only: ClassVar[bool] = True  # whether there is nothing to learn from a document without an agreed word
    federated_defaults: ClassVar[Mapping[str, Any]] = {}  # settings of a federation that differ from those of one machine
    federated_rounds: ClassVar[int] = 1000  # of training, where a plan does not say
    budget_defaults: ClassVar[Mapping[str, Any]] = {}  # settings that differ further where documents or persons have a budget
    budget_rounds: ClassVar[int] = 0  # of training there, where a plan does not say; 0: as without a budget
    short_by_pairs: ClassVar[bool] = False  # begins by the rule for short texts at topics of pairs of words
    most_rounds: ClassVar[int] = 0  # after which nothing more can be learned, whatever a plan says; 0: no such number
    federated_epochs: ClassVar[float] = 0.0  # instead of rounds, where the number of documents is public; 0: rounds
    party_models: ClassVar[bool] = False  # whether each party trains a model of its own, and is asked about another state
    among_embeddings: ClassVar[bool] = False  # whether it begins at words embedded as the documents are
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


# ---- documents in blocks: the unit of an answer and of what a party remembers; a document never changes its block ---------


BLOCK_DOCUMENTS = 65_536  # documents in a block, where a corpus does not say otherwise


ON_DISK = "file"  # where a block wrote its memory to disk: the file's name as bytes, and nothing else, is what is kept of it


@dataclass(frozen=True)
class Keeping:
    """Under which name a block writes down what the party remembers of it after an answer; an empty one: it stays in memory.

    Names of versions rise with the answers. A block deletes its earlier versions that nobody needs, and never a later one: a
    worker that was given up may come back.
    """

    folder: str = ""  # of this run, beside each shard: a name, not a path
    version: str = ""  # of this answer; no other answer of the run has it
    needed: frozenset[str] = field(default=frozenset(), repr=False)  # files that the party may go back to, by name


IN_MEMORY = Keeping()


class DocumentBlock(Protocol):
    """One block, perhaps with only some of its documents. It can be pickled, and is then read where it arrives."""

    @property
    def number(self) -> int: ...  # in the whole corpus
    @property
    def shard(self) -> str: ...  # on which file or folder it lies; empty: it is in memory
    def read(self) -> Documents: ...
    def recall(self, kept: Memory) -> Memory: ...  # what the party remembers of it, from what `keep` returned
    def keep(self, memory: Memory, keeping: Keeping) -> Memory: ...  # that memory, or `ON_DISK` and a file's name


class BlockedDocuments(Documents, Protocol):
    """A party's documents, in memory or not. `select`, `project`, `split` and `halves` leave each document in its block."""

    def in_blocks(self) -> Self: ...  # as a party's whole corpus, from which all else is made
    def blocks(self) -> Sequence[DocumentBlock]: ...  # those with a document, by number; at least one, perhaps empty
    def gathered(self) -> Any: ...  # all documents in memory, in their order; refused where they are too many


# ---- mechanisms: they change what can be learned from a sum, and see no network and no other party ------------------------


class Entropy(Protocol):
    """Privacy-critical randomness from the operating system; never the model's rng."""

    def bytes(self, n: int) -> bytes: ...


class Store(Protocol):
    """A role's small durable store: what `put` was given is on disk when it returns."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, value: bytes) -> None: ...


@dataclass(frozen=True)
class RoundContext:
    """What the mechanisms of one role can use in one round."""

    cohort: Cohort
    entropy: Entropy
    store: Store
    lasting: Store | None = None  # outlives the run, and is kept beside the ledger
    computed: dict[str, Any] = field(default_factory=dict)  # what a mechanism computed and may use again in this process
    surplus: list[bytes] = field(default_factory=list)  # what reveals each part of the noise that a large sum does not need


class NoiseBy(Enum):
    """Who adds the noise of a mechanism."""

    NOBODY = "nobody"
    PARTY = "party"  # each party adds noise that is enough by itself
    SHARES = "shares"  # each party adds a share; only the sum over enough parties is private
    OPENER = "opener"  # the role that opens the sum adds it, and sees the sum without it


class Sampling(Enum):
    """How a mechanism chooses the documents that take part in a round."""

    NONE = "none"
    PUBLIC = "public"  # in an order that everybody knows, which amplifies no privacy
    COINS = "coins"  # by the party's own coins


@dataclass(frozen=True)
class NamingThreshold:
    """In how many documents a word must be to be named: of one party, or of all parties together where they are summed."""

    threshold: int  # a word in no more documents than this is named only if the noise is large
    found_from: int  # a word in so many documents is named in 99 of 100 selections
    together: bool = False

    @property
    def whose(self) -> str:
        """Whose documents these are."""
        return "all parties together" if self.together else "one party"


@dataclass(frozen=True)
class CountNoise:
    """What noise adds to one count on average, and the grid of sums of noised counts: 0 where they are whole numbers."""

    mean: float = 0.0
    grid: float = 0.0


class Mechanism(Protocol):
    """Changes what is learned from a sum. It is a frozen dataclass, whose fields are its settings in a profile.

    Every member has a default. A mechanism declares what it does, and overrides the methods in which it does something.
    """

    noise_by: ClassVar[NoiseBy] = NoiseBy.NOBODY
    sampling: ClassVar[Sampling] = Sampling.NONE
    once: ClassVar[bool] = (
        False  # whether its noise is drawn once per corpus and kept: its event is spent then, and never again
    )
    mixes: ClassVar[bool] = False  # whether each coordinate of its vector depends on all coordinates of the sum
    plan_numbers: ClassVar[Mapping[str, str]] = {}  # a plan's [privacy] numbers that replace settings, each with its setting

    @property
    def drawn_epsilon(self) -> float:
        """The epsilon that noise which is drawn once spends at that moment."""
        return 0.0

    def naming_threshold(self) -> NamingThreshold | None:
        """The threshold of a mechanism that selects words; nothing of any other."""
        return None

    def count_noise(self, words: int) -> CountNoise | None:
        """What its noise in the documents adds to each of so many counts; nothing if it leaves the documents' words alone."""
        return None

    def total_deviation(self, terms: Terms) -> float:
        """The standard deviation of noise that is added to the opened sum, in the units of the vector that parties send."""
        return 0.0

    def remembers(self, documents: Any, terms: Terms, context: RoundContext) -> bool:
        """Whether its noise for these documents was drawn before; only of a mechanism that draws once."""
        return False

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        return frozenset()

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The terms after this mechanism, or a refusal, before any document is read."""
        return terms

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:
        """What one answer spends of each unit's budget; the terms are those after this mechanism."""
        return None

    def failure_probability(self, terms: Terms, cohort: Cohort) -> float:
        """The probability that one answer falls outside of its event: tails cut off, rare words let through."""
        return 0.0

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        return documents

    def row_terms(self, terms: Terms) -> Terms:
        """The terms of the rows that the changed documents give: noise in the documents may leave no count whole."""
        return terms

    def row_radius(self, terms: Terms) -> float:
        """Rows and gradients of losses are clipped to this l2 norm."""
        return INF

    def on_rows(self, rows: Rows, terms: Terms) -> Rows:
        return rows

    def on_named(self, sums: Array, terms: Terms, context: RoundContext) -> Array:
        """Sums over words that only this party knows, before they are named; 0 for a word that must not be."""
        return sums

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        return vector

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        return answer


# ---- aggregations: they change who sees a sum, and keep it within a stated error ------------------------------------------


Message = bytes | memoryview  # a long one may be a view that nobody can write to: whoever keeps or joins it makes bytes of it
Parcel = tuple[str, Message]  # to whom, what


class Exchange(Protocol):
    """One role in one run of a protocol, sans-I/O: bytes in, bytes out. A carrier delivers the messages and keeps the time.

    Messages go in waves. Parties send first (`begin`), and answer each message that they `receive`. The coordinator receives
    what came in time and returns nothing; `expire` ends the wave and returns the messages of the next one. The carrier ends
    every wave, even where no party is missing. A missing party has dropped out.
    """

    def begin(self) -> Sequence[Parcel]: ...
    def receive(self, sender: str, message: Message) -> Sequence[Parcel]: ...
    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]: ...


class Session(Protocol):
    """A role in a session. Its keys, its prekeys and what it revealed outlive rounds, and are kept in a store."""

    @property
    def prepared(self) -> int: ...  # rounds that can still be run before the next `prepare`; unlimited for plain sums
    def prepare(self, rounds: int) -> Exchange: ...
    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None, surplus: Sequence[bytes] = ()
    ) -> Exchange:
        """One round. A party reveals the parts of `surplus` that the sum over the survivors does not need, or none at all."""
        ...

    def missed_rounds(self) -> None: ...  # a party's: before a round, if it was not asked in the ones before it
    def answer(self, round_id: bytes) -> Answer: ...  # or a refusal, if this role does not open it


class Aggregation(Protocol):
    """Changes who sees a sum, and keeps it within a stated error. It is a frozen dataclass, whose fields are its settings."""

    opened_by: ClassVar[str] = "coordinator"  # or "parties"
    channel: ClassVar[str] = "sealed"  # what the transcript calls a party's messages: "answer" where anybody can read them
    most_parties: ClassVar[int] = 100_000
    names_survivors: ClassVar[bool] = False  # whether parties learn who survived a round, and check it
    from_profile: ClassVar[tuple[str, ...]] = ()  # settings that it takes from the profile, such as "colluding"

    def claims(self, cohort: Cohort) -> frozenset[Claim]: ...
    def admit(self, terms: Terms, cohort: Cohort) -> Terms: ...
    def error(self, terms: Terms, cohort: Cohort) -> float:
        """The largest error of one coordinate of the sum: absolute on a grid, else relative to the largest partial sum."""
        ...

    def remaining(self, cohort: Cohort, joined: int) -> int:
        """The fewest parties whose sum anybody sees, for a cohort among so many that joined; a party enforces it."""
        ...

    def longest(self, parties: int, rounds: int, terms: Terms | None) -> tuple[int, int]:
        """The most bytes of one message from a party and of one to it: in a round with these terms, or in a set-up."""
        ...

    def waves(self) -> tuple[int, int]:
        """How many messages the coordinator sends a party before the first round of a set-up, and in a round."""
        return 0, 1

    def party(self, me: str, roster: Roster, entropy: Entropy, store: Store) -> Session: ...  # its key: "identity"
    def coordinator(self, roster: Roster, store: Store) -> Session: ...


# ---- engines: they carry out the pieces of one party's answer, in this process or in others -------------------------------


T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Carries out tasks where a party's documents lie.

    `work` holds what all tasks of a call share (the question with its state); it is sent once to each worker. A task is small:
    it names its blocks and says where they lie. An engine may carry out a task more than once, where a worker was lost, and
    gives one result of it. So a task changes nothing that another try reads: what it keeps on disk is a new file.
    """

    @property
    def workers(self) -> int: ...  # tasks that are carried out at the same time
    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]: ...  # in any order; raises what `work` raises
    def close(self) -> None: ...  # ends every worker; nothing is lost


# ---- profiles, and what is required of them: plain records, read from TOML elsewhere --------------------------------------


@dataclass(frozen=True)
class Adversary:
    name: str
    behaviour: str
    sees: tuple[str, ...]  # channels of the transcript
    colludes_with_parties: int = 0


@dataclass(frozen=True)
class Requirement:
    claim: Claim
    because: str


@dataclass(frozen=True)
class Risk:
    """What a threat model does not consider. A few have a name, by which they are found: `securetm.threats.RISKS`."""

    risk: str
    name: str = ""


@dataclass(frozen=True)
class ThreatModel:
    """The adversaries, what each sees, what is required of a profile, and which leaks are accepted."""

    name: str
    title: str
    adversaries: tuple[Adversary, ...]
    requires: tuple[Requirement, ...]
    accepts: tuple[tuple[str, str], ...] = ()  # what, and the reason
    out_of_scope: tuple[Risk, ...] = ()

    @property
    def risks(self) -> tuple[str, ...]:
        """What it does not consider, in words."""
        return tuple(one.risk for one in self.out_of_scope)

    def adversary(self, name: str) -> Adversary:
        """The adversary of that name."""
        return next(one for one in self.adversaries if one.name == name)


@dataclass(frozen=True)
class Budget:
    unit: Unit
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Profile:
    """A named choice of mechanisms, aggregation, threat model and budget. Its digest is in every round id."""

    name: str
    title: str
    threat_model: str
    mechanisms: tuple[Mechanism, ...]
    aggregation: Aggregation
    vocabularies: tuple[str, ...]  # the sources of a vocabulary that this profile allows
    digest: bytes
    minimum_parties: int = 2
    minimum_documents: int = 1  # in any sum, or held by the parties where coins choose; each party enforces its share
    threshold: int = 1  # parties that must remain in a sum, and
    threshold_share: float = 0.0  # the share of the cohort that must; the larger counts
    colluding: int = 0
    budget: Budget | None = None
    hides_from_active: bool = False  # whether even a coordinator that breaks the rules must see nothing but sums
    danger: str = ""  # printed in red wherever the profile is shown
