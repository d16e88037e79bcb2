"""What a served run says that it has spent: never less than was answered, with the questions before the training."""

from __future__ import annotations

import pytest

from securetm.federation.budget.prices import PlannedSpending, calibrated
from securetm.plans.agreement import agree
from securetm.plans.recommend import plan_from_tables


def spending(profile: str = "dp-central", **vocabulary: str) -> PlannedSpending:
    tables = {"profile": profile, "training": {"rounds": 3}, "vocabulary": {"max_words": 100, **vocabulary}}
    listed = tuple(f"word{n}" for n in range(100)) if vocabulary else None
    budget = {"epsilon": 3.0} if profile.startswith("dp") else {}
    return PlannedSpending(calibrated(agree(plan_from_tables({**tables, "privacy": budget}, "a test"), listed=listed), 5), 5)


def test_the_search_for_words_is_counted_before_the_first_round() -> None:
    """A quarter of epsilon goes to it; a public list costs nothing."""
    found, public = spending(), spending(source="file", file="english")
    at = [found.after(answers) for answers in (0, 1, 3)]
    assert all(one is not None for one in at)
    epsilons = [one["epsilon"] for one in at if one is not None]
    assert 0.5 < epsilons[0] <= 0.751
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] == pytest.approx(3.0, rel=0.01)
    assert public.after(0) == {"unit": "document", "epsilon": 0.0, "delta": 1e-5, "budget": 3.0}


def test_nothing_is_said_where_there_is_no_budget() -> None:
    assert spending("masked").after(0) is None
