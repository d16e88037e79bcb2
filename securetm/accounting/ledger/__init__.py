"""A party's ledger: its file, its hash chain, its accounts, and the rule for what fits. It never leaves the party."""

from securetm.accounting.ledger.ledger import Ledger

__all__ = ["Ledger"]
