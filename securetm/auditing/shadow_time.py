"""How long a shadow model takes on this machine now: some rounds of one training are made, and each candidate is scored once.

It attacks nothing. What a run's own record says of its time depends on what else its machine did then.
"""

from __future__ import annotations

import time
from itertools import islice

import numpy as np

from securetm.auditing.adversary_view import AdversaryView
from securetm.auditing.attack import Effort
from securetm.auditing.attacks import attack_called
from securetm.auditing.audit_plans import ROUNDS, Trial
from securetm.auditing.demonstration import Demonstrations, claimed_by
from securetm.auditing.leakage_errors import NotTestable
from securetm.auditing.own_baseline import baseline_of, serves_itself
from securetm.auditing.parts.document_likelihood import best_fits
from securetm.auditing.parts.shadow_models import rounds_read, training
from securetm.auditing.reading import TOTAL
from securetm.auditing.trial_on_run import TrialOnRun, posed
from securetm.contracts import State
from securetm.federation.folder import RunFolder
from securetm.threats import read_threat_model

_FIRST = 4  # rounds that are made; the very first also loads compiled code


def seconds_of_shadow(trial: Trial, given: RunFolder, runs: Demonstrations, rounds: int, secret: bytes) -> float:
    """The seconds of one shadow model of the run and one of its baseline; 0 where the attack will say that it trains none."""
    folders = [given]
    if not serves_itself(given, trial.expect_fail):
        folders.append(baseline_of(given, trial.expect_fail, runs, rounds))
    return sum(_on(trial, folder, secret) for folder in folders)


def _on(trial: Trial, folder: RunFolder, secret: bytes) -> float:
    adversary = read_threat_model(trial.threat_model).adversary(trial.adversary)
    case = TrialOnRun(trial, attack_called(trial.attack), folder, None, adversary, claimed_by(folder), 0, {}, secret)
    if any(mechanism.once for mechanism in folder.agreement.profile.mechanisms):
        return 0.0
    try:
        view, _ = posed(case)
    except NotTestable:
        return 0.0
    return _seconds(view, TOTAL in case.attack.needs, trial.effort)


def _seconds(view: AdversaryView, reads_sums: bool, effort: Effort) -> float:
    """The last of the first rounds, as often as there are rounds, and the scoring: the first one or two take longer."""
    public, candidates = view.public, view.question
    rng = np.random.default_rng(0)
    rows = np.flatnonzero(rng.random(candidates.shape[0]) >= public.plan.training.held_out)
    begun = [time.perf_counter()]
    state: State = {}
    for _, _, after in islice(training(candidates, rows, view.vocabulary(), public, rng), _FIRST):
        begun.append(time.perf_counter())
        state = after
    best_fits(candidates, public.model.topics(state))
    scoring = time.perf_counter() - begun[-1]
    scored = len(rounds_read(public, effort[ROUNDS])) if reads_sums else 1
    return public.plan.training.rounds * (begun[-1] - begun[-2]) + scored * scoring
