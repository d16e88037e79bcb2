"""A party's ledger: its file, its chain of heads, its accounts, the rule for what still fits. It never leaves the party."""

from securetm.accounting.ledger.ledger import Ledger

__all__ = ["Ledger"]
