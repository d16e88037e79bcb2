"""The questions that a plan allows, by name, and the parties that each is asked of. Both roles make them from the same plan.

So only the name travels. The state that a question is about comes from the coordinator and is checked here against the plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, cast

import numpy as np

from securetm.answers.route import Route, compile_route
from securetm.contracts import (
    INF,
    Array,
    ClippedSum,
    Cohort,
    Least,
    Memory,
    NamingQuery,
    Needs,
    Query,
    Rows,
    State,
    Terms,
    Unit,
)
from securetm.data_classes import asdict, dataclass, field, replace
from securetm.errors import SecuretmError, Unsound
from securetm.federation.refusal_errors import BadState, NotPaidFor, UnknownQuestion
from securetm.federation.wire import wire
from securetm.models.public_knowledge import without_public
from securetm.models.questions.hidden_words import (
    MOST_OPEN,
    MOST_OPEN_A_WORD,
    SHARES,
    STAGE,
    BucketFrequencies,
    BucketSums,
    CellMarks,
    buckets_for,
)
from securetm.models.questions.model_quality import CooccurrenceCounts, HeldOut
from securetm.models.questions.word_sketch import WordSketch
from securetm.models.questions.word_sums import OPEN, OPEN_BYTES, WordSums
from securetm.models.questions.word_sums import ROUNDS as ROUNDS_OF_WORDS
from securetm.models.questions.words import DocumentFrequencies, WordList
from securetm.plans.agreement import Agreement
from securetm.plans.profiles import BLIND, cohort_of, words_in_sums
from securetm.plans.schema import MOMENTS
from securetm.settings import digest

WORDS, JOINT, FREQUENCIES, TRAIN, HELD_OUT, COHERENCE = "words", "joint", "frequencies", "train", "held_out", "coherence"
BUCKETS, MARKS, BUCKET_SUMS = "buckets", "marks", "bucket_sums"  # of words that the coordinator does not see
PAIRS = "pairs"  # of words, where the training begins at topics of moments
MOST_WORD_BYTES = 1 << 22  # of one party under `union`, and of the candidates that are made of all of them
MOST_CANDIDATES = 250_000  # words
TOP_WORDS = 10
WORDS_KEY = "key of words"  # in a party's store
FEWEST_PARTIES = 2  # that hold a word, where it is hidden: what one party alone has gets no column
# By where the list comes from.
_ABOUT_WORDS = {"union": (WORDS, FREQUENCIES), JOINT: (JOINT,), BLIND: (BUCKETS, MARKS), "file": ()}
_ABOUT_NOTHING = (WORDS, JOINT, FREQUENCIES, BUCKETS, PAIRS)  # but the corpus
BEFORE_WORDS = (WORDS, JOINT, BUCKETS, MARKS, BUCKET_SUMS)
_ONCE = (PAIRS, COHERENCE)  # in a run


class OtherUnit(Unsound):
    """the answers to {question!r} are bounded for each {bounded}, and the budget protects each {protected}"""

    question: str
    bounded: str
    protected: str
    hint = (
        "one {protected} can turn a {bounded}'s row into any other: ask for a row for each {protected} (local_epochs = 0; "
        "nmf instead of fednmf)"
    )


class Diverged(SecuretmError):
    """the model holds numbers that are not finite after round {rounds}"""

    rounds: int
    hint = "the steps of the training were too long: choose a smaller learning_rate"


def is_finite(state: State) -> bool:
    return all(np.isfinite(array).all() for array in state.values())


def before_training(agreement: Agreement) -> tuple[str, ...]:
    """The questions that a run asks before its training, in the order in which it asks."""
    source = agreement.plan.vocabulary.source
    words = (BUCKET_SUMS,) if source == BLIND and agreement.budget is not None else _ABOUT_WORDS[source]
    return (*words, PAIRS) if agreement.plan.training.start == MOMENTS else words


def asked_in_run(questions: Questions, party: str = "") -> Iterator[tuple[str, State]]:
    """Every question that a run over these words asks, in its order, and a state such as it is about."""
    model, words = questions.agreement.model, len(questions.vocabulary)
    start = model.start(questions.vocabulary, np.random.default_rng(0))
    about = {name: questions.shown(name, start, party) for name in (TRAIN, HELD_OUT)}
    most = MOST_OPEN_A_WORD * min(words, questions.agreement.plan.vocabulary.max_words)
    about[MARKS] = {OPEN: np.arange(min(most, questions.buckets), dtype=np.int32)}
    about[COHERENCE] = {"top": np.resize(np.arange(words), (len(model.topics(start)), TOP_WORDS))}
    for name in (*before_training(questions.agreement), TRAIN, *(() if questions.paid else (COHERENCE, HELD_OUT))):
        yield name, about.get(name, {})


@dataclass
class Questions:
    """The questions that may be asked under one agreement, given the vocabulary so far."""

    agreement: Agreement
    vocabulary: tuple[str, ...] = ()
    candidates: bool = False  # whether the vocabulary holds words that are yet to be chosen from; then it is only counted
    _template: State = field(default_factory=dict)
    _known: State = field(default_factory=dict)
    _digest: bytes = b""
    key: bytes = field(default=b"", repr=False)  # of a party, under which words are hashed

    def __post_init__(self) -> None:
        self.adopt(self.vocabulary, candidates=self.candidates)

    def adopt(self, vocabulary: tuple[str, ...], *, candidates: bool = False) -> None:
        self.vocabulary, self.candidates, self._template, self._known = vocabulary, candidates, {}, {}
        self._digest = digest([list(vocabulary), candidates])

    def words(self, name: str) -> bytes:
        """Returns the digest of the list that a question is about. It is in the round id: different lists give no sum."""
        return b"" if name in BEFORE_WORDS else self._digest

    def make(self, name: str, state: State) -> Query:
        """Makes the question of that name about that state, or refuses. Its rows are per person where persons are protected.

        Where words are, noise is in the documents before any row is made of them: whose row it is does not matter then.
        """
        query, unit = self._made(name, state), self.agreement.unit
        if self.paid and unit is Unit.WORD:
            return query
        if self.paid and query.terms.unit is not Unit.DOCUMENT:
            raise OtherUnit(name, query.terms.unit.value, unit.value)
        return PerPerson(query) if unit is Unit.PERSON and query.terms.unit is Unit.DOCUMENT else query

    def shown(self, name: str, state: State, party: str) -> State:
        """Returns the part of a state that one party sees: no optimiser memory, and in matched models only the party's own."""
        if name == HELD_OUT:
            return without_public(self.agreement.model.shared(state))
        return without_public(self.agreement.model.for_party(state, party)) if name == TRAIN else state

    def finished(self, state: State) -> State:
        """Returns what every party gets of the finished model: the whole state, without other parties' own models."""
        model = self.agreement.model
        return model.shared(state) if model.party_models else state

    def numbers(self, name: str) -> float:
        training = self.agreement.plan.training
        judged = training.rounds // training.every if training.stop == HELD_OUT else 0
        about_words = {JOINT: ROUNDS_OF_WORDS} if words_in_sums(self.agreement.profile) else {}
        about_words |= {MARKS: 1, BUCKET_SUMS: len(SHARES)}
        return {TRAIN: training.rounds, HELD_OUT: judged + 1, **dict.fromkeys(_ONCE, 1), **about_words}.get(name, INF)

    def times(self, name: str) -> int:
        """Returns how often a run asks this question; one about the corpus alone is answered once."""
        return 1 if self.numbers(name) == INF else int(self.numbers(name))

    def most_answers(self) -> int:
        """Returns how many answers a session needs at most: those about the corpus are given once."""
        return len(_ABOUT_NOTHING) + ROUNDS_OF_WORDS + int(sum(map(self.numbers, (TRAIN, HELD_OUT, COHERENCE))))

    @property
    def buckets(self) -> int:
        """Into how many buckets hidden words fall."""
        return buckets_for(self.agreement.plan.vocabulary.most_candidates, noised=self.paid)

    @property
    def paid(self) -> bool:
        """Whether every answer spends a privacy budget; then only what the budget was made for may be asked."""
        return self.agreement.budget is not None

    def _made(self, name: str, state: State) -> Query:
        if name not in (*before_training(self.agreement), TRAIN, HELD_OUT, COHERENCE):
            raise UnknownQuestion(name)
        if self.paid and name not in (JOINT, BUCKET_SUMS, PAIRS, TRAIN):
            raise NotPaidFor(name)
        model, words = self.agreement.model, len(self.vocabulary)
        if name == JOINT and words_in_sums(self.agreement.profile):
            return WordSums(_checked_open(state))
        if name == BUCKET_SUMS:
            return BucketSums(self.buckets, *_checked_sums(state, self.buckets), key=self.key)
        if name == MARKS:
            return CellMarks(self.buckets, _checked_buckets(state, self), self.key)
        if state and name in _ABOUT_NOTHING:
            raise BadState("the question is about nothing but the corpus, so no state may come with it")
        if name not in BEFORE_WORDS and (not words or (self.candidates and name != FREQUENCIES)):
            raise BadState("no vocabulary has been agreed on")
        made: Mapping[str, Callable[[], Query]] = {
            WORDS: lambda: WordList(MOST_WORD_BYTES),
            JOINT: lambda: WordSketch(self.agreement.plan.vocabulary.most_candidates, counted=not self.paid),
            FREQUENCIES: lambda: DocumentFrequencies(words),
            BUCKETS: lambda: BucketFrequencies(self.buckets, self.key),
            PAIRS: lambda: self.agreement.topics_before.question(words, self.agreement.noise_of_start),
            COHERENCE: lambda: CooccurrenceCounts(_checked_top(state, words, model.most_shown_topics)),
            TRAIN: lambda: model.query({**self._checked_weights(state), **self._public()}),
            # Where each party trains its own model, only the model knows the size of the shared one.
            HELD_OUT: lambda: HeldOut(
                model, {**(self.whole_state if model.party_models else self._checked_weights)(state), **self._public()}
            ),
        }
        return made[name]()

    def _public(self) -> State:
        """Returns what the model's answers read of public word vectors. It never comes with a message."""
        if self.agreement.model.needs_public and not self._known:
            public = self.agreement.public(self.vocabulary)
            self._known = {} if public is None else public.arrays()
        return self._known

    def whole_state(self, state: State) -> State:
        """Refuses a state that is none of the model's over these words, or holds a value that is not finite."""
        if not self.agreement.model.fits(state, len(self.vocabulary)):
            raise BadState("it is no state of the model")
        if not is_finite(state):
            raise BadState("it holds values that are not finite")
        return state

    def _checked_weights(self, state: State) -> State:
        """Checks the names, shapes and types of a state against the plan's model, and that all values are finite."""
        if not self._template:
            fresh = self.agreement.model.start(self.vocabulary, np.random.default_rng(0))
            self._template = without_public(self.agreement.model.for_party(fresh, ""))
        if set(state) != set(self._template):
            raise BadState("its arrays are not those of the model")
        for name, like in self._template.items():
            if state[name].shape != like.shape or state[name].dtype != like.dtype:
                raise BadState(f"array {name!r} has another shape or type than the model's")
            if like.dtype.kind == "f" and not np.isfinite(state[name]).all():
                raise BadState(f"array {name!r} holds values that are not finite")
        return state


@dataclass(frozen=True)
class PerPerson:
    """The same question with one row per person. Bounds on a document's row do not hold for a person's row."""

    query: Query

    @property
    def terms(self) -> Terms:
        return replace(self.query.terms, unit=Unit.PERSON, l1=INF, l2=INF, linf=INF)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        """The clipped sum puts each person's rows together."""
        self.query.answer(documents, clipped_sum, memory, rng)

    def own_words(self, documents: Any) -> tuple[Rows, Array, Array]:
        """Those of the question, where it is one about words."""
        return cast("NamingQuery", self.query).own_words(documents)

    def row(self, words: Sequence[str], counts: Array, documents: int) -> Array:
        """That of the question, where it is one about words."""
        return cast("NamingQuery", self.query).row(words, counts, documents)


def _checked_open(state: State) -> Array | None:
    """Returns which words are open; nothing where all are. Any bits will do: no document's row is longer than 1 under any."""
    if not state:
        return None
    found = state.get(OPEN, np.zeros(0))
    if set(state) != {OPEN} or found.dtype != np.uint8 or found.shape != (OPEN_BYTES,):
        raise BadState("the list of open words has no such form")
    return found


def _checked_buckets(state: State, questions: Questions) -> Array:
    """Returns the buckets that are asked about again: not many more than there may be words."""
    found = state.get(OPEN, np.zeros(0))
    if set(state) != {OPEN} or found.dtype != np.int32 or found.ndim != 1 or (np.diff(found) <= 0).any():
        raise BadState("the list of buckets has no such form")
    most = MOST_OPEN_A_WORD * questions.agreement.plan.vocabulary.max_words
    if not 1 <= len(found) <= most or found[0] < 0 or found[-1] >= questions.buckets + most:  # beyond all buckets is room
        raise BadState("the list of buckets is too long, or names one that there is not")
    return np.asarray(found)


def _checked_sums(state: State, buckets: int) -> tuple[Array | None, int]:
    """Returns which buckets are open, in rising order, and which sum it is. Any bits will do: no row is longer than 1."""
    if not state:
        return None, 0
    bits, stage = state.get(OPEN, np.zeros(0)), state.get(STAGE, np.zeros(0))
    fine = set(state) == {OPEN, STAGE} and bits.dtype == np.uint8 and bits.shape == (buckets // 8,)
    if not fine or stage.dtype != np.int64 or stage.shape != (1,) or not 1 <= stage[0] < len(SHARES):
        raise BadState("the list of open buckets has no such form")
    found = np.flatnonzero(np.unpackbits(bits))
    if not 1 <= len(found) <= MOST_OPEN[int(stage[0]) - 1]:
        raise BadState("too many buckets are open, or none")
    return found, int(stage[0])


def _checked_top(state: State, words: int, topics: int) -> Array:
    top = state.get("top", np.zeros(0))
    if set(state) != {"top"} or top.dtype != np.int64 or top.ndim != 2 or not 2 <= top.shape[1] <= TOP_WORDS:
        raise BadState("the list of top words has no such form")
    if top.shape[0] > topics or top.min(initial=0) < 0 or top.max(initial=0) >= words:
        raise BadState("the list of top words names words that are not in the vocabulary")
    return top


def asked_of(members: tuple[str, ...], agreement: Agreement, question: str, number: int) -> tuple[str, ...]:
    """Returns the parties of that round, in roster order: all, except in the training of a plan that names a number."""
    size = cohort_size(len(members), agreement)
    if question != TRAIN or size == len(members):
        return members
    seed = agreement.plan.seed
    drawn = sorted(members, key=lambda member: digest([seed, "cohort", number, member]))[:size]
    return tuple(member for member in members if member in drawn)


def is_fixed(agreement: Agreement) -> bool:
    """Whether a party holds the coordinator to the parties that the plan and its seed name for each round.

    A coordinator that may depart from the protocol would choose cohorts that differ in one party, and subtract their sums.
    """
    return bool(agreement.plan.federation.cohort) or agreement.profile.hides_from_active


def cohort_size(parties: int, agreement: Agreement) -> int:
    return min(agreement.plan.federation.cohort or parties, parties)


def compile_question(
    questions: Questions, session: bytes, ask: wire.Ask, about: State, keys: Mapping[str, bytes]
) -> tuple[Query, Route, Cohort]:
    """Returns the query, its route, and the cohort with the round id that both roles must compute for this message.

    The question is `about` this state. The message has no state where the parties hold their own. `keys` are the members'
    public keys, from the role's own roster.
    """
    agreement = questions.agreement
    query = questions.make(ask.question, about)
    # The same in every session, and about the corpus alone also at every number.
    named = digest([ask.question, None if query.terms.data_only else ask.number])
    who = {"identities": tuple(keys.get(member, b"") for member in ask.members)}
    meant_by: dict[str, Any] = {**who, "least": Least(ask.least_parties, ask.least_documents), "question": named}
    cohort = cohort_of(agreement.profile, ask.members, number=ask.number, seed=agreement.plan.seed, **meant_by)
    route = compile_route(query.terms, agreement.profile, cohort)
    meant = (agreement.profile.digest, state_digest(ask.state, route.terms), questions.words(ask.question))
    identity = round_identity(session, ask.question, cohort, ask.serial, route.terms, *meant)
    return query, route, replace(cohort, round_id=identity)


def round_identity(
    session: bytes, question: str, cohort: Cohort, serial: int, terms: Terms, under: bytes, about: bytes, words: bytes
) -> bytes:
    """Returns the round id. It binds the question, cohort, profile (`under`), state (`about`) and words.

    The cohort is its members' names and public keys, and what their sum must hold at least.
    """
    promised = {  # as JSON can hold it: infinity as text, a choice as its name
        name: value.value if isinstance(value, Enum) else str(value) if isinstance(value, float) else value
        for name, value in asdict(terms).items()
    }
    least = [cohort.threshold, cohort.least.parties, cohort.least.documents]
    who = [list(cohort.who), *least, cohort.colluding, cohort.seed]
    return digest([session.hex(), question, cohort.number, serial, who, promised, under.hex(), about.hex(), words.hex()])


def share_identity(session: bytes, purpose: str, about: State) -> bytes:
    return digest([session.hex(), "share", purpose, digest_of_arrays(about).hex()])


def preparation_identity(session: bytes, number: int, rounds: int) -> bytes:
    return digest([session.hex(), "prepare", number, rounds])


def state_digest(state: State, terms: Terms) -> bytes:
    """Returns the hash of the state that a question is about.

    Where a sum is asked for, a coordinator that shows two parties different states gets two round ids and no sum. Where each
    answer is used by itself, the states may differ.
    """
    return b"" if terms.needs is Needs.EACH else digest_of_arrays(state)


def digest_of_arrays(state: State) -> bytes:
    """Returns the hash of named arrays, with their types and shapes."""
    whole = hashlib.sha256()
    for name in sorted(state):
        array = np.ascontiguousarray(state[name])
        whole.update(f"{name} {array.dtype.str} {array.shape};".encode())
        whole.update(array.data)
    return whole.digest()
