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
class NotASetting(Misuse):
    """--set {given} names no setting and its value"""

    given: str
    hint = "write section.name=value, such as --set training.rounds=20"


@dataclass(eq=False)
class NotAPlan(Misuse):
    """{path} is no plan: it holds documents"""

    path: str
    hint = "give documents with --corpus {path}; a plan is a file of settings that ends in .toml"


@dataclass(eq=False)
class AuditInterrupted(SecuretmError):
    """the audit was interrupted; {kept}"""

    kept: str
    advised: str
    hint = "{advised}"


@dataclass(eq=False)
class KeepsAlready(Misuse):
    """--keep {path} holds files already, and runs of two audits would be mixed there"""

    path: str
    hint = "name a folder that is empty or not there yet"


@dataclass(eq=False)
class NoPlanFile(Misuse):
    """there is no file {path}"""

    path: str
    hint = "give the audit plan's file where it lies, or the name of one of audits/plans, such as quick"


@dataclass(eq=False)
class NothingLearned(SecuretmError):
    """no round was trained, so the model in {path} knows nothing: the budget for these documents is spent or too small"""

    path: str
    hint = (
        "`securetm budget ledger {path}` shows what was spent (with --ledgers, by all runs), `securetm budget profile NAME` "
        "what one round costs"
    )
