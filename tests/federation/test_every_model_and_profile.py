"""Which model runs under which profile: decided before a document is read, and the same for every model of the house."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.federation.soundness import check
from securetm.models import MODELS
from securetm.plans.checks import EmbeddingsWithoutNoise
from securetm.plans.recommend import plan_from_tables
from securetm.registries import OURS
from securetm.resources import toml_names

PARTY_ROWS = {"fednmf"}  # a row is a party's whole training: no budget of documents bounds it
EACH = {"lda-matched", "sentence-lda-matched"}  # need every party's own answer
READ_EMBEDDINGS = {"combined-tm", "semantic", "zeroshot-tm"}
NAMED_IN_THE_PLAN = {"torch-module"}  # a stranger's module: the plan names it
MODELS_OF_OURS = sorted({one.name for one in MODELS.listed() if one.package == OURS} - NAMED_IN_THE_PLAN)
BUDGETED = {"dp-central", "dp-distributed", "dp-local", "fortress"}


def refused(model: str, profile: str) -> bool:
    if model in EACH:
        return profile not in ("open", "iftm")
    return (model in PARTY_ROWS and profile in BUDGETED) or (model in READ_EMBEDDINGS and profile == "iftm")


@pytest.mark.parametrize("model", MODELS_OF_OURS)
def test_a_model_is_sound_under_a_profile_or_refused_with_a_reason(model: str) -> None:
    for profile in toml_names("protocols", "profiles"):
        gaps = check(profile, model, None, 5)
        assert bool(gaps) == refused(model, profile), (profile, gaps)
        assert all(gap["reason"] and gap["hint"] for gap in gaps)


def test_embeddings_are_refused_where_noise_is_in_words(tmp_path: Path) -> None:
    """Noised documents have no embedding, and one that was made of the words would tell them."""
    words = tmp_path / "words.txt"
    words.write_text("one\ntwo\nthree")
    tables = {
        "profile": "iftm",
        "model": {"name": "zeroshot-tm"},
        "vocabulary": {"source": "file", "file": str(words)},
        "origins": {"vocabulary": "made up"},
    }
    with pytest.raises(EmbeddingsWithoutNoise, match="zeroshot-tm reads embeddings") as refusal:
        plan_from_tables(tables, "a test")
    assert "reads words alone" in refusal.value.advice()
