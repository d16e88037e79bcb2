"""A ledger that continues others, where one corpus is made of documents with different ledgers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from securetm.accounting.ledger.accounts import EARLIER, LOST, RunAccount
from securetm.accounting.ledger.ledger import Ledger, units_differ
from securetm.accounting.spends import Spend
from securetm.contracts import Budget


def continue_from(sources: Sequence[Path], path: Path, owner: str) -> None:
    """Replaces ledgers by one, where one corpus is made of documents with different ledgers.

    Each source is ended. The new ledger has the most that any of them holds of each run, and the least of their budgets: it
    holds all that each source holds, and each document has one source, so it bounds what the document spent. It also knows
    which answers were paid for: those that were not computed yet count as lost.
    """
    budgets: dict[Path, Budget] = {}
    runs: dict[str, RunAccount] = {}
    for source in sources:
        with Ledger.reopen(source) as ledger:
            ledger.end(str(path))  # from here on nobody can spend from it
            if ledger.has_budget:
                budgets[source] = ledger.budget
            for account in ledger.runs():
                before = runs.get(account.run, replace(account, answers=Counter[Spend](), paid=[]))
                runs[account.run] = replace(
                    before,
                    answers=before.answers | account.answers,
                    unbounded=before.unbounded or account.unbounded,
                    paid=[*before.paid, *account.paid],
                )
    with Ledger.open(path, owner, _least(budgets)) as ledger:
        for account in runs.values():
            about = {"profile": account.profile, "digest": account.digest, "question": EARLIER}
            paid = [(one.question, one.number, one.members, one.asked, one.answer or LOST) for one in account.paid]
            for spend in account.spends():
                ledger.record(account.run, spend, about, paid)
                paid = []
            if account.unbounded:
                ledger.release(account.run, account.unbounded, about)


def _least(budgets: Mapping[Path, Budget]) -> Budget | None:
    given = list(budgets.values())
    for source, budget in budgets.items():
        if budget.unit is not given[0].unit:
            raise units_differ(source, budget.unit, given[0].unit)
    return Budget(given[0].unit, min(one.epsilon for one in given), min(one.delta for one in given)) if given else None
