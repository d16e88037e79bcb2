"""A question's way through the mechanisms, and the sum of bounded rows, in blocks or at once, whatever fails on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from securetm.aggregation.homomorphic.bfv import BfvSum
from securetm.answers.block_answers import (
    IN_PROCESS,
    BlockQuestion,
    BlockTask,
    InThisProcess,
    _remember,
    files_in,
    summed_by_blocks,
    tasks_of,
)
from securetm.answers.block_sums import JoinedBlocks, Node, PartialSum
from securetm.answers.clipped_sum import ClippedRowSum
from securetm.answers.route import ClippedAnswer, Route, compile_route
from securetm.contracts import (
    IN_MEMORY,
    INF,
    ON_DISK,
    Answer,
    Array,
    Block,
    ClippedSum,
    Cohort,
    Domain,
    Keeping,
    Mechanism,
    Memory,
    NoiseBy,
    Query,
    RoundContext,
    Terms,
)
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem, Seeded
from securetm.errors import BadSetting, CountsNotWhole, Mismatch, SplitOwner, UnfitBlocks
from securetm.federation.document_minimum import NotByBlocks, check_blocks
from securetm.federation.questions import PerPerson, Questions, asked_in_run
from securetm.mechanisms.clipping import BoundedCounts, Clip
from securetm.mechanisms.gaussian_noise import CentralNoise, GaussianNoise
from securetm.mechanisms.laplace_counts import LaplaceCounts
from securetm.mechanisms.quantising import FixedPoint
from securetm.mechanisms.sampling import PoissonSample, ShuffledBatches
from securetm.mechanisms.word_selection import WordSelection
from securetm.models.fednmf import FedNMF
from securetm.models.lda.lda import LDA
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.questions.model_quality import CooccurrenceCounts, HeldOut
from securetm.models.questions.word_sketch import WordSketch
from securetm.models.questions.word_sums import WordSums
from securetm.models.questions.words import DocumentFrequencies, WordList
from securetm.plans.agreement import agree
from securetm.plans.profiles import cohort_of, profile_names, read_profile
from securetm.plans.recommend import whole_plan
from securetm.plans.schema import ModelChoice, Plan, VocabularyChoice
from securetm.testing.few_documents import WAYS, OnShards, routed

from .quick_part import quick

# ---- the route -------------------------------------------------------------------------------------------------------------


MEMBERS = tuple(f"party {n}" for n in range(7))
LIST = tuple(f"word{n}" for n in range(30))


def questions_of(profile: str, source: str, model: str) -> dict[str, Terms]:
    """The terms of every question that this profile lets a run ask about a list of 30 words."""
    chosen = Plan(
        profile=profile, vocabulary=VocabularyChoice(source, "list.txt" * (source == "file")), model=ModelChoice(model)
    )
    questions = Questions(agree(chosen, listed=LIST if source == "file" else None), LIST)
    return {name: questions.make(name, about).terms for name, about in asked_in_run(questions, MEMBERS[0])}


ROUTES = [
    (profile, model, name, terms)
    for profile in profile_names()
    for model in ("lda", "prodlda")
    for source in read_profile(profile).vocabularies
    for name, terms in questions_of(profile, source, model).items()
]


@pytest.mark.parametrize(("name", "model", "question", "asked"), ROUTES, ids=[f"{p}-{m}-{q}" for p, m, q, _ in ROUTES])
def test_a_route_says_what_its_mechanisms_say(name: str, model: str, question: str, asked: Terms) -> None:
    profile = read_profile(name)
    cohort = cohort_of(profile, MEMBERS)
    route = compile_route(asked, profile, cohort)
    terms, rows = asked, asked
    for mechanism, step in zip(profile.mechanisms, route.steps, strict=True):
        after = mechanism.admit(terms, cohort)
        assert (step.mechanism, step.before, step.after) == (mechanism, terms, after)
        assert step.event == mechanism.event(after, cohort)
        assert step.failure_probability == mechanism.failure_probability(after, cohort)
        terms, rows = after, mechanism.row_terms(rows)
    assert route.row_terms == rows
    assert route.radius == min([INF, *(step.mechanism.row_radius(step.before) for step in route.steps)])
    assert route.terms == profile.aggregation.admit(terms, cohort)
    assert profile.budget is None or any(step.event is not None for step in route.steps)


class Halves(Mechanism):
    """Asks for half of what it is asked for, and counts how often it is asked to admit anything."""

    admitted = 0

    def admit(self, terms: Terms, cohort: object) -> Terms:
        self.admitted += 1
        return replace(terms, reach=terms.reach / 2)

    def row_radius(self, terms: Terms) -> float:
        return terms.reach

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        return replace(answer, deviation=10 * answer.deviation + terms.reach)


class OpenersNoise(Halves):
    noise_by = NoiseBy.OPENER


def test_a_route_is_compiled_once_and_clips_to_the_smallest_radius() -> None:
    parts, cohort = (Halves(), Halves()), cohort_of(read_profile("open"), MEMBERS)
    asked = replace(ROUTES[0][3], reach=8.0)
    route = Route.through(asked, parts, cohort)
    context = RoundContext(cohort, OperatingSystem(), {})  # type: ignore[arg-type]
    assert isinstance(route.empty_answer(context), ClippedAnswer)
    assert (route.radius, route.terms.reach) == (4.0, 2.0)
    assert [part.admitted for part in parts] == [1, 1]


def test_the_opening_role_sees_the_sum_without_its_own_noise() -> None:
    cohort = cohort_of(read_profile("open"), MEMBERS)
    route = Route.through(replace(ROUTES[0][3], reach=8.0), (Halves(), OpenersNoise()), cohort)
    context = RoundContext(cohort, OperatingSystem(), {})  # type: ignore[arg-type]
    seen, opened = route.seen_and_opened(Answer({}), context)
    assert (seen.deviation, opened.deviation) == (2.0, 22.0)


@dataclass(frozen=True)
class Heard(Mechanism):
    """Writes its name to whatever passes."""

    name: str

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        return (*documents, self.name)

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        return replace(answer, survivors=(*answer.survivors, self.name))


def test_documents_go_through_the_mechanisms_in_order_and_answers_back_in_reverse() -> None:
    cohort = Cohort(b"", 0, MEMBERS)
    context = RoundContext(cohort, OperatingSystem(), None)  # type: ignore[arg-type]
    route = Route.through(Terms((Block("all", (2,)),)), (Heard("first"), Heard("second")), cohort)
    assert route.on_documents((), context) == ("first", "second")
    assert route.opened(Answer({}), context).survivors == ("second", "first")


def test_a_coordinate_that_overflowed_leaves_as_zero_and_counts_as_lost() -> None:
    cohort = Cohort(b"", 0, MEMBERS)
    context = RoundContext(cohort, OperatingSystem(), None)  # type: ignore[arg-type]
    answer = Route.through(Terms((Block("all", (2,)),)), (), cohort)._answer_of(PartialSum(np.array([np.inf, 1.0])), context, 1)
    assert (answer.vector["all"].tolist(), answer.lost) == ([0.0, 1.0], 1)


BOUNDED = Terms((Block("all", (2,)),), domain=Domain.INTEGER, l1=1.0, l2=1.0, linf=1.0, reach=1.0)


@pytest.mark.parametrize(
    ("asked", "changes", "refusal"),
    [
        (replace(BOUNDED, names_words=True), {"mechanisms": ()}, "which words occur"),
        (replace(BOUNDED, batch=10), {"mechanisms": ()}, "no amplification"),
        (BOUNDED, {"mechanisms": (CentralNoise(1.0),), "aggregation": BfvSum()}, "here the parties open it"),
    ],
)
def test_what_no_budget_covers_is_refused(asked: Terms, changes: dict[str, Any], refusal: str) -> None:
    profile = replace(read_profile("dp-central"), **changes)
    with pytest.raises(Mismatch, match=refusal):
        compile_route(asked, profile, cohort_of(profile, MEMBERS))


def test_noise_meets_the_terms_behind_its_own_step() -> None:
    """Before it, a vector is not noised, and no noise is added under such terms."""
    cohort = Cohort(b"", 0, MEMBERS)
    route = Route.through(BOUNDED, (GaussianNoise(1000.0),), cohort)
    context = RoundContext(cohort, OperatingSystem(), None)  # type: ignore[arg-type]
    answer = route._answer_of(PartialSum(np.zeros(2, np.int64)), context, 1)
    assert answer.vector["all"].any()


def test_what_the_opener_sees_lacks_the_noise_that_it_adds() -> None:
    cohort = Cohort(b"", 0, MEMBERS)
    context = RoundContext(cohort, OperatingSystem(), None)  # type: ignore[arg-type]
    route = Route.through(BOUNDED, (CentralNoise(1000.0),), cohort)
    seen, opened = route.seen_and_opened(Answer({"all": np.zeros(2, np.int64)}), context)
    assert seen.total is not None
    assert opened.total is not None
    assert (seen.total["all"].any(), opened.total["all"].any()) == (False, True)


# ---- clipped sums ----------------------------------------------------------------------------------------------------------


TERMS = Terms((Block("all", (1,)),))
NOTHING_BESIDE = np.zeros((1, 0))


@dataclass
class OneRow:
    """The loss of one document, with one coordinate."""

    row: float
    length: float

    @property
    def values(self) -> Array:
        return np.zeros(1)

    def norms(self, owners: Array) -> Array:
        return np.array([self.length])

    def gradient(self, weights: Array) -> Array:
        return weights * np.array([self.row])


def summed(losses: OneRow) -> ClippedRowSum:
    found = ClippedRowSum(TERMS, radius=1.0)
    found.add_losses(losses, np.arange(1), NOTHING_BESIDE)
    return found


def test_the_radius_holds_where_a_length_is_found_a_little_too_short() -> None:
    assert abs(summed(OneRow(3.0, 3.0 * (1 - 2.0**-37))).vector()[0]) <= 1.0


@pytest.mark.parametrize("length", [np.nan, np.inf])
def test_a_gradient_of_no_length_counts_as_nothing(length: float) -> None:
    found = summed(OneRow(3.0, length))
    assert (found.vector().tolist(), found.lost) == ([0.0], 1)


def test_an_owner_s_gradients_come_at_once() -> None:
    found = summed(OneRow(3.0, 3.0))
    with pytest.raises(SplitOwner):
        found.add_losses(OneRow(3.0, 3.0), np.arange(1), NOTHING_BESIDE)


# ---- sums over blocks ------------------------------------------------------------------------------------------------------


RNG = np.random.default_rng(0)


def leaf(values: np.ndarray, place: int, *, read_only: bool = False) -> Node:
    vector = values[place].copy()
    vector.flags.writeable = not read_only
    return Node(0, place, PartialSum(vector, float(place), place + 1, place))


def in_order(values: np.ndarray, order: np.ndarray, workers: int = 1) -> PartialSum:
    whole = JoinedBlocks(len(values))
    for places in np.array_split(order, workers):
        here = JoinedBlocks(len(values))
        for place in places:
            here.add(leaf(values, int(place), read_only=workers == 2))
        for node in here.nodes():
            whole.add(node)
    return whole.whole()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 8, 13])
def test_no_order_and_no_share_of_the_work_changes_a_byte(blocks: int, dtype: type) -> None:
    values = (RNG.normal(0, 1e6, (blocks, 5)) * 10.0 ** RNG.integers(-8, 8, (blocks, 5))).astype(dtype)
    first = in_order(values, np.arange(blocks))
    for trial in range(20):
        again = in_order(values, np.random.default_rng(trial).permutation(blocks), 1 + trial % 4)
        assert again.vector.tobytes() == first.vector.tobytes()
        assert (again.loss, again.losses, again.lost) == (first.loss, first.losses, first.lost)
    assert first.lost == sum(range(blocks))


def test_neighbours_leave_few_sums_behind() -> None:
    values, here = np.ones((1000, 1)), JoinedBlocks(1000)
    most = 0
    for place in range(3, 990):
        here.add(leaf(values, place))
        most = max(most, len(here.nodes()))
    assert most <= 2 * 10


def test_mean_losses_are_of_all_rows_and_nothing_is_a_loss_of_no_rows() -> None:
    parts = [PartialSum(np.zeros(1), loss, count) for loss, count in ((2.0, 1), (np.inf, 0), (5.0, 2))]
    assert parts[0].plus(parts[1]).plus(parts[2]).loss == 4.0


def test_what_overflows_only_together_counts_as_lost() -> None:
    one = PartialSum(np.array([1e308, 1.0])).plus(PartialSum(np.array([1e308, 1.0]))).finite()
    assert one.vector.tolist() == [0.0, 2.0]
    assert one.lost == 1


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ([(0, 0)], "missing"),
        ([(0, 0), (0, 0)], "added before"),
        ([(0, 0), (0, 1), (0, 1)], "added before"),
        ([(0, 3)], "no node"),
        ([(3, 0)], "no node"),
        ([(0, -1)], "no node"),
    ],
)
def test_sums_that_do_not_fit_are_refused(nodes: list[tuple[int, int]], problem: str) -> None:
    def joined() -> None:
        whole = JoinedBlocks(3)
        for level, index in nodes:
            whole.add(Node(level, index, PartialSum(np.ones(1))))
        whole.whole()

    with pytest.raises(UnfitBlocks, match=problem):
        joined()


# ---- answers over blocks ---------------------------------------------------------------------------------------------------


SIZE, DOCUMENTS, WORDS = 37, 300, 40
COHORT = Cohort(b"round", 0, ("one", "two"), threshold=2)
VOCABULARY = tuple(f"word{n}" for n in range(WORDS))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, DOCUMENTS)
    tokens = np.minimum(rng.geometric(0.1, lengths.sum()) - 1, WORDS - 1)
    persons = rng.integers(0, 60, DOCUMENTS)
    read = Corpus.from_tokens(tokens, np.cumsum(lengths), VOCABULARY, persons=persons)
    return read.replace(block_documents=SIZE).in_blocks()


def started(model: Any) -> Query:
    query: Query = model.query(model.start(VOCABULARY, np.random.default_rng(0)))
    return query


def held_out() -> Query:
    model = LDA(n_topics=3)
    return HeldOut(model, {**model.start(VOCABULARY, np.random.default_rng(1)), "counts": np.ones((3, WORDS))})


NOISE = (FixedPoint(crowd=8), GaussianNoise(1.0))
CASES: dict[str, tuple[Query, Sequence[Mechanism]]] = {
    "lda": (started(LDA(n_topics=3)), ()),
    "lda per person": (PerPerson(started(LDA(n_topics=3))), (BoundedCounts(20, 5), GaussianNoise(1.0))),
    "lda with words noised": (started(LDA(n_topics=3)), (LaplaceCounts(2.0),)),
    "gradients of a sample": (started(ProdLDA(n_topics=3, hidden=8)), (PoissonSample(0.5), Clip(0.5), *NOISE)),
    "gradients of a batch": (started(ProdLDA(n_topics=3, hidden=8, batch=90)), (ShuffledBatches(),)),
    "epochs of a party": (started(FedNMF(n_topics=3)), ()),
    "held out": (held_out(), ()),
    "held out per person": (PerPerson(held_out()), (Clip(1.0), *NOISE)),
    "frequencies": (DocumentFrequencies(WORDS), ()),
    "frequencies per person": (PerPerson(DocumentFrequencies(WORDS)), (BoundedCounts(9, 1), GaussianNoise(1.0))),
    "coherence": (CooccurrenceCounts(np.arange(12).reshape(2, 6)), ()),
    "list of words": (WordList(200), ()),
    "words": (WordSketch(2 * WORDS), ()),
    "selected words": (WordSketch(2 * WORDS), (WordSelection(4, 0.5, 0.01),)),
    "selected words per person": (PerPerson(WordSketch(2 * WORDS)), (WordSelection(4, 0.5, 0.01),)),
    "words in sums": (WordSums(), ()),
}


def vectors(
    query: Query, mechanisms: Sequence[Mechanism], documents: Corpus, way: tuple[int, int, int]
) -> tuple[list[bytes], dict[str, bytes]]:
    """Two rounds: the answers, and what is remembered."""
    entropy, memory, store = Seeded(bytes(32), unsafe=True), Memory(), Kept()
    route = Route.through(query.terms, mechanisms, COHORT)
    contexts = [RoundContext(replace(COHORT, number=number), entropy, store) for number in range(2)]
    answers = [routed(route, query, documents, memory, way, context).tobytes() for context in contexts]
    return answers, {name: array.tobytes() for name, array in memory.items()}


class Kept(dict[str, bytes]):
    def put(self, key: str, value: bytes) -> None:
        self[key] = value


@pytest.mark.parametrize(
    "name", quick(CASES, "lda with words noised", "gradients of a sample", "held out per person", "selected words per person")
)
def test_shards_workers_and_order_change_no_byte(name: str, corpus: Corpus) -> None:
    found = [vectors(*CASES[name], corpus, way) for way in WAYS]
    assert found[1:] == found[:-1]
    alone = vectors(*CASES[name], corpus.replace(block_numbers=None), WAYS[0])
    if CASES[name][0].terms.names_words or name in ("frequencies", "coherence", "frequencies per person"):
        assert alone == found[0]  # whole numbers are the same in one block, too


# ---- a corpus of one block -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lda", "epochs of a party", "held out", "list of words", "words"])
def test_one_block_is_answered_as_before(name: str, corpus: Corpus) -> None:
    whole = corpus.replace(block_numbers=None, block_documents=len(corpus)).in_blocks()
    assert whole.block_numbers is None
    assert np.array_equal(whole.in_blocks().keys, whole.keys)  # in the order of their keys already
    query = CASES[name][0]
    memory, added = Memory(), [ClippedRowSum(query.terms) for _ in range(2)]
    for one in added:
        query.answer(whole, one, memory, np.random.default_rng(0))
    answers, kept = vectors(query, (), whole, (1, 1, 0))
    assert answers == [one.vector().tobytes() for one in added]
    assert kept == {name: array.tobytes() for name, array in memory.items()}


# ---- blocks of documents -------------------------------------------------------------------------------------------


def test_a_block_holds_whole_persons_and_enough_documents(corpus: Corpus) -> None:
    assert len({(p, b) for p, b in zip(corpus.persons, corpus.block_numbers, strict=True)}) == len(set(corpus.persons))
    sizes = np.bincount(corpus.block_numbers)
    assert np.all(sizes[:-1] >= SIZE)
    assert [block.number for block in corpus.blocks()] == list(range(len(sizes)))


def test_a_person_in_two_blocks_is_refused(corpus: Corpus) -> None:
    with pytest.raises(SplitOwner):
        corpus.replace(block_numbers=np.arange(len(corpus)) // SIZE, persons=np.zeros(len(corpus), dtype=np.int64))


# ---- engines and memory --------------------------------------------------------------------------------------------


class Forgetful(InThisProcess):
    def map(self, work: Any, tasks: Sequence[Any]) -> Any:
        return map(work, tasks[1:])


def test_an_engine_that_leaves_out_a_task_is_refused(corpus: Corpus) -> None:
    query, memory = started(LDA(n_topics=3)), Memory()
    route = Route.through(query.terms, (), COHORT)
    context = RoundContext(COHORT, Seeded(bytes(32), unsafe=True), Kept())  # type: ignore[arg-type]
    with pytest.raises(UnfitBlocks):
        route.answer(query, corpus, context, memory, np.random.default_rng(0), Forgetful())
    assert not memory


class WrittenDown:
    """A block that keeps its memory elsewhere."""

    number, shard = 5, "shard"
    elsewhere: dict[str, Memory]

    def __init__(self, documents: Corpus) -> None:
        self.documents, self.elsewhere = documents, {}

    def read(self) -> Corpus:
        return self.documents

    def recall(self, kept: Memory) -> Memory:
        return dict(self.elsewhere[bytes(kept[ON_DISK]).decode()]) if kept else {}

    def keep(self, memory: Memory, keeping: Keeping) -> Memory:
        self.elsewhere[keeping.version] = memory
        return {ON_DISK: np.frombuffer(keeping.version.encode(), np.uint8)}


def test_what_a_block_wrote_down_is_named_in_the_memory(corpus: Corpus) -> None:
    block, query = WrittenDown(corpus), started(LDA(n_topics=3))
    question = replace(BlockQuestion(query, query.terms, seed=(1,)), keeping=Keeping("run", "00000001"))
    kept = question(BlockTask("shard", tuple(task.blocks[0] for task in tasks_of([block], {}, 1)))).kept
    assert files_in({f"block 5/{name}": array for name, array in kept[5].items()}) == {"00000001"}
    again = question(tasks_of([block], {f"block 5/{name}": array for name, array in kept[5].items()}, 1)[0])
    held = BlockQuestion(query, query.terms, seed=(1,), keeping=IN_MEMORY)
    memory: Memory = {}
    for _ in range(2):
        expected = held.answer(corpus, memory, np.random.default_rng([1, 5]))
    assert again.nodes[0].part.vector.tobytes() == expected.vector.tobytes()


# ---- documents that are not in memory --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"model.name": "fednmf"}, "model 'fednmf'"),
        ({"model.name": "prodlda", "model.local_epochs": 1}, "model 'prodlda'"),
        ({"profile": "iftm"}, "with noise in every word"),
    ],
)
def test_what_needs_all_documents_at_once_is_refused_when_the_party_starts(
    settings: dict[str, Any], what: str, corpus: Corpus
) -> None:
    agreement = agree(whole_plan(None, settings))
    check_blocks("north", corpus, agreement)  # they are in memory
    with pytest.raises(NotByBlocks, match=what):
        check_blocks("north", OnShards(corpus, 2), agreement)
    check_blocks("north", OnShards(corpus, 2), agree(whole_plan(None, {})))


def test_blocks_that_took_no_part_are_remembered() -> None:
    memory: Memory = {"block 0/a": np.zeros(1), "block 1/a": np.zeros(1)}
    _remember(memory, {1: {"a": np.ones(1)}})
    assert {name: array.tolist() for name, array in memory.items()} == {"block 0/a": [0.0], "block 1/a": [1.0]}


class Drawing:
    """Adds what it draws for each document."""

    terms = Terms((Block("all", (1,)),))

    def answer(self, documents: Any, clipped_sum: Any, memory: Memory, rng: np.random.Generator) -> None:
        memory["drawn"] = rng.random(1)
        clipped_sum.add(np.zeros((len(documents), 1)), np.arange(len(documents)))


def test_every_block_draws_its_own_numbers_anew_in_every_round(corpus: Corpus) -> None:
    blocks, rng = corpus.blocks(), np.random.default_rng(0)
    drawn = []
    for _ in range(2):
        memory: Memory = {}
        summed_by_blocks(BlockQuestion(Drawing(), Drawing.terms), blocks, memory, IN_PROCESS, rng)  # type: ignore[arg-type]
        drawn += [float(array[0]) for array in memory.values()]
    assert len(set(drawn)) == len(drawn) == 2 * len(blocks)


# ---- failures of rows ------------------------------------------------------------------------------------------------------


FAILURES = (MemoryError(), ValueError("a row"), FloatingPointError(), CountsNotWhole())


@pytest.fixture(scope="module")
def failing_corpus() -> Corpus:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, 61)
    tokens = np.minimum(rng.geometric(0.1, lengths.sum()) - 1, len(VOCABULARY) - 1)
    return Corpus.from_tokens(tokens, np.cumsum(lengths), VOCABULARY, persons=rng.integers(0, 20, 61))


@dataclass(frozen=True)
class FailsAt:
    """The question, whose answer fails after all is computed and remembered, if one of these documents is there."""

    inner: Any
    keys: tuple[int, ...]
    failure: Exception = FAILURES[0]
    together: int = 1  # so many of them must be there

    @property
    def terms(self) -> Terms:
        terms: Terms = self.inner.terms
        return terms

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        self.inner.answer(documents, clipped_sum, memory, rng)
        memory["left behind"] = rng.random(3)
        self._fail(documents)
        del memory["left behind"]

    def own_words(self, documents: Any) -> Any:
        self._fail(documents)
        return self.inner.own_words(documents)

    def row(self, words: Sequence[str], counts: Array, documents: int) -> Array:
        row: Array = self.inner.row(words, counts, documents)
        return row

    def _fail(self, documents: Any) -> None:
        if np.isin(np.array(self.keys, np.uint64), documents.keys).sum() >= self.together:
            raise self.failure


def told(query: Any, documents: Corpus, mechanisms: Sequence[Mechanism] = ()) -> tuple[bytes, dict[str, bytes], int]:
    """The vector, what is remembered, and how many rows were lost."""
    memory: Memory = {}
    route = Route.through(query.terms, mechanisms, COHORT)
    context = RoundContext(COHORT, Seeded(bytes(32), unsafe=True), Kept())
    found = route.answer(query, documents, context, memory, np.random.default_rng(0))
    vector = b"".join(np.ascontiguousarray(block).tobytes() for block in found.vector.values())
    return vector, {name: array.tobytes() for name, array in memory.items()}, found.lost


FAILING = [(0,), (1, 20, 59), *(pytest.param(some, marks=pytest.mark.slow) for some in ((30, 31), (60,)))]


@pytest.mark.parametrize(
    "name", quick([name for name, (_, mechanisms) in CASES.items() if not mechanisms], "lda", "epochs of a party", "words")
)
@pytest.mark.parametrize("failing", FAILING, ids=str)
def test_the_answer_is_that_of_the_other_documents(name: str, failing: tuple[int, ...], failing_corpus: Corpus) -> None:
    query = CASES[name][0]
    bad = FailsAt(query, tuple(map(int, failing_corpus.keys[list(failing)])), FAILURES[len(failing)])
    others = failing_corpus.select(np.setdiff1d(np.arange(len(failing_corpus)), failing))
    vector, remembered, lost = told(query, others)
    assert told(bad, failing_corpus) == (vector, remembered, lost + len(failing))


def test_a_person_fails_as_a_whole_and_alone(failing_corpus: Corpus) -> None:
    query = PerPerson(CooccurrenceCounts(np.arange(12).reshape(2, 6)))
    others = failing_corpus.select(np.flatnonzero(failing_corpus.persons != failing_corpus.persons[7]))
    vector, _, _ = told(query, others)
    assert told(FailsAt(query, (int(failing_corpus.keys[7]),)), failing_corpus)[::2] == (vector, 1)


def test_documents_that_fail_only_together_are_all_counted(failing_corpus: Corpus) -> None:
    """As where memory is enough for each half of them, and not for all at once."""
    query = CooccurrenceCounts(np.arange(12).reshape(2, 6))
    bad = FailsAt(query, (int(failing_corpus.keys[2]), int(failing_corpus.keys[50])), together=2)
    assert told(bad, failing_corpus)[::2] == told(query, failing_corpus)[::2]


def test_what_is_no_documents_fault_is_raised(failing_corpus: Corpus) -> None:
    query = CooccurrenceCounts(np.arange(12).reshape(2, 6))
    with pytest.raises(BadSetting):  # each document fails
        told(FailsAt(query, tuple(map(int, failing_corpus.keys)), BadSetting("", "x", "1", "is wrong")), failing_corpus)
    with pytest.raises(ValueError, match="a row"):  # even without any document
        told(FailsAt(query, (), FAILURES[1], together=0), failing_corpus)


def test_a_block_of_failing_documents_is_no_veto_for_the_others(failing_corpus: Corpus) -> None:
    query = CASES["lda"][0]
    blocks = failing_corpus.replace(persons=None, block_documents=7).in_blocks()
    last = np.flatnonzero(blocks.block_numbers == blocks.block_numbers.max())
    bad = FailsAt(query, tuple(map(int, blocks.keys[last])))
    others = blocks.select(np.setdiff1d(np.arange(len(blocks)), last))
    vector, _, _ = told(query, others)
    assert told(bad, blocks)[::2] == (vector, len(last))
