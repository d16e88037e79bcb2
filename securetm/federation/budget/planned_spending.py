"""What the answers of a run spend of a budget by its plan: public, and the same at every party. It reads no party's ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from securetm.accounting.composition import total
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.federation.budget.prices import Bill, bill_of
from securetm.federation.origins import before_in_trial
from securetm.plans.agreement import Agreement

_STEPS = 100  # of a run: composing losses takes longer than a round, so the answers are counted up to the next step


@dataclass(frozen=True)
class PlannedSpending:
    """What a party has spent at most after so many answers of the training.

    The questions before the training are counted from the beginning, whether they were asked already or not.
    """

    agreement: Agreement
    parties: int

    def __hash__(self) -> int:
        return hash((self.agreement.digest, self.parties))

    def after(self, answers: int) -> dict[str, Any] | None:
        """Returns epsilon and delta for each unit; nothing where there is no budget. It never says too little."""
        budget = self.agreement.budget
        if budget is None:
            return None
        rounds = self.agreement.plan.training.rounds
        step = max(1, rounds // _STEPS)
        counted = min(-(-answers // step) * step, max(rounds, answers))
        epsilon = _epsilon(self, counted)
        spent = {"unit": budget.unit.value, "epsilon": epsilon, "delta": budget.delta, "budget": budget.epsilon}
        before = before_in_trial(self.agreement)  # at most: whose documents the earlier runs read, the ledgers know
        return before.added_to(spent) if before.entries else spent

    @cached_property
    def bill(self) -> Bill:
        """The bill of the whole run."""
        return bill_of(self.agreement, self.parties)


@lru_cache(maxsize=4)
def _epsilon(spending: PlannedSpending, answers: int) -> float:
    budget = spending.agreement.budget
    assert budget is not None
    bill = replace(spending.bill, rounds=answers, round=spending.bill.round if answers else None)
    spends = bill.spends()
    return total(spends, ALONE * budget.delta).epsilon if spends else 0.0
