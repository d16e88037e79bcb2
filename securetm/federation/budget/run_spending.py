"""What one run spends by the noise of its rounds, and the noise with which several fit into a ledger. It spends nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from securetm.accounting.calculator.composed_report import Spends
from securetm.accounting.calculator.planned_runs import Before, OneLedger, Spending
from securetm.accounting.composition import total
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Spend
from securetm.contracts import Budget
from securetm.errors import BadSetting
from securetm.federation.budget.prices import Bill, bill_of, with_words_noise
from securetm.plans.agreement import Agreement

_ANY = 100.0  # a noise, where it does not matter which


@dataclass(frozen=True)
class RunSpending:
    """One run, whose noise is still open."""

    agreement: Agreement
    parties: int

    @property
    def words_are_paid(self) -> bool:
        """Whether the parties find the words, and pay for them in the first run."""
        return self.bill(_ANY).words is not None

    def spending(self) -> Spending:
        """What a run spends at a noise. Words that the parties find are paid for once, in the first run."""
        words = self.bill(_ANY).words
        return Spending(self._rounds, (words,) if words else ())

    def possible(self, noise: float) -> bool:
        """Whether the profile can draw so little noise."""
        try:
            self.bill(noise)
        except BadSetting as refusal:
            if refusal.name != "noise_multiplier":
                raise
            return False
        return True

    def bill(self, noise: float) -> Bill:
        """What the whole run spends at this noise."""
        return bill_of(self.agreement.with_privacy(noise=noise), self.parties)

    def _rounds(self, noise: float) -> Spends:
        bill = self.bill(noise)
        assert bill.round is not None  # the budget is that of documents or persons
        return (*((bill.start,) if bill.start else ()), replace(bill.round, count=bill.rounds))


def noise_for_runs(agreement: Agreement, parties: int, runs: int) -> float:
    """The least noise of a round with which so many runs over the same documents fit into the agreement's budget."""
    run = RunSpending(with_words_noise(agreement), parties)
    assert agreement.budget is not None
    return OneLedger(agreement.budget, run.spending(), Before()).least_noise(runs, run.possible)


def epsilon_of_one(budget: Budget, runs: int) -> float:
    """What each of so many runs spends, if it were the only one. Rounds of Gaussian noise are as one round of less noise."""
    from dp_accounting import GaussianDpEvent

    one = Spending(lambda noise: (Spend(GaussianDpEvent(noise)),))
    noise = OneLedger(budget, one, Before()).least_noise(runs, lambda _: True)
    return total(one.at(noise), ALONE * budget.delta).epsilon
