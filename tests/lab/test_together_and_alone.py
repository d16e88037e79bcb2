"""What training together is worth, by model: a small run has every figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lab
from lab.reproduce import together_and_alone
from lab.reproduce.together_and_alone import MODELS, reproduce
from securetm.corpus.corpus import Corpus

from ..federation.conftest import FIVE, texts

COMMITTED = Path(lab.__file__).parent / "results" / "reproduce-together-and-alone.json"


@pytest.mark.slow
def test_every_model_has_a_row_with_every_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    parties = {name: Corpus.from_strings(texts(FIVE[name], 60, n), name=name) for n, name in enumerate(FIVE)}
    monkeypatch.setattr(together_and_alone, "docstring_parties", lambda: parties)
    table = reproduce(models=("lda-vi",), documents=50, topics=2)
    (row,) = table["rows"]
    assert table["parties"] == dict.fromkeys(FIVE, 50)
    for figures in ("own_alone", "own_shared", "own_adapted", "own_alone_with_as_many_topics"):
        assert set(row[figures]) == set(FIVE)
    assert 0 <= row["adapted_better_at"] <= row["adapted_as_good_at"] <= 5


def test_together_beats_every_party_alone_on_everybodys_documents() -> None:
    rows = json.loads(COMMITTED.read_text("utf-8"))["rows"]
    assert [row["model"] for row in rows] == list(MODELS)
    assert all(row["everybody_shared"] < row["everybody_best_alone"] for row in rows)
