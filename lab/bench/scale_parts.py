"""Measures the parts of a round that a cluster is planned with: what travels, what is kept, what is added. It plans nothing."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lab.bench.scale_cases import LENGTH, MODELS, AnsweringParty, ScaleCase, model_of
from lab.measuring import Row, fastest, timed
from lab.synthetic_documents import write_stream
from securetm.block_answers import IN_PROCESS
from securetm.block_sums import Node
from securetm.contracts import IN_MEMORY, Keeping
from securetm.corpus.corpus import Corpus
from securetm.corpus.store import opened
from securetm.engines.tasks import packed
from securetm.stages import Unwatched

T = TypeVar("T")
R = TypeVar("R")
_FIRST = 1_000  # documents of each block in the answer whose parts are weighed


class Weighing:
    """An engine in this process that notes how large the question is, and how large one sum of a worker."""

    workers = 2

    def __init__(self) -> None:
        self.question = self.node = 0
        self.sums: list[Node] = []

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """The results, in the order of the tasks."""
        self.question = len(packed("the question", work))
        for task in tasks:
            result: Any = work(task)
            self.sums = [*self.sums, *result.nodes][:2]
            self.node = max(len(pickle.dumps(node)) for node in result.nodes)
            yield result

    def close(self) -> None:
        """There is nothing to end."""


def parts(case: ScaleCase, folder: Path) -> Row:
    """Two rounds over all documents, of which the second is timed, and one over a few, of which each part is weighed."""
    place = case.corpus_in(folder)
    if not place.is_dir():
        write_stream(case.stream, place)
    corpus = Corpus.open(place).in_blocks()
    checked, _ = timed(lambda: opened(place).verify(Unwatched()))
    party = AnsweringParty(model_of(case), corpus, IN_PROCESS, Keeping("bench", "0"))
    party.answers(1)
    begun = time.process_time()
    party.answers(1)
    processor = time.process_time() - begun
    facts = {"seconds": party.seconds[-1], "processor": processor, "update": party.updates[-1], "check_seconds": checked}
    latest = list(place.glob("memory/bench/*-1.npz"))
    assert len(latest) == len(corpus.blocks())
    facts |= {"kept_bytes": sum(path.stat().st_size for path in latest), "stored_bytes": _size_of(place / "memory", place)}
    facts |= {"tokens_per_second": case.documents * LENGTH * MODELS[case.model].passes / party.seconds[-1]}
    return {**facts, **_weighed(party, corpus)}


def choice(case: ScaleCase, folder: Path) -> Row:
    """Seconds of choosing the documents that a party holds out: of each one the key is needed."""
    corpus = Corpus.open(case.corpus_in(folder))
    begun = time.process_time()
    seconds, (train, held_out) = timed(corpus.split)
    assert len(train) + len(held_out) == case.documents
    return {"seconds": seconds, "processor": time.process_time() - begun}


def _weighed(party: AnsweringParty, corpus: Corpus) -> Row:
    first = np.concatenate([np.asarray(block.rows)[:_FIRST] for block in corpus.blocks()[:2]])
    engine = Weighing()
    party.documents, party.engine, party.keeping = corpus.select(first), engine, IN_MEMORY
    party.forget()
    party.answers(1)
    one, other = (node.part for node in engine.sums)
    added = fastest(lambda: one.plus(other))
    return {"question_bytes": engine.question, "sum_bytes": engine.node, "add_seconds": added, "values": one.vector.size}


def _size_of(left_out: Path, folder: Path) -> int:
    files = (path for path in folder.rglob("*") if path.is_file() and left_out not in path.parents)
    return sum(path.stat().st_size for path in files)
