"""Why a party does not take part, as names that travel: each follows from public facts, and says no more than an absence does.

The coordinator reads the sentence here; what the party's own user reads has the facts in it, and stays at home.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from securetm.errors import Misuse, error_class

_POLICY = "PolicyAgainst"
_OWN = "its own policy does not allow"
REASONS: Mapping[str, str] = {
    f"{_POLICY}Profile": f"{_OWN} the profile",
    f"{_POLICY}Model": f"{_OWN} the model",
    f"{_POLICY}Module": f"{_OWN} the module of the model",
    f"{_POLICY}Question": f"{_OWN} a question that the plan asks",
    f"{_POLICY}Epsilon": f"{_OWN} the budget that the plan spends",
    f"{_POLICY}Unit": f"{_OWN} a budget of the unit that the plan protects",
    f"{_POLICY}Unbounded": f"{_OWN} releases without a bound, which the plan makes",
    f"{_POLICY}Parties": f"{_OWN} sums over so few parties",
    f"{_POLICY}Coordinator": f"{_OWN} this coordinator",
    f"{_POLICY}Plan": f"{_OWN} what the plan asks",
    "TooFewToTakePart": "it holds fewer documents than the least number that a sum needs of each party",
    "DeltaTooLarge": "the plan's delta is too large for the number of documents",
    "NotByBlocks": "the model or the profile needs all documents in memory, and this party reads them from disk",
    "NoPersons": "its documents name no persons, whom the plan's budget protects",
    "OutOfBudget": "its privacy budget allows no other answer",
}


class NotAllowedHere(Misuse):
    """the party's policy does not allow {what} {value}, which the {where} has"""

    rule: str  # of the policy, as it travels: the end of one of the REASONS
    what: str
    value: str
    where: str
    allowed: str
    hint = "allowed: {allowed}; change [policy] of PARTY.toml only if the organisation agrees"


def reason_of(problem: Exception) -> str:
    """The name under which this problem of a party travels; empty if it stays at home."""
    name = _POLICY + problem.rule if isinstance(problem, NotAllowedHere) else type(problem).__name__
    return name if name in REASONS else ""


def in_words(name: str) -> str:
    """What a name that came from a party, or that it was given, means to the coordinator's operator."""
    if name in REASONS:
        return REASONS[name]
    kind = error_class(name)
    sentence = "" if kind is None else re.sub(r"\{[^}]*\}", "…", kind.__doc__ or "")  # the facts stayed at the other end
    return sentence or name
