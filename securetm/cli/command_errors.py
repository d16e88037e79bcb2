"""Commands that cannot be carried out. It checks nothing itself."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors import Misuse, SecuretmError


@dataclass(eq=False)
class NothingSpent(Misuse):
    """{name} spends no privacy budget: {reason}"""

    name: str
    reason: str
    hint = "there is nothing to compute; `securetm explain {name}` says what it protects by other means"


@dataclass(eq=False)
class AuditInterrupted(SecuretmError):
    """the audit was interrupted; {kept}"""

    kept: str
    advised: str
    hint = "{advised}"


@dataclass(eq=False)
class NothingLearned(SecuretmError):
    """no round was trained, so the model in {path} knows nothing: the budget for these documents is spent or too small"""

    path: str
    hint = (
        "`securetm budget ledger {path}` shows what was spent (with --ledgers, by all runs), `securetm budget profile NAME` "
        "what one round costs"
    )
