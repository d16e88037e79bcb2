"""One trial of an audit plan: the attack on the unprotected baseline, then on runs that claim protection, and the verdicts.

An attack gets what its adversary sees. This module compares its guesses with the ground truth.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as with_changes
from typing import Any

import numpy as np
from msgspec.structs import replace

from securetm.auditing.adversary_view import MODEL, VOCABULARY, AdversaryView
from securetm.auditing.attack import Attack, Estimate, GroundTruth, Proportion, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.audit_plans import ROUNDS, Trial
from securetm.auditing.audit_record import About, AttackedRun, AttackOutcome, Attempt, Finding, Measured
from securetm.auditing.controls import of_chance
from securetm.auditing.corrections import corrected
from securetm.auditing.demonstration import Demonstrations, claimed_by, claims
from securetm.auditing.evidence_hashes import bound_to
from securetm.auditing.ground_truth import colluding_parties_of, ground_truth_of
from securetm.auditing.leakage_errors import BrokenAttack, NotTestable
from securetm.auditing.malicious_coordinator import MaliciousRounds
from securetm.auditing.malicious_party import Corruption, MaliciousParties
from securetm.auditing.measured_figures import is_sound, measured
from securetm.auditing.networked import OverNetwork
from securetm.auditing.own_baseline import baseline_of, serves_itself
from securetm.auditing.recorded import granted_to, questions_of, rounds_read, view_of
from securetm.auditing.verdicts import NOT_TESTED, judged_alone, with_baseline
from securetm.contracts import Adversary, Budget
from securetm.entropy import OperatingSystem
from securetm.errors import SecuretmError
from securetm.federation.folder import RunFolder
from securetm.mechanisms.noising import PRIVATE
from securetm.plans.reading import unusual_settings
from securetm.threats import read_threat_model
from securetm.wording import counted

_SEED = 20_21  # of the control's random numbers; a fixed one makes a report repeatable

Scored = tuple[Score, Score, str, float]  # of the attack, of random numbers, why it was not tried, the share that took part


@dataclass(frozen=True)
class TrialOnRun:
    """One trial on one run of one profile."""

    trial: Trial
    attack: Attack
    folder: RunFolder
    again: RunFolder | None
    adversary: Adversary
    claimed: Budget | None
    tests: int  # claims of an epsilon that are tested beside it
    bound: Mapping[str, str]  # hashes of all that the result depends on; empty for a user's run
    secret: bytes = field(repr=False)  # the judge's: what it asks is drawn from it, so that it is the same in any process
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
        if self.of_epsilon and self.attack.allowed is not None and self.claimed is not None:
            return self.attack.allowed(self.trial.measure, self.claimed)
        return self.trial.refuted_from


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
    attack, secret = attack_called(trial.attack), secret or new_secret()
    threats = read_threat_model(trial.threat_model)
    adversary = threats.adversary(trial.adversary)
    others = [name for name in trial.profiles if name != trial.expect_fail]
    if given is None:
        folders = [(name == trial.expect_fail, *_runs(trial, runs, name)) for name in (trial.expect_fail, *others)]
    else:
        folders = [(True, baseline_of(given, trial.expect_fail, runs, rounds), None)]
        folders += [] if serves_itself(given, trial.expect_fail) else [(False, given, None)]
    runs.stages.stage(f"attack: {attack.name.replace('_', ' ')}", len(folders))
    found = []
    for done, (baseline, folder, again) in enumerate(folders, start=1):
        bound = bound_to(trial, folder.agreement.profile.name) if given is None else {}
        shared = {} if known is None else known
        case = TrialOnRun(trial, attack, folder, again, adversary, claimed_by(folder), tests, bound, secret, shared)
        found.append(_finding(case, dict(threats.accepts).get(trial.claim, ""), baseline))
        runs.stages.step(done)
    return with_baseline(tuple(found))


def new_secret() -> bytes:
    """What a judge draws its questions from: whoever could guess it knew the answers."""
    return OperatingSystem().bytes(16)


def _runs(trial: Trial, runs: Demonstrations, profile: str) -> tuple[RunFolder, RunFolder | None]:
    """The run that is attacked, and the one to compare it with."""
    attack = attack_called(trial.attack)
    corruption: Corruption | None = None
    if trial.liars:
        corruption = MaliciousParties(trial.liars, trial.attack, attack.malicious_vector)
    elif trial.meddled:
        corruption = MaliciousRounds(trial.meddled, trial.attack, attack.malicious_state, trial.effort)
    elif trial.network:
        corruption = OverNetwork(attack.varied)
    again = runs.run(profile, trial.run, trial.without) if trial.without else None
    return runs.run(profile, trial.run, canaries=trial.canaries, corruption=corruption), again


def _finding(case: TrialOnRun, accepted: str, baseline: bool) -> Finding:
    trial, attack = case.trial, case.attack
    outcome = _outcome(case)
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
        claimed=claims(case.folder, trial.claim, trial.adversary, trial.helpers),
        accepted=accepted,
        sees=granted_to(attack, case.adversary),
        **attack_texts(attack),
    )
    return Finding(attempt, _run(case), outcome, about)


def attack_texts(attack: Attack) -> dict[str, Any]:
    """The texts of an attack that a report shows."""
    return {name: getattr(attack, name) for name in ("citation", "cost", "given", "limits", "remark")}


def _run(case: TrialOnRun) -> AttackedRun:
    folder, claimed = case.folder, case.claimed
    return AttackedRun(
        profile=folder.agreement.profile.name,
        model=folder.agreement.plan.model.name,
        name=folder.path.resolve().name,
        setting=_setting(folder) + (", over a network" if case.trial.network else ""),
        epsilon=None if claimed is None else claimed.epsilon,
        delta=None if claimed is None else claimed.delta,
        epsilon_unit="" if claimed is None else claimed.unit.value,
        cores=os.cpu_count() or 0,
        python=platform.python_version(),
    )


def _outcome(case: TrialOnRun) -> AttackOutcome:
    """The figures of an attack and of its control, and the verdict, before the baseline is looked at."""
    begun, name = time.perf_counter(), case.trial.measure
    score, chance, why, reachable = _scores(case)
    found, by_chance = (_measured(case, one, reachable) for one in (score, chance))
    found = {each: replace(one, by_chance=by_chance[each].value) for each, one in found.items()}
    verdict, reason = judged_alone(found[name], by_chance[name], case.refuted_from)
    return AttackOutcome(
        measured=found[name],
        verdict=NOT_TESTED if why else verdict,
        why=why or reason,
        seconds=time.perf_counter() - begun,
        chance=by_chance[name],
        beside=tuple(one for each, one in found.items() if each != name),
        examples=score.examples,
        curves=score.curves,
        spent="nothing" if why else _spent(case, found[name]),
    )


def _measured(case: TrialOnRun, judged: Score, reachable: float) -> dict[str, Measured]:
    """Each declared measure with its interval. An attack must give exactly the measures that it declares."""
    declared, scores = case.attack.measures, judged.measures
    for name in {**declared, **scores}:
        worth = scores.get(name) if name in declared else None
        if not isinstance(worth, Proportion | Estimate) or not is_sound(worth):
            raise BrokenAttack(case.attack.name, f"the measure {name!r}")
    return {name: measured(name, unit, scores[name], case.confidence, reachable) for name, unit in declared.items()}


def _scores(case: TrialOnRun) -> Scored:
    """What the attack finds in this view. Trials of other claims about the same view share it."""
    trial, folders = case.trial, (case.folder.path, case.again.path if case.again else None)
    key = (case.attack.name, tuple(sorted(trial.effort.items())), _sight(case), folders, case.confidence)
    if key not in case.known:
        case.known[key] = _scored(case)
    return case.known[key]


def _sight(case: TrialOnRun) -> tuple[object, ...]:
    """Who looks, and at what."""
    adversary = case.adversary
    return adversary.name, adversary.behaviour, granted_to(case.attack, adversary), case.trial.helpers


def _scored(case: TrialOnRun) -> Scored:
    """The score of the attack, and of the same attack on random numbers; why it could not be tried; and the share of documents
    that took part."""
    attack, effort = case.attack, case.trial.effort
    try:
        view, truth = _view_and_truth(case)
        score = attack.judge(attack.attack(view, effort), truth)
        chance = attack.judge(attack.attack(of_chance(view, _SEED), effort), truth)
    except NotTestable as problem:
        return _nothing(attack, problem.why)
    except Exception as failure:
        if case.bound or isinstance(failure, SecuretmError):  # on runs of our own, a fault of an attack has to be seen
            raise
        return _nothing(attack, f"the attack itself failed on this run ({type(failure).__name__}): please report it")
    return score, chance, "", truth.reachable


def _nothing(attack: Attack, why: str) -> Scored:
    nothing = Score({name: Proportion(0, 0) for name in attack.measures})
    return nothing, nothing, why, 1.0


def _view_and_truth(case: TrialOnRun) -> tuple[AdversaryView, GroundTruth]:
    """The adversary's view with what it prepared, and the ground truth with the answer."""
    (view, truth), attack, effort = posed(case), case.attack, case.trial.effort
    if attack.prepare is not None:
        view = with_changes(view, prepared=attack.prepare(with_changes(view, seen={}, weights=None, again=None), effort))
    return view, truth


def posed(case: TrialOnRun) -> tuple[AdversaryView, GroundTruth]:
    """The adversary's view with its question, and the ground truth with the answer."""
    attack, effort, folder = case.attack, case.trial.effort, case.folder
    rounds, helpers = effort[ROUNDS], colluding_parties_of(folder, case.trial.helpers)
    view = with_changes(view_of(folder, case.adversary, attack, rounds), insiders=helpers)
    if case.again is not None:
        view = with_changes(view, again=view_of(case.again, case.adversary, attack, rounds))
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, rounds).values())
    truth = with_changes(truth, helpers=tuple(helper.name for helper in helpers), confidence=case.confidence)
    if attack.pose is not None:
        challenge = attack.pose(truth, effort, np.random.default_rng(_drawn_from(case)))
        view = with_changes(view, question=challenge.question, redrawn=challenge.redrawn)
        truth = with_changes(truth, answer=challenge.answer)
    return view, truth


def _drawn_from(case: TrialOnRun) -> int:
    """The seed of what this attack is asked about this view: nobody knows it who does not know the judge's secret."""
    asked = repr((case.attack.name, _sight(case), case.folder.path.resolve().name)).encode()
    return int.from_bytes(hashlib.sha256(case.secret + asked).digest())


# ---- the run and the effort, in words ------------------------------------------------------------------------------


def _setting(folder: RunFolder) -> str:
    """The number of parties, of documents in each answer and of rounds, and every unusual setting."""
    plan = folder.agreement.plan
    batch = plan.model.settings.get("batch", 0)
    each = f"{_amount(batch, 'documents')} of each per answer" if batch else "all documents of each in every answer"
    own = "".join(f", {name} = {value}" for name, value in unusual_settings(plan).items() if name not in ("batch", "device"))
    return f"{len(folder.members)} parties, {each}, {_amount(plan.training.rounds, 'rounds')}{own}"


def _spent(case: TrialOnRun, found: Measured) -> str:
    """The effort that was spent: a run may have fewer rounds, or documents, than the plan asks for."""
    effort, attack = case.trial.effort, case.attack
    in_rounds = set(granted_to(attack, case.adversary)) - {MODEL, VOCABULARY}
    read = rounds_read(case.folder, attack.questions, effort[ROUNDS]) if in_rounds else 0
    had = {name: _amount(amount, name) for name, amount in effort.items()}
    had[ROUNDS] = _amount(read, ROUNDS) if read else "no round of training"
    if found.of is not None and f"{found.unit}s" in effort:
        had[f"{found.unit}s"] = _amount(found.of, f"{found.unit}s")
    return ", ".join(had.values())


def _amount(amount: int, of: str) -> str:
    return counted(amount, of.removesuffix("s"), of)
