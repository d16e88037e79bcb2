"""Corpora that hardly are any: a run over them ends in topics that are finite, or in an error that has a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm import federate
from securetm.corpus.corpus import Corpus
from securetm.federation.document_minimum import TooFewToTakePart
from securetm.runs.finished import FinishedRun

from ..models.small_models import EMBEDDED, OURS, small_settings

FORMS: Mapping[str, Mapping[str, Any]] = {
    "lda": {"model.name": "lda"},
    "lda by mh": {"model.name": "lda", "model.sampler": "mh"},
    "sentence-lda": {"model.name": "sentence-lda"},
    "sentence-lda by mh": {"model.name": "sentence-lda", "model.sampler": "mh"},
    "lda-vi": {"model.name": "lda-vi"},
    "nmf": {"model.name": "nmf"},
    "fednmf": {"model.name": "fednmf"},
    "matched lda": {"model.name": "lda", "model.form": "matched"},
    "matched sentence-lda": {"model.name": "sentence-lda", "model.form": "matched"},
}
ENOUGH = ["the river and the lake. a boat on the lake.", "a storm. the judge saw the storm"] * 60
PARTIES: Mapping[str, Mapping[str, list[str]]] = {
    "an empty party": {"a": ENOUGH, "b": ENOUGH, "c": []},
    "one document each": {"a": ENOUGH[:1], "b": ENOUGH[1:2], "c": ENOUGH[:1]},
    "one word": {"a": ["lake"] * 60, "b": ["lake"] * 60, "c": ["lake lake"] * 60},
    "disjoint words": {"a": ["river lake boat"] * 60, "b": ["judge court law"] * 60, "c": ["cell nerve blood"] * 60},
    "no word of the list": {"a": ENOUGH, "b": ENOUGH, "c": ["zebra giraffe"] * 60},
}
WORDS = ("boat", "judge", "lake", "river", "storm", "court", "law", "cell", "nerve", "blood")


def corpora(texts: Mapping[str, list[str]]) -> dict[str, Corpus]:
    """Readers refuse a source without a document, so an empty party is one whose documents are all left out."""
    made = {name: Corpus.from_strings(each or ENOUGH, name=name) for name, each in texts.items()}
    return {name: corpus.select(np.arange(len(texts[name]))) for name, corpus in made.items()}


OTHERS = tuple(name for name in OURS if name not in {*FORMS, "lda-matched", "sentence-lda-matched"})
TURNS = [*product(FORMS, PARTIES)]
ALONE = ("one document each", "no word of the list")  # where a party has next to nothing to train with alone


def embedded(corpora: Mapping[str, Corpus]) -> dict[str, Corpus]:
    """The same documents with embeddings, which some models read."""
    draw = np.random.default_rng(0)
    return {
        name: corpus.replace(embeddings=draw.normal(size=(len(corpus), EMBEDDED)).astype(np.float32))
        for name, corpus in corpora.items()
    }


def tried() -> Iterator[Any]:
    """Every model and every kind of parties at least once; the slow suite has every pair, and each form under two profiles."""
    for first in range(2):
        for turn, (form, parties) in enumerate(TURNS):
            marks = () if first == 0 and turn % 22 == 0 else pytest.mark.slow
            yield pytest.param(form, parties, ("open", "iftm")[(first + turn) % 2], marks=marks)
    for (row, model), (column, parties) in product(enumerate(OTHERS), enumerate(PARTIES)):
        yield pytest.param(model, parties, "open", marks=() if row == column else pytest.mark.slow)


@pytest.mark.parametrize(("form", "parties", "profile"), tried())
def test_a_run_ends_in_topics_or_in_a_named_error(form: str, parties: str, profile: str, tmp_path: Path) -> None:
    listed = tmp_path / "words.txt"
    listed.write_text("\n".join(WORDS), "utf-8")
    chosen = FORMS.get(form, {"model.name": form})
    settings = {f"model.{name}": value for name, value in small_settings(chosen["model.name"], 7).items()}
    settings |= {"profile": profile, "training.rounds": 3, "embeddings.model": "", **chosen}
    settings |= {"vocabulary.source": "file", "origins.vocabulary": "made up", "vocabulary.file": str(listed)}
    made = embedded(corpora(PARTIES[parties]))
    if parties == "an empty party":  # said to its own user
        with pytest.raises(TooFewToTakePart, match="c has too few documents"):
            federate(made, tmp_path / "run", settings, comparison=False)
        return
    compared = form in OTHERS and parties in ALONE and form != "torch-module"
    result = federate(made, tmp_path / "run", settings, comparison=compared)
    run = FinishedRun.open(tmp_path / "run")
    assert np.isfinite(run.components_).all()
    np.testing.assert_allclose(run.components_.sum(axis=1), 1.0, rtol=1e-5)
    assert all(np.isfinite(array).all() for array in run.state.values())
    assert all(len(topic) for topic in result["topics"])
