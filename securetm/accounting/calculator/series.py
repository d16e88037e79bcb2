"""The runs that a ledger holds as one series: what each of them added, what is left, and when it ends at the pace so far."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from securetm.accounting.calculator.runs_ahead import RunsAhead, Spending
from securetm.accounting.composition import largest
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.accounts import RunAccount
from securetm.data_classes import dataclass

MOST = 200  # further runs that are tried
_YEAR = timedelta(days=365.25)


@dataclass(frozen=True)
class RunOfSeries:
    """One run: what it spent by itself, and what all runs up to it had spent together."""

    run: str
    profile: str
    began: str
    answers: int
    alone: float | None  # None: it has no bound
    together: float | None


@dataclass(frozen=True)
class Series:
    """All runs of one ledger, and how it goes on. Where one of them has no bound, nothing is forecast."""

    owner: str
    data_set: str  # the name of the file
    unit: str
    epsilon: float  # of the budget
    delta: float
    runs: tuple[RunOfSeries, ...]
    left: float | None
    further: int | None  # runs like the last one that still fit, up to `MOST`
    each: timedelta | None  # between two runs so far, or as it was said
    ends: str = ""  # when the first run that no longer fits would be due

    @property
    def more(self) -> bool:
        """Whether even more of them may fit than were tried."""
        return self.further == MOST

    @property
    def unbounded(self) -> tuple[str, ...]:
        return tuple(one.run for one in self.runs if one.alone is None)


def series_of(path: Path, per_year: float = 0.0) -> Series:
    """The series of this ledger. Without a number of runs per year, the pace is that of the runs so far."""
    with Ledger.read(path) as ledger:
        accounts, budget, owner, orders = ledger.runs(), ledger.budget, ledger.owner, ledger.orders
        whole = ledger.spent().epsilon
    shown, bounded = list[RunOfSeries](), list[RunAccount]()
    for account in accounts:
        together = alone = None
        if not account.unbounded:
            bounded.append(account)
            alone = account.total(budget).epsilon
        if not any(one.unbounded for one in accounts[: accounts.index(account) + 1]):
            together = RunsAhead(budget, Spending(lambda _: ()), tuple(bounded), orders=orders).after(0, 1.0).spent().epsilon
        began = account.began[:16].replace("T", " ")
        shown.append(RunOfSeries(account.run, account.profile, began, account.answers.total(), alone, together))
    if len(bounded) < len(accounts) or not bounded:
        return Series(owner, path.stem, budget.unit.value, budget.epsilon, budget.delta, tuple(shown), None, None, None)
    last, times = tuple(bounded[-1].spends()), [datetime.fromisoformat(one.began) for one in bounded]
    ahead = RunsAhead(budget, Spending(lambda _: last), tuple(bounded), orders=orders)
    further = largest(lambda runs: ahead.fits(runs, 1.0), MOST)
    each = _YEAR / per_year if per_year else (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else None
    ends = f"{times[-1] + (further + 1) * each:%Y-%m-%d}" if each and further < MOST else ""
    left = max(0.0, budget.epsilon - whole)
    return Series(owner, path.stem, budget.unit.value, budget.epsilon, budget.delta, tuple(shown), left, further, each, ends)
