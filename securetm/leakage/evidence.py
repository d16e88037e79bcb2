"""Results of audits that are kept beside the plans, and whether they still speak of what is there. It runs no attack.

Reading them imports no attack and no arithmetic. Nothing that was recovered of documents is kept, and no place on a disk.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from securetm.errors import NotFound, SecuretmError
from securetm.leakage.audit_plans import AuditPlan, Trial, read_audit_plan
from securetm.leakage.corrections import count_of_tests, of_epsilon
from securetm.leakage.evidence_hashes import (
    ACCOUNTING,
    AGGREGATION,
    ATTACK,
    CORPUS,
    JUDGING,
    MECHANISMS,
    PROFILE,
    THREAT_MODEL,
    TRIAL,
    bound_to,
    trial_hash,
)
from securetm.leakage.leakage_errors import DamagedEvidence
from securetm.leakage.verdicts import NOT_REFUTED, NOT_TESTED, REFUTED
from securetm.resources import data_folder
from securetm.toml_settings import from_table

if TYPE_CHECKING:  # their arithmetic takes longer to import than evidence takes to read
    from securetm.leakage.findings import Audit, Finding, Measured


@dataclass(frozen=True)
class Figure:
    """A measure with its interval, as it was kept."""

    measure: str
    unit: str
    value: float | None
    low: float
    high: float
    ceiling: float
    hits: int | None = None
    of: int | None = None
    by_chance: float | None = None


@dataclass(frozen=True)
class Tried:
    """One attack on one claim of one profile, as it was kept: the finding without examples, curves and texts of its attack."""

    attack: str
    title: str
    threat_model: str
    adversary: str
    claim: str
    measured: Figure
    beside: tuple[Figure, ...]
    refuted_from: float
    confidence: float
    verdict: str
    why: str
    baseline: bool
    claimed: bool
    accepted: str
    epsilon: float | None
    sees: tuple[str, ...]
    helpers: int
    setting: str
    effort: str
    seconds: float
    date: str
    cores: int
    python: str
    bound: Mapping[str, str]  # what this speaks about, by name: a hash of each
    tests: int = 1  # of a claimed epsilon in its plan, for which the confidence was corrected


@dataclass(frozen=True)
class Evidence:
    """All that was kept about one profile with one model."""

    profile: str
    model: str
    plan: str
    findings: tuple[Tried, ...]

    @property
    def name(self) -> str:
        """What its file is called."""
        return f"{self.profile}--{self.model}.json"


def evidence_folder() -> Path:
    """Where this copy of securetm keeps what its own audits found."""
    return data_folder("audits") / "evidence"


# ---- keeping -------------------------------------------------------------------------------------------------------


def write_evidence(plan: AuditPlan, audit: Audit, folder: Path, whole: AuditPlan | None = None) -> tuple[str, ...]:
    """Keeps what this audit of that plan found, beside what was kept of other trials; the names of the files that changed.

    `whole` is the plan of which this one is a piece: results of trials that it no longer has are dropped.
    """
    found: dict[tuple[str, str], list[Tried]] = {}
    for trial, finding in _paired(plan, audit):
        found.setdefault((finding.profile, finding.model), []).append(_tried(trial, finding))
    folder.mkdir(parents=True, exist_ok=True)
    before = {(kept.profile, kept.model): kept.findings for kept in read_evidence(folder)}
    for (profile, model), new in found.items():
        answered = {one.bound[TRIAL] for one in new}
        others = [one for one in before.get((profile, model), ()) if one.bound.get(TRIAL) not in answered]
        kept = [one for one in others if whole is None or one.bound.get(TRIAL) in trials_by_hash(whole)]
        _write(Evidence(profile, model, plan.name, (*kept, *new)), folder)
    return tuple(sorted(Evidence(profile, model, plan.name, ()).name for profile, model in found))


def _paired(plan: AuditPlan, audit: Audit) -> Iterator[tuple[Trial, Finding]]:
    """Each finding with the trial that it answers: an audit without a run of its own gives one for each profile, in order."""
    trials = [trial for trial in plan.trials for _ in trial.profiles]
    if len(trials) != len(audit.findings):
        raise DamagedEvidence(plan.name, "its findings are not those of its trials")
    yield from zip(trials, audit.findings, strict=True)


def _tried(trial: Trial, finding: Finding) -> Tried:
    return Tried(
        attack=finding.attack,
        title=finding.title,
        threat_model=finding.threat_model,
        adversary=finding.adversary,
        claim=finding.claim,
        measured=_figure(finding.measured),
        beside=tuple(_figure(measured) for measured in finding.beside),
        refuted_from=_short(finding.refuted_from),
        confidence=_short(finding.confidence),
        verdict=finding.verdict,
        why=finding.why,
        baseline=finding.baseline,
        claimed=finding.claimed,
        accepted=finding.accepted,
        epsilon=finding.epsilon,
        sees=finding.sees,
        helpers=trial.helpers,
        setting=finding.setting,
        effort=finding.effort,
        seconds=round(finding.seconds, 1),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        cores=os.cpu_count() or 0,
        python=platform.python_version(),
        bound=bound_to(trial, finding.profile),
        tests=finding.tests,
    )


def _figure(measured: Measured) -> Figure:
    plain: dict[str, Any] = {name: _short(v) if isinstance(v, float) else v for name, v in asdict(measured).items()}
    return Figure(**plain)


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _write(evidence: Evidence, folder: Path) -> None:
    order = sorted(evidence.findings, key=lambda one: (one.attack, one.threat_model, one.adversary, one.bound[TRIAL]))
    plain = asdict(replace(evidence, findings=tuple(order)))
    (folder / evidence.name).write_text(json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


# ---- reading -------------------------------------------------------------------------------------------------------


def read_evidence(folder: Path) -> tuple[Evidence, ...]:
    """Everything kept in a folder, by profile and model."""
    return tuple(read_kept(path) for path in sorted(folder.glob("*.json")))


def table_in(path: Path, where: str) -> dict[str, Any]:
    """What a file of kept results holds, or a letter that it is none."""
    try:
        plain = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise DamagedEvidence(where, f"{type(problem).__name__}: {problem}"[:200]) from problem
    if not isinstance(plain, dict):
        raise DamagedEvidence(where, "it holds no table of results")
    return plain


def read_kept(path: Path) -> Evidence:
    """One file of evidence, with everything in it checked."""
    kept = table_in(path, path.name)
    try:
        results = kept.pop("findings")
        if not isinstance(results, list):
            raise DamagedEvidence(path.name, "its findings are no list")
        findings = tuple(_read_tried(one, path.name) for one in results)
        evidence = Evidence(findings=findings, **kept)
    except DamagedEvidence:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, SecuretmError) as problem:
        raise DamagedEvidence(path.name, f"{type(problem).__name__}: {problem}"[:200]) from problem
    if evidence.name != path.name:
        raise DamagedEvidence(path.name, f"it speaks of {evidence.profile} with {evidence.model}")
    return evidence


def _read_tried(plain: Mapping[str, Any], where: str) -> Tried:
    if plain["verdict"] not in (REFUTED, NOT_REFUTED, NOT_TESTED) or not isinstance(plain["bound"], dict):
        raise DamagedEvidence(where, f"a result says {str(plain['verdict'])[:40]!r}, or is bound to nothing")
    measured = from_table(Figure, plain["measured"], where)
    if (plain["verdict"] == REFUTED) != _above(measured, plain):
        raise DamagedEvidence(where, f"a verdict of {plain['attack']} is not the one of its own figures")
    beside = tuple(from_table(Figure, one, where) for one in plain["beside"])
    rest = {name: value for name, value in plain.items() if name not in ("measured", "beside")}
    return Tried(measured=measured, beside=beside, **{**rest, "sees": tuple(rest["sees"])})


def _above(measured: Figure, plain: Mapping[str, Any]) -> bool:
    """Whether the interval lies where a claim counts as refuted; one that chance reaches too was not tested."""
    return plain["verdict"] != NOT_TESTED and measured.value is not None and measured.low >= plain["refuted_from"]


# ---- whether it still holds ----------------------------------------------------------------------------------------


def stale(evidence: Evidence) -> tuple[str, ...]:
    """Why what was kept no longer speaks of what is there: nothing where it does."""
    trials = _trials_of(evidence.plan)
    return tuple(dict.fromkeys(reason for one in evidence.findings for reason in changed_since(one, evidence, trials)))


def changed_since(one: Tried, evidence: Evidence, trials: Mapping[str, Trial]) -> tuple[str, ...]:
    """What changed since one result was kept, in words."""
    trial = trials.get(one.bound.get(TRIAL, ""))
    if trial is None or evidence.profile not in trial.profiles:
        return (f"the plan {evidence.plan} no longer tries {one.attack} this way on {evidence.profile}",)
    now, tests = bound_to(trial, evidence.profile), count_of_tests(trials.values())
    changed = [_change(what, one, evidence) for what in now if one.bound.get(what) != now[what]]
    few = f"it was corrected for {one.tests} tests of an epsilon, and the plan {evidence.plan} makes {tests} now"
    return (*changed, *([] if _corrected(one, trial, tests) else [few]))


def _corrected(one: Tried, trial: Trial, tests: int) -> bool:
    """Whether its interval is wide enough for so many tests of a claimed epsilon; more doubt than needed does no harm."""
    return one.epsilon is None or not of_epsilon(trial) or one.tests >= tests


def _change(what: str, one: Tried, evidence: Evidence) -> str:
    names = {
        PROFILE: f"the profile {evidence.profile}",
        MECHANISMS: f"a mechanism of the profile {evidence.profile}",
        AGGREGATION: f"the aggregation of the profile {evidence.profile}",
        ACCOUNTING: f"the accounting of the epsilon of {evidence.profile}",
        CORPUS: "the making of the documents",
        THREAT_MODEL: f"the threat model {one.threat_model}",
        ATTACK: f"the attack {one.attack}",
        JUDGING: "the making of intervals and verdicts",
    }
    return f"{names[what]} changed since"


def _trials_of(plan: str) -> dict[str, Trial]:
    """The trials of a plan on the shelf by their hashes; none where the plan is no longer there."""
    try:
        return trials_by_hash(read_audit_plan(plan))
    except NotFound:
        return {}


def trials_by_hash(plan: AuditPlan) -> dict[str, Trial]:
    """The trials of a plan, each by the hash of what it says; two that differ in their profiles alone are one."""
    found: dict[str, Trial] = {}
    for trial in plan.trials:
        before = found.setdefault(trial_hash(trial), trial)
        found[trial_hash(trial)] = replace(before, profiles=tuple(dict.fromkeys((*before.profiles, *trial.profiles))))
    return found


def still_fresh(trial: Trial, profile: str, kept: Iterable[Evidence], tests: int = 1) -> bool:
    """Whether this trial was tried on this profile, corrected for so many tests, and nothing behind it changed since."""
    now = bound_to(trial, profile)
    there = (one for evidence in kept if evidence.profile == profile for one in evidence.findings)
    return any(one.bound == now and _corrected(one, trial, tests) for one in there)


def remaining(plan: AuditPlan, kept: Iterable[Evidence]) -> AuditPlan:
    """The plan with what is missing or stale, and with each trial's baseline: without that, a trial shows nothing."""
    evidence, tests = tuple(kept), count_of_tests(plan.trials)
    left = ((trial, _left_of(trial, evidence, tests)) for trial in plan.trials)
    return replace(plan, trials=tuple(replace(trial, profiles=profiles) for trial, profiles in left if profiles))


def _left_of(trial: Trial, evidence: tuple[Evidence, ...], tests: int) -> tuple[str, ...]:
    """The profiles on which a trial is to be made again: all where its baseline is, and that one in any case."""
    due = [profile for profile in trial.profiles if not still_fresh(trial, profile, evidence, tests)]
    if trial.expect_fail in due:
        return trial.profiles
    return tuple(profile for profile in trial.profiles if profile in due or profile == trial.expect_fail) if due else ()


def pieces(plan: AuditPlan) -> tuple[AuditPlan, ...]:
    """The plan in parts that share no run, so that each can be carried out and kept before the next begins."""
    parts: dict[str, list[Trial]] = {}
    for trial in plan.trials:
        parts.setdefault(repr((sorted(trial.run.items(), key=str), trial.canaries)), []).append(trial)
    return tuple(replace(plan, trials=tuple(trials)) for trials in parts.values())


def renewed(plan: AuditPlan, folder: Path, carry_out: Callable[[AuditPlan], Audit]) -> Audit | None:
    """Carries out what is missing or stale of a plan, keeping each piece before the next begins; nothing where nothing is.

    Interrupted at any moment, it goes on where it was. What it gives back is the audit of what was carried out now.
    """
    done: list[Audit] = []
    for piece in pieces(remaining(plan, read_evidence(folder))):
        done.append(carry_out(piece))
        write_evidence(piece, done[-1], folder, plan)
    return _together(done) if done else None


def _together(audits: list[Audit]) -> Audit:
    """Several audits of pieces of one plan as one: not tried is what none of them tried."""
    first, *others = audits
    untried = tuple(one for one in first.not_tried if all(one in other.not_tried for other in others))
    findings = tuple(finding for one in audits for finding in one.findings)
    return replace(first, findings=findings, not_tried=untried, seconds=sum(one.seconds for one in audits))
