"""The model that is trained where nobody names one: everywhere the same for a profile, with as many rounds as it needs."""

from __future__ import annotations

import pytest

from securetm.plans.recommend import plan_from_tables, read_plan
from securetm.plans.schema import DEFAULT_MODEL, MODEL_UNDER_BUDGET, Plan


def test_a_plan_that_names_no_model_trains_lda_for_a_hundred_rounds() -> None:
    for plan in (read_plan(None, {}), plan_from_tables({"model": {"n_topics": 4}}, "a test")):
        assert (plan.model.name, plan.training.rounds) == (DEFAULT_MODEL, 100)
    assert Plan().model.name == DEFAULT_MODEL


@pytest.mark.parametrize("profile", ["dp-central", "dp-distributed", "dp-local", "fortress"])
def test_with_a_budget_it_trains_few_rounds_of_bounded_rows(profile: str) -> None:
    plan = plan_from_tables({"profile": profile}, "a test")
    assert plan.model.name == MODEL_UNDER_BUDGET
    assert plan.model.settings["repeats"] == 1
    assert plan.training.rounds <= 8
    named = plan_from_tables({"profile": profile, "model": {"name": MODEL_UNDER_BUDGET, "repeats": 4}}, "a test")
    assert (named.model.settings["repeats"], named.model.settings["tempering"]) == (4, 0.85)
