"""Topics from embeddings, ours and of packages: each figure says what its name says, and a fit is not made twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lab.bench.semantic import OURS, SEEDS, cases, goals
from lab.bench.semantic_judged import Topics, judged, packed, summary, unpacked
from lab.keeping import fits
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting

SUBJECTS = ("river water lake boat fish swim rain wave sail coast", "court judge trial law jury crime guilt bail plea oath")


def figures(hard: Any, words: Any = SUBJECTS) -> Any:
    """Of 200 documents of two subjects, which such topics were found in."""
    texts = [" ".join(np.random.default_rng(n).permutation(SUBJECTS[n % 2].split())[:6]) for n in range(200)]
    corpus = Corpus.from_strings(texts, labels=[str(n % 2) for n in range(200)])
    shares = np.eye(2)[np.maximum(hard, 0)] * (hard >= 0)[:, None]
    return judged(corpus, Topics(shares, hard, [row.split() for row in words]))


def test_topics_that_are_the_labels_are_the_best() -> None:
    found = figures(np.arange(200) % 2)
    assert found["f1"] == found["f1_plain"] == found["nmi"] == found["diversity"] == 1
    assert found["outliers"] == 0
    assert found["topics"] == 2
    mixed = figures(np.arange(200) // 100, [" ".join(a + " " + b for a, b in zip(*map(str.split, SUBJECTS)))] * 2)  # noqa: B905
    assert max(mixed["f1"], mixed["f1_plain"]) < 0.7
    assert mixed["nmi"] < 0.1
    assert mixed["diversity"] == 0.5
    assert mixed["npmi"] < found["npmi"]
    assert mixed["embedding_coherence"] < found["embedding_coherence"]


def test_documents_without_a_topic_are_counted() -> None:
    found = figures(np.where(np.arange(200) < 50, -1, np.arange(200) % 2))
    assert found["outliers"] == 0.25
    assert found["nmi"] < 1
    assert found["topics"] == 2


def test_seeds_are_compared_with_each_other() -> None:
    one, other = np.arange(60) % 3, np.random.default_rng(0).integers(3, size=60)
    assert np.array_equal(unpacked(packed(one)), one)
    fit = {"corpus": "c", "system": "s", **dict.fromkeys(("f1", "f1_plain", "npmi", "embedding_coherence", "diversity"), 0.5)}
    fit |= dict.fromkeys(("outliers", "topics", "seconds", "processor"), 1)
    same, apart = (
        [{**fit, "nmi": nmi, "hard": packed(hard)} for nmi, hard in zip((0.4, 0.6), pair, strict=True)]
        for pair in ((one, 2 - one), (one, other))
    )
    (row,) = summary(same)
    assert (row["seeds"], row["nmi"], row["rand"]) == (2, 0.5, 1)
    assert row["nmi_away"] == pytest.approx(12.706 * 0.1, rel=0.01)
    assert summary(apart)[0]["rand"] < 0.2
    assert goals(summary(same)) == []  # of no system and corpus that is judged


def test_a_fit_of_ours_is_of_this_source_and_one_of_a_package_is_not() -> None:
    keys = list(cases(None))
    assert len(keys) == 3 * sum(SEEDS.values())
    assert all(("source" in key) == (key["system"] in OURS) for key in keys)
    chosen = [key for key in keys if fits(key, ["system=s3", "seed=0"], "bench")]
    assert {key["corpus"] for key in chosen} == {"StackOverflow", "TagMyNews", "20 Newsgroups"}
    with pytest.raises(BadSetting):
        fits(keys[0], ["colour=red"], "bench")
