"""Topics beside n-grams: the experiment on a few made-up documents, and what its committed result shows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lab
from lab.federations import FederationForm
from lab.reproduce.adapted_ngrams import FORMS, PerplexityStudy, compared
from lab.research_corpora import SUBJECTS
from securetm.corpus.corpus import Corpus

COMMITTED = Path(lab.__file__).parent / "results" / "reproduce-adapted-ngrams.json"
WORDS = (
    "river water lake boat fish",
    "court judge trial law jury",
    "tensor matrix vector loss epoch",
    "goal match team cup win",
)


@pytest.fixture
def little() -> PerplexityStudy:
    """Five parties: the first four speak of one subject each, the last of all."""
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for n in range(400):
        party, subject = n % 5, n % 5 if n % 5 < 4 else int(rng.integers(4))
        texts.append(" ".join(["a", *rng.choice(WORDS[subject].split() * 3 + ["the", "of"], 40)]))
        labels.append((*SUBJECTS, "misc")[party] + ".x")
    bench = PerplexityStudy(documents=400, most_words=100, topics=4)
    bench.__dict__["raw"] = Corpus.from_strings(texts, labels=labels, name="little")
    return bench


def test_shared_topics_help_to_predict_what_a_party_never_met(little: PerplexityStudy) -> None:
    forms = (
        FederationForm("aligned", "open", {"sweeps": 5}, 6),
        FederationForm("matched", "open", {"form": "matched", "sweeps": 8}, 2),
    )
    done: list[tuple[int, int]] = []
    result = compared(little, {"lda": forms}, lambda now, of: done.append((now, of)))
    assert done == [(n, 7) for n in range(1, 8)]
    found = {(row["ngrams_of"], row["topics"]): row for row in result["rows"]}
    assert len(found) == 8 + 4
    own = found["its own text", "its own lda"]
    for form in ("aligned", "matched"):
        shared = found["its own text", f"lda, {form}"]
        assert shared["everybody"] < min(own["everybody"], found["its own text", "none"]["everybody"])
        assert shared["percent_lower"] > max(own["percent_lower"], 0)
        best = min(row["everybody"] for (text, title), row in found.items() if text == "all text" and " of " in title)
        assert found["all text", f"lda, {form}"]["everybody"] <= best


def test_the_committed_result_shows_what_federating_is_worth() -> None:
    result = json.loads(COMMITTED.read_text("utf-8"))
    assert result["out_of_scope"] == "word error rate"
    found = {(row["ngrams_of"], row["topics"]): row["everybody"] for row in result["rows"]}
    for model in FORMS:
        shared = [value for (text, title), value in found.items() if text == "all text" and title.startswith(f"{model},")]
        alone = [value for (text, title), value in found.items() if text == "all text" and title.startswith(f"{model} of")]
        assert len(shared) >= 2
        assert len(alone) == 5
        assert min(shared) < min(alone)
        assert min(shared) < found["all text", "none"]
        assert found["its own text", f"{model}, aligned"] < found["its own text", f"its own {model}"]
