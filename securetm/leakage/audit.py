"""The audit itself: every trial of a plan on real runs, first where nothing protects, then where something is claimed.

It is the judge: attacks get what their adversary sees, and what they guess is held against the truth here.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it

import securetm
from securetm.contracts import Adversary
from securetm.errors import BrokenAttack, NothingToAttack, UnreadableMessage
from securetm.federation.folder import RunFolder, Stages, Unwatched, reopen
from securetm.leakage.attack import Attack, Bounded, Counted, Judged
from securetm.leakage.attacks import attack_called, attack_names
from securetm.leakage.controls import of_chance
from securetm.leakage.demonstration import Demonstrations, claims
from securetm.leakage.findings import NOT_TESTED, Audit, Finding, Measured, judged_alone, measured, with_baseline
from securetm.leakage.plans import ROUNDS, AuditPlan, Trial, read_audit_plan
from securetm.leakage.recorded import granted_to, questions_of, view_of
from securetm.leakage.truth import truth_of
from securetm.tables import require
from securetm.threats import read_threat_model

_SEED = 20_21  # of the control's random numbers: any will do, the same one makes a report repeatable


def audit(
    plan: str | Path | AuditPlan, run: str | Path | None = None, *, keep: Path | None = None, stages: Stages | None = None
) -> Audit:
    """Carries out a plan. Without `run` it makes its own runs; with one, that run is tried beside the plan's baselines.

    `keep` is a folder for the runs that are made; without one they are thrown away with all that is in them.
    """
    plan = plan if isinstance(plan, AuditPlan) else read_audit_plan(plan)
    begun, given = time.perf_counter(), reopen(Path(run)) if run is not None else None
    trials = tuple(trial for trial in plan.trials if given is None or _is_for(trial, given))
    if given is not None and not trials:
        raise NothingToAttack(plan.name, f"the model {given.plan.model.name} of {given.path}")
    with _place(keep) as place, threadpool_limits(1):  # linear algebra in several threads waits for itself on busy cores
        runs = Demonstrations(place, stages or Unwatched())
        found = tuple(finding for trial in trials for finding in _tried(trial, runs, given))
    seconds = time.perf_counter() - begun
    name = given.path.resolve().name if given is not None else "demonstration"
    return Audit(plan.name, plan.title, name, found, _left_out(plan, trials), seconds, securetm.__version__, _how(plan, given))


@contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="securetm-audit-") as place:
        yield Path(place)


def _is_for(trial: Trial, given: RunFolder) -> bool:
    return given.plan.model.name in attack_called(trial.attack).models


# ---- one trial -----------------------------------------------------------------------------------------------------


def _tried(trial: Trial, runs: Demonstrations, given: RunFolder | None) -> tuple[Finding, ...]:
    """The baseline first, then each profile; or the run that was given."""
    attack = attack_called(trial.attack)
    if trial.measure not in attack.measures:
        raise BrokenAttack(attack.name, trial.measure)
    for name in attack.efforts:
        require(name in trial.effort, f"the trial of {attack.name}, effort", name, "(nothing)", "is missing")
    others = [name for name in trial.profiles if name != trial.expect_fail]
    folders = [(True, runs.run(trial.expect_fail, trial.run))]
    folders += [(False, given)] if given is not None else [(False, runs.run(name, trial.run)) for name in others]
    runs.stages.stage(f"attacking: {attack.title.lower()}", len(folders))
    found = []
    for done, (baseline, folder) in enumerate(folders, start=1):
        found.append(_finding(trial, attack, folder, baseline))
        runs.stages.step(done)
    return with_baseline(tuple(found))


def _finding(trial: Trial, attack: Attack, folder: RunFolder, baseline: bool) -> Finding:
    begun = time.perf_counter()
    threats = read_threat_model(trial.threat_model)
    adversary = next(one for one in threats.adversaries if one.name == trial.adversary)
    profile = folder.plan.make_profile()
    told, chance, why = _attacked(trial, attack, folder, adversary)
    whole, by_chance = (_measured(trial, attack, judged) for judged in (told, chance))
    beside = tuple(replace(found, by_chance=by_chance[name].value) for name, found in whole.items() if name != trial.measure)
    verdict, reason = judged_alone(whole[trial.measure], by_chance[trial.measure], trial.refuted_from)
    return Finding(
        attack=attack.name,
        title=attack.title,
        adversary=trial.adversary,
        threat_model=trial.threat_model,
        profile=profile.name,
        model=folder.plan.model.name,
        claim=trial.claim,
        measured=replace(whole[trial.measure], by_chance=by_chance[trial.measure].value),
        refuted_from=trial.refuted_from,
        confidence=trial.confidence,
        verdict=NOT_TESTED if why else verdict,
        why=why or reason,
        baseline=baseline,
        claimed=claims(folder, trial.claim, trial.adversary),
        accepted=dict(threats.accepts).get(trial.claim, ""),
        seconds=time.perf_counter() - begun,
        chance=by_chance[trial.measure],
        beside=beside,
        examples=told.examples,
        run=folder.path.resolve().name,
        setting=_setting(folder),
        effort=", ".join(f"{amount} {name}" for name, amount in trial.effort.items()),
        citation=attack.citation,
        cost=attack.cost,
        given=attack.given,
        sees=granted_to(attack, adversary),
        limits=attack.limits,
        remark=attack.remark,
    )


def _measured(trial: Trial, attack: Attack, judged: Judged) -> dict[str, Measured]:
    return {name: measured(name, unit, judged.measures[name], trial.confidence) for name, unit in attack.measures.items()}


def _attacked(trial: Trial, attack: Attack, folder: RunFolder, adversary: Adversary) -> tuple[Judged, Judged, str]:
    """What the attack's guess was worth, what the same attack makes of random numbers, and why it could not be tried."""
    rounds = trial.effort[ROUNDS]
    view = view_of(folder, adversary, attack, rounds)
    truth = truth_of(folder, questions_of(folder, attack.questions, rounds).values())
    try:
        told = attack.judge(attack.attack(view, trial.effort), truth)
        chance = attack.judge(attack.attack(of_chance(view, _SEED), trial.effort), truth)
    except UnreadableMessage as unreadable:
        nothing = Judged({name: Counted(0, 0) for name in attack.measures})
        return nothing, nothing, str(unreadable)
    for judged in (told, chance):
        _check_measures(attack, judged)
    return told, chance, ""


def _check_measures(attack: Attack, judged: Judged) -> None:
    for name in {**attack.measures, **judged.measures}:
        worth = judged.measures.get(name) if name in attack.measures else None
        if not isinstance(worth, Counted | Bounded):
            raise BrokenAttack(attack.name, name)


# ---- what the report says around the findings ----------------------------------------------------------------------


def _setting(folder: RunFolder) -> str:
    """The run in words."""
    model, plan = folder.plan.make_model(), folder.plan
    batch = getattr(model, "batch", 0)
    each = f"{batch} documents of each per answer" if batch else "all documents of each in every answer"
    return f"{len(folder.members)} parties, {each}, {plan.training.rounds} rounds"


def _left_out(plan: AuditPlan, trials: tuple[Trial, ...]) -> tuple[str, ...]:
    """What was not tried, as far as the audit knows by itself, after what the plan's author says."""
    attacks = sorted(set(attack_names()) - {trial.attack for trial in trials})
    sentences = [f"the attack “{attack_called(name).title}” ({name})" for name in attacks]
    for name in dict.fromkeys(trial.threat_model for trial in trials):
        threats = read_threat_model(name)
        tried = {trial.adversary for trial in trials if trial.threat_model == name}
        idle = [adversary for adversary in threats.adversaries if adversary.name not in tried]
        sentences += [f"the adversary “{adversary.name}” of {name}" for adversary in idle]
        helpers = [a for a in threats.adversaries if a.name in tried and a.colludes_with_parties]
        sentences += [f"{a.name} with the help of up to {a.colludes_with_parties} parties, as {name} fears" for a in helpers]
    return (*plan.not_tried, *sentences)


def _how(plan: AuditPlan, given: RunFolder | None) -> tuple[str, ...]:
    """What to type to have the same again."""
    run = f" --run {given.path.resolve().name}" if given is not None else ""
    return (f"securetm audit {plan.name}{run}",)
