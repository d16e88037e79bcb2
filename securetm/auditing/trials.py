"""One trial of an audit plan: the attack on the unprotected baseline, then on runs that claim protection, and the verdicts.

An attack gets what its adversary sees; its guesses are compared here with the ground truth.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace as with_changes
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from msgspec.structs import replace

from securetm.auditing.attack import Attack, GroundTruth, Proportion, Score
from securetm.auditing.attacks import attack_called, attack_names
from securetm.auditing.bindings import bound_to
from securetm.auditing.ground_truth import colluding_parties_of, ground_truth_of
from securetm.auditing.judging import of_chance, outcome_of
from securetm.auditing.plans import ROUNDS, AuditPlan, Trial
from securetm.auditing.record import NOT_TESTED, About, AttackedRun, Attempt, Finding, Measured
from securetm.auditing.recorded import claimed_by, claims, granted_to, questions_of, serials_of, view_of
from securetm.auditing.roles import HONEST, malicious_parties, malicious_rounds, over_network
from securetm.auditing.runs import Demonstrations, baseline_of, serves_itself
from securetm.auditing.verdicts import corrected, with_baseline
from securetm.auditing.views import MODEL, VOCABULARY, AdversaryView, NotTestable
from securetm.contracts import Adversary, Budget
from securetm.data_classes import dataclass, field
from securetm.entropy import OperatingSystem
from securetm.errors import SecuretmError
from securetm.federation.folder import RunFolder
from securetm.federation.questions import TRAIN, before_training
from securetm.mechanisms.noising import PRIVATE
from securetm.plans.recommend import unusual_settings
from securetm.stages import Stages
from securetm.threats import read_threat_model
from securetm.wording import counted

_SEED = 20_21  # of the control's random numbers; a fixed one makes a report repeatable

Scored = tuple[Score, Score, str, float]  # of the attack, of random numbers, why it was not tried, the share that took part


@dataclass(frozen=True, kw_only=True)
class Case:
    """One trial on one thing that claims something or nothing: a run of a profile, or topics made elsewhere."""

    trial: Trial
    attack: Attack
    adversary: Adversary
    claimed: Budget | None
    claims: bool  # whether what is attacked makes the claim that is tried
    run: AttackedRun
    posed: Callable[[Case], tuple[AdversaryView, GroundTruth]]  # the view with its question, and the truth with the answer
    spent: Callable[[Case, Measured], str]  # the effort, in words
    place: object  # what is looked at
    tests: int = 1  # claims of an epsilon that are tested beside it
    bound: Mapping[str, str] = field(default_factory=dict)  # hashes of all that the result depends on, where it is kept
    known: dict[object, Scored] = field(default_factory=dict)  # what attacks of this audit found in this view already

    @property
    def confidence(self) -> float:
        """Corrected for the number of tests (Bonferroni) where an epsilon is tested."""
        return corrected(self.trial.confidence, self.tests) if self.of_epsilon else self.trial.confidence

    @property
    def of_epsilon(self) -> bool:
        """Whether the trial tests a claim of an epsilon, and the attack declares what the claim allows."""
        return self.attack.allowed is not None and self.claimed is not None and self.trial.claim == PRIVATE

    @property
    def refuted_from(self) -> float:
        """The limit that the claimed epsilon sets, or the plan's own if none is claimed."""
        if self.attack.allowed is not None and self.claimed is not None and self.trial.claim == PRIVATE:
            return self.attack.allowed(self.trial.measure, self.claimed)
        return self.trial.refuted_from

    def sight(self) -> tuple[object, ...]:
        """Who looks, and at what."""
        return self.adversary.name, self.adversary.behaviour, granted_to(self.attack, self.adversary), self.trial.helpers


def case_on_run(
    trial: Trial,
    folder: RunFolder,
    secret: bytes,
    *,
    again: RunFolder | None = None,
    tests: int = 0,
    bound: Mapping[str, str] | None = None,
    known: dict[object, Scored] | None = None,
) -> Case:
    """The trial on this run of a profile, beside another one where it compares two.

    The judge draws from its secret what it asks, so that this is the same in any process.
    """
    plan, claimed, profile = folder.agreement.plan, claimed_by(folder), folder.agreement.profile.name
    batch = plan.model.settings.get("batch", 0)
    each = f"{_amount(batch, 'documents')} of each per answer" if batch else "all documents of each in every answer"
    own = "".join(f", {name} = {value}" for name, value in unusual_settings(plan).items() if name not in ("batch", "device"))
    setting = f"{len(folder.members)} parties, {each}, {_amount(plan.training.rounds, 'rounds')}{own}"
    setting += ", over a network" if trial.network else ""
    return Case(
        trial=trial,
        attack=attack_called(trial.attack),
        adversary=read_threat_model(trial.threat_model).adversary(trial.adversary),
        claimed=claimed,
        claims=claims(folder, trial.claim, trial.adversary, trial.helpers),
        run=attacked_run(profile, plan.model.name, folder.path.resolve().name, setting, claimed),
        posed=partial(_posed_on_run, folder, again, secret),
        spent=partial(_spent_on_run, folder),
        place=(folder.path, again.path if again else None),
        tests=tests,
        bound=bound or {},
        known={} if known is None else known,
    )


def _posed_on_run(folder: RunFolder, again: RunFolder | None, secret: bytes, case: Case) -> tuple[AdversaryView, GroundTruth]:
    """The view of the run, and what its parties really held."""
    attack, effort = case.attack, case.trial.effort
    rounds, helpers = effort[ROUNDS], colluding_parties_of(folder, case.trial.helpers)
    view = with_changes(view_of(folder, case.adversary, attack, rounds), insiders=helpers)
    if again is not None:
        view = with_changes(view, again=view_of(again, case.adversary, attack, rounds))
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, rounds).values())
    truth = with_changes(truth, helpers=tuple(helper.name for helper in helpers), confidence=case.confidence)
    if attack.pose is not None:
        # nobody who does not know the judge's secret knows the seed of what this attack is asked about this view
        asked = repr((attack.name, case.sight(), folder.path.resolve().name)).encode()
        seed = int.from_bytes(hashlib.sha256(secret + asked).digest())
        challenge = attack.pose(truth, effort, np.random.default_rng(seed))
        view = with_changes(view, question=challenge.question, redrawn=challenge.redrawn)
        truth = with_changes(truth, answer=challenge.answer)
    return view, truth


def _spent_on_run(folder: RunFolder, case: Case, found: Measured) -> str:
    """A run may have fewer rounds, or documents, than the plan asks for."""
    effort, attack = case.trial.effort, case.attack
    in_rounds = TRAIN in attack.questions and set(granted_to(attack, case.adversary)) - {MODEL, VOCABULARY}
    read = len(serials_of(folder, (TRAIN,), effort[ROUNDS])) if in_rounds else 0
    had = {name: _amount(amount, name) for name, amount in effort.items()}
    had[ROUNDS] = _amount(read, ROUNDS) if read else "no round of training"
    if found.of is not None and f"{found.unit}s" in effort:
        had[f"{found.unit}s"] = _amount(found.of, f"{found.unit}s")
    return ", ".join(had.values())


def findings(
    trial: Trial,
    runs: Demonstrations,
    given: RunFolder | None,
    tests: int,
    rounds: int = 0,
    known: dict[object, Scored] | None = None,
    secret: bytes = b"",
) -> tuple[Finding, ...]:
    """The baseline first, then each profile; or the given run after a baseline over the same documents, of so many rounds."""
    secret, folders = secret or new_secret(), list[tuple[RunFolder, RunFolder | None]]()  # each with the one to compare it with
    if given is not None:
        folders.append((baseline_of(given, trial.expect_fail, runs, rounds), None))
        folders += [] if serves_itself(given, trial.expect_fail) else [(given, None)]
    else:
        attack, corruption = attack_called(trial.attack), HONEST
        if trial.liars:
            corruption = malicious_parties(trial.liars, attack)
        elif trial.meddled:
            corruption = malicious_rounds(trial.meddled, attack, trial.effort)
        elif trial.network:
            corruption = over_network(varied=attack.varied)
        for name in (trial.expect_fail, *(name for name in trial.profiles if name != trial.expect_fail)):
            again = runs.run(name, trial.run, trial.without) if trial.without else None
            folders.append((runs.run(name, trial.run, canaries=trial.canaries, corruption=corruption), again))
    cases = []
    for folder, again in folders:
        bound = bound_to(trial, folder.agreement.profile.name) if given is None else {}
        cases.append(case_on_run(trial, folder, secret, again=again, tests=tests, bound=bound, known=known))
    return carried_out(cases[0], cases[1:], runs.stages)


def carried_out(baseline: Case, others: Iterable[Case], stages: Stages) -> tuple[Finding, ...]:
    """The findings of one attack, first on the baseline: the verdicts on the others depend on it."""
    cases, found = (baseline, *others), list[Finding]()
    stages.stage(f"attack: {baseline.attack.name.replace('_', ' ')}", len(cases))
    for case in cases:
        found.append(_finding(case, baseline=case is baseline))
        stages.step(len(found))
    return with_baseline(tuple(found))


def new_secret() -> bytes:
    """What a judge draws its questions from: whoever could guess it knew the answers."""
    return OperatingSystem().bytes(16)


def _finding(case: Case, *, baseline: bool) -> Finding:
    trial, attack, begun = case.trial, case.attack, time.perf_counter()
    # what the attack finds in this view; trials of other claims about the same view share it
    key = (attack.name, tuple(sorted(trial.effort.items())), case.sight(), case.place, case.confidence)
    if key not in case.known:
        case.known[key] = _scored(case)
    score, chance, why, reachable = case.known[key]
    scores = (score, chance)
    outcome = outcome_of(attack.name, attack.measures, trial.measure, scores, case.refuted_from, case.confidence, reachable)
    if why:
        outcome = replace(outcome, verdict=NOT_TESTED, why=why)
    attempt = Attempt(
        attack=attack.name,
        threat_model=trial.threat_model,
        adversary=trial.adversary,
        claim=trial.claim,
        refuted_from=case.refuted_from,
        confidence=case.confidence,
        baseline=baseline,
        effort=", ".join(_amount(amount, name) for name, amount in trial.effort.items()),
        helpers=trial.helpers,
        liars=trial.liars,
        canaries=trial.canaries,
        without=trial.without,
        tests=case.tests if case.of_epsilon else 1,
        bound=case.bound,
    )
    about = About(
        title=attack.title,
        claimed=case.claims,
        accepted=dict(read_threat_model(trial.threat_model).accepts).get(trial.claim, ""),
        sees=granted_to(attack, case.adversary),
        **attack_texts(attack),
    )
    spent = "nothing" if why else case.spent(case, outcome.measured)
    return Finding(attempt, case.run, replace(outcome, seconds=time.perf_counter() - begun, spent=spent), about)


def attack_texts(attack: Attack) -> dict[str, Any]:
    return {name: getattr(attack, name) for name in ("citation", "cost", "given", "limits", "remark")}


def attacked_run(profile: str, model: str, name: str, setting: str, claimed: Budget | None) -> AttackedRun:
    """What was attacked on this machine, and what it claims."""
    return AttackedRun(
        profile=profile,
        model=model,
        name=name,
        setting=setting,
        epsilon=None if claimed is None else claimed.epsilon,
        delta=None if claimed is None else claimed.delta,
        epsilon_unit="" if claimed is None else claimed.unit.value,
        cores=os.cpu_count() or 0,
        python=platform.python_version(),
    )


def _scored(case: Case) -> Scored:
    """The score of the attack, and of the same attack on random numbers; why it could not be tried; and the share of documents
    that took part."""
    attack, effort = case.attack, case.trial.effort
    try:
        view, truth = case.posed(case)
        if attack.prepare is not None:
            view = with_changes(view, prepared=attack.prepare(with_changes(view, seen={}, weights=None, again=None), effort))
        score = attack.judge(attack.attack(view, effort), truth)
        chance = attack.judge(attack.attack(of_chance(view, _SEED), effort), truth)
    except NotTestable as problem:
        why = problem.why
    except Exception as failure:
        if case.bound or isinstance(failure, SecuretmError):  # on runs of our own, a fault of an attack has to be seen
            raise
        why = f"the attack itself failed on this run ({type(failure).__name__}): please report it"
    else:
        return score, chance, "", truth.reachable
    nothing = Score({name: Proportion(0, 0) for name in attack.measures})
    return nothing, nothing, why, 1.0


def _amount(amount: int, of: str) -> str:
    return counted(amount, of.removesuffix("s"), of)


# ---- what an audit did not try, and how to repeat it ----------------------------------------------------------------


def is_for(trial: Trial, given: RunFolder) -> bool:
    """Whether a trial can use a user's run: no second run, no canaries, honest roles, answers that it reads, and its epsilon.

    Of a run over a network only the judge's own counts which documents took part.
    """
    alone = not any((trial.without, trial.canaries, trial.liars, trial.meddled, trial.network))
    reads = attack_called(trial.attack).reads(given.agreement.plan.model.name)
    return alone and reads and _asked(trial.attack, given) and not _lacks_epsilon(trial, given)


def _asked(attack: str, given: RunFolder) -> bool:
    return not {*before_training(given.agreement), TRAIN}.isdisjoint(attack_called(attack).questions)


def _lacks_epsilon(trial: Trial, given: RunFolder) -> bool:
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
    if given is None:
        return (*plan.not_tried, *sentences)
    # the author's own list concerns the plan's own runs only
    profile, model = given.agreement.profile.name, given.agreement.plan.model.name
    apart = any(is_for(trial, given) and not serves_itself(given, trial.expect_fail) for trial in plan.trials)
    beside = ", but for the baselines over the same documents" if apart else ""
    others = f"profiles other than {profile}{beside}; models other than {model}; settings other than this run's"
    refused = "whether the parties of this run refuse a sum below the least number of documents"
    lies = "what a coordinator that lies tries against the parties of this run"
    return (others, *([refused] if plan.refusals else []), *([lies] if plan.moves else []), *sentences)


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
