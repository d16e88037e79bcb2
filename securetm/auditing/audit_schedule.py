"""In which order the trials of a plan are made on a recorded run, what each is expected to take, and what is not begun.

It runs no attack. The estimates are of one core: they order trials, and say what does not fit into the time that is left.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from securetm.auditing.attack import GroundTruth
from securetm.auditing.attacks import attack_called
from securetm.auditing.audit_plans import ROUNDS, Trial
from securetm.auditing.intervals import of_each
from securetm.auditing.leakage_errors import RunNotPossible
from securetm.auditing.own_baseline import check_baseline, serves_itself
from securetm.auditing.parts.membership_game import OUTSIDE, SHARES, found, pose
from securetm.auditing.recorded import granted_to, vocabulary_of
from securetm.auditing.regulators import CRITERIA, bears_on
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RESULT, RunFolder
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.questions import HELD_OUT, TRAIN
from securetm.federation.store import read_json
from securetm.threats import read_threat_model
from securetm.wording import counted

SHADOWS = "shadows"
FEWEST_ROUNDS = 5  # of a baseline: it shows that the attack works on these documents, and need not be the run again
FEWEST_SHADOWS = 10  # where time is short: with fewer, hardly any member is told
_USUAL = 1.5  # seconds of an attack on one run, by the kept evidence
_SLOW: Mapping[str, float] = {"gradient_matching": 25.0, "rare_documents": 10.0, "update_inversion": 10.0, "sum_inversion": 4.0}
_MANY_WORDS = 10_000  # of a list for which rare_documents takes as long; with fewer, there are fewer rare ones to compare
_LEAST_TELLING = len(CRITERIA)
_FOR_BASELINE = 0.4  # the share of the time that its training may take
_COMPUTING = 0.25  # the share of a recorded run's time that its parties and its model take, without messages


@dataclass(frozen=True)
class PlannedTrial:
    """A trial that can be made on a run, and the seconds that it is expected to take on the run and its baseline.

    `beside` are trials of other claims, or by other measures, about the same attack on the same view: they take no more time.
    """

    trial: Trial
    seconds: float
    beside: tuple[Trial, ...] = ()

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All its trials."""
        return (self.trial, *self.beside)


def planned(trials: Iterable[Trial], given: RunFolder) -> tuple[tuple[PlannedTrial, ...], tuple[str, ...]]:
    """The trials in the order in which they are made, and what cannot tell anything, with the reason.

    Trials that are the same on a user's run are made once. Members are told at more false alarms where few documents were held
    out. Each attack comes once before any comes again; what takes least comes first, and of that what bears on most of the
    questions of regulators. Trials about one view are made together.
    """
    trials, different = tuple(trials), dict[str, Trial]()
    others = _held_out(given) if any(map(_asked_of_others, trials)) else 0
    for trial in (_at_more_alarms(one, others) for one in trials):
        different.setdefault(_as_tried(trial), trial)
    without = {profile: _no_baseline(given, profile) for profile in {trial.expect_fail for trial in different.values()}}
    reasons = {
        key: _why_not(trial, given, without[trial.expect_fail]) or _too_few(trial, others) for key, trial in different.items()
    }
    views: dict[str, list[Trial]] = {}
    for key, trial in different.items():
        if not reasons[key]:
            views.setdefault(_view_of(trial), []).append(trial)
    worth = [PlannedTrial(first, expected(first, given), tuple(beside)) for first, *beside in views.values()]
    return _in_order(worth), tuple(dict.fromkeys(reason for reason in reasons.values() if reason))


def _view_of(trial: Trial) -> str:
    """The attack, what it sees and its effort: trials that are alike in these share what the attack finds."""
    adversary = read_threat_model(trial.threat_model).adversary(trial.adversary)
    sight = adversary.name, adversary.behaviour, granted_to(attack_called(trial.attack), adversary), trial.helpers
    return repr((trial.attack, sorted(trial.effort.items()), sight, trial.expect_fail, trial.confidence))


def _in_order(worth: Iterable[PlannedTrial]) -> tuple[PlannedTrial, ...]:
    """By what trials take and tell: each attack once before any comes again, and last those that train shadow models."""
    by_cost = sorted(worth, key=lambda one: (one.seconds, _LEAST_TELLING - len(bears_on(one.trial.attack))))
    before: Counter[str] = Counter()
    placed = []
    for one in by_cost:
        placed.append(((SHADOWS in one.trial.effort, before[one.trial.attack]), one))
        before[one.trial.attack] += 1
    return tuple(one for _, one in sorted(placed, key=lambda pair: pair[0]))


def expected(trial: Trial, given: RunFolder) -> float:
    """The seconds of the attack on the run and on its baseline."""
    alone, shadow = _seconds(trial, given)
    return alone + trial.effort.get(SHADOWS, 0) * shadow


def may_fit(one: PlannedTrial, given: RunFolder, left: float) -> bool:
    """Whether so many seconds are enough but for shadow models, whose time is measured when they are begun."""
    return _seconds(one.trial, given)[0] <= left


def in_time(trial: Trial, given: RunFolder, left: float, measured: float | None = None) -> Trial | None:
    """The trial with as many shadow models as so many seconds allow, at most its own; None if it does not fit.

    `measured` is what one shadow model takes, of the run and its baseline together.
    """
    alone, shadow = _seconds(trial, given)
    shadow = shadow if measured is None else measured
    wanted = trial.effort.get(SHADOWS, 0)
    most = int((left - alone) / shadow) if shadow and wanted else wanted
    if left < alone or most < min(wanted, FEWEST_SHADOWS):
        return None
    return replace(trial, effort={**trial.effort, SHADOWS: most}) if most < wanted else trial


def _seconds(trial: Trial, given: RunFolder) -> tuple[float, float]:
    """The seconds of the attack on run and baseline without shadow models, and of one shadow model of each."""
    once = _SLOW.get(trial.attack, _USUAL) * trial.effort.get("parts", 1)  # a search in so many parts of an answer
    if trial.attack == "rare_documents":
        once = max(once * min(len(vocabulary_of(given)) / _MANY_WORDS, 1.0) ** 2, _USUAL)
    alone = serves_itself(given, trial.expect_fail)
    runs = 1.0 if alone else 1.0 + baseline_rounds([trial], given) / given.agreement.plan.training.rounds
    return (1 if alone else 2) * once, runs * _COMPUTING * seconds_of(given)


def seconds_of(given: RunFolder) -> float:
    """What the training took, by the run's own record."""
    path = given.path / RESULT
    return float(read_json(path).get("seconds") or 0.0) if path.is_file() else 0.0


def baseline_rounds(trials: Iterable[Trial], given: RunFolder) -> int:
    """As many rounds as these trials read of a baseline, and no more than the run has."""
    most = max((trial.effort[ROUNDS] for trial in trials), default=FEWEST_ROUNDS)
    return min(given.agreement.plan.training.rounds, max(most, FEWEST_ROUNDS))


def rounds_in_time(trials: Iterable[Trial], given: RunFolder, limit: float) -> int:
    """The rounds of a baseline: as many as its trials read, and fewer where their training would take most of the time."""
    wanted, each = baseline_rounds(trials, given), seconds_of(given) / given.agreement.plan.training.rounds
    fit = math.floor(_FOR_BASELINE * limit / each) if each and math.isfinite(limit) else wanted
    return min(wanted, max(fit, FEWEST_ROUNDS))


def too_long(one: PlannedTrial, left: float, more: int = 0) -> str:
    """Why a trial is not begun with so many seconds left, and neither are so many more of the same attack."""
    takes = f"{math.ceil(one.seconds / 60)} min" if one.seconds > 60 else f"{math.ceil(one.seconds)} s"
    about = f"it takes about {takes} here, and {max(left, 0):.0f} s were left: give more with --minutes"
    return not_made(one.trial, about + (f" (and {counted(more, 'trial')} of it more)" if more else ""))


def _no_baseline(given: RunFolder, profile: str) -> str:
    """Why no baseline under this profile can be made over the run's documents; empty if one can."""
    try:
        check_baseline(given, profile, "this run")
    except RunNotPossible as problem:
        return str(problem)
    return ""


def _why_not(trial: Trial, given: RunFolder, no_baseline: str) -> str:
    """Why a trial cannot be made on this run; empty if it can."""
    parties = len(given.members)
    nobody_left = f"{trial.helpers} parties help in it, and this run has {parties}, so nobody is left to attack"
    problem = nobody_left if trial.helpers >= parties else no_baseline
    return not_made(trial, problem) if problem else ""


def not_made(trial: Trial, problem: str) -> str:
    """Says that a trial was not made, and why."""
    return f"the attack “{attack_called(trial.attack).title}” ({trial.attack}): {problem}"


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


def _at_more_alarms(trial: Trial, others: int) -> Trial:
    """The trial at the fewest false alarms that so many documents can speak of; as it is where none would do."""
    wanted = _asked_of_others(trial)
    enough = (share for share in sorted(SHARES) if share >= wanted and others >= fewest_others(share, trial.confidence))
    if not wanted or (share := next(enough, wanted)) == wanted:
        return trial
    return replace(trial, measure=trial.measure.replace(f"at {SHARES[wanted]} ", f"at {SHARES[share]} "))


def _too_few(trial: Trial, others: int) -> str:
    """Why a trial of membership could say nothing; empty if it can, and for other trials."""
    wanted = _asked_of_others(trial)
    if not wanted or others >= (needed := fewest_others(wanted, trial.confidence)):
        return ""
    alarms, advice = SHARES[wanted], "train with a larger training.held_out"
    why = (
        f"to speak of {alarms} false alarms it needs {needed:,} documents that were not trained on, and this run has {others:,}"
    )
    return not_made(trial, f"{why}: {advice}")


def _held_out(given: RunFolder) -> int:
    """How many different documents no party trained on. Those that stand on both sides do not count."""
    words, sides = vocabulary_of(given), {}
    for name in given.members:
        documents = PartyDocuments(Corpus.load(given.party(name) / "corpus.npz").gathered())
        documents.adopt(words, given.agreement)
        sides[name] = documents.for_question(TRAIN).counts, documents.for_question(HELD_OUT).counts
    held, others = ({name: both[side] for name, both in sides.items()} for side in (0, 1))
    posed = pose(GroundTruth(words, held, {}, others=others), {}, np.random.default_rng(0))
    return int((posed.answer == OUTSIDE).sum())
