"""Carries out audit plans: every trial first on the unprotected baseline, then on runs that claim protection.

A plan is carried out on runs that are made for it, on a recorded run, or as far as kept evidence is missing or stale.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace as with_changes
from pathlib import Path

from msgspec.structs import replace
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it

from securetm.auditing.attacks import attack_called
from securetm.auditing.bindings import TRIAL, refusals_bound_to, trial_hash
from securetm.auditing.evidence import (
    BELOW,
    FOLDER,
    VIOLATIONS,
    Evidence,
    KeptRefusals,
    due_refusals,
    lists_with,
    read_all_evidence,
    read_all_refusals,
    remaining,
    to_keep,
    today,
    trials_by_hash,
    write_evidence,
    write_refusals,
)
from securetm.auditing.given_run import Unfinished, audit_of_run, check_finished
from securetm.auditing.leakage_errors import NothingToAttack
from securetm.auditing.plans import ROUNDS, AuditPlan, Trial, count_of_tests, of_epsilon, read_audit_plan
from securetm.auditing.record import Audit, Finding, RefusalRecord
from securetm.auditing.refusals import tried_below_minimum, tried_violations
from securetm.auditing.runs import Demonstrations, check_runs, place_for
from securetm.auditing.trials import attack_texts, findings, how_again, is_for, left_out
from securetm.auditing.verdicts import with_baseline
from securetm.federation.folder import RunFolder, reopen
from securetm.plans.profiles import read_profile
from securetm.settings import require
from securetm.stages import Stages, Unwatched
from securetm.version import __version__


def audit(
    plan: str | Path | AuditPlan,
    run: str | Path | None = None,
    *,
    keep: Path | None = None,
    stages: Stages | None = None,
    whole: AuditPlan | None = None,
    minutes: float | None = None,
    kept: Unfinished | None = None,
    workers: int = 0,
) -> Audit:
    """Carries out a plan. Without `run` it makes its own runs; with one, it tries that run and baselines of its documents.

    Trials on a given run begin with what takes least, and none begins that would end after so many `minutes`; `kept` holds
    what an interrupted audit of it found. So many `workers` make them (0: one for each core, at most four). `keep` is a folder
    for the runs that are made; without one they are deleted. `whole` is the plan of which this one is a piece: tests of an
    epsilon are corrected for the whole plan, and refusals are tried elsewhere.
    """
    plan = plan if isinstance(plan, AuditPlan) else read_audit_plan(plan)
    begun, given = time.perf_counter(), reopen(Path(run)) if run is not None else None
    trials = tuple(trial for trial in plan.trials if given is None or is_for(trial, given))
    if given is not None:
        if not trials:
            raise NothingToAttack(plan.name, f"the model {given.agreement.plan.model.name} of {given.path}")
        check_finished(given)
    if whole is None:
        check_plan(plan, given)
    if given is not None:
        return audit_of_run(plan, given, trials, keep, stages or Unwatched(), minutes, kept, workers, begun)
    with place_for(keep) as place, threadpool_limits(1):  # linear algebra in several threads waits for itself on busy cores
        runs = Demonstrations(place, stages or Unwatched())
        tests = count_of_tests(trials if whole is None else whole.trials)
        found = tuple(finding for trial in trials for finding in findings(trial, runs, None, tests))
        below, moved = (plan.refusals, plan.moves) if whole is None else ((), ())
        refused = tuple(one for name in below for one in tried_below_minimum(name, {}, place, stages or Unwatched()))
        refused += tuple(one for name in moved for one in tried_violations(name, runs))
    seconds = time.perf_counter() - begun
    untried, again = left_out(plan, trials), how_again(plan)
    return Audit(plan.name, plan.title, "demonstration", found, untried, seconds, __version__, again, refused, today())


def check_plan(plan: AuditPlan, given: RunFolder | None = None) -> None:
    """Refuses a plan whose attacks or runs cannot be made, before anything is trained."""
    for number, trial in enumerate(plan.trials, start=1):
        if given is None or is_for(trial, given):
            _check(trial)
            if given is None:  # what cannot be tried on a given run is left out of its audit, and named
                check_runs(trial, f"{plan.name}.toml, [[trial]] number {number}")


def _check(trial: Trial) -> None:
    """Refuses a trial that does not fit its attack: an unknown measure, or an effort that is missing or unknown."""
    attack, where = attack_called(trial.attack), f"the trial of {trial.attack}"
    require(trial.measure in attack.measures, where, "measure", trial.measure, known=tuple(attack.measures))
    for name in attack.efforts:
        require(name in trial.effort, f"{where}, effort", name, None)
    for name, amount in trial.effort.items():
        known = (ROUNDS, *attack.efforts)
        require(name in known, f"{where}, effort", name, amount, f"is no effort of this attack, which has {', '.join(known)}")
    for budget in (read_profile(name).budget for name in trial.profiles):
        if attack.allowed is not None and budget is not None and of_epsilon(trial):
            attack.allowed(trial.measure, budget)  # raises the reason if it cannot test this claim


# ---- evidence: what is missing or stale is carried out, kept, and joined with the rest ------------------------------


def renewed(plan: AuditPlan, folder: Path, carry_out: Callable[[AuditPlan], Audit]) -> Iterator[Audit]:
    """Carries out the missing and stale parts of a plan, and keeps each piece before the next begins.

    After an interruption it continues where it stopped. It yields the audits that it carries out.
    """
    for piece in pieces(remaining(plan, read_all_evidence(folder))):
        done = carry_out(piece)
        keep(done, folder, plan)
        yield done


def pieces(plan: AuditPlan) -> tuple[AuditPlan, ...]:
    """The plan in parts that share no run, so that each can be carried out and kept before the next begins."""
    parts: dict[str, list[Trial]] = {}
    for trial in plan.trials:
        parts.setdefault(repr((sorted(trial.run.items(), key=str), trial.canaries)), []).append(trial)
    return tuple(with_changes(plan, trials=tuple(trials)) for trials in parts.values())


def keep(audit: Audit, folder: Path, whole: AuditPlan | None = None) -> None:
    """Keeps the findings of an audit with the kept ones of other trials.

    `whole` is the plan of which the audit is a piece: results of trials that this plan no longer has are dropped.
    """
    found: dict[tuple[str, str], list[Finding]] = {}
    for finding in audit.findings:
        found.setdefault((finding.run.profile, finding.run.model), []).append(to_keep(finding))
    before = {(kept.profile, kept.model): kept.findings for kept in read_all_evidence(folder)}
    listed = None if whole is None else trials_by_hash(whole).keys()
    for (profile, model), new in found.items():
        made = {_trial(one) for one in new}
        others = [one for one in before.get((profile, model), ()) if _trial(one) not in made]
        kept = [one for one in others if listed is None or _trial(one) in listed]
        write_evidence(Evidence(profile, model, audit.plan, (*kept, *new)), folder)


def _trial(finding: Finding) -> str:
    return finding.attempt.bound.get(TRIAL, "")


# ---- refusals ------------------------------------------------------------------------------------------------------


def renew_refusals(plan: AuditPlan, folder: Path, place: Path, stages: Stages) -> tuple[str, ...]:
    """Tries the missing and stale refusals, keeps each profile's before the next begins, and returns these profiles.

    Runs are made in `place`. Kept refusals of profiles that the plan no longer names are deleted.
    """
    for old in read_all_refusals(folder):
        if old.plan == plan.name and not lists_with(old.profile, plan):
            (folder / FOLDER / old.name).unlink()
    again = due_refusals(plan, folder)
    if again:
        stages.stage("what parties refuse", len(again))
    for done, profile in enumerate(again, start=1):
        write_refusals(_tried(profile, plan, place / profile), folder)
        stages.step(done)
    return again


def _tried(profile: str, plan: AuditPlan, place: Path) -> KeptRefusals:
    bound, begun, listed = refusals_bound_to(profile), time.perf_counter(), lists_with(profile, plan)
    quiet = Unwatched()  # the stages of single runs would hide the progress of the whole
    with threadpool_limits(1):
        below = tried_below_minimum(profile, {}, place, quiet) if BELOW in listed else ()
        runs = Demonstrations(place, quiet)
        violations = tried_violations(profile, runs) if VIOLATIONS in listed else ()
    seconds = round(time.perf_counter() - begun, 1)
    return KeptRefusals(profile, plan.name, listed, (*below, *violations), seconds, today(), platform.python_version(), bound)


# ---- what was kept and what is new, as one audit -------------------------------------------------------------------


def whole_audit(
    plan: AuditPlan,
    made: Iterable[Audit],
    kept: Iterable[Evidence],
    refusals: Iterable[KeptRefusals] = (),
    tried_now: Iterable[str] = (),
) -> Audit:
    """Every result of the plan: a new one if there is one, else the kept one. Refusals of `tried_now` are new."""
    audits, tried = tuple(made), {one.profile: one for one in refusals}
    new = [tried[profile] for profile in tried_now]
    every = (*(one for evidence in kept for one in evidence.findings), *(one for audit in audits for one in audit.findings))
    found = {(_trial(one), one.run.profile): one for one in every}  # a new result replaces a kept one
    findings = tuple(finding for trial in plan.trials for finding in _of_trial(trial, found))
    refused = tuple(_refused(plan, tried, {one.profile for one in new}))
    seconds = sum(audit.seconds for audit in audits) + sum(one.seconds for one in new)
    day = max((*(audit.made for audit in audits), *(one.date for one in new)), default="")
    untried, again = left_out(plan, plan.trials), how_again(plan)
    return Audit(plan.name, plan.title, "demonstration", findings, untried, seconds, __version__, again, refused, day)


def _of_trial(trial: Trial, found: Mapping[tuple[str, str], Finding]) -> tuple[Finding, ...]:
    """The findings of a trial, its baseline first. If the baseline did not break, the others tested nothing."""
    order, digest = dict.fromkeys((trial.expect_fail, *trial.profiles)), trial_hash(trial)
    texts = attack_texts(attack_called(trial.attack))  # these are not kept
    results = (found[digest, profile] for profile in order if (digest, profile) in found)
    return with_baseline(tuple(replace(one, about=replace(one.about, **texts)) for one in results))


def _refused(plan: AuditPlan, tried: Mapping[str, KeptRefusals], new: set[str]) -> Iterator[RefusalRecord]:
    """The refusals in the order of an audit: first all runs below a minimum, then all protocol violations."""
    wanted = [*((name, True) for name in plan.refusals), *((name, False) for name in plan.moves)]
    for profile, below in wanted:
        for one in tried[profile].refusals if profile in tried else ():
            if below == (one.minimum > 0):
                yield one if profile in new else replace(one, kept=tried[profile].date)
