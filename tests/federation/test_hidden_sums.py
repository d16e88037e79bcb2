"""A federation whose sums are hidden learns what one with plain sums learns, to the error of the grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.folder import RunFolder, begin
from securetm.federation.refusal_errors import BelowMinimum
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import read_arrays
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import SHARED, SUBJECTS, small_plan

PROFILES = ["masked", "masked_strict", "bfv", "ckks"]
ROUNDS = 12


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A public vocabulary."""
    path = tmp_path_factory.mktemp("public") / "words.txt"
    path.write_text("\n".join(sorted({*SHARED, *(w for subject in SUBJECTS.values() for w in subject)})), "utf-8")
    return path


Ran = Callable[[str], tuple[dict[str, Any], RunFolder]]


@pytest.fixture(scope="module")
def ran(five: Mapping[str, Corpus], words: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A run under a profile, made when it is first asked for."""

    @cache
    def made(profile: str) -> tuple[dict[str, Any], RunFolder]:
        public = {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": str(words)}
        steps = {"model__batch": 40, "model__optimiser": "sgd", "model__learning_rate": 0.001}
        plan = small_plan(profile=profile, training__rounds=ROUNDS, **steps, **public)
        folder = begin(tmp_path_factory.mktemp(profile) / "run", plan, five)
        return execute(folder, Unwatched(), comparison=False), folder

    return made


def weights(folder: RunFolder) -> Array:
    return read_arrays(folder.model, bare=True)[0]["weights"]


@pytest.mark.parametrize("profile", quick(PROFILES, "bfv"))
def test_it_ends_where_plain_sums_end(profile: str, ran: Ran) -> None:
    (plain, open_folder), (hidden, folder) = ran("open"), ran(profile)
    # Plain gradient steps, so that an error of half a grid step stays one; float32 sums of some hundreds are as coarse.
    assert np.abs(weights(folder) - weights(open_folder)).max() < 1e-4
    assert hidden["topics"] == plain["topics"]
    assert hidden["quality"]["held_out"] == pytest.approx(plain["quality"]["held_out"], rel=0.01)


@pytest.mark.parametrize("profile", ["bfv", "ckks"])
def test_where_the_parties_open_the_coordinator_never_sees_the_model(profile: str, ran: Ran, words: Path) -> None:
    _, folder = ran(profile)
    learned = weights(folder)
    kept, _ = read_arrays(folder.coordinator / "checkpoint.safetensors")
    start = folder.agreement.model.start(
        tuple(words.read_text("utf-8").split()), np.random.default_rng(folder.agreement.plan.seed)
    )
    assert np.array_equal(kept["weights"], start["weights"])  # the public start, and nothing after it
    assert np.abs(learned - start["weights"]).max() > 1e-4
    assert not list(folder.coordinator.rglob("model.safetensors"))
    for content in (path.read_bytes() for path in folder.coordinator.iterdir()):
        assert learned[:64].tobytes() not in content


@pytest.mark.parametrize("profile", ["bfv", "ckks"])
def test_a_vocabulary_that_would_show_words_is_refused(profile: str) -> None:
    with pytest.raises(BadSetting, match="is not sound under profile"):
        small_plan(profile=profile, vocabulary__source="union")


@pytest.mark.parametrize(("profile", "batch"), [("bfv", 33), ("masked", 24), ("masked_strict", 24)])
def test_batches_that_are_too_small_where_parties_drop_out_are_refused(
    profile: str, batch: int, five: Mapping[str, Corpus], words: Path, tmp_path: Path
) -> None:
    """Of all five parties they would be enough; a sum may be opened over three or four of them."""
    plan = small_plan(
        profile=profile,
        model__batch=batch,
        vocabulary__source="file",
        origins__vocabulary="made up",
        vocabulary__file=str(words),
    )
    folder = begin(tmp_path / "run", plan, five)
    with pytest.raises(PartyRefused, match=BelowMinimum.__name__):
        execute(folder, Unwatched(), comparison=False)
