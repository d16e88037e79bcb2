"""Every plan breaks what nothing protects: a trial whose baseline holds proves nothing, so each is carried out here.

The plan `full` is left out: its results are kept, and tests/leakage/test_evidence.py reads them. Attackers with models of
their own get fewer of them here, which makes it harder for them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from securetm.leakage.audit import audit
from securetm.leakage.plans import AuditPlan, audit_plan_names, read_audit_plan

SHADOWS = 30


def baselines_of(name: str) -> AuditPlan:
    """The plan with each trial on its baseline alone."""
    plan = read_audit_plan(name)
    trials = tuple(replace(trial, profiles=(trial.expect_fail,), effort=_less(trial.effort)) for trial in plan.trials)
    return replace(plan, trials=tuple(trial for place, trial in enumerate(trials) if trial not in trials[:place]), refusals=())


def _less(effort: dict[str, int]) -> dict[str, int]:
    return {name: min(amount, SHADOWS) if name == "shadows" else amount for name, amount in effort.items()}


@pytest.mark.parametrize("name", [name for name in audit_plan_names() if name != "full"])
def test_every_baseline_of_the_plan_is_refuted(name: str) -> None:
    found = audit(baselines_of(name))
    assert found.findings
    assert [f"{one.attack} on {one.model}: {one.why}" for one in found.blunt] == []
