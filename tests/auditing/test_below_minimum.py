"""Runs below a profile's least number of documents are really begun, and refused by the parties with a named reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from securetm.auditing.refusals import tried_below_minimum
from securetm.federation.party import state as party_state
from securetm.stages import Unwatched

from .conftest import PARTIES


@pytest.fixture
def settings(documents_file: Path) -> dict[str, Any]:
    return {
        "corpus.source": str(documents_file),
        "corpus.party": "party",
        "corpus.partition": "column",
        "model.n_topics": 5,
        "model.hidden": 16,
        "vocabulary.min_documents": 1,
        "vocabulary.max_share": 1.0,
        "vocabulary.most_candidates": 1000,
    }


def test_both_runs_are_refused_by_name(settings: dict[str, Any], tmp_path: Path) -> None:
    batches, documents = tried_below_minimum("masked", settings, tmp_path, Unwatched())
    assert (batches.refused, batches.reason) == (True, "BelowMinimum")
    assert (documents.refused, documents.reason) == (True, "TooFewToTakePart")
    for refusal in (batches, documents):
        assert refusal.by in PARTIES
        assert (refusal.documents, refusal.minimum) == (96, 100)  # of all five it would be 120
        assert refusal.attempt.startswith("24 documents of each of 5 parties")
        assert refusal.attempt.endswith("96 in a sum over 4 of them")


def test_a_run_that_goes_on_is_said_to_go_on(settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With parties that do not look how many documents they have."""
    monkeypatch.setattr(party_state, "check_share", lambda *_: None)
    batches, documents = tried_below_minimum("masked", settings, tmp_path, Unwatched())
    assert batches.refused
    assert (documents.refused, documents.by, documents.reason) == (False, "", "")


def test_where_any_sum_is_large_enough_nothing_is_begun(settings: dict[str, Any], tmp_path: Path) -> None:
    assert tried_below_minimum("open", settings, tmp_path / "none", Unwatched()) == ()
    assert not (tmp_path / "none").exists()


def test_a_profile_that_admits_only_a_public_list_gets_one(settings: dict[str, Any], tmp_path: Path) -> None:
    found = tried_below_minimum("ckks", settings, tmp_path, Unwatched())
    assert [one.reason for one in found] == ["BelowMinimum", "TooFewToTakePart"]
    assert all(one.refused for one in found)
