"""Counts behind shares on real messages: exact without noise, told behind it, and the tables by which they are judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attack import GroundTruth, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.count_reconstruction import BEHIND, NEAR, PLACED, PLACED_AT_ALL, REAL, SHOWN
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.runs import Demonstrations
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder
from securetm.resources import data_folder
from securetm.stages import Unwatched

from .conftest import adversary, made_run
from .tried import counted, share

ATTACK = attack_called("count_reconstruction")


@pytest.fixture(scope="module")
def words_file(parties: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("words") / "words.txt"
    path.write_text("\n".join(Corpus.concat(list(parties.values())).vocabulary), "utf-8")
    return path


def _counted_run(place: Path, parties: Mapping[str, Corpus], words: Path, profile: str) -> RunFolder:
    tables = {
        "profile": profile,
        "model": {"name": "lda-matched", "n_topics": 4, "sweeps": 3},
        "training": {"rounds": 2, "held_out": 0.1},
        "vocabulary": {"source": "file", "file": str(words)},
        "origins": {"vocabulary": "made up"},
    }
    return made_run(place / profile, parties, tables)


@pytest.fixture(scope="module", params=["open", "iftm"])
def folder(
    request: pytest.FixtureRequest, parties: Mapping[str, Corpus], words_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> RunFolder:
    return _counted_run(tmp_path_factory.mktemp("counts"), parties, words_file, request.param)


def tried(folder: RunFolder, *, chance: bool = False) -> tuple[Score, GroundTruth]:
    view = view_of(folder, adversary(model="word_occurrences"), ATTACK, 2)
    truth = ground_truth_of(folder, questions_of(folder, ATTACK.questions, 2).values())
    told = ATTACK.attack(of_chance(view, 3) if chance else view, {"tables": 6})
    return ATTACK.judge(told, truth), truth


def test_normalised_counts_are_given_up_exactly(folder: RunFolder) -> None:
    judged, _ = tried(folder)
    assert share(judged, BEHIND) == 1.0
    assert counted(judged, BEHIND).of > 500


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


# ---- behind noise ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def continuous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profile iftm with the paper's own noise."""
    text = (data_folder("protocols") / "profiles" / "iftm.toml").read_text("utf-8")
    assert 'distribution = "discrete"' in text
    path = tmp_path_factory.mktemp("profile") / "iftm.toml"
    path.write_text(text.replace('distribution = "discrete"', 'distribution = "continuous"'), "utf-8")
    return path


def _short_run(place: Path, parties: Mapping[str, Corpus], profile: str) -> RunFolder:
    words = place / "words.txt"
    words.write_text("\n".join(Corpus.concat(list(parties.values())).vocabulary[:250]), "utf-8")
    tables = {
        "profile": profile,
        "model": {"name": "lda-matched", "n_topics": 4, "sweeps": 3},
        "training": {"rounds": 1, "held_out": 0.1},
        "vocabulary": {"source": "file", "file": str(words)},
        "origins": {"vocabulary": "made up"},
    }
    return made_run(place / "run", parties, tables)


def told_at(folder: RunFolder, *, chance: bool = False, tables: int = 1) -> Score:
    view = view_of(folder, adversary(model="word_occurrences"), ATTACK, 1)
    told = ATTACK.attack(of_chance(view, 3) if chance else view, {"tables": tables})
    return ATTACK.judge(told, ground_truth_of(folder, questions_of(folder, ATTACK.questions, 1).values()))


def test_at_epsilon_8_occurrences_are_told_where_counts_are_not(parties: Mapping[str, Corpus], tmp_path: Path) -> None:
    found = told_at(_short_run(tmp_path, parties, "iftm"), tables=5)
    assert share(found, BEHIND) == 1.0
    assert share(found, REAL) < 0.95
    assert share(found, PLACED) > 0.9
    assert share(found, PLACED_AT_ALL) > 0.95


@pytest.mark.slow  # some seconds a topic
def test_the_grid_of_continuous_noise_gives_sums_away(parties: Mapping[str, Corpus], tmp_path: Path, continuous: Path) -> None:
    folder = _short_run(tmp_path, parties, str(continuous))
    found, by_chance = told_at(folder), told_at(folder, chance=True)
    assert share(found, BEHIND) > 0.5  # a topic whose line is too faint stays closed, and which one is depends on the noise
    assert share(found, PLACED_AT_ALL) > 0.5
    assert share(by_chance, BEHIND) == share(by_chance, PLACED) == 0.0


# ---- the arithmetic ------------------------------------------------------------------------------------------------


# ---- the tables of the judge -----------------------------------------------------------------------------------------


def test_real_words_are_counted_once_each_where_a_whole_sentence_is_one_draw(documents_file: Path, tmp_path: Path) -> None:
    settings = {
        "corpus.source": str(documents_file),
        "corpus.party": "party",
        "corpus.partition": "column",
        "model.name": "sentence-lda-matched",
        "model.n_topics": 3,
        "model.sweeps": 2,
        "training.rounds": 1,
        "vocabulary.source": "file",
        "vocabulary.max_words": 100,
        "vocabulary.max_share": 1.0,
    }
    folder = Demonstrations(tmp_path, Unwatched()).run("iftm", settings)
    rounds = questions_of(folder, ["train"], 1)
    truth = ground_truth_of(folder, rounds.values())
    assert truth.tables is not None
    for name in folder.members[:2]:
        tables = truth.tables(next(iter(rounds)), name)
        assert tables.real.sum() == truth.held[name].sum()
        assert (tables.real.sum(axis=0) == truth.held[name].sum(axis=0)).all()
        assert (tables.real > 0).sum() < (tables.counted > 0).sum()  # noise puts words where none were
