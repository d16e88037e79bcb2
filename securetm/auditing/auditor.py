"""Carries out an audit plan: every trial on real runs, first on the unprotected baseline, then on runs that claim protection.

It checks the plan and makes no finding itself.
"""

from __future__ import annotations

import time
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it

from securetm.auditing.attacks import attack_called
from securetm.auditing.audit_plans import ROUNDS, AuditPlan, Trial, read_audit_plan
from securetm.auditing.audit_record import Audit
from securetm.auditing.below_minimum import tried_below_minimum
from securetm.auditing.corrections import count_of_tests, of_epsilon
from securetm.auditing.demonstration import Demonstrations, check_runs, place_for
from securetm.auditing.evidence import today
from securetm.auditing.given_run import audit_of_run, check_finished
from securetm.auditing.leakage_errors import NothingToAttack
from securetm.auditing.protocol_violations import tried_violations
from securetm.auditing.trial_on_run import findings
from securetm.auditing.unfinished import Unfinished
from securetm.auditing.untried import how_again, is_for, left_out
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
