"""Parties that help the coordinator: what is left of a total without theirs, what their keys open, how much noise remains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attacks.collusion import DEVIATION, MISSING, OpenedAnswer, opened_answers
from securetm.auditing.parts.gradients import GRADIENT, without
from securetm.auditing.parts.reconstruction_scores import EXACT
from securetm.auditing.runs import Demonstrations
from securetm.auditing.views import AdversaryView, totals
from securetm.federation.folder import RunFolder
from securetm.plans.profiles import claims_of, cohort_of, read_profile
from securetm.stages import Unwatched
from securetm.threats import read_threat_model

from ..quick_part import quick
from .conftest import PARTIES, Recorded
from .tried import settings, tried

BATCH = 25
SURE = 1 - 1e-9  # intervals so wide that honest noise is outside once in 10^9 draws


@pytest.fixture(scope="module")
def masked(recorded: Recorded) -> RunFolder:
    """Two rounds of 125 documents, 25 of each party."""
    return recorded("masked", BATCH, 2, hidden=80)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    """Runs with other settings than the fixtures of all tests here have."""
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


@pytest.fixture(scope="module")
def noised(runs: Demonstrations, documents_file: Path) -> RunFolder:
    """Each party adds a share of the noise; some words only one party has."""
    return runs.run("dp-distributed", settings(documents_file, model__hidden=16, training__rounds=2))


# ---- masked sums ---------------------------------------------------------------------------------------------------


def _told(folder: RunFolder, helpers: int) -> tuple[AdversaryView, list[OpenedAnswer]]:
    view = tried(folder, "collusion", {"rounds": 1}, helpers=helpers).view
    return view, list(opened_answers(view))


def test_what_the_keys_leave_of_two_messages_is_what_subtracting_leaves_of_the_total(masked: RunFolder) -> None:
    """So keys open no more than the parties' own answers do: the mask between the two who are left stays on each of them."""
    view, told = _told(masked, 3)
    (total,) = totals(view)
    left = without(total, [one.vector for one in told if one.in_clear])
    honest = [one.vector for one in told if not one.in_clear]
    assert [one.party for one in honest] == list(PARTIES[:2])
    grid = total.round.terms.grid
    both = np.sum([np.rint(one.blocks[GRADIENT] / grid).astype(np.int64) for one in honest], axis=0)
    assert np.array_equal(both.astype(np.int32), np.rint(left.blocks[GRADIENT] / grid))  # in the ring of 32 bits
    for one in honest:  # as wide as the ring, and flat: numbers under a mask
        ring = np.rint(one.blocks[GRADIENT] / grid) / 2.0**32
        assert abs(ring.std() - 1 / np.sqrt(12)) < 0.01


# ---- noise ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("helpers", "shares"), quick([(0, 5), (2, 3), (3, 2), (4, 1)], (2, 3)))
def test_as_much_noise_remains_as_parties_that_do_not_help_added(noised: RunFolder, helpers: int, shares: int) -> None:
    """The accountant counts on three shares: all five parties are in the sum, two may help, and surplus noise was taken off."""
    found = tried(noised, "collusion", {"rounds": 2}, helpers=helpers, confidence=SURE)
    deviation = found.bounded(DEVIATION)
    assert deviation.low <= np.sqrt(shares / 3) <= deviation.high
    assert found.hits(EXACT) == 0


def test_as_many_helpers_as_the_profile_reckons_with_leave_all_the_noise_that_it_promised(noised: RunFolder) -> None:
    missing = tried(noised, "collusion", {"rounds": 2}, helpers=2, confidence=SURE).bounded(MISSING)
    assert missing.low == 0.0
    assert missing.high < 0.3


# ---- one key for all -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ckks", "bfv"])
def test_no_claim_is_made_with_a_helper_where_one_key_serves_all(name: str) -> None:
    profile = read_profile(name)
    made = [claim.colluding for claim in claims_of(profile, cohort_of(profile, PARTIES)) if claim.against == "coordinator"]
    assert made == [0]
    said = " ".join(read_threat_model("lone_coordinator").out_of_scope)
    assert "a single party that gives the shared secret key to the coordinator" in said
