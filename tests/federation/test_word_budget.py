"""A budget of single words: whom it protects, that it is charged once, and that nothing passes beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm import profiles
from securetm.accounting.ledger import Ledger
from securetm.contracts import Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import DeltaTooLarge, DrawnUnpaid, LedgerRolledBack, NotNoisedByWord, WordNoiseOnly
from securetm.federation.drawn import DrawnOnce
from securetm.federation.folder import RunFolder, Unwatched, begin, reopen
from securetm.federation.simulation import execute
from securetm.federation.store import COMMON, Drawer

from .conftest import SHARED, small_plan
from .private import PUBLIC, public_words
from .toy_words import ToyWordNoise

TOY = """\
name = "iftm"
title = "A toy"
threat_model = "word_occurrences"
aggregation = "plain"
vocabularies = ["file"]

[budget]
unit = "word"
epsilon = 8.0
delta = 1e-9

[[mechanism]]
kind = "laplace_counts"
epsilon = 8.0
"""


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Noise of the tests' own, under the name of the real one."""
    monkeypatch.setitem(profiles.MECHANISMS, "laplace_counts", ToyWordNoise)  # type: ignore[arg-type]
    path = tmp_path / "iftm.toml"
    path.write_text(TOY, "utf-8")
    return str(path)


def plan_of(profile: str, folder: Path, **more: Any) -> Any:
    words = {"vocabulary__source": "file", "vocabulary__file": public_words(folder)}
    return small_plan(profile=profile, **{**words, "training__rounds": 3, **more})


def ran(folder: Path, name: str, plan: Any, corpora: Mapping[str, Corpus]) -> tuple[RunFolder, dict[str, Any]]:
    made = begin(folder / name, plan, corpora)
    return made, execute(made, Unwatched())


def entries(folder: RunFolder, name: str = "north") -> list[Any]:
    with Ledger.read(folder.ledger(name)) as ledger:
        return [entry.content for entry in ledger.entries() if entry.content["kind"] == "spent"]


def test_three_rounds_are_charged_once_and_say_so(profile: str, corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    folder, result = ran(tmp_path, "run", plan_of(profile, tmp_path), corpora)
    assert (result["rounds"], result["stopped"]) == (3, "rounds")
    for spent in result["spent"]:
        assert (spent["unit"], spent["delta"]) == ("word", 1e-9)
        assert spent["epsilon"] == pytest.approx(8.0)
        assert spent["epsilon"] <= 8.0
        assert len(entries(folder, spent["party"])) == 1
    (entry,) = entries(folder)
    assert entry["unit"] == entry["about"]["unit"] == "word"


def test_what_it_means_for_a_whole_document_is_said_by_the_party(
    profile: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    _, result = ran(tmp_path, "run", plan_of(profile, tmp_path), corpora)
    for spent in result["spent"]:
        per = spent["per_document"]
        assert 12 <= per["median_words"] <= per["p95_words"] < 30
        assert per["median_epsilon"] == pytest.approx(8.0 * per["median_words"])
        assert per["p95_epsilon"] == pytest.approx(8.0 * per["p95_words"])


def test_another_run_over_the_same_documents_and_words_costs_nothing(
    profile: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    first, _ = ran(tmp_path, "first", plan_of(profile, tmp_path), corpora)
    folder, result = ran(tmp_path, "second", plan_of(profile, tmp_path, model__n_topics=4), corpora)
    assert folder.ledger("north") == first.ledger("north")
    assert result["rounds"] == 3
    assert len(entries(folder)) == 1
    assert all(spent["epsilon"] == 0 and spent["all_runs"] == pytest.approx(8.0) for spent in result["spent"])


@pytest.mark.parametrize("changed", ["words", "documents", "epsilon"])
def test_other_words_or_documents_are_other_noise_that_is_not_afforded(
    changed: str, profile: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    ran(tmp_path, "first", plan_of(profile, tmp_path), corpora)
    more: dict[str, Any] = {}
    if changed == "words":
        (tmp_path / "fewer.txt").write_text("\n".join(PUBLIC[:-1]), "utf-8")
        more = {"vocabulary__file": str(tmp_path / "fewer.txt")}
    elif changed == "epsilon":
        more = {"privacy__epsilon": 4.0}
    others = {name: corpus.select(np.arange(len(corpus) - 9)) for name, corpus in corpora.items()}
    folder, result = ran(tmp_path, "second", plan_of(profile, tmp_path, **more), others if changed == "documents" else corpora)
    assert (result["rounds"], result["stopped"]) == (0, "budget")
    assert len(entries(folder)) == 1


def test_a_larger_budget_affords_a_second_list_of_words(profile: str, corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    Path(profile).write_text(TOY.replace("epsilon = 8.0\ndelta", "epsilon = 16.0\ndelta"), "utf-8")
    ran(tmp_path, "first", plan_of(profile, tmp_path), corpora)
    (tmp_path / "fewer.txt").write_text("\n".join(PUBLIC[:-1]), "utf-8")
    fewer = plan_of(profile, tmp_path, vocabulary__file=str(tmp_path / "fewer.txt"))
    folder, result = ran(tmp_path, "second", fewer, corpora)
    assert result["rounds"] == 3
    assert len(entries(folder)) == 2
    assert result["spent"][0]["all_runs"] == pytest.approx(16.0)
    assert result["spent"][0]["per_document"]["median_epsilon"] == pytest.approx(
        16.0 * result["spent"][0]["per_document"]["median_words"]
    )
