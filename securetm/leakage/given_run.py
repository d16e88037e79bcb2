"""The audit of a recorded run: its trials in order, within the time that is given, each kept as soon as it was made.

It judges nothing itself. What an interrupted audit kept is not made again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it

from securetm.federation.file_digests import check_all
from securetm.federation.folder import RESULT, RunFolder
from securetm.federation.questions import TRAIN
from securetm.leakage.audit_plans import AuditPlan, Trial
from securetm.leakage.audit_record import Audit, Finding
from securetm.leakage.audit_schedule import PlannedTrial, in_time, not_made, planned, rounds_in_time, too_long
from securetm.leakage.corrections import of_epsilon
from securetm.leakage.demonstration import Demonstrations, place_for
from securetm.leakage.evidence import today
from securetm.leakage.leakage_errors import NotFinished, NothingInTime, NothingToJudgeBy
from securetm.leakage.own_baseline import no_baseline
from securetm.leakage.recorded import MESSAGES, check_recorded, serials_of
from securetm.leakage.trial_on_run import Scored, findings
from securetm.leakage.unfinished import Unfinished
from securetm.leakage.untried import how_again, left_out
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
class _OfRun:
    """One audit of a given run while it is made."""

    given: RunFolder
    runs: Demonstrations
    clock: TimeForAudit
    in_order: tuple[PlannedTrial, ...]
    kept: Unfinished | None
    late: list[tuple[PlannedTrial, float]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    known: dict[object, Scored] = field(default_factory=dict)  # trials on one attack and one view share what it found

    def __post_init__(self) -> None:
        worth = [one.trial for one in self.in_order if in_time(one.trial, self.given, self.clock.limit)]
        self.rounds = rounds_in_time(worth, self.given, self.clock.limit)
        self.tests = _claims_of_epsilon(worth, self.given)

    def carried_out(self) -> Iterable[Finding]:
        """The findings of every trial that fits into the time."""
        rest = sum(one.seconds for one in self.in_order)
        for number, one in enumerate(self.in_order, start=1):
            how_far = f"{number} of {len(self.in_order)}, {max(round(min(rest, self.clock.left)), 1)} s left"
            yield from self._of_trial(one, how_far)
            rest -= one.seconds

    def _of_trial(self, one: PlannedTrial, how_far: str) -> tuple[Finding, ...]:
        """The findings of one trial, made now or kept; none, and the reason, if it cannot be made."""
        if self.kept is not None and (before := self.kept.of(one.trial, self.tests, self.rounds)):
            return before
        left = self.clock.left
        if (trial := in_time(one.trial, self.given, left)) is None:
            self.late.append((one, left))
            return ()
        if problem := no_baseline(self.given, trial.expect_fail, self.runs, self.rounds):
            self.reasons.append(not_made(trial, problem))
            return ()
        begun = time.perf_counter()
        found = findings(trial, self.runs, self.given, self.tests, self.rounds, how_far, self.known)
        self.clock.took(one, time.perf_counter() - begun)
        if self.kept is not None:
            self.kept.keep(one.trial, self.tests, self.rounds, found)
        return found


def audit_of_run(
    plan: AuditPlan,
    given: RunFolder,
    trials: tuple[Trial, ...],
    keep: Path | None,
    stages: Stages,
    minutes: float | None,
    kept: Unfinished | None,
    begun: float,
) -> Audit:
    """The audit: what cannot tell anything is not begun, and neither is what would end too long after it `begun`."""
    clock = TimeForAudit(math.inf if minutes is None else 60 * minutes, begun)
    in_order, reasons = planned(trials, given)
    with place_for(keep) as place, threadpool_limits(1):  # linear algebra in several threads waits for itself on busy cores
        made = _OfRun(given, Demonstrations(place, stages), clock, in_order, kept)
        found = tuple(made.carried_out())
    reasons += (*made.reasons, *_each_once(made.late))
    if not found:
        raise NothingInTime(plan.name, "; ".join(reasons))
    untried, again = (*reasons, *left_out(plan, trials, given)), how_again(plan, given, minutes)
    name = given.path.resolve().name
    return Audit(plan.name, plan.title, name, found, untried, clock.gone, __version__, again, (), today())


def _each_once(late: Sequence[tuple[PlannedTrial, float]]) -> Iterable[str]:
    """Why trials were not begun: a sentence for each attack, about the first of its trials."""
    left = min((left for _, left in late), default=0.0)
    for attack in dict.fromkeys(one.trial.attack for one, _ in late):
        first, *more = [one for one, _ in late if one.trial.attack == attack]
        yield too_long(first, left, len(more))


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
