"""Count reconstruction on iftm's real messages: the shares give the counts up, and the noise is what hides the words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attack import GroundTruth, Proportion, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.count_reconstruction import BEHIND, NEAR, REAL, SHOWN
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.runs import Demonstrations
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import train
from securetm.plans.recommend import plan_from_tables
from securetm.stages import Unwatched

from .conftest import adversary

ATTACK = attack_called("count_reconstruction")


@pytest.fixture(scope="module")
def words_file(parties: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("words") / "words.txt"
    path.write_text("\n".join(Corpus.concat(list(parties.values())).vocabulary), "utf-8")
    return path


def _run(place: Path, parties: Mapping[str, Corpus], words: Path, profile: str) -> RunFolder:
    tables = {
        "profile": profile,
        "model": {"name": "lda-matched", "n_topics": 4, "sweeps": 3},
        "training": {"rounds": 2, "held_out": 0.1},
        "vocabulary": {"source": "file", "file": str(words)},
        "origins": {"vocabulary": "made up"},
    }
    folder = begin(place / profile, plan_from_tables(tables, "a test"), parties, with_content=True)
    train(folder, Unwatched())
    return folder


@pytest.fixture(scope="module", params=["open", "iftm"])
def folder(
    request: pytest.FixtureRequest, parties: Mapping[str, Corpus], words_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> RunFolder:
    return _run(tmp_path_factory.mktemp("counts"), parties, words_file, request.param)


def tried(folder: RunFolder, *, chance: bool = False) -> tuple[Score, GroundTruth]:
    view = view_of(folder, adversary(model="word_occurrences"), ATTACK, 2)
    truth = ground_truth_of(folder, questions_of(folder, ATTACK.questions, 2).values())
    told = ATTACK.attack(of_chance(view, 3) if chance else view, {"tables": 6})
    return ATTACK.judge(told, truth), truth


def share(judged: Score, measure: str) -> float:
    worth = judged.measures[measure]
    assert isinstance(worth, Proportion)
    return worth.hits / worth.of


def test_normalised_counts_are_given_up_exactly(folder: RunFolder) -> None:
    judged, _ = tried(folder)
    assert share(judged, BEHIND) == 1.0
    behind = judged.measures[BEHIND]
    assert isinstance(behind, Proportion)
    assert behind.of > 500


def test_only_noise_stands_between_the_counts_and_the_words(folder: RunFolder) -> None:
    judged, _ = tried(folder)
    if folder.agreement.plan.profile == "open":
        assert share(judged, REAL) == share(judged, SHOWN) == 1.0
    else:
        assert 0.5 < share(judged, REAL) < 1.0
        assert share(judged, NEAR) > 0.95


def test_the_judges_table_is_what_the_party_sent(folder: RunFolder) -> None:
    """Each topic's shares are those of the table that the judge makes once more, with the noise that the party kept."""
    view = view_of(folder, adversary(model="word_occurrences"), ATTACK, 2)
    _, truth = tried(folder)
    assert truth.tables is not None
    for table in ATTACK.attack(view, {"tables": 6}):
        held = truth.tables(table.serial, table.party)
        assert (table.counted == held.counted).all()
        assert held.real.sum() == truth.held[table.party].sum()
        if folder.agreement.plan.profile == "open":
            assert (held.real == held.counted).all()
        else:
            assert held.counted.sum() > held.real.sum()
            assert np.corrcoef(held.counted.ravel(), held.real.ravel())[0, 1] > 0.95


def test_a_demonstration_writes_the_public_list_that_a_plan_asks_for(tmp_path: Path, documents_file: Path) -> None:
    runs = Demonstrations(tmp_path, Unwatched())
    source = {"corpus.source": str(documents_file), "corpus.party": "party", "corpus.partition": "column"}
    settings = {**source, "vocabulary.source": "file", "vocabulary.max_words": 50, "training.rounds": 1, "model.sweeps": 1}
    folder = runs.run("open", settings)
    words = Path(folder.agreement.plan.vocabulary.file).read_text("utf-8").split("\n")
    assert len(words) == 50
    assert runs.run("open", settings) is folder
