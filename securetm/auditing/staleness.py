"""Why kept results no longer hold, in words, and what must be tried again. This module tries nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from securetm.auditing.audit_plans import AuditPlan, Trial, read_audit_plan
from securetm.auditing.audit_record import Finding
from securetm.auditing.corrections import count_of_tests, of_epsilon
from securetm.auditing.evidence import Evidence, KeptRefusals, refusals_of
from securetm.auditing.evidence_hashes import (
    ACCOUNTING,
    AGGREGATION,
    ATTACK,
    CORPUS,
    FEDERATION,
    JUDGING,
    MECHANISMS,
    PROFILE,
    THREAT_MODEL,
    TRIAL,
    TRYING,
    bound_to,
    refusals_bound_to,
    trial_hash,
)
from securetm.errors import NotFound

BELOW, VIOLATIONS = "refusals", "moves"  # the names of the lists in a plan


def _changes(now: Mapping[str, str], bound: Mapping[str, str], profile: str, finding: Finding | None = None) -> tuple[str, ...]:
    """The changes since a result was kept, in words."""
    names = {
        PROFILE: f"the profile {profile}",
        MECHANISMS: f"a mechanism of the profile {profile}",
        AGGREGATION: f"the aggregation of the profile {profile}",
        ACCOUNTING: f"the accounting of the epsilon of {profile}",
        CORPUS: "the making of the documents",
        JUDGING: "the making of intervals and verdicts",
        TRYING: "what tries the parties' refusals",
        FEDERATION: "what parties and the coordinator do",
    }
    if finding is not None:
        names |= {
            THREAT_MODEL: f"the threat model {finding.attempt.threat_model}",
            ATTACK: f"the attack {finding.attempt.attack}",
        }
    return tuple(f"{names[what]} changed since" for what in now if bound.get(what) != now[what])


# ---- findings ------------------------------------------------------------------------------------------------------


def changed_since(finding: Finding, plan: str, trials: Mapping[str, Trial]) -> tuple[str, ...]:
    """The changes since one finding was kept, in words."""
    profile, trial = finding.run.profile, trials.get(finding.attempt.bound.get(TRIAL, ""))
    if trial is None or profile not in trial.profiles:
        return (f"the plan {plan} no longer tries {finding.attempt.attack} this way on {profile}",)
    changed = _changes(bound_to(trial, profile), finding.attempt.bound, profile, finding)
    tests = count_of_tests(trials.values())
    few = f"it was corrected for {finding.attempt.tests} tests of an epsilon, and the plan {plan} makes {tests} now"
    return changed if _corrected(finding, trial, tests) else (*changed, few)


def _corrected(finding: Finding, trial: Trial, tests: int) -> bool:
    """Whether its interval is wide enough for this many tests of a claimed epsilon. A wider one does no harm."""
    return finding.run.epsilon is None or not of_epsilon(trial) or finding.attempt.tests >= tests


def trials_by_hash(plan: AuditPlan) -> dict[str, Trial]:
    """The trials of a plan by their hashes. Trials that differ only in their profiles are joined."""
    found: dict[str, Trial] = {}
    for trial in plan.trials:
        before = found.setdefault(trial_hash(trial), trial)
        found[trial_hash(trial)] = replace(before, profiles=tuple(dict.fromkeys((*before.profiles, *trial.profiles))))
    return found


def still_fresh(trial: Trial, profile: str, kept: Iterable[Evidence], tests: int = 1) -> bool:
    """Whether a kept result of this trial on this profile still holds and is corrected for this many tests."""
    now = bound_to(trial, profile)
    there = (one for evidence in kept if evidence.profile == profile for one in evidence.findings)
    return any(one.attempt.bound == now and _corrected(one, trial, tests) for one in there)


def remaining(plan: AuditPlan, kept: Iterable[Evidence]) -> AuditPlan:
    """The missing and stale parts of a plan, each trial with its baseline: without it a trial shows nothing."""
    evidence, tests = tuple(kept), count_of_tests(plan.trials)
    left = ((trial, _left_of(trial, evidence, tests)) for trial in plan.trials)
    return replace(plan, trials=tuple(replace(trial, profiles=profiles) for trial, profiles in left if profiles))


def _left_of(trial: Trial, evidence: tuple[Evidence, ...], tests: int) -> tuple[str, ...]:
    """The profiles on which a trial must be made again: its baseline in any case, and all if the baseline is due."""
    due = [profile for profile in trial.profiles if not still_fresh(trial, profile, evidence, tests)]
    if trial.expect_fail in due:
        return trial.profiles
    return tuple(profile for profile in trial.profiles if profile in due or profile == trial.expect_fail) if due else ()


# ---- refusals ------------------------------------------------------------------------------------------------------


def lists_with(profile: str, plan: AuditPlan) -> tuple[str, ...]:
    """The lists of a plan that name this profile."""
    return tuple(name for name, listed in ((BELOW, plan.refusals), (VIOLATIONS, plan.moves)) if profile in listed)


def stale_refusals(kept: KeptRefusals) -> tuple[str, ...]:
    """Why kept refusals no longer hold; empty if all do."""
    try:
        listed = lists_with(kept.profile, read_audit_plan(kept.plan))
    except NotFound:
        listed = ()
    if not listed:
        return (f"the plan {kept.plan} no longer tries what the parties of {kept.profile} refuse",)
    other = f"the plan {kept.plan} tries {' and '.join(listed)} of {kept.profile} now"
    changed = _changes(refusals_bound_to(kept.profile), kept.bound, kept.profile)
    return changed if listed == kept.tried else (other, *changed)


def due_refusals(plan: AuditPlan, folder: Path) -> tuple[str, ...]:
    """The profiles of a plan whose refusals are missing or stale in this folder."""
    named = dict.fromkeys((*plan.refusals, *plan.moves))
    return tuple(profile for profile in named if not _fresh(refusals_of(profile, folder), lists_with(profile, plan), plan.name))


def _fresh(kept: KeptRefusals | None, listed: tuple[str, ...], plan: str) -> bool:
    """Whether kept refusals cover these lists. Another plan may have tried more."""
    if kept is None or kept.bound != refusals_bound_to(kept.profile):
        return False
    return kept.tried == listed if kept.plan == plan else set(listed) <= set(kept.tried)
