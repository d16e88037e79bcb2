"""The model that is trained where nobody names one: everywhere the same, with as many rounds as it needs."""

from __future__ import annotations

import inspect

from securetm.cli import budget_commands as budget
from securetm.cli.budget_profile import profile_run
from securetm.plan_reading import plan_from_tables, read_plan
from securetm.plans import DEFAULT_MODEL, Plan


def test_a_plan_that_names_no_model_trains_lda_for_a_hundred_rounds() -> None:
    for plan in (read_plan(None, {}), plan_from_tables({"model": {"n_topics": 4}}, "a test")):
        assert (plan.model.name, plan.training.rounds) == ("lda", 100)
    assert Plan().model.name == DEFAULT_MODEL


def test_the_calculator_counts_the_model_that_a_run_would_train() -> None:
    assert inspect.signature(budget.profile).parameters["model"].default == DEFAULT_MODEL
    assert inspect.signature(profile_run).parameters["model"].default == DEFAULT_MODEL
