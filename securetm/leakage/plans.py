"""Audit plans: which attack tries which claim of which profiles, how hard, and what counts as refuted.

A plan is data; the attacks themselves read the transcript of a real run and live elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securetm.contracts import ThreatModel
from securetm.errors import NotFound
from securetm.shelf import titles, toml_on
from securetm.tables import into, read_toml, require
from securetm.threats import read_threat_model


@dataclass(frozen=True)
class AuditPlan:
    """What an audit will do, fixed before it is done. `expect_fail` is the baseline that the attack must break."""

    name: str
    title: str
    threat_model: str
    adversary: str
    claim: str
    attack: str
    profiles: tuple[str, ...]
    expect_fail: str
    measure: str
    refuted_from: float
    confidence: float
    effort: dict[str, int]


def audit_plan_names() -> tuple[str, ...]:
    """The audit plans on the shelf."""
    return titles("audits", "plans")


def read_audit_plan(name: str | Path) -> AuditPlan:
    """The audit plan of that name, or in that file, with everything in it checked."""
    path = toml_on("audits", str(name), below="plans", kind="audit plan")
    return audit_plan_from(read_toml(path), path)


def audit_plan_from(table: Mapping[str, Any], path: Path) -> AuditPlan:
    """An audit plan from the tables of its file."""
    where = path.name
    plan = into(AuditPlan, table, where)
    require(plan.name == path.stem, where, "name", plan.name, "must be the name of its file")
    _check_threat(plan, read_threat_model(plan.threat_model), where)
    _check_profiles(plan, where)
    require(0.5 <= plan.confidence < 1, where, "confidence", plan.confidence, "must be at least 0.5 and below 1")
    require(0 <= plan.refuted_from <= 1, where, "refuted_from", plan.refuted_from, "must lie between 0 and 1")
    for name, amount in plan.effort.items():
        whole = isinstance(amount, int) and not isinstance(amount, bool)
        require(whole and amount > 0, f"{where} [effort]", name, amount, "must be a whole number above 0")
    return plan


def _check_threat(plan: AuditPlan, threats: ThreatModel, where: str) -> None:
    names = [adversary.name for adversary in threats.adversaries]
    require(plan.adversary in names, where, "adversary", plan.adversary, f"is none of {', '.join(names)} in {threats.name}")
    asked = [wanted.claim.what for wanted in threats.requires if wanted.claim.against == plan.adversary]
    problem = f"is not required against {plan.adversary} in {threats.name}"
    require(plan.claim in asked, where, "claim", plan.claim, problem)


def _check_profiles(plan: AuditPlan, where: str) -> None:
    known = titles("protocols", "profiles")
    for profile in (*plan.profiles, plan.expect_fail):
        if profile not in known:
            raise NotFound("profile", profile, known)
    require(len(set(plan.profiles)) == len(plan.profiles), where, "profiles", plan.profiles, "names a profile twice")
    require(plan.expect_fail in plan.profiles, where, "expect_fail", plan.expect_fail, "must be one of the profiles tried")
