"""A party's answer as the sum of the answers of its blocks of documents, by an engine that carries out tasks anywhere.

Sampling comes before, noise after, once: neither is here. The same blocks give the same bytes, whatever the engine.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from securetm.answers.block_sums import JoinedBlocks, Node, PartialSum, RowFailure
from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import (
    IN_MEMORY,
    INF,
    ON_DISK,
    Array,
    DocumentBlock,
    Engine,
    Keeping,
    Mechanism,
    Memory,
    NamingQuery,
    Query,
    Rows,
    State,
    Terms,
    Unit,
)
from securetm.data_classes import dataclass, field, replace

T = TypeVar("T")
R = TypeVar("R")
_BLOCK = "block "  # in the party's memory, before a block's number, a slash and the names that are used there
_TASKS_EACH = 4  # for each worker, so that none waits long for the last one


@dataclass(frozen=True)
class PlacedBlock:
    """A block at its place in the tree of sums, and what the party remembers of it."""

    place: int
    block: DocumentBlock
    kept: Memory = field(repr=False)


@dataclass(frozen=True)
class BlockTask:
    """Neighbouring blocks of one shard. One worker answers them, one after another, and adds up what it can."""

    shard: str
    blocks: tuple[PlacedBlock, ...]


@dataclass(frozen=True)
class BlockResult:
    """The sums of a task's blocks, as far as they could be added, and what the party then remembers, by number of block."""

    nodes: tuple[Node, ...]
    kept: dict[int, Memory]


@dataclass(frozen=True)
class BlockQuestion:
    """Everything that the answer of a block needs beside the block. It can be pickled, and is the same for all tasks."""

    query: Query
    terms: Terms  # of the rows
    blocks: int = 1  # of the whole answer
    radius: float = INF
    steps: tuple[tuple[Mechanism, Terms], ...] = ()  # whose `on_rows` change rows
    seed: tuple[int, ...] = ()  # of the model's random numbers, which each block draws by itself
    keeping: Keeping = IN_MEMORY

    def __call__(self, task: BlockTask) -> BlockResult:
        """Run by a worker: the answers of the task's blocks."""
        joined, kept = JoinedBlocks(self.blocks), {}
        for placed in task.blocks:
            memory = placed.block.recall(placed.kept)
            rng = np.random.default_rng([*self.seed, placed.block.number])
            joined.add(Node(0, placed.place, self.answer(placed.block.read(), memory, rng)))
            kept[placed.block.number] = placed.block.keep(memory, self.keeping) if memory else memory
        return BlockResult(joined.nodes(), kept)

    def answer(self, documents: Any, memory: Memory, rng: np.random.Generator) -> PartialSum:
        """The sum over these documents without those whose rows fail, which count as nothing."""
        return SoundRows(self._answered, self.terms, documents, memory, rng, whole=self.blocks == 1).answer()

    def _answered(self, documents: Any, memory: Memory, rng: np.random.Generator) -> PartialSum:
        """The sum over these documents; of a question about a party's own words, how many owners have each word."""
        persons = documents.persons if self.terms.unit is Unit.PERSON else None
        added = ClippedRowSum(self.terms, self.radius, self._on_rows, persons=persons)
        with np.errstate(all="ignore"):  # an overflow counts as zero, and a warning would reveal such documents
            if self.terms.names_words:
                return PartialSum(added.named(*cast("NamingQuery", self.query).own_words(documents)))
            self.query.answer(documents, added, memory, rng)
        return added.partial()

    def _on_rows(self, rows: Rows) -> Rows:
        for mechanism, terms in self.steps:
            rows = mechanism.on_rows(rows, terms)
        return rows


@dataclass(frozen=True)
class InThisProcess(Engine):
    """The engine that carries out each task in this process, one after another."""

    workers: ClassVar[int] = 1

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        return map(work, tasks)

    def close(self) -> None:
        """There is nothing to end."""


IN_PROCESS = InThisProcess()


def summed_by_blocks(
    question: BlockQuestion, blocks: Sequence[DocumentBlock], memory: Memory, engine: Engine, rng: np.random.Generator
) -> PartialSum:
    """The sum of the answers of these blocks. `memory` then holds what the party remembers of each."""
    asked = replace(question, blocks=len(blocks), seed=tuple(int(part) for part in rng.integers(0, 2**63, 2)))
    joined = JoinedBlocks(len(blocks))
    fresh: dict[int, Memory] = {}
    for result in engine.map(asked, tasks_of(blocks, memory, engine.workers)):
        fresh |= result.kept
        for node in result.nodes:
            joined.add(node)
    whole = joined.whole()
    _remember(memory, fresh)
    return whole


def tasks_of(blocks: Sequence[DocumentBlock], memory: Memory, workers: int) -> list[BlockTask]:
    """The blocks in tasks: each a whole subtree of the tree of sums where its shard holds that much."""
    level = max(0, (len(blocks) // (workers * _TASKS_EACH)).bit_length() - 1)
    kept = _by_block(memory)
    tasks: list[list[PlacedBlock]] = []
    for place, block in enumerate(blocks):
        if not tasks or place % (1 << level) == 0 or tasks[-1][-1].block.shard != block.shard:
            tasks.append([])
        tasks[-1].append(PlacedBlock(place, block, kept.get(block.number, {})))
    return [BlockTask(task[0].block.shard, tuple(task)) for task in tasks]


def files_in(memory: State) -> frozenset[str]:
    """The files beside shards in which the party's memory is, where it is on disk."""
    return frozenset(bytes(kept[ON_DISK]).decode() for kept in _by_block(memory).values() if ON_DISK in kept)


def _by_block(memory: State) -> dict[int, Memory]:
    """What the party remembers of each block, from one dictionary."""
    found: dict[int, Memory] = {}
    for name, array in memory.items():
        if name.startswith(_BLOCK):
            number, inner = name.removeprefix(_BLOCK).split("/", 1)
            found.setdefault(int(number), {})[inner] = array
    return found


def _remember(memory: Memory, fresh: dict[int, Memory]) -> None:
    """Puts what is remembered of these blocks in the place of what was. Other blocks took no part, and stay."""
    kept = _by_block(memory) | fresh
    for name in [name for name in memory if name.startswith(_BLOCK)]:
        del memory[name]
    for number in sorted(kept):
        memory.update({f"{_BLOCK}{number}/{name}": array for name, array in kept[number].items()})


# ---- documents whose rows fail ---------------------------------------------------------------------------------------
#
# A failure of a computation over many documents, memory that it lacks too, would otherwise take the rows of all along: whoever
# sees the sum would see one document decide about a whole party. Which documents fail is found by halving.

Answered = Callable[[Any, Memory, "np.random.Generator"], PartialSum]  # the sum over documents; it changes the memory


@dataclass
class SoundRows:
    """The documents of one answer, and how they are answered. `memory` and `rng` are as they were before it."""

    answered: Answered
    terms: Terms
    documents: Any
    memory: Memory
    rng: np.random.Generator
    whole: bool = True  # whether these are all documents of the answer; else they are a block of them
    _noted: dict[str, RowFailure] = field(default_factory=dict)

    def answer(self) -> PartialSum:
        """The sum over all documents whose rows do not fail. What fails without any document is raised, or with every one."""
        everyone = np.arange(len(self.documents))
        whole = self._tried(everyone, keep=True)
        if isinstance(whole, PartialSum):
            return whole
        if isinstance(self._tried(everyone[:0]), Exception):
            raise whole  # no document is the reason
        failing = self._failing(self._owners(everyone))
        if self.whole and sum(map(len, failing)) == len(everyone):
            raise whole
        others = np.setdiff1d(everyone, np.concatenate([everyone[:0], *failing]))
        rest = self._of_others(others)
        lost, failed = rest.lost + len(failing), sum(map(len, failing))
        return replace(rest, lost=lost, failed=failed, failures=tuple(self._noted.values()))

    def _of_others(self, rows: Array) -> PartialSum:
        """The sum over these documents, none of which fails alone; in two parts if they fail together."""
        whole = self._tried(rows, keep=True)
        if isinstance(whole, PartialSum):
            return whole
        owners = self._owners(rows)
        if self.terms.at_once or len(owners) < 2:
            raise whole
        one, other = (np.sort(np.concatenate(half)) for half in (owners[: len(owners) // 2], owners[len(owners) // 2 :]))
        return self._of_others(one).plus(self._of_others(other))

    def _failing(self, owners: Sequence[Array]) -> list[Array]:
        """The documents of each owner whose documents fail, of owners that fail together."""
        if len(owners) == 1:
            return list(owners)
        halves = owners[: len(owners) // 2], owners[len(owners) // 2 :]
        failing = [half for half in halves if isinstance(self._tried(np.sort(np.concatenate(half))), Exception)]
        return [one for half in failing for one in self._failing(half)]

    def _tried(self, rows: Array, *, keep: bool = False) -> PartialSum | Exception:
        """The sum over these documents, or how it failed. A trial, and a sum that failed, leave nothing behind."""
        memory, before = dict(self.memory), self.rng.bit_generator.state
        some = self.documents if len(rows) == len(self.documents) else self.documents.select(rows)
        try:
            found: PartialSum | Exception = self.answered(some, memory, self.rng)
        except Exception as problem:  # noqa: BLE001 - what a document makes of a model's arithmetic, or of a user's own code
            found = problem
            steps = reversed(traceback.extract_tb(problem.__traceback__)[-3:])
            where = " <- ".join(f"{step.filename}:{step.lineno}" for step in steps)
            name = type(problem).__name__
            self._noted.setdefault(name, RowFailure(name, str(problem), where))
        if keep and isinstance(found, PartialSum):
            self.memory.clear()
            self.memory.update(memory)
        else:
            self.rng.bit_generator.state = before
        return found

    def _owners(self, rows: Array) -> list[Array]:
        """These documents by whose they are: a person's stand and fail together."""
        if self.terms.unit is not Unit.PERSON or self.documents.persons is None:
            return [rows[place : place + 1] for place in range(len(rows))]
        persons = self.documents.persons[rows]
        order = np.argsort(persons, kind="stable")
        return np.split(rows[order], np.flatnonzero(np.diff(persons[order])) + 1)
