"""Counts behind shares on real messages: the tables by which they are judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attacks import attack_called
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.runs import Demonstrations
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder
from securetm.stages import Unwatched

from .conftest import adversary, made_run, plan_tables, public_list
from .tried import source

ATTACK = attack_called("count_reconstruction")


@pytest.fixture(scope="module")
def words_file(parties: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return public_list(parties, tmp_path_factory.mktemp("words"))


MATCHED = {"name": "lda-matched", "n_topics": 4, "sweeps": 3}


@pytest.fixture(scope="module", params=["open", "iftm"])
def folder(
    request: pytest.FixtureRequest, parties: Mapping[str, Corpus], words_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> RunFolder:
    return made_run(tmp_path_factory.mktemp("counts") / "run", parties, plan_tables(request.param, MATCHED, 2, words_file))


def test_the_judges_table_is_what_the_party_sent(folder: RunFolder) -> None:
    """Each topic's shares are those of the table that the judge makes once more, with the noise that the party kept."""
    view = view_of(folder, adversary(model="word_occurrences"), ATTACK, 2)
    truth = ground_truth_of(folder, questions_of(folder, ATTACK.questions, 2).values())
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


# ---- the tables of the judge -----------------------------------------------------------------------------------------


def test_real_words_are_counted_once_each_where_a_whole_sentence_is_one_draw(documents_file: Path, tmp_path: Path) -> None:
    settings = {
        **source(documents_file),
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
