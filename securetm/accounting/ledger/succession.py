"""Replaces several ledgers by one, when one corpus is made of documents with different ledgers.

The new ledger holds at least what each former ledger holds, so that no document's spend is lost. It also knows which answers
were paid for: those that were not computed yet count as lost. It knows no document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from securetm.accounting.ledger.accounts import EARLIER, LOST, RunAccount
from securetm.accounting.ledger.ledger import Ledger
from securetm.accounting.ledger_errors import UnitsDiffer
from securetm.accounting.spends import Spend
from securetm.contracts import Budget


def continue_from(sources: Sequence[Path], path: Path, owner: str) -> None:
    """Ends the sources, and opens a ledger with the most that any of them holds of each run and the least of their budgets.

    Each document has one source, and the new ledger holds all that this source holds. So it bounds what the document spent.
    """
    ended = [_ended(source, path) for source in sources]
    given = [(source, budget) for source, (budget, _) in zip(sources, ended, strict=True) if budget is not None]
    budgets = [budget for _, budget in given]
    for source, budget in given:
        if budget.unit is not budgets[0].unit:
            raise UnitsDiffer(str(source), budget.unit.value, budgets[0].unit.value)
    with Ledger.open(path, owner, _least(budgets)) as ledger:
        for account in _most(ended):
            about = {"profile": account.profile, "digest": account.digest, "question": EARLIER}
            paid = [(one.question, one.number, one.members, one.asked, one.answer or LOST) for one in account.paid]
            for spend in account.spends():
                ledger.record(account.run, spend, about, paid)
                paid = []
            if account.unbounded:
                ledger.release(account.run, account.unbounded, about)


def _least(budgets: Sequence[Budget]) -> Budget | None:
    if not budgets:
        return None
    return Budget(budgets[0].unit, min(one.epsilon for one in budgets), min(one.delta for one in budgets))


def _ended(source: Path, successor: Path) -> tuple[Budget | None, tuple[RunAccount, ...]]:
    with Ledger.reopen(source) as ledger:
        ledger.end(str(successor))  # from here on nobody can spend from it
        return ledger.budget if ledger.has_budget else None, ledger.runs()


def _most(ended: Sequence[tuple[Budget | None, tuple[RunAccount, ...]]]) -> list[RunAccount]:
    merged: dict[str, RunAccount] = {}
    for _, histories in ended:
        for account in histories:
            before = merged.get(account.run, replace(account, answers=Counter[Spend](), paid=[]))
            unbounded = before.unbounded or account.unbounded
            paid = [*before.paid, *account.paid]
            merged[account.run] = replace(before, answers=before.answers | account.answers, unbounded=unbounded, paid=paid)
    return list(merged.values())
