"""Documents of a pool are named by embeddings in gradients, of one party and of sums of few documents, and not behind noise."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from securetm.auditing.attacks.embedding_inversion import NAMED, RIGHT
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import train
from securetm.federation.sources import corpora_of
from securetm.plans.recommend import read_plan
from securetm.stages import Unwatched

from .conftest import EMBEDDED
from .tried import settings, tried

EFFORT = {"rounds": 2, "documents": 100_000}


@pytest.fixture(scope="module")
def made(embedded_documents: Path, tmp_path_factory: pytest.TempPathFactory):
    @cache
    def run(profile: str, model: str, batch: int) -> RunFolder:
        chosen = {
            "model.name": model, "model.batch": batch, "model.embedding_size": EMBEDDED, "corpus.embedding": "embedding",
            "vocabulary.file": str(embedded_documents.parent / "words.txt"), "tokeniser.numbers": True, "training.rounds": 2,
            "origins.vocabulary": "made up", "origins.embeddings": "made up",
        }  # fmt: skip
        plan = read_plan(None, {**settings(embedded_documents), **chosen, "profile": profile})
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
