"""What the judge knows of a party's answer where noise stands in the place of words: the words that really stood there."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.recorded import questions_of
from securetm.auditing.runs import Demonstrations
from securetm.stages import Unwatched


@pytest.mark.parametrize("model", ["lda-matched", "sentence-lda-matched"])
def test_real_words_are_counted_once_each_by_the_topics_that_were_drawn(
    model: str, documents_file: Path, tmp_path: Path
) -> None:
    """Also where a whole sentence is one draw."""
    settings = {
        "corpus.source": str(documents_file),
        "corpus.party": "party",
        "corpus.partition": "column",
        "model.name": model,
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
