"""What an audit did not try, as far as it knows, and how to repeat it. This module runs no attack."""

from __future__ import annotations

import shlex
from operator import attrgetter

from securetm.auditing.attacks import attack_called, attack_names
from securetm.auditing.audit_plans import AuditPlan, Trial
from securetm.auditing.own_baseline import serves_itself
from securetm.federation.folder import RunFolder
from securetm.federation.questions import TRAIN, before_training
from securetm.threats import read_threat_model


def is_for(trial: Trial, given: RunFolder) -> bool:
    """Whether a trial can use a user's run: no second run, no canaries, honest roles, answers that it reads, and its epsilon.

    Of a run over a network only the judge's own counts which documents took part.
    """
    alone = not any((trial.without, trial.canaries, trial.liars, trial.meddled, trial.network))
    reads = attack_called(trial.attack).reads(given.agreement.plan.model.name)
    return alone and reads and _asked(trial.attack, given) and not _lacks_epsilon(trial, given)


def _asked(attack: str, given: RunFolder) -> bool:
    """Whether the run asked any of the questions whose answers the attack reads."""
    return not {*before_training(given.agreement), TRAIN}.isdisjoint(attack_called(attack).questions)


def _lacks_epsilon(trial: Trial, given: RunFolder) -> bool:
    """Whether the trial measures an epsilon, and the run claims none."""
    measures_epsilon = "epsilon" in attack_called(trial.attack).measures.get(trial.measure, "")
    return measures_epsilon and given.agreement.budget is None


def left_out(plan: AuditPlan, trials: tuple[Trial, ...], given: RunFolder | None = None) -> tuple[str, ...]:
    """What was not tried: first what the plan's author left out, then what the audit finds itself."""
    attacks = sorted(set(attack_names()) - {trial.attack for trial in trials})
    sentences = [f"the attack “{attack_called(name).title}” ({name}){_why_not(name, plan, given)}" for name in attacks]
    for name in dict.fromkeys(trial.threat_model for trial in trials):
        threats = read_threat_model(name)
        own = sorted((trial for trial in trials if trial.threat_model == name), key=attrgetter("helpers"))
        helped = {trial.adversary: trial.helpers for trial in own}
        idle = [adversary for adversary in threats.adversaries if adversary.name not in helped]
        sentences += [f"the adversary “{adversary.name}” of {name}" for adversary in idle]
        more = [a for a in threats.adversaries if a.name in helped and helped[a.name] < a.colludes_with_parties]
        helps = [(a.name, "one party" if a.colludes_with_parties == 1 else f"{a.colludes_with_parties} parties") for a in more]
        sentences += [f"{who} with the help of {parties}, as {name} fears" for who, parties in helps]
    return (*(plan.not_tried if given is None else _left_out_of(plan, given)), *sentences)


def _left_out_of(plan: AuditPlan, given: RunFolder) -> tuple[str, ...]:
    """What was not tried on a user's run. The author's own list concerns the plan's own runs only."""
    profile, model = given.agreement.profile.name, given.agreement.plan.model.name
    apart = any(is_for(trial, given) and not serves_itself(given, trial.expect_fail) for trial in plan.trials)
    beside = ", but for the baselines over the same documents" if apart else ""
    others = f"profiles other than {profile}{beside}; models other than {model}; settings other than this run's"
    refused = "whether the parties of this run refuse a sum below the least number of documents"
    lies = "what a coordinator that lies tries against the parties of this run"
    return (others, *([refused] if plan.refusals else []), *([lies] if plan.moves else []))


def _why_not(attack: str, plan: AuditPlan, given: RunFolder | None) -> str:
    """Why an attack of the plan was not tried on a user's run."""
    if given is None or attack not in {trial.attack for trial in plan.trials}:
        return ""
    if not attack_called(attack).reads(given.agreement.plan.model.name):
        return f": not made for the model {given.agreement.plan.model.name}"
    if not _asked(attack, given):
        return ": reads answers to a question that this run did not ask"
    if all(_lacks_epsilon(trial, given) for trial in plan.trials if trial.attack == attack):
        return f": measures an epsilon, and the profile {given.agreement.profile.name} of this run claims none"
    return ": needs a second run, made documents or lying parties, which this run has not"


def how_again(plan: AuditPlan, given: RunFolder | None = None, minutes: float | None = None) -> tuple[str, ...]:
    """The command that repeats the audit where it was given, with the paths as they were given."""
    words = ["securetm", "audit", plan.file or plan.name]
    words += ["--run", str(given.path)] if given is not None else []
    words += ["--minutes", f"{minutes:g}"] if minutes is not None else []
    return (shlex.join(words),)
