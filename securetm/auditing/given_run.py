"""The audit of a recorded run: its trials in order, within the time that is given, each kept as soon as it was made.

It judges nothing itself. What an interrupted audit kept is not made again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import overload

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it

from securetm.auditing.audit_plans import AuditPlan, Trial
from securetm.auditing.audit_record import Audit, Finding
from securetm.auditing.audit_schedule import PlannedTrial, may_fit, not_made, planned, rounds_in_time, too_long
from securetm.auditing.corrections import of_epsilon
from securetm.auditing.demonstration import Demonstrations, place_for
from securetm.auditing.evidence import today
from securetm.auditing.leakage_errors import NotFinished, NothingInTime, NothingToJudgeBy
from securetm.auditing.own_baseline import baseline_of, no_baseline, serves_itself
from securetm.auditing.recorded import MESSAGES, check_recorded, serials_of
from securetm.auditing.trial_on_run import new_secret
from securetm.auditing.trial_processes import OnRun, TrialsMade, TrialsToMake, crew_of, processes
from securetm.auditing.unfinished import Unfinished
from securetm.auditing.untried import how_again, left_out
from securetm.federation.file_digests import check_all
from securetm.federation.folder import RESULT, RunFolder
from securetm.federation.questions import TRAIN
from securetm.stages import Stages
from securetm.version import __version__

_ENOUGH = 6.0  # expected seconds of attacks before what they took says how fast this machine is


@dataclass
class TimeForAudit:
    """How much time is left, and how much longer attacks take here than on a core that has nothing else to do."""

    limit: float
    begun: float = field(default_factory=time.perf_counter)
    expected: float = 0.0
    taken: float = 0.0

    @property
    def gone(self) -> float:
        """The seconds since it began."""
        return time.perf_counter() - self.begun

    @property
    def left(self) -> float:
        """The seconds left, in seconds of a core that has nothing else to do."""
        slower = max(self.taken / self.expected, 1.0) if self.expected >= _ENOUGH else 1.0
        return (self.limit - self.gone) / slower

    def took(self, one: PlannedTrial, seconds: float) -> None:
        """Notes what one trial took, beside what was expected of it."""
        self.expected, self.taken = self.expected + one.seconds, self.taken + seconds


@dataclass
class _OfRun(Sequence[TrialsToMake]):
    """One audit of a given run while it is made: the tasks of its workers, each decided on when a worker is free for it."""

    given: RunFolder
    runs: Demonstrations
    clock: TimeForAudit
    in_order: tuple[PlannedTrial, ...]
    kept: Unfinished | None
    wanted: int  # processes; 0: as many as there are cores
    late: list[tuple[PlannedTrial, float]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    found: dict[int, tuple[tuple[Finding, ...], ...]] = field(default_factory=dict)  # by place in the order

    def __post_init__(self) -> None:
        worth = [one for one in self.in_order if may_fit(one, self.given, self.clock.limit)]
        trials = [trial for one in worth for trial in one.trials]
        self.rounds = rounds_in_time(trials, self.given, self.clock.limit)
        self.tests = _claims_of_epsilon(trials, self.given)
        self.waiting = [number for number, one in enumerate(self.in_order) if not self._is_kept(number, one)]
        self.workers = processes(self.wanted, len(self.waiting))

    def carried_out(self) -> tuple[Finding, ...]:
        """The findings of every trial that fits into the time, in the order of the trials."""
        work = OnRun(self.given.path, self.runs.place, self.rounds, self.tests, new_secret())
        crew = crew_of(self.workers)
        try:
            for made in crew.map(work, self):
                self._take(made)
        finally:
            crew.close()
        return tuple(one for number in sorted(self.found) for findings in self.found[number] for one in findings)

    def __len__(self) -> int:
        return len(self.waiting)

    @overload
    def __getitem__(self, place: int) -> TrialsToMake: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[TrialsToMake]: ...
    def __getitem__(self, place: int | slice) -> TrialsToMake | Sequence[TrialsToMake]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        number = self.waiting[place]  # an IndexError where the tasks end
        one, left = self.in_order[number], self.clock.left
        if not may_fit(one, self.given, left):
            self.late.append((one, left))
            return TrialsToMake(number)
        if problem := no_baseline(self.given, one.trial.expect_fail, self.runs, self.rounds):
            self.reasons.append(not_made(one.trial, problem))
            return TrialsToMake(number)
        self._say(number, one)
        return TrialsToMake(number, one.trials, self._baseline(one.trial), self.clock.begun + self.clock.limit)

    def _say(self, number: int, one: PlannedTrial) -> None:
        """One line: how far it is, and what is tried now."""
        rest = sum(self.in_order[later].seconds for later in self.waiting if later >= number) / self.workers
        left = max(round(min(rest, self.clock.left)), 1)
        title = f"{number + 1} of {len(self.in_order)}, {left} s left: {one.trial.attack.replace('_', ' ')}"
        self.runs.stages.stage(title, len(self.in_order))
        self.runs.stages.step(len(self.found))

    def _baseline(self, trial: Trial) -> Path | None:
        if serves_itself(self.given, trial.expect_fail):
            return None
        return baseline_of(self.given, trial.expect_fail, self.runs, self.rounds).path

    def _is_kept(self, number: int, one: PlannedTrial) -> bool:
        """Whether all its trials were made before; then their findings are taken."""
        before = tuple(self.kept.of(trial, self.tests, self.rounds) for trial in one.trials) if self.kept is not None else ()
        if before and all(before):
            self.found[number] = before
        return number in self.found

    def _take(self, made: TrialsMade) -> None:
        """Keeps what came of a task."""
        one = self.in_order[made.number]
        if made.left is not None:
            self.late.append((replace(one, seconds=made.needed), made.left))
        if not made.found:
            return
        self.clock.took(one, made.seconds)
        self.found[made.number] = made.found
        for trial, found in zip(one.trials, made.found, strict=True):
            if self.kept is not None:
                self.kept.keep(trial, self.tests, self.rounds, found)


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
    clock = TimeForAudit(math.inf if minutes is None else 60 * minutes, begun)
    in_order, reasons = planned(trials, given)
    with place_for(keep) as place, threadpool_limits(1):  # linear algebra in several threads waits for itself on busy cores
        made = _OfRun(given, Demonstrations(place, stages), clock, in_order, kept, workers)
        found = made.carried_out()
    reasons += (*made.reasons, *_each_once(made.late, {one.attempt.attack for one in found}))
    if not found:
        raise NothingInTime(plan.name, "; ".join(reasons))
    untried, again = (*reasons, *left_out(plan, trials, given)), how_again(plan, given, minutes)
    name = given.path.resolve().name
    return Audit(plan.name, plan.title, name, found, untried, clock.gone, __version__, again, (), today())


def _each_once(late: Sequence[tuple[PlannedTrial, float]], made: Container[str]) -> Iterable[str]:
    """Why trials were not begun: a sentence for each attack, about the first of its trials."""
    left = min((left for _, left in late), default=0.0)
    for attack in dict.fromkeys(one.trial.attack for one, _ in late):
        first, *more = [one for one, _ in late if one.trial.attack == attack]
        yield ("once more, with other settings: " if attack in made else "") + too_long(first, left, len(more))


def _claims_of_epsilon(trials: Iterable[Trial], given: RunFolder) -> int:
    """How many claims of an epsilon these trials test on a run: all together may go wrong as rarely as one alone."""
    return 0 if given.agreement.budget is None else sum(map(of_epsilon, trials))


def check_finished(given: RunFolder) -> None:
    """Refuses a run that was not finished, and a finished one with missing or changed files."""
    if not (given.path / RESULT).is_file() and not given.model.is_file():
        kept = given.path / "transcript" / MESSAGES
        begun = not given.with_content or (kept.is_file() and serials_of(given, (TRAIN,), 1))
        raise NotFinished(str(given.path), "its training has not ended" if begun else "it holds no round of training")
    check_recorded(given)
    for name in given.members:
        if not given.documents(name).is_file():
            raise NothingToJudgeBy(str(given.path), name)
    check_all(given.path)
