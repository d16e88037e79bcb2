"""A party with a small corpus on disk, and what every engine must give of it: the bytes that this process gives. No tests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from securetm.answers.block_answers import IN_PROCESS, files_in
from securetm.answers.route import Route
from securetm.contracts import Answer, Cohort, Engine, Keeping, Memory, RoundContext
from securetm.corpus.corpus import Corpus
from securetm.corpus.corpus_build import CorpusBuild
from securetm.corpus.records import Columns
from securetm.entropy import OperatingSystem
from securetm.plans.profiles import make_model

from ..models.small_models import EMBEDDED, small_settings

COHORT = Cohort(b"", 0, ("party",))
SHARDS = (1, 7)
DOCUMENTS, BLOCK = 120, 9
ROUNDS = 2


def stored(folder: Path, shards: int) -> Corpus:
    """The same documents, with persons and embeddings, in so many files."""
    rng, source = np.random.default_rng(0), folder / "documents.jsonl"
    names = [f"word{chr(97 + n)}" for n in range(20)]
    rows = [
        {
            "text": ". ".join(" ".join(rng.choice(names, rng.integers(1, 9))) for _ in range(2)),
            "embedding": rng.normal(size=EMBEDDED).round(4).tolist(),
        }
        for _ in range(DOCUMENTS)
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    build = CorpusBuild(str(source), folder / f"in {shards}", Columns(), block_documents=BLOCK, shards=shards)
    assert len(build.run().shards) == shards
    return Corpus.open(folder / f"in {shards}", "documents")


@dataclass
class Answered:
    """The answers of a party in the rounds of a training, and what it remembers at the end."""

    answers: list[bytes] = field(default_factory=list)
    remembered: dict[str, bytes] = field(default_factory=dict)


def trained(name: str, documents: Any, engine: Engine = IN_PROCESS, run: str = "alone") -> Answered:
    """Trains a model on this party's answers, which the engine computes. `run` names the memory beside the shards."""
    model = make_model(name, small_settings(name, 3))
    state = model.start(documents.vocabulary, np.random.default_rng(0))
    memory, found = Memory(), Answered()
    for number in range(min(ROUNDS, type(model).most_rounds or ROUNDS)):
        query = model.query(model.for_party(state, "party"))
        route = Route.through(replace(query.terms, batch=0), (), COHORT)  # a batch would be one block
        context = RoundContext(COHORT, OperatingSystem(), {})  # type: ignore[arg-type]
        keeping = Keeping(run, f"{number:08d}", files_in(memory))
        rng = np.random.default_rng(number)
        answer = route.answer(query, documents.in_blocks(), context, memory, rng, engine, keeping)
        found.answers.append(b"".join(block.tobytes() for block in answer.vector.values()))
        state = model.update(state, Answer(answer.vector))
    for block in documents.in_blocks().blocks():
        kept = {key.split("/", 1)[1]: array for key, array in memory.items() if key.startswith(f"block {block.number}/")}
        recalled = block.recall(kept)
        found.remembered |= {f"{block.number}/{key}": array.tobytes() for key, array in recalled.items()}
    return found
