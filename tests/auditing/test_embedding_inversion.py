"""Documents of a pool are named by embeddings in gradients, of one party and of sums of few documents, and not behind noise."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attacks.embedding_inversion import NAMED, RIGHT
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import train
from securetm.federation.sources import corpora_of
from securetm.plans.recommend import read_plan
from securetm.stages import Unwatched

from .tried import settings, tried

SIZE, PARTIES, EACH = 24, 5, 60  # numbers of an embedding, parties, documents of each
EFFORT = {"rounds": 2, "documents": 100_000}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up documents of five parties, each with an embedding that is drawn at random."""
    rng, path = np.random.default_rng(4), tmp_path_factory.mktemp("documents") / "documents.jsonl"
    lines = []
    for number in range(PARTIES * EACH):
        words = rng.integers(0, 120, 12) + 20 * (number % PARTIES)
        row = {"text": " ".join(f"word{word:03d}x" for word in words), "party": f"party-{number % PARTIES}"}
        lines.append(json.dumps({**row, "embedding": rng.standard_normal(SIZE).round(4).tolist()}))
    path.write_text("\n".join(lines))
    (path.parent / "words.txt").write_text("\n".join(f"word{word:03d}x" for word in range(200)))
    return path


@pytest.fixture(scope="module")
def made(documents: Path, tmp_path_factory: pytest.TempPathFactory):
    @cache
    def run(profile: str, model: str, batch: int) -> RunFolder:
        chosen = {
            "model.name": model, "model.batch": batch, "model.embedding_size": SIZE, "corpus.embedding": "embedding",
            "vocabulary.file": str(documents.parent / "words.txt"), "tokeniser.numbers": True, "training.rounds": 2,
            "origins.vocabulary": "made up", "origins.embeddings": "made up",
        }  # fmt: skip
        plan = read_plan(None, {**settings(documents), **chosen, "profile": profile})
        place = tmp_path_factory.mktemp("runs") / f"{profile}-{model}-{batch}"
        folder = begin(place, plan, corpora_of(plan, Unwatched()), with_content=True)
        train(folder, Unwatched())
        return folder

    return run


def test_a_masked_vector_names_no_more_than_chance(made) -> None:
    found = tried(made("masked", "zeroshot-tm", 34), "embedding_inversion", {**EFFORT, "documents": 34})
    assert found.share(NAMED) < 0.3


def test_the_sum_of_few_documents_names_them_whosever_they_are(made) -> None:
    few = tried(made("open", "combined-tm", 2), "embedding_sum_inversion", EFFORT)
    assert few.share(RIGHT) == 1.0
    assert few.share(NAMED) > 0.8
    many = tried(made("masked", "combined-tm", 25), "embedding_sum_inversion", EFFORT)
    assert many.share(NAMED) < 0.8  # 125 documents of 300, in a space of 24 dimensions
