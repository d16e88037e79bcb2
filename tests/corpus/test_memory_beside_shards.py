"""What a party remembers of documents on disk lies beside their shards, a file for each block, and follows the party back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from securetm.answers.block_answers import files_in
from securetm.answers.route import Route
from securetm.contracts import Answer, Cohort, Keeping, Memory, RoundContext
from securetm.corpus.corpus import Corpus
from securetm.corpus.corpus_build import CorpusBuild
from securetm.corpus.readers import read_corpus
from securetm.corpus.records import Columns
from securetm.entropy import OperatingSystem
from securetm.errors import Mistake
from securetm.models.lda.lda import LDA
from securetm.testing.few_documents import InAnyOrder

COHORT = Cohort(b"", 0, ("party",))
MODEL = LDA(n_topics=3)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The same documents on disk and in memory, in the same blocks."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("corpus")
    names = [f"word{chr(97 + n)}" for n in range(20)]
    rows = [{"text": " ".join(rng.choice(names, rng.integers(1, 12))), "person": f"p{rng.integers(30)}"} for _ in range(120)]
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    CorpusBuild(str(folder / "documents.jsonl"), folder / "built", Columns(), block_documents=13).run()
    held = read_corpus(str(folder / "documents.jsonl")).replace(block_documents=13)
    return Corpus.load(folder / "built"), held.in_blocks()


class Trained:
    """A model that learns from these documents, and what the party remembers of them after each round."""

    def __init__(self, documents: Any, memory: Memory) -> None:
        self.documents, self.memory = documents.in_blocks(), memory
        self.state = MODEL.start(documents.vocabulary, np.random.default_rng(0))

    def round(self, number: int, keeping: Keeping, workers: int = 1) -> bytes:
        query = MODEL.query(self.state)
        route, context = Route.through(query.terms, (), COHORT), RoundContext(COHORT, OperatingSystem(), {})  # type: ignore[arg-type]
        rng, engine = np.random.default_rng(number), InAnyOrder(workers, number)
        answer = route.answer(query, self.documents, context, self.memory, rng, engine, keeping)
        self.state = MODEL.update(self.state, Answer(answer.vector))
        return answer.vector["counts"].tobytes()


def keeping(number: int, *memories: Memory) -> Keeping:
    return Keeping("run", f"{number:08d}", frozenset().union(*map(files_in, memories)))


def test_on_disk_as_in_memory_and_back(both: tuple[Any, Any]) -> None:
    stored, held = (Trained(documents, {}) for documents in both)
    assert len(stored.documents.blocks()) > 4
    answers, kept = [], dict[int, tuple[Memory, Any]]()
    for number in range(4):
        before = dict(stored.memory)
        answers.append(stored.round(number, keeping(number, before, *(memory for memory, _ in kept.values())), workers=2))
        assert answers[-1] == held.round(number, Keeping())
        if number == 1:
            kept[number] = dict(stored.memory), stored.state
    folder = stored.documents.folder / "memory" / "run"
    versions = {path.name.split("-")[1] for path in folder.iterdir()}
    assert versions == {"00000001.npz", "00000002.npz", "00000003.npz"}  # one to go back to, the one before, the last
    assert all(len(array) < 100 for array in stored.memory.values())
    stored.memory, stored.state = kept[1]
    again = [stored.round(number, keeping(number, kept[1][0]), workers=4) for number in (2, 3)]
    assert again == answers[2:]


def test_what_a_killed_worker_left_is_deleted_and_damage_is_named(both: tuple[Any, Any]) -> None:
    stored = Trained(both[0], {})
    folder = stored.documents.folder / "memory" / "other"
    stored.round(0, Keeping("other", "00000000"))
    left, later = folder / ".00000-00000000.npz.1.part", folder / "00000-00000009.npz"
    left.write_bytes(b"half")
    later.write_bytes(b"by a worker that was given up")
    stored.round(1, Keeping("other", "00000001", files_in(stored.memory)))
    assert not left.exists()
    assert later.exists()
    (folder / "00002-00000001.npz").write_bytes(b"damaged")
    before = {name: array.tobytes() for name, array in stored.memory.items()}
    with pytest.raises(Mistake, match="is damaged or was cut short"):
        stored.round(2, keeping(2, stored.memory))
    assert {name: array.tobytes() for name, array in stored.memory.items()} == before
