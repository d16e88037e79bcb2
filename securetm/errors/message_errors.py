"""Messages that a role of any protocol refuses. The class name travels, the facts do not."""

from __future__ import annotations

from securetm.errors.tree import Refused, SecuretmError


class Malformed(Refused):
    """a message from {sender} is malformed: {problem}"""

    sender: str
    problem: str


class WrongSession(Refused):
    """a message belongs to another session"""


class NotInCohort(Refused):
    """{name} is not in the cohort"""

    name: str


class CohortTooSmall(Refused):
    """a cohort of {found:party|parties} is below this party's minimum of {need}"""

    found: int
    need: int


class UnknownRound(Refused):
    """there is no open round {round_id}"""

    round_id: str


class BadVector(Refused):
    """the vector of {sender} {problem}"""

    sender: str
    problem: str


class Duplicate(Refused):
    """{sender} answered twice"""

    sender: str


class TooFewParties(SecuretmError):
    """too many parties left ({left} of {of} remain, need {need})"""

    left: int
    of: int
    need: int
    hint = "wait for more parties, or agree on a profile with a lower threshold"
