"""Small topics name the texts of a pool that stand in them, and changes of any topic those that moved; noise hides both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attacks.centre_inversion import ALONE, OF_FEW, OF_MOVED, RIGHT, presence
from securetm.auditing.parts.gradients import directions
from securetm.auditing.runs import Demonstrations
from securetm.auditing.verdicts import clopper_pearson
from securetm.contracts import Adversary
from securetm.stages import Unwatched

from .conftest import EMBEDDED, adversary
from .tried import EYES, Tried, counted, settings, tried

SURE = 1 - 1e-9
FEW, MANY = 40, 5  # topics
ROUNDS = {FEW: 2, MANY: 6}
ALL = 100_000
Attacked = Callable[..., Tried]


@pytest.fixture(scope="module")
def attacked(embedded_documents: Path, tmp_path_factory: pytest.TempPathFactory) -> Attacked:
    """The attack on a run with so many topics over 150 documents, half of which stand in the pool."""
    runs = Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())

    def one(name: str, profile: str, topics: int, eyes: Adversary = EYES, **effort: int) -> Tried:
        chosen = {
            "model.name": "semantic", "model.n_topics": topics, "model.embedding_size": EMBEDDED,
            "corpus.embedding": "embedding", "origins.embeddings": "made up", "origins.vocabulary": "made up",
            "vocabulary.file": str(embedded_documents.parent / "words.txt"), "tokeniser.numbers": True,
            "training.start": "plain", "training.rounds": ROUNDS[topics], "training.held_out": 0.5, "privacy.epsilon": 1.0,
        }  # fmt: skip
        return tried(runs.run(profile, settings(embedded_documents) | chosen), name, {"rounds": 6} | effort, eyes=eyes)

    return one


def test_the_pool_holds_half_of_the_documents_and_as_many_that_took_no_part(attacked: Attacked) -> None:
    found = attacked("centre_inversion", "open", FEW, documents=10)
    pool, places = found.view.question, np.concatenate(list(found.truth.answer.trained.values()))
    inside = np.unique(places[places >= 0])
    assert len(inside) == -(-len(places) // 2)
    assert len(pool) == 2 * len(inside)
    assert 0.3 < inside.mean() / len(pool) < 0.7  # the order does not tell which


@pytest.mark.parametrize("profile", ["open", "masked"])
def test_small_topics_name_their_documents(profile: str, attacked: Attacked) -> None:
    found = attacked("centre_inversion", profile, FEW, documents=3)
    assert found.share(RIGHT) > 0.8
    assert found.share(OF_FEW) > 0.4  # in 24 dimensions; nine of ten in those of a sentence model
    assert found.share(ALONE) == 1.0
    assert counted(found.chance, RIGHT).hits < 5  # random numbers hardly look like a number of documents


@pytest.mark.slow
def test_a_document_that_moved_is_named_though_no_topic_is_small(attacked: Attacked) -> None:
    assert not counted(attacked("centre_inversion", "masked", MANY, documents=3).told, OF_FEW).of
    found = attacked("centre_difference", "masked", MANY, differences=4)
    assert found.share(RIGHT) > 0.8
    assert found.share(OF_MOVED) > 0.5
    assert found.share(RIGHT, by_chance=True) < 0.65


def test_a_party_reads_them_out_of_the_centres(attacked: Attacked) -> None:
    party = adversary("party", "model_reader")
    found = attacked("centre_updates", "open", FEW, party, documents=10)
    assert set(found.view.seen) == {"request"}
    assert found.share(RIGHT) > 0.75
    check_chance(attacked("centre_updates", "dp-central", FEW, party, documents=ALL))


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["dp-distributed", pytest.param("dp-local", marks=pytest.mark.slow)])
def test_behind_noise_they_are_named_no_better_than_by_chance(profile: str, attacked: Attacked) -> None:
    check_chance(attacked("centre_inversion", profile, FEW, documents=ALL))
    check_chance(attacked("centre_difference", profile, MANY, differences=5))


def check_chance(found: Tried) -> None:
    """Half of the pool took part."""
    low, high = clopper_pearson(found.hits(RIGHT), counted(found.told, RIGHT).of, SURE)
    assert found.hits(RIGHT) > 20
    assert low < 0.5 < high
    assert not counted(found.told, ALONE).of


def test_texts_of_strangers_are_hardly_named() -> None:
    """Sixty documents in twenty topics, none of which is in the pool."""
    rng = np.random.default_rng(1)
    documents, pool = (directions(rng.standard_normal((many, 384))) for many in (60, 200))
    sums, places = np.zeros((20, 384)), rng.integers(0, 20, 200)
    np.add.at(sums, rng.integers(0, 20, 60), documents)
    assert (presence(pool, np.eye(20)[places], sums, 100) > 0.5).mean() < 0.02
