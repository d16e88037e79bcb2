"""A copy of a party's ledger that is spent from apart from the real one, with its owner's signature.

It represents a manipulated disk of the party in an audit's own run. The party itself continues with its real ledger.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from dp_accounting import GaussianDpEvent

from securetm.accounting.ledger import Ledger
from securetm.accounting.spends import Spend
from securetm.contracts import Roster
from securetm.federation.budget.witness import BudgetGuard
from securetm.federation.folder import RunFolder
from securetm.federation.store import COMMON, PartyStore, SqliteStore
from securetm.private_files import private_file, private_folder
from securetm.sessions.identities import identity_of

_ELSEWHERE = Spend(GaussianDpEvent(1000.0))  # an entry that costs almost nothing


@dataclass(frozen=True)
class ForkedLedger:
    """A copy of the ledger of one party of a run, made early."""

    folder: RunFolder
    owner: str

    @property
    def _copy(self) -> Path:
        return self.folder.path / "put-back" / self.folder.ledger(self.owner).name

    def copy(self) -> None:
        """Makes the copy, while the party still has most of its budget."""
        private_folder(self._copy.parent)
        private_file(self._copy)
        with sqlite3.connect(self.folder.ledger(self.owner)) as opened, sqlite3.connect(self._copy) as copy:
            opened.backup(copy)
        opened.close()
        copy.close()

    def shown(self, roster: Roster, seen: int) -> tuple[bytes, bytes]:
        """Spends from the copy until it is longer than the real ledger. Returns its signed head, and links from `seen` on."""
        budget = self.folder.agreement.budget
        assert budget is not None  # else there is no ledger
        store, others = PartyStore(self.folder.party(self.owner)), SqliteStore(self._copy.with_suffix(".others"), COMMON)
        with Ledger.open(self._copy, self.owner, budget) as ledger:
            while ledger.head[0] <= seen:
                ledger.record("elsewhere", _ELSEWHERE, {"profile": self.folder.agreement.plan.profile})
            guard = BudgetGuard(ledger, identity_of(self.owner, roster, store), others, 0, budget)
            signed, links = guard.announce(), b"".join(ledger.links(seen))
        store.close()
        others.close()
        return signed, links
