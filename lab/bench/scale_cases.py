"""The cases of `bench scale`, each in a process of its own: a corpus is built, or a party answers over it.

`python -m lab.bench.scale_cases FOLDER CASE` prints the figures of one case as a line of JSON.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from lab.measuring import RoleMemory, Row, fastest, timed
from lab.processes import memory_now
from lab.synthetic_documents import BLOCK, SyntheticStream, write_stream
from securetm.answers.block_answers import IN_PROCESS
from securetm.answers.block_sums import Node
from securetm.answers.route import Route, compile_route
from securetm.contracts import IN_MEMORY, Answer, Engine, Keeping, Memory, RoundContext, State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.corpus.store import opened
from securetm.engines import ENGINES
from securetm.engines.tasks import packed
from securetm.entropy import OperatingSystem
from securetm.plans.profiles import cohort_of, make_model, read_profile
from securetm.stages import Unwatched

T = TypeVar("T")
R = TypeVar("R")
TOPICS, WORDS, LENGTH = 50, 2_000, 60
LARGE_TOPICS, LARGE_WORDS = 200, 20_000
BUILD, TEXT, ROUND = "build", "build from texts", "round"
PARTS, LARGE, CHOICE = "parts of a round", "parts of a large round", "choice of held-out documents"
DISK, MEMORY, POOL, RAY = "on disk", "in memory", "pool of 2", "Ray with 2 workers"
ENGINES_OF = MappingProxyType({POOL: "pool", RAY: "ray"})
WORKERS = 2
_COMPILED = 200  # documents on which everything is compiled before the clock runs
_BATCHES, _SETTLED = 260, 60  # mini-batches, and the first of them that no figure counts
_MANY, _FEW_ROUNDS, _MORE_ROUNDS = 10**6, 2, 6  # rounds of corpora from so many documents on, and of smaller ones


@dataclass(frozen=True)
class ScaledModel:
    settings: Mapping[str, Any]
    threaded: bool = False
    by_batches: bool = False
    passes: int = 1  # over every document in an answer


MODELS: Mapping[str, ScaledModel] = MappingProxyType(
    {
        "lda": ScaledModel({"sweeps": 2}, threaded=True, passes=2),
        "lda-vi": ScaledModel({"passes": 5}, threaded=True, passes=5),
        "moments": ScaledModel({}),
        "prodlda": ScaledModel({"device": "cpu"}, by_batches=True),
    }
)


@dataclass(frozen=True)
class ScaleCase:
    what: str
    documents: int
    model: str = ""
    place: str = DISK
    threads: int = 1  # of the model, or of each worker of an engine

    def __str__(self) -> str:
        named = [self.model, *([] if self.what == ROUND else [self.what])]
        parts = [" ".join(named).strip(), f"{self.documents:,} documents", *([self.place] if self.model else [])]
        return ", ".join([*parts, *([f"{self.threads} threads"] if self.threads > 1 else [])])

    @property
    def rounds(self) -> int:
        """Answers, of which the first are not counted: more of a small corpus, whose seconds differ more."""
        if self.model and MODELS[self.model].by_batches:
            return _BATCHES
        return _FEW_ROUNDS if self.documents >= _MANY else _MORE_ROUNDS

    @property
    def not_counted(self) -> int:
        """The answers at the beginning that no figure counts: they open files, and compare blocks with their digests."""
        return _SETTLED if MODELS[self.model].by_batches else 1

    @property
    def stream(self) -> SyntheticStream:
        """Its documents. A small corpus has several blocks too."""
        block = BLOCK if self.documents >= BLOCK else self.documents // 4 + 1
        return SyntheticStream(self.documents, self.words, self.topics, LENGTH, block_documents=block)

    @property
    def topics(self) -> int:
        return LARGE_TOPICS if self.what == LARGE else TOPICS

    @property
    def words(self) -> int:
        return LARGE_WORDS if self.what == LARGE else WORDS

    def corpus_in(self, folder: Path) -> Path:
        return folder / f"documents-{self.documents}-{self.words}"


# ---- in the process of its own -----------------------------------------------------------------------------------------


def built(case: ScaleCase, folder: Path) -> Row:
    """Seconds of writing the stream to disk."""
    begun = time.process_time()
    seconds, manifest = timed(partial(write_stream, case.stream, case.corpus_in(folder)))
    return {"seconds": seconds, "processor": time.process_time() - begun, "bytes": manifest.facts(folder)["bytes"]}


def built_from_text(case: ScaleCase, folder: Path) -> Row:
    """By `securetm corpus build`, from lines of JSON; these are written before the clock runs, and deleted."""
    from securetm.corpus.corpus_build import CorpusBuild

    source, out, stream = folder / "texts.jsonl", folder / "texts", case.stream
    words = np.array(stream.vocabulary)
    with source.open("w", encoding="utf-8") as file:
        for number in range(stream.blocks):
            file.writelines(f'{{"text": "{" ".join(row)}"}}\n' for row in words[stream.tokens(number)])
    size = source.stat().st_size
    begun = time.process_time()
    try:
        seconds, manifest = timed(CorpusBuild(str(source), out, block_documents=stream.block_documents).run)
    finally:
        source.unlink()
    processor = time.process_time() - begun
    assert manifest.tokens == stream.documents * LENGTH
    return {"seconds": seconds, "processor": processor, "bytes": manifest.facts(out)["bytes"], "source_bytes": size}


def answered(case: ScaleCase, folder: Path) -> Row:
    """Seconds of a party's answers: documents chosen, rows made, clipped and added; and of the model's update, beside them."""
    scaled, model = MODELS[case.model], model_of(case)
    in_memory, at = case.place == MEMORY, case.corpus_in(folder)
    opened, documents = timed(lambda: (case.stream.corpus() if in_memory else Corpus.open(at)).in_blocks())
    with _engine(case) as engine:
        if engine is not IN_PROCESS:  # its workers begin, and compile what they need
            AnsweringParty(model, documents.select(np.arange(1)), engine, IN_MEMORY).on_each_worker(documents)
        keeping = IN_MEMORY if case.place == MEMORY else Keeping("bench", "0")
        party = AnsweringParty(model, documents, engine, keeping)
        party.answers(case.rounds)
    counted = slice(case.not_counted, None)
    facts = {name: float(np.median(getattr(party, name)[counted])) for name in ("seconds", "processor")}
    facts |= {"counted": case.rounds - case.not_counted, "first": party.seconds[0], "update": party.updates[-1]}
    if engine is not IN_PROCESS:
        del facts["processor"]  # that of the workers is not in it
    if not scaled.by_batches:
        facts["tokens_per_second"] = case.documents * LENGTH * scaled.passes / facts["seconds"]
    return {**facts, "opened": opened, "sha256": party.digest.hexdigest()}


def model_of(case: ScaleCase) -> TopicModel:
    """The model of a case. Everything that it compiles is compiled."""
    scaled = MODELS[case.model]
    threads = {"threads": case.threads} if scaled.threaded else {}
    model = make_model(case.model, {"n_topics": case.topics, **scaled.settings, **threads})
    few = ScaleCase(ROUND, _COMPILED).stream
    AnsweringParty(model, few.corpus(), IN_PROCESS, IN_MEMORY).answers(2)
    return model


@contextmanager
def _engine(case: ScaleCase) -> Iterator[Engine]:
    if case.place in (DISK, MEMORY):
        yield IN_PROCESS
        return
    engine: Engine = ENGINES.load(ENGINES_OF[case.place])(workers=WORKERS)
    try:
        yield engine
    finally:
        engine.close()


class AnsweringParty:
    """A party's side of a training under `open`: its answers through the route, and the model that learns from them alone."""

    def __init__(self, model: TopicModel, documents: Any, engine: Engine, keeping: Keeping) -> None:
        self.model, self.documents, self.engine, self.keeping = model, documents, engine, keeping
        self.profile = read_profile("open")
        self.seconds: list[float] = []
        self.processor: list[float] = []  # seconds of this process, of all its threads
        self.updates: list[float] = []
        self.digest = hashlib.sha256()  # of all vectors that left the party
        self._memory: Memory = {}
        self._state: State = model.start(documents.vocabulary, np.random.default_rng(0))

    def answers(self, rounds: int) -> None:
        for number in range(len(self.seconds), len(self.seconds) + rounds):
            begun = time.process_time()
            took, vector = timed(partial(self._answer, number))
            self.processor.append(time.process_time() - begun)
            for name in sorted(vector):
                self.digest.update(np.ascontiguousarray(vector[name]).tobytes())
            updated, self._state = timed(partial(self.model.update, self._state, Answer(vector)))
            self.seconds.append(took)
            self.updates.append(updated)

    def forget(self) -> None:
        self._memory = {}

    def on_each_worker(self, documents: Any) -> None:
        """A first answer of a few documents of several blocks, so that every worker has begun before the clock runs."""
        blocks = documents.blocks()
        self.documents = documents.select(np.concatenate([np.asarray(block.rows[:50]) for block in blocks[:2]]))
        self.answers(1)

    def _answer(self, number: int) -> Mapping[str, Any]:
        cohort = cohort_of(self.profile, ("one", "two"), number=number)
        query = self.model.query(self._state)
        route: Route = compile_route(query.terms, self.profile, cohort)
        context = RoundContext(cohort, OperatingSystem(), RoleMemory())
        before = frozenset({str(number - 1)})
        keeping = Keeping(self.keeping.folder, str(number), before) if self.keeping.folder else IN_MEMORY
        rng = np.random.default_rng([0, number])
        return route.answer(query, self.documents, context, self._memory, rng, self.engine, keeping).vector


def as_argument(case: ScaleCase) -> str:
    return json.dumps(asdict(case))


# ---- the parts of a round that a cluster is planned with: what travels, what is kept, what is added --------------------

_FIRST = 1_000  # documents of each block in the answer whose parts are weighed


class Weighing:
    """An engine in this process that notes how large the question is, and how large one sum of a worker."""

    workers = 2

    def __init__(self) -> None:
        self.question = self.node = 0
        self.sums: list[Node] = []

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
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
    stored = [path for path in place.rglob("*") if path.is_file() and place / "memory" not in path.parents]
    facts |= {f"{name}_bytes": sum(path.stat().st_size for path in of) for name, of in (("kept", latest), ("stored", stored))}
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


# ---- the process of one case -------------------------------------------------------------------------------------------

_KINDS = {BUILD: built, TEXT: built_from_text, ROUND: answered, PARTS: parts, LARGE: parts, CHOICE: choice}


def measured(case: ScaleCase, folder: Path) -> Row:
    return {**_KINDS[case.what](case, folder), "peak_mib": round(memory_now(), 1)}


if __name__ == "__main__":
    print(json.dumps(measured(ScaleCase(**json.loads(sys.argv[2])), Path(sys.argv[1]))), flush=True)  # noqa: T201
