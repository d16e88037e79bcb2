"""The audit of a recorded run: its trials in order, within the time that is given, in several processes.

Each trial is kept as soon as it was made, and what an interrupted audit kept is not made again. What comes out is the same in
whichever process, and in whatever order.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace as with_changes
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it

from securetm.answers.block_answers import IN_PROCESS
from securetm.auditing.attack import Effort, GroundTruth
from securetm.auditing.attacks import attack_called
from securetm.auditing.bindings import bound_to
from securetm.auditing.evidence import today
from securetm.auditing.ground_truth import adopted
from securetm.auditing.parts.membership_game import OUTSIDE, SHARES, best_fits, found, pose, rounds_read, training
from securetm.auditing.plans import ROUNDS, AuditPlan, Trial, of_epsilon
from securetm.auditing.record import Audit, Finding, flat, with_findings
from securetm.auditing.recorded import MESSAGES, check_recorded, granted_to, serials_of, vocabulary_of
from securetm.auditing.regulators import bears_on
from securetm.auditing.runs import Demonstrations, baseline_of, check_baseline, no_baseline, place_for, serves_itself
from securetm.auditing.trials import Scored, case_on_run, findings, how_again, left_out, new_secret
from securetm.auditing.verdicts import corrected
from securetm.auditing.views import TOTAL, AdversaryView, NotTestable
from securetm.contracts import Engine, State
from securetm.data_classes import dataclass, field
from securetm.engines.local_pool import LocalPool
from securetm.errors import Mistake
from securetm.federation.folder import ADDED, RESULT, RunFolder, check_all, read_digests, reopen
from securetm.federation.questions import HELD_OUT, TRAIN
from securetm.federation.store import DamagedStore, read_json, write_bytes
from securetm.settings import digest
from securetm.stages import Stages, Unwatched
from securetm.threats import read_threat_model
from securetm.version import __version__
from securetm.wording import counted

# ---- which trials, in which order, and what they take ---------------------------------------------------------------
# The estimates are of one core: they order trials, and say what does not fit into the time that is left.

SHADOWS = "shadows"
FEWEST_ROUNDS = 5  # of a baseline: it shows that the attack works on these documents, and need not be the run again
FEWEST_SHADOWS = 10  # where time is short: with fewer, hardly any member is told
_USUAL = 1.5  # seconds of an attack on one run, by the kept evidence
_SLOW: Mapping[str, float] = {"gradient_matching": 25.0, "rare_documents": 10.0, "update_inversion": 10.0, "sum_inversion": 4.0}
_MANY_WORDS = 10_000  # of a list for which rare_documents takes as long; with fewer, there are fewer rare ones to compare
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
        different.setdefault(repr(with_changes(trial, profiles=(), run={})), trial)  # without what concerns the plan's own runs
    no_baselines = dict[str, str]()
    for profile in {trial.expect_fail for trial in different.values()}:
        try:
            check_baseline(given, profile, "this run")
        except Mistake as problem:
            no_baselines[profile] = str(problem)
    reasons, views = dict[str, None](), dict[str, list[Trial]]()
    for trial in different.values():
        if why := _why_not(trial, given, others) or no_baselines.get(trial.expect_fail, ""):
            reasons[not_made(trial, why)] = None
            continue
        # the attack, what it sees and its effort: trials that are alike in these share what the attack finds
        adversary = read_threat_model(trial.threat_model).adversary(trial.adversary)
        sight = adversary.name, adversary.behaviour, granted_to(attack_called(trial.attack), adversary), trial.helpers
        view = repr((trial.attack, sorted(trial.effort.items()), sight, trial.expect_fail, trial.confidence))
        views.setdefault(view, []).append(trial)
    worth = [PlannedTrial(first, expected(first, given), tuple(beside)) for first, *beside in views.values()]
    before: Counter[str] = Counter()
    placed = []
    for one in sorted(worth, key=lambda one: (one.seconds, -len(bears_on(one.trial.attack)))):
        placed.append(((SHADOWS in one.trial.effort, before[one.trial.attack]), one))  # what trains shadow models is last
        before[one.trial.attack] += 1
    return tuple(one for _, one in sorted(placed, key=lambda pair: pair[0])), tuple(reasons)


def _why_not(trial: Trial, given: RunFolder, others: int) -> str:
    """Why a trial can say nothing of this run; empty if it can, or if only its baseline is in the way."""
    parties = len(given.members)
    if trial.helpers >= parties:
        return f"{trial.helpers} parties help in it, and this run has {parties}, so nobody is left to attack"
    wanted = _asked_of_others(trial)
    if not wanted or others >= (needed := fewest_others(wanted, trial.confidence)):
        return ""
    return (
        f"to speak of {SHARES[wanted]} false alarms it needs {needed:,} documents that were not trained on, and this run has "
        f"{others:,}: train with a larger training.held_out"
    )


def not_made(trial: Trial, problem: str) -> str:
    return f"the attack “{attack_called(trial.attack).title}” ({trial.attack}): {problem}"


def expected(trial: Trial, given: RunFolder) -> float:
    alone, shadow = _expected_seconds(trial, given)
    return alone + trial.effort.get(SHADOWS, 0) * shadow


def may_fit(one: PlannedTrial, given: RunFolder, left: float) -> bool:
    """Whether so many seconds are enough but for shadow models, whose time is measured when they are begun."""
    return _expected_seconds(one.trial, given)[0] <= left


def in_time(trial: Trial, given: RunFolder, left: float, measured: float | None = None) -> Trial | None:
    """The trial with as many shadow models as so many seconds allow, at most its own; None if it does not fit.

    `measured` is what one shadow model takes, of the run and its baseline together.
    """
    alone, shadow = _expected_seconds(trial, given)
    shadow = shadow if measured is None else measured
    wanted = trial.effort.get(SHADOWS, 0)
    most = int((left - alone) / shadow) if shadow and wanted else wanted
    if left < alone or most < min(wanted, FEWEST_SHADOWS):
        return None
    return with_changes(trial, effort={**trial.effort, SHADOWS: most}) if most < wanted else trial


def _expected_seconds(trial: Trial, given: RunFolder) -> tuple[float, float]:
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


# ---- membership: enough documents that were not trained on ------------------------------------------------------------


def fewest_others(share: float, confidence: float) -> int:
    """How many documents that were not trained on are needed to show that at most this share of them is above a threshold."""
    return math.ceil(math.log(1 - corrected(confidence, 2)) / math.log1p(-share))


def _asked_of_others(trial: Trial) -> float:
    """The share of false alarms that the trial's measure speaks of; 0 of other measures."""
    return next((share for share in SHARES if trial.measure.startswith(found(share, "").removesuffix("()"))), 0.0)


def _at_more_alarms(trial: Trial, others: int) -> Trial:
    """The trial at the fewest false alarms that so many documents can speak of; as it is where none would do."""
    wanted = _asked_of_others(trial)
    enough = (share for share in sorted(SHARES) if share >= wanted and others >= fewest_others(share, trial.confidence))
    if not wanted or (share := next(enough, wanted)) == wanted:
        return trial
    return with_changes(trial, measure=trial.measure.replace(f"at {SHARES[wanted]} ", f"at {SHARES[share]} "))


def _held_out(given: RunFolder) -> int:
    """How many different documents no party trained on. Those that stand on both sides do not count."""
    words, sides = vocabulary_of(given), {}
    for name in given.members:
        documents = adopted(given, name, words)
        sides[name] = documents.for_question(TRAIN).counts, documents.for_question(HELD_OUT).counts
    held, others = ({name: both[side] for name, both in sides.items()} for side in (0, 1))
    posed = pose(GroundTruth(words, held, {}, others=others), {}, np.random.default_rng(0))
    return int((posed.answer == OUTSIDE).sum())


# ---- how long a shadow model takes on this machine now --------------------------------------------------------------
# Some rounds of one training are made, and each candidate is scored once: a run's record says what else its machine did then.

_FIRST = 4  # rounds that are made; the very first also loads compiled code


def seconds_of_shadow(trial: Trial, given: RunFolder, runs: Demonstrations, rounds: int, secret: bytes) -> float:
    """The seconds of one shadow model of the run and one of its baseline; 0 where the attack will say that it trains none."""
    folders = [given]
    if not serves_itself(given, trial.expect_fail):
        folders.append(baseline_of(given, trial.expect_fail, runs, rounds))
    seconds = 0.0
    for folder in folders:
        if not any(mechanism.once for mechanism in folder.agreement.profile.mechanisms):
            case = case_on_run(trial, folder, secret)
            with suppress(NotTestable):
                seconds += _seconds_of_training(case.posed(case)[0], TOTAL in case.attack.needs, trial.effort)
    return seconds


def _seconds_of_training(view: AdversaryView, reads_sums: bool, effort: Effort) -> float:
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


# ---- what an interrupted audit has found ----------------------------------------------------------------------------
# A file of results beside the run's records, written whole after each trial.

FOLDER, ENDING = "audits", ".unfinished"


class _Kept(Struct, frozen=True, forbid_unknown_fields=True):
    """The findings of one trial."""

    findings: tuple[Finding, ...]


class Unfinished:
    """The findings of an audit that has not ended. Results of another run, plan, version or day are not used."""

    def __init__(self, plan: AuditPlan, given: RunFolder, minutes: float | None, examples: int) -> None:
        self.path = given.path / FOLDER / f"{plan.name}{ENDING}"
        self._given, self._examples = given, examples
        digests = read_digests(given.path)
        files = sorted((place, one) for place, one in digests.files.items() if not place.startswith(ADDED))  # its own
        rows = sorted(digests.rows.items())
        self._about = digest([plan.name, str(minutes), __version__, today(), files, rows]).hex()
        self._trials: dict[str, list[dict[str, Any]]] = {}
        if self.path.is_file() and (there := read_json(self.path)).get("about") == self._about:
            self._trials = dict(there["trials"])

    def __len__(self) -> int:
        return len(self._trials)

    def findings(self, trial: Trial, tests: int, rounds: int) -> tuple[Finding, ...]:
        """The findings of this trial; empty if it was not made."""
        rows = self._trials.get(self._key(trial, tests, rounds))
        if rows is None:
            return ()
        try:
            return with_findings({"findings": rows}, _Kept).findings
        except ValueError as problem:
            raise DamagedStore(str(self.path), str(problem)) from problem

    def keep(self, trial: Trial, tests: int, rounds: int, found: tuple[Finding, ...]) -> None:
        shown = (replace(one, outcome=replace(one.outcome, examples=one.leaked[: self._examples])) for one in found)
        self._trials[self._key(trial, tests, rounds)] = [flat(one) for one in shown]
        content: Mapping[str, Any] = {"about": self._about, "trials": self._trials}
        write_bytes(self.path, json.dumps(content, ensure_ascii=False, allow_nan=False).encode())

    def remove(self) -> None:
        """Removes the file: the record of the whole audit is in its place."""
        self.path.unlink(missing_ok=True)

    def _key(self, trial: Trial, tests: int, rounds: int) -> str:
        """The trial, with all the code that its result depends on."""
        bound = bound_to(trial, self._given.agreement.plan.profile)  # its name, or the path of its file
        return digest([sorted(bound.items()), tests, rounds]).hex()


# ---- what a worker is given, and what it makes of it ----------------------------------------------------------------

MOST_PROCESSES = 4  # each holds the run's documents
_RESERVE = 1.2  # shadow models may take so many times what was measured of one


@dataclass(frozen=True)
class TrialsToMake:
    """Trials about one view of the run at this place, and its baseline; no trials where there is no time for them."""

    number: int
    trials: tuple[Trial, ...] = ()
    baseline: Path | None = None  # None: the run serves itself
    until: float = 0.0  # by time.perf_counter, which all processes of a machine share


@dataclass(frozen=True)
class TrialsMade:
    """The findings of each trial, what they took, and what was left where that was not enough."""

    number: int
    found: tuple[tuple[Finding, ...], ...] = ()
    seconds: float = 0.0
    left: float | None = None  # seconds, too few for its shadow models
    needed: float = 0.0


@dataclass
class OnRun:
    """Makes trials on a recorded run. A worker keeps what attacks found for the next trials."""

    run: Path
    place: Path
    rounds: int  # of a baseline
    tests: int  # of an epsilon
    secret: bytes = field(repr=False)
    _folders: dict[Path, RunFolder] = field(default_factory=dict, init=False, repr=False)
    _known: dict[object, Scored] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, task: TrialsToMake) -> TrialsMade:
        """The findings of these trials, with as many shadow models as there is time for."""
        if not task.trials:
            return TrialsMade(task.number)
        begun, first, trials = time.perf_counter(), task.trials[0], task.trials
        with threadpool_limits(1):  # linear algebra in several threads waits for itself on busy cores
            given, runs = self._opened(self.run), Demonstrations(self.place, Unwatched())
            if task.baseline is not None:
                runs.made[task.baseline.name] = self._opened(task.baseline)
            if SHADOWS in first.effort and task.until < math.inf:
                each = _RESERVE * seconds_of_shadow(first, given, runs, self.rounds, self.secret)
                left = task.until - time.perf_counter()
                trials = tuple(one for trial in trials if (one := in_time(trial, given, left, each)) is not None)
                if len(trials) < len(task.trials):
                    return TrialsMade(task.number, left=left, needed=each * first.effort[SHADOWS])
            found = tuple(findings(trial, runs, given, self.tests, self.rounds, self._known, self.secret) for trial in trials)
        return TrialsMade(task.number, found, time.perf_counter() - begun)

    def _opened(self, path: Path) -> RunFolder:
        if path not in self._folders:
            self._folders[path] = reopen(path)
        return self._folders[path]


def crew_of(number: int) -> Engine:
    """So many processes of this machine; one is this process itself. They end when this process does, however it ends."""
    return IN_PROCESS if number == 1 else LocalPool(workers=number)


# ---- the audit ------------------------------------------------------------------------------------------------------

_ENOUGH = 6.0  # expected seconds of attacks before what they took says how fast this machine is


@dataclass
class _OfRun:
    """One audit of a given run while it is made: the tasks of its workers, each decided on when a worker is free for it."""

    given: RunFolder
    runs: Demonstrations
    in_order: tuple[PlannedTrial, ...]
    kept: Unfinished | None
    limit: float  # seconds
    begun: float
    workers: int  # 0: as many as there are cores, and at most four
    late: list[tuple[PlannedTrial, float]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    found: dict[int, tuple[tuple[Finding, ...], ...]] = field(default_factory=dict)  # by place in the order
    expected: float = 0.0  # seconds of a core that has nothing else to do, of what was made
    taken: float = 0.0  # which it really took

    def __post_init__(self) -> None:
        worth = [one for one in self.in_order if may_fit(one, self.given, self.limit)]
        trials = [trial for one in worth for trial in one.trials]
        self.rounds = rounds_in_time(trials, self.given, self.limit)
        # all claims of an epsilon that are tested together may go wrong as rarely as one alone
        self.tests = 0 if self.given.agreement.budget is None else sum(map(of_epsilon, trials))
        if self.kept is not None:
            for number, one in enumerate(self.in_order):
                before = tuple(self.kept.findings(trial, self.tests, self.rounds) for trial in one.trials)
                if all(before):
                    self.found[number] = before
        self.waiting = [number for number in range(len(self.in_order)) if number not in self.found]
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.workers = max(min(self.workers or min(cores, MOST_PROCESSES), len(self.waiting)), 1)

    def carried_out(self) -> tuple[Finding, ...]:
        """The findings of every trial that fits into the time, in the order of the trials."""
        work = OnRun(self.given.path, self.runs.place, self.rounds, self.tests, new_secret())
        with closing(crew_of(self.workers)) as crew:
            for made in crew.map(work, cast("Sequence[TrialsToMake]", self)):
                one = self.in_order[made.number]
                if made.left is not None:
                    self.late.append((with_changes(one, seconds=made.needed), made.left))
                if not made.found:
                    continue
                self.expected, self.taken = self.expected + one.seconds, self.taken + made.seconds
                self.found[made.number] = made.found
                for trial, findings_of_it in zip(one.trials, made.found, strict=True):
                    if self.kept is not None:
                        self.kept.keep(trial, self.tests, self.rounds, findings_of_it)
        return tuple(one for number in sorted(self.found) for findings in self.found[number] for one in findings)

    def left(self) -> float:
        """The seconds left, in seconds of a core that has nothing else to do."""
        slower = max(self.taken / self.expected, 1.0) if self.expected >= _ENOUGH else 1.0
        return (self.limit - (time.perf_counter() - self.begun)) / slower

    def __len__(self) -> int:
        return len(self.waiting)

    def __getitem__(self, place: int) -> TrialsToMake:
        number = self.waiting[place]  # an IndexError where the tasks end
        one, left = self.in_order[number], self.left()
        if not may_fit(one, self.given, left):
            self.late.append((one, left))
            return TrialsToMake(number)
        profile, baseline = one.trial.expect_fail, None
        if problem := no_baseline(self.given, profile, self.runs, self.rounds):
            self.reasons.append(not_made(one.trial, problem))
            return TrialsToMake(number)
        rest = sum(self.in_order[later].seconds for later in self.waiting if later >= number) / self.workers
        said = f"{number + 1} of {len(self.in_order)}, {max(round(min(rest, self.left())), 1)} s left"
        self.runs.stages.stage(f"{said}: {one.trial.attack.replace('_', ' ')}", len(self.in_order))
        self.runs.stages.step(len(self.found))
        if not serves_itself(self.given, profile):
            baseline = baseline_of(self.given, profile, self.runs, self.rounds).path
        return TrialsToMake(number, one.trials, baseline, self.begun + self.limit)


def audit_of_run(
    plan: AuditPlan,
    given: RunFolder,
    trials: tuple[Trial, ...],
    keep: Path | None,
    stages: Stages,
    minutes: float | None,
    kept: Unfinished | None,
    workers: int,
    begun: float,
) -> Audit:
    """The audit: what cannot tell anything is not begun, and neither is what would end too long after it `begun`."""
    limit = math.inf if minutes is None else 60 * minutes
    in_order, reasons = planned(trials, given)
    with place_for(keep) as place, threadpool_limits(1):  # linear algebra in several threads waits for itself on busy cores
        made = _OfRun(given, Demonstrations(place, stages), in_order, kept, limit, begun, workers)
        found = made.carried_out()
    reasons += (*made.reasons, *_too_late(made.late, {one.attempt.attack for one in found}))
    if not found:
        raise Mistake(
            "no trial of the plan {plan!r} can tell anything of this run in that time: {why}",
            hint="give more time with --minutes, or choose another plan",
            plan=plan.name,
            why="; ".join(reasons),
        )
    untried, again = (*reasons, *left_out(plan, trials, given)), how_again(plan, given, minutes)
    name, seconds = given.path.resolve().name, time.perf_counter() - begun
    return Audit(plan.name, plan.title, name, found, untried, seconds, __version__, again, (), today())


def _too_late(late: Sequence[tuple[PlannedTrial, float]], made: Container[str]) -> Iterator[str]:
    """Why trials were not begun: a sentence for each attack, about the first of its trials."""
    left = min((left for _, left in late), default=0.0)
    for attack in dict.fromkeys(one.trial.attack for one, _ in late):
        first, *more = [one for one, _ in late if one.trial.attack == attack]
        takes = f"{math.ceil(first.seconds / 60)} min" if first.seconds > 60 else f"{math.ceil(first.seconds)} s"
        about = f"it takes about {takes} here, and {max(left, 0):.0f} s were left: give more with --minutes"
        beside = f" (and {counted(len(more), 'trial')} of it more)" if more else ""
        yield ("once more, with other settings: " if attack in made else "") + not_made(first.trial, about + beside)


def check_finished(given: RunFolder) -> None:
    """Refuses a run that was not finished, and a finished one with missing or changed files."""
    if not (given.path / RESULT).is_file() and not given.model.is_file():
        kept = given.path / "transcript" / MESSAGES
        begun = not given.with_content or (kept.is_file() and serials_of(given, (TRAIN,), 1))
        raise Mistake(
            "{path} is no finished run: {problem}",
            hint="go on with it (`securetm run --resume {path}`) until it ends; what its parties refuse has to be begun anew",
            path=str(given.path),
            problem="its training has not ended" if begun else "it holds no round of training",
        )
    check_recorded(given)
    for name in given.members:
        if not given.documents(name).is_file():
            raise Mistake(
                "{path} does not hold the documents of {party}, so nobody can say whether an attack guessed them",
                hint="a coordinator has none: audit a run of the same plan by `securetm run --record`, "
                "whose parties send the same messages",
                path=str(given.path),
                party=name,
            )
    check_all(given.path)
