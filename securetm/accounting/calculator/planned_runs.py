"""What each of several runs over the same documents may spend under one ledger, and when the budget ends.

The rule is the ledger's own (`ledger/privacy_filter.py`). Whoever reads the profile hands over what one run spends at a noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from securetm.accounting.calculator.budget_report import Promise, Question, Spends
from securetm.accounting.calculator.persons import People
from securetm.accounting.calibration import BudgetTooSmall
from securetm.accounting.composition import total
from securetm.accounting.delta_limits import sentence_delta
from securetm.accounting.ledger.accounts import Accounts, RunAccount
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.contracts import Budget
from securetm.figures import Curve, Figure, ReportTable
from securetm.stages import Stages
from securetm.wording import counted, downward, upward

MOST_RUNS = 600
_FINEST, _COARSEST = 0.05, 1000.0
_PRECISE = 1e-3
_BAR = 10  # cells
_COMPOSED = 24  # places at which loss distributions are composed; runs in between are told what a later one spends
_NOT_ALONE = (
    "The ledger counts as if each run were chosen by what the last one showed, so that nobody has to keep to this plan. It "
    "adds Renyi divergences up, and has more to count than loss distributions of runs that are fixed in advance."
)
_RETIRED = (
    "Retired documents leave with what they spent, and a new data set begins a ledger of its own. It must hold no document and "
    "no person of the old one: who is in both has spent both budgets. Leaving documents out of a run gives nothing back, and "
    "new documents that join an old ledger count as if they had spent what it holds."
)
_ALLOWED = (
    "`securetm budget ledger FILE --allow E` raises a budget later, by an entry. What was promised is then the largest epsilon "
    "that was ever in force, also for the runs before. So ask for the whole time at once."
)
_UNBOUNDED = "This bounds what the planned runs add. All runs together are unbounded, because of"
_AUDITED = (
    "An audit of a recorded run enters nothing: it reads what the run sent, which is paid for. Its findings are figures of "
    "documents without noise, and no epsilon covers them: they stay with whoever holds the documents. Trainings that an audit "
    "makes on the documents spend as runs do (--runs-per-audit). No ledger of the documents knows of them by itself, because "
    "`securetm audit PLAN` gives its runs a trial's budget: they are counted here, so that there is room for them."
)


@dataclass(frozen=True)
class RunInPlan:
    """One run: in which year, of which data set, and for what."""

    number: int  # in the ledger of its data set, from 1
    year: int
    data_set: int
    purpose: str


@dataclass(frozen=True)
class Schedule:
    """How often documents are trained on, and for how long."""

    years: int = 5
    runs_per_year: int = 1
    audits_per_year: int = 0
    runs_per_audit: int = 0  # trainings that one audit makes on the documents; 0: it attacks a recorded run
    retire_after: int = 0  # years after which documents are used no more; 0: they stay

    @property
    def each_year(self) -> int:
        """Runs in a year, those of audits included."""
        return self.runs_per_year + self.audits_per_year * self.runs_per_audit

    @property
    def in_one_ledger(self) -> int:
        """The most runs that one document takes part in."""
        return self.each_year * min(self.years, self.retire_after or self.years)

    def runs(self) -> tuple[RunInPlan, ...]:
        """All runs, in order."""
        found, of_one, number, data_set = [], self.retire_after or self.years, 0, 0
        for year in range(1, self.years + 1):
            if (year - 1) // of_one + 1 > data_set:
                data_set, number = data_set + 1, 0
            for place in range(self.each_year):
                number += 1
                purpose = "training" if place < self.runs_per_year else "audit that trains"
                found.append(RunInPlan(number, year, data_set, purpose))
        return tuple(found)


@dataclass(frozen=True)
class Spending:
    """What one run spends by its noise, and what the first run over the documents spends in addition."""

    at: Callable[[float], Spends]
    first: Spends = ()  # of the list of words, which later runs use again
    possible: Callable[[float], bool] = lambda _: True  # whether a mechanism can draw so much noise


@dataclass(frozen=True)
class Often:
    """How often documents can be trained on so that each model is of use: for people, as data, and a warning."""

    table: ReportTable
    record: Mapping[str, Any]
    too_often: str | None = None  # where more runs are planned


@dataclass(frozen=True)
class RunsAhead:
    """Runs that are planned under the budget of one ledger, and what that holds before them."""

    budget: Budget
    spending: Spending
    before: tuple[RunAccount, ...] = ()  # the runs with a bound that the ledger holds
    unbounded_because: str = ""  # of what it holds

    @property
    def said_budget(self) -> str:
        """The budget in words."""
        return f"{upward(self.budget.epsilon)} per {self.budget.unit.value}"

    def spends(self, runs: int, noise: float) -> Spends:
        """All spends after so many more runs."""
        return tuple(spend for account in self.after(runs, noise).runs() for spend in account.spends())

    def after(self, runs: int, noise: float) -> Accounts:
        """The accounts of the ledger after so many more runs, whose spends add up by the ledger's own rule."""
        accounts = Accounts(self.budget)
        planned = [(account.run, account.spends(), 1) for account in self.before]
        each = self.spending.at(noise) if runs else ()
        if runs:
            first = self.spending.first if not self.before else ()
            planned.append(("the next run", [*first, *each], 1))
        if runs > 1:
            planned.append(("all later runs", list(each), runs - 1))
        for run, spends, times in planned:
            account = RunAccount(run, "", "", "")
            for spend in spends:
                accounts.add(account, replace(spend, count=1), spend.count * times)
        return accounts

    def fits(self, runs: int, noise: float) -> bool:
        """Whether the ledger admits so many more runs."""
        return self.after(runs, noise).is_kept()

    def least_noise(self, runs: int) -> float:
        """The least noise with which it admits so many more runs, rounded upwards to four places."""
        if not self.fits(runs, _COARSEST):
            reason = f"{counted(runs, 'run')} spend more even at noise {_COARSEST:,.0f}"
            raise BudgetTooSmall(
                "plan", self.said_budget, reason, "plan fewer runs or rounds, or allow a larger epsilon or delta"
            )
        low, high = _FINEST, _COARSEST
        while high > low * (1 + _PRECISE / 4):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.spending.possible(middle) and self.fits(runs, middle) else (middle, high)
        return math.ceil(high * 1e4) / 1e4

    def lasting(self, most: int, noise: float) -> int:
        """How many more runs it admits, up to so many; at least one."""
        lasts = next((runs - 1 for runs in range(1, most + 1) if not self.fits(runs, noise)), most)
        if lasts == 0:
            instead = "give more noise, fewer rounds, or a larger epsilon"
            raise BudgetTooSmall("run", self.said_budget, f"at noise {noise:g} the first run spends more than is left", instead)
        return lasts

    def alone(self, noise: float) -> float:
        """What a run at this noise spends, if it is the only one."""
        return total(self.spending.at(noise), ALONE * self.budget.delta).epsilon


@dataclass(frozen=True)
class PlannedRuns:
    """A schedule under a budget, and the noise of its runs."""

    profile: str
    schedule: Schedule
    ledger: RunsAhead
    noise: float
    promise: Promise
    rounds: int
    people: People
    settings: dict[str, Any]
    notes: tuple[str, ...]
    run: str  # how the command of a run begins
    often: Often | None = None

    def question(self, progress: Stages) -> Question:
        """What each run may spend, and what is left after it."""
        ledger, noise, often, budget = self.ledger, self.noise, self.often, self.ledger.budget
        planned, said = self.schedule.in_one_ledger, ledger.said_budget
        lasts = ledger.lasting(planned, noise)
        rows = self._rows(lasts, progress)
        alone, refused = ledger.alone(noise), next((row["year"] for row in rows if not row["admitted"]), None)
        ends = (
            f"The budget lasts for {counted(lasts, 'run')}: the ledger refuses the run after it, in year {refused}, and "
            f"all later ones over these documents, of {counted(planned, 'run')} planned."
        )
        return Question(
            f"{counted(lasts, 'run')} of {counted(self.rounds, 'round')} under {self.profile}, one ledger of {said}",
            self.promise,
            ledger.spends(lasts, noise),
            budget.delta,
            "none",
            self.settings,
            warnings=(
                sentence_delta(budget.delta, self.people.units, self.people.protected),
                ends if lasts < planned else None,
                f"{_UNBOUNDED} {why}." if (why := ledger.unbounded_because) else None,
                often.too_often if often else None,
            ),
            notes=(*self.notes, *self.people.notes(), _NOT_ALONE, _AUDITED, _RETIRED, _ALLOWED),
            tables=(*((often.table,) if often else ()), self._each(alone), self._over_time(rows)),
            plots=(self._plot(rows),),
            found={
                "noise": noise,
                "rounds": self.rounds,
                "epsilon_per_run": alone,
                "lasts_runs": lasts,
                "runs": rows,
                "how_often": dict(often.record) if often else None,
                "budget": {"epsilon": budget.epsilon, "delta": budget.delta},
            },
            first=(
                f"After the last run the ledger holds epsilon = {upward(rows[-1]['spent'])} of {said}, whatever the runs show. "
                "If all of them are fixed in advance, the promise is:"
            ),
        )

    def _rows(self, lasts: int, progress: Stages) -> list[dict[str, Any]]:
        """Every run with what the ledger holds after it; a run that it refuses spends nothing."""
        progress.stage("what is left after each run", lasts)
        ledger, noise, epsilon = self.ledger, self.noise, self.ledger.budget.epsilon
        spent, fixed = {}, {}
        above, every = math.inf, -(-lasts // _COMPOSED)
        for run in range(lasts, 0, -1):
            spent[run] = ledger.after(run, noise).spent().epsilon
            if (lasts - run) % every == 0:  # else what later runs spend
                above = total(ledger.spends(run, noise), ledger.budget.delta).epsilon
            fixed[run] = above
            progress.step(lasts + 1 - run)
        return [
            {
                "run": place,
                "year": one.year,
                "data_set": one.data_set,
                "purpose": one.purpose,
                "admitted": one.number <= lasts,
                "spent": spent[held],
                "left": epsilon - spent[held],
                "fixed_in_advance": fixed[held],
            }
            for place, one in enumerate(self.schedule.runs(), start=1)
            for held in (min(one.number, lasts),)
        ]

    def _each(self, alone: float) -> ReportTable:
        """What a run is given to keep to the plan."""
        budget, noise = self.ledger.budget, self.noise
        share = budget.epsilon / (len(self.ledger.before) + self.schedule.in_one_ledger)
        rows = (
            ("epsilon of a run, if it were the only one", upward(alone)),
            ("noise over the bound on a row", f"{noise:,.5g}"),
            ("rounds", f"{self.rounds:,}"),
            ("epsilon divided by the runs, which would be less", upward(share)),
        )
        caption = (
            f"Each run: {self.run} --rounds {self.rounds} "
            f"--epsilon {budget.epsilon:g} --set privacy.delta={budget.delta:g} --set privacy.noise={noise:g} "
            "--ledgers FOLDER. In a federation the "
            f"plan says the same, and PARTY.toml the budget of all runs: [privacy] epsilon = {budget.epsilon:g}, "
            f"delta = {budget.delta:g}."
        )
        return ReportTable("What each run may spend", ("", f"per {budget.unit.value}"), rows, caption)

    def _over_time(self, rows: list[dict[str, Any]]) -> ReportTable:
        sets = ("data set",) if self.schedule.retire_after else ()
        shown = tuple(
            (
                row["run"],
                row["year"],
                *(row["data_set"] for _ in sets),
                row["purpose"] if row["admitted"] else f"{row['purpose']}: refused",
                upward(row["spent"]),
                downward(row["left"]),
                _bar(row["spent"] / self.ledger.budget.epsilon),
                upward(row["fixed_in_advance"]),
            )
            for row in rows
        )
        columns = ("run", "year", *sets, "for", "spent", "left", "of it all", "if fixed in advance")
        caption = (
            f"Epsilon per {self.ledger.budget.unit.value} after the run, as the ledger counts it. Last column: by loss "
            "distributions, if all runs are fixed in advance and made whatever they show."
        )
        return ReportTable("Over time", columns, shown, caption)

    def _plot(self, rows: list[dict[str, Any]]) -> Figure:
        held, limit = float(len(rows)), self.ledger.budget.epsilon
        lines = (
            Curve("by the ledger", tuple((float(row["run"]), row["spent"]) for row in rows)),
            Curve("fixed in advance", tuple((float(row["run"]), row["fixed_in_advance"]) for row in rows)),
            Curve("budget", ((1.0, limit), (held, limit))),
        )
        return Figure("epsilon over the runs", "runs", f"epsilon per {self.ledger.budget.unit.value}", lines)


def _bar(share: float) -> str:
    """A bar of text; what is spent is never shown as less than a cell."""
    full = min(_BAR, math.ceil(share * _BAR)) if share > 0 else 0
    return "█" * full + "░" * (_BAR - full)
