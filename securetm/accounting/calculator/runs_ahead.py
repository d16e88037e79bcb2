"""What runs over the same documents may spend under one ledger, by its own accounts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from securetm.accounting.calibration import BudgetTooSmall
from securetm.accounting.composition import largest, total
from securetm.accounting.ledger.accounts import Accounts, RunAccount
from securetm.accounting.ledger.privacy_filter import ALONE, Orders
from securetm.contracts import Budget
from securetm.data_classes import dataclass, replace
from securetm.wording import counted, upward

if TYPE_CHECKING:
    from securetm.accounting.calculator.budget_report import Spends

_FINEST, _COARSEST = 0.05, 1000.0


@dataclass(frozen=True)
class Spending:
    """What one run spends by its noise, and what the first run over the documents spends in addition."""

    at: Callable[[float], Spends]
    first: Spends = ()  # of the list of words, which later runs use again
    possible: Callable[[float], bool] = lambda _: True  # whether a mechanism can draw so much noise


@dataclass(frozen=True)
class RunsAhead:
    """Runs that are planned under the budget of one ledger, and what that holds before them."""

    budget: Budget
    spending: Spending
    before: tuple[RunAccount, ...] = ()  # the runs with a bound that the ledger holds
    unbounded_because: str = ""  # of what it holds
    orders: Orders = ()  # of its filter, fixed when it was opened: its budget may have been raised since

    @property
    def said_budget(self) -> str:
        return f"{upward(self.budget.epsilon)} per {self.budget.unit.value}"

    def spends(self, runs: int, noise: float) -> Spends:
        return tuple(spend for account in self.after(runs, noise).runs() for spend in account.spends())

    def after(self, runs: int, noise: float) -> Accounts:
        """The accounts of the ledger after so many more runs, whose spends add up by the ledger's own rule."""
        accounts = Accounts(self.budget, self.orders)
        planned = [(account.run, account.spends(), 1) for account in self.before]
        if runs:
            each = self.spending.at(noise)
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
        return self.after(runs, noise).is_kept()

    def least_noise(self, runs: int) -> float:
        """The least noise with which it admits so many more runs, rounded upwards to four places."""
        if not self.fits(runs, _COARSEST):
            reason = f"{counted(runs, 'run')} spend more even at noise {_COARSEST:,.0f}"
            raise BudgetTooSmall(
                "plan", self.said_budget, reason, "plan fewer runs or rounds, or allow a larger epsilon or delta"
            )
        low, high = _FINEST, _COARSEST
        while high > low * (1 + 1e-3 / 4):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.spending.possible(middle) and self.fits(runs, middle) else (middle, high)
        return math.ceil(high * 1e4) / 1e4

    def lasting(self, most: int, noise: float) -> int:
        """How many more runs it admits, up to so many; at least one."""
        lasts = largest(lambda runs: self.fits(runs, noise), most)
        if lasts == 0:
            instead = "give more noise, fewer rounds, or a larger epsilon"
            raise BudgetTooSmall("run", self.said_budget, f"at noise {noise:g} the first run spends more than is left", instead)
        return lasts

    def alone(self, noise: float) -> float:
        """What a run at this noise spends, if it is the only one."""
        return total(self.spending.at(noise), ALONE * self.budget.delta).epsilon
