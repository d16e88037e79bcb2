"""Answers by blocks with mechanisms: shards, workers and order change no byte; persons stay whole; one block is as ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

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
from securetm.answers.clipped_sum import ClippedRowSum
from securetm.answers.route import Route
from securetm.contracts import IN_MEMORY, ON_DISK, Block, Cohort, Keeping, Mechanism, Memory, Query, RoundContext, Terms
from securetm.corpus.corpus import Corpus
from securetm.entropy import Seeded
from securetm.errors import SplitOwner, UnfitBlocks
from securetm.federation.document_minimum import NotByBlocks, check_blocks
from securetm.federation.questions import PerPerson
from securetm.mechanisms.clipping import BoundedCounts, Clip
from securetm.mechanisms.gaussian_noise import GaussianNoise
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
from securetm.plans.recommend import read_plan
from securetm.testing.few_documents import WAYS, OnShards, routed

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


@pytest.mark.parametrize("name", CASES)
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
    agreement = agree(read_plan(None, settings))
    check_blocks("north", corpus, agreement)  # they are in memory
    with pytest.raises(NotByBlocks, match=what):
        check_blocks("north", OnShards(corpus, 2), agreement)
    check_blocks("north", OnShards(corpus, 2), agree(read_plan(None, {})))


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
