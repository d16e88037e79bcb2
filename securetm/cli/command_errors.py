"""Commands that cannot be carried out. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import Misuse, SecuretmError


class AuditInterrupted(SecuretmError):
    """the audit was interrupted; {kept}"""

    kept: str
    advised: str
    hint = "{advised}"


class NothingLearned(SecuretmError):
    """no round was trained, so the model in {path} knows nothing: the budget for these documents is spent or too small"""

    path: str
    hint = (
        "`securetm budget ledger {path}` shows what was spent (with --ledgers, by all runs), `securetm budget profile NAME` "
        "what one round costs"
    )


class NotDeleted(Misuse):
    """nothing was deleted, because nobody agreed to it: {wanted}"""

    wanted: tuple[str, ...]
    hint = "answer y at the terminal, or give --yes"
