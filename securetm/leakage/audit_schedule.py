"""In which order the trials of a plan are made on a recorded run, what each is expected to take, and what is not begun.

It runs no attack. The estimates are of one core: they order trials, and say what does not fit into the time that is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from securetm.corpus.corpus import Corpus
from securetm.federation.documents import PartyDocuments
from securetm.federation.folder import RESULT, RunFolder
from securetm.federation.questions import HELD_OUT, TRAIN
from securetm.federation.store import read_json
from securetm.leakage.attack import GroundTruth
from securetm.leakage.attacks import attack_called
from securetm.leakage.audit_plans import ROUNDS, Trial
from securetm.leakage.intervals import of_each
from securetm.leakage.own_baseline import serves_itself
from securetm.leakage.parts.membership_game import OUTSIDE, SHARES, found, pose
from securetm.leakage.recorded import vocabulary_of
from securetm.leakage.regulators import CRITERIA, bears_on

SHADOWS = "shadows"
FEWEST_ROUNDS = 5  # of a baseline: it shows that the attack works on these documents, and need not be the run again
_USUAL = 3.0  # seconds of an attack on one run, by the kept evidence
_SLOW: Mapping[str, float] = {"gradient_matching": 50.0, "rare_documents": 20.0, "update_inversion": 15.0}
_LEAST_TELLING = len(CRITERIA)
_COMPUTING = 0.5  # the share of a recorded run's time that its parties and its model take, without messages


@dataclass(frozen=True)
class PlannedTrial:
    """A trial that can be made on a run, and the seconds that it is expected to take on the run and its baseline."""

    trial: Trial
    seconds: float


def planned(trials: Iterable[Trial], given: RunFolder) -> tuple[tuple[PlannedTrial, ...], tuple[str, ...]]:
    """The trials in the order in which they are made, and what cannot tell anything, with the reason.

    Trials that are the same on a user's run are made once. What takes least comes first, and of that what bears on most of the
    questions of regulators.
    """
    different: dict[str, Trial] = {}
    for trial in trials:
        different.setdefault(_as_tried(trial), trial)
    others = _held_out(given) if any(map(_asked_of_others, different.values())) else 0
    reasons = {key: _too_few(trial, others) for key, trial in different.items()}
    worth = [PlannedTrial(trial, expected(trial, given)) for key, trial in different.items() if not reasons[key]]
    in_order = sorted(worth, key=lambda one: (one.seconds, _LEAST_TELLING - len(bears_on(one.trial.attack))))
    return tuple(in_order), tuple(dict.fromkeys(reason for reason in reasons.values() if reason))


def expected(trial: Trial, given: RunFolder) -> float:
    """The seconds of the attack on the run and on its baseline."""
    runs = 1 if serves_itself(given, trial.expect_fail) else 2
    once = _SLOW.get(trial.attack, _USUAL) + trial.effort.get(SHADOWS, 0) * _COMPUTING * seconds_of(given)
    return runs * once


def seconds_of(given: RunFolder) -> float:
    """What the training took, by the run's own record."""
    path = given.path / RESULT
    return float(read_json(path).get("seconds") or 0.0) if path.is_file() else 0.0


def baseline_rounds(trials: Iterable[Trial], given: RunFolder) -> int:
    """As many rounds as these trials read of a baseline, and no more than the run has."""
    most = max((trial.effort[ROUNDS] for trial in trials), default=FEWEST_ROUNDS)
    return min(given.agreement.plan.training.rounds, max(most, FEWEST_ROUNDS))


def too_long(one: PlannedTrial, left: float) -> str:
    """Why a trial is not begun with so many seconds left."""
    minutes = math.ceil(one.seconds / 60)
    about = f"it takes about {minutes} min here, and {max(left, 0):.0f} s were left: give more with --minutes"
    return f"the attack “{attack_called(one.trial.attack).title}” ({one.trial.attack}): {about}"


def _as_tried(trial: Trial) -> str:
    """The trial without what concerns the plan's own runs, to be compared."""
    return repr(replace(trial, profiles=(), run={}))


# ---- membership: enough documents that were not trained on ------------------------------------------------------------


def fewest_others(share: float, confidence: float) -> int:
    """How many documents that were not trained on are needed to show that at most this share of them is above a threshold."""
    return math.ceil(math.log(1 - of_each(confidence)) / math.log1p(-share))


def _asked_of_others(trial: Trial) -> float:
    """The share of false alarms that the trial's measure speaks of; 0 of other measures."""
    return next((share for share in SHARES if trial.measure.startswith(found(share, "").removesuffix("()"))), 0.0)


def _too_few(trial: Trial, others: int) -> str:
    """Why a trial of membership could say nothing; empty if it can, and for other trials."""
    wanted = _asked_of_others(trial)
    if not wanted or others >= (needed := fewest_others(wanted, trial.confidence)):
        return ""
    alarms, title = SHARES[wanted], attack_called(trial.attack).title
    why = (
        f"to speak of {alarms} false alarms it needs {needed:,} documents that were not trained on, and this run has {others:,}"
    )
    return f"the attack “{title}” ({trial.attack}): {why}: train with a larger training.held_out"


def _held_out(given: RunFolder) -> int:
    """How many different documents no party trained on. Those that stand on both sides do not count."""
    words, sides = vocabulary_of(given), {}
    for name in given.members:
        documents = PartyDocuments(Corpus.load(given.party(name) / "corpus.npz"))
        documents.adopt(words, given.agreement)
        sides[name] = documents.for_question(TRAIN).counts, documents.for_question(HELD_OUT).counts
    held, others = ({name: both[side] for name, both in sides.items()} for side in (0, 1))
    posed = pose(GroundTruth(words, held, {}, others=others), {}, np.random.default_rng(0))
    return int((posed.answer == OUTSIDE).sum())
