"""Kept results of audits: their files, the checks on reading, and why they no longer hold.

Reading imports no attack and no arithmetic. A kept result holds no recovered words and no path.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from securetm.auditing.bindings import TRIAL, bound_to, changes, refusals_bound_to, trial_hash
from securetm.auditing.plans import AuditPlan, Trial, count_of_tests, of_epsilon, read_audit_plan
from securetm.auditing.record import (
    NOT_TESTED,
    STANDING,
    About,
    Audit,
    Finding,
    Measured,
    RefusalRecord,
    decoded,
    flat,
    plain,
    with_findings,
    without_empty,
)
from securetm.auditing.regulators import anonymity_questions, bears_on
from securetm.auditing.verdicts import possible_verdicts
from securetm.errors import Failed, NotFound
from securetm.resources import data_folder

FORMAT = 2  # of the files of results; format 1 kept figures in a table of their own
FOLDER = "refusals"  # below the folder of the results


class Evidence(Struct, frozen=True, forbid_unknown_fields=True):
    """All kept findings about one profile with one model."""

    profile: str
    model: str
    plan: str
    findings: tuple[Finding, ...]

    @property
    def name(self) -> str:
        return f"{self.profile}--{self.model}.json"


class KeptRefusals(Struct, frozen=True, forbid_unknown_fields=True):
    """All attempts below one profile's minimum, all protocol violations in a run of it, and the parties' answers."""

    profile: str
    plan: str
    tried: tuple[str, ...]  # the lists of the plan that name this profile
    refusals: tuple[RefusalRecord, ...]
    seconds: float
    date: str
    python: str
    bound: Mapping[str, str]  # hashes of all that these results depend on, by name

    @property
    def name(self) -> str:
        return f"{self.profile}.json"


def evidence_folder() -> Path:
    """The folder in which this copy of securetm keeps the results of its own audits."""
    return data_folder("audits") / "evidence"


# ---- writing -------------------------------------------------------------------------------------------------------


def today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def to_keep(finding: Finding) -> Finding:
    """A finding without examples, curves, paths and the attack's own texts, and with six digits of each figure."""
    attempt, outcome, about = finding.attempt, finding.outcome, finding.about
    return Finding(
        replace(attempt, refuted_from=_six(attempt.refuted_from), confidence=_six(attempt.confidence)),
        replace(finding.run, name="", kept=finding.run.kept or today()),
        replace(
            outcome,
            measured=_short(outcome.measured),
            chance=None if outcome.chance is None else _short(outcome.chance),
            beside=tuple(map(_short, outcome.beside)),
            seconds=round(outcome.seconds, 1),
            examples=(),
            curves=(),
        ),
        About(title=about.title, claimed=about.claimed, accepted=about.accepted, sees=about.sees),
    )


def _short(found: Measured) -> Measured:
    return replace(found, **{name: _six(getattr(found, name)) for name in ("value", "low", "high", "ceiling", "by_chance")})


def _six(value: Any) -> Any:
    return value if value is None else float(f"{value:.6g}")


def record(audit: Audit, examples: int) -> dict[str, Any]:
    """An audit as files hold it, with so many examples of each finding."""
    shortened = (replace(one.outcome, examples=one.leaked[:examples]) for one in audit.findings)
    findings = [flat(replace(one, outcome=outcome)) for one, outcome in zip(audit.findings, shortened, strict=True)]
    for table, one in zip(findings, audit.findings, strict=True):
        table["seconds"] = round(table["seconds"], 2)
        table[STANDING] = one.standing
        table["bears_on"] = list(bears_on(table["attack"]))
    head: dict[str, Any] = plain(replace(audit, findings=(), seconds=round(audit.seconds, 2)))
    return {
        **head,
        "findings": findings,
        "refuted_claims": len(audit.refuted_claims),
        "anonymity": plain(anonymity_questions(audit)),
    }


def write_evidence(evidence: Evidence, folder: Path) -> None:
    def place(one: Finding) -> tuple[str, ...]:
        tried = one.attempt
        return tried.attack, tried.threat_model, tried.adversary, tried.bound.get(TRIAL, "")

    order = sorted(evidence.findings, key=place)
    head = {"format": FORMAT, "profile": evidence.profile, "model": evidence.model, "plan": evidence.plan}
    _write_json({**head, "findings": [without_empty(flat(one)) for one in order]}, folder / evidence.name)


def write_refusals(kept: KeptRefusals, folder: Path) -> None:
    """Writes what is kept of one profile's refusals. It replaces what was kept before."""
    _write_json(plain(kept), folder / FOLDER / kept.name)


def _write_json(content: Mapping[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


# ---- reading -------------------------------------------------------------------------------------------------------


def read_all_evidence(folder: Path) -> tuple[Evidence, ...]:
    return tuple(read_evidence(path) for path in sorted(folder.glob("*.json")))


def read_evidence(path: Path) -> Evidence:
    """One file of evidence, with everything in it checked."""
    table = _table_in(path, path.name)
    found = table.pop("format", 1)
    _require(found == FORMAT, path.name, f"it is of format {str(found)[:9]}, and this version reads format {FORMAT}")
    try:
        evidence = with_findings(table, Evidence)
    except ValueError as problem:
        raise _damaged(path.name, str(problem)[:200]) from problem
    _require(evidence.name == path.name, path.name, f"it holds results of {evidence.profile} with {evidence.model}")
    for number, finding in enumerate(evidence.findings, start=1):
        where, run, verdict = f"finding {number}", finding.run, finding.outcome.verdict
        own = (run.profile, run.model) == (evidence.profile, evidence.model)
        _require(own, path.name, f"{where} is of {run.profile} with {run.model}")
        _require(bool(finding.attempt.bound), path.name, f"{where} has no hashes")
        follows = verdict == NOT_TESTED or verdict in possible_verdicts(finding)
        _require(follows, path.name, f"{where}: the verdict of {finding.attempt.attack} does not follow from its own figures")
    return evidence


def read_all_refusals(folder: Path) -> tuple[KeptRefusals, ...]:
    return tuple(read_refusals(path) for path in sorted((folder / FOLDER).glob("*.json")))


def refusals_of(profile: str, folder: Path) -> KeptRefusals | None:
    """The kept refusals of one profile; None if there are none."""
    path = folder / FOLDER / f"{profile}.json"
    return read_refusals(path) if path.is_file() else None


def read_refusals(path: Path) -> KeptRefusals:
    where = f"{FOLDER}/{path.name}"
    try:
        kept = decoded(_table_in(path, where), KeptRefusals, "the file")
    except ValueError as problem:
        raise _damaged(where, str(problem)[:200]) from problem
    own = kept.name == path.name and all(one.profile == kept.profile for one in kept.refusals)
    _require(own, where, f"it holds refusals of {kept.profile}, or of several profiles")
    return kept


def _table_in(path: Path, where: str) -> dict[str, Any]:
    try:
        content = msgspec.json.decode(path.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        raise _damaged(where, f"{type(problem).__name__}: {problem}"[:200]) from problem
    _require(isinstance(content, dict), where, "it holds no table of results")
    return dict(content)


def _damaged(name: str, problem: str) -> Failed:
    return Failed(
        "the kept results {name} cannot be read: {problem}",
        hint="remove the file, and make it again with `securetm audit full --evidence FOLDER`",
        name=name,
        problem=problem,
    )


def _require(condition: bool, file: str, problem: str) -> None:
    if not condition:
        raise _damaged(file, problem)


# ---- staleness of findings ------------------------------------------------------------------------------------------

BELOW, VIOLATIONS = "refusals", "moves"  # the names of the lists in a plan


def changed_since(finding: Finding, plan: str, trials: Mapping[str, Trial]) -> tuple[str, ...]:
    """The changes since one finding was kept, in words."""
    tried, profile = finding.attempt, finding.run.profile
    trial = trials.get(tried.bound.get(TRIAL, ""))
    if trial is None or profile not in trial.profiles:
        return (f"the plan {plan} no longer tries {tried.attack} this way on {profile}",)
    changed = changes(bound_to(trial, profile), tried.bound, profile, tried.attack, tried.threat_model)
    tests = count_of_tests(trials.values())
    few = f"it was corrected for {tried.tests} tests of an epsilon, and the plan {plan} makes {tests} now"
    return changed if _corrected(finding, trial, tests) else (*changed, few)


def _corrected(finding: Finding, trial: Trial, tests: int) -> bool:
    """Whether its interval is wide enough for this many tests of a claimed epsilon. A wider one does no harm."""
    return finding.run.epsilon is None or not of_epsilon(trial) or finding.attempt.tests >= tests


def trials_by_hash(plan: AuditPlan) -> dict[str, Trial]:
    """The trials of a plan by their hashes. Trials that differ only in their profiles are joined."""
    found: dict[str, Trial] = {}
    for trial in plan.trials:
        before = found.setdefault(trial_hash(trial), trial)
        found[trial_hash(trial)] = with_changes(before, profiles=tuple(dict.fromkeys((*before.profiles, *trial.profiles))))
    return found


def still_fresh(trial: Trial, profile: str, kept: Iterable[Evidence], tests: int = 1) -> bool:
    """Whether a kept result of this trial on this profile still holds and is corrected for this many tests."""
    now = bound_to(trial, profile)
    there = (one for evidence in kept if evidence.profile == profile for one in evidence.findings)
    return any(one.attempt.bound == now and _corrected(one, trial, tests) for one in there)


def remaining(plan: AuditPlan, kept: Iterable[Evidence]) -> AuditPlan:
    """The missing and stale parts of a plan, each trial with its baseline: without it a trial shows nothing."""
    evidence, tests, left = tuple(kept), count_of_tests(plan.trials), []
    for trial in plan.trials:
        due = {profile for profile in trial.profiles if not still_fresh(trial, profile, evidence, tests)}
        if trial.expect_fail in due:  # then all are
            left.append(trial)
        elif due:
            again = tuple(profile for profile in trial.profiles if profile in {*due, trial.expect_fail})
            left.append(with_changes(trial, profiles=again))
    return with_changes(plan, trials=tuple(left))


# ---- staleness of refusals -----------------------------------------------------------------------------------------


def lists_with(profile: str, plan: AuditPlan) -> tuple[str, ...]:
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
    changed = changes(refusals_bound_to(kept.profile), kept.bound, kept.profile, "", "")
    return changed if listed == kept.tried else (other, *changed)


def due_refusals(plan: AuditPlan, folder: Path) -> tuple[str, ...]:
    """The profiles of a plan whose refusals are missing or stale in this folder."""

    def is_fresh(profile: str) -> bool:
        kept, listed = refusals_of(profile, folder), lists_with(profile, plan)
        if kept is None or kept.bound != refusals_bound_to(profile):
            return False
        return kept.tried == listed if kept.plan == plan.name else set(listed) <= set(kept.tried)  # another plan may try more

    return tuple(profile for profile in dict.fromkeys((*plan.refusals, *plan.moves)) if not is_fresh(profile))
