"""Which parties must answer for a wave of messages to count, and what the coordinator makes of a party that does not.

It protects no party: each checks for itself over whom a sum is opened.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from securetm.errors import UnknownRound, WrongSession
from securetm.federation.refusal_errors import NotInvited
from securetm.federation.running_errors import PartiesMissing

# Refusals of a party that was started anew.
FORGOT = frozenset(kind.__name__ for kind in (NotInvited, WrongSession, UnknownRound))


class NewSessionWanted(Exception):
    """Ends a session at a kept round, because parties are there that are not in it. The run goes on with them."""


@dataclass(frozen=True)
class Attendance:
    """How many of the parties that were asked must answer. A wave with fewer answers ends the session, and settles nothing."""

    everyone: bool = False
    fewest: int = 0  # where not everyone must; 0: as many as the aggregation needs

    @property
    def goes_on_without(self) -> bool:
        """Whether the run goes on without parties that took part before, and takes them in again when they come."""
        return self.fewest > 0

    def counts_as_missing(self, refusal: str) -> bool:
        """Whether a party with this refusal is only missing. Any other refusal ends the run, unless it goes on with fewer."""
        return self.goes_on_without or refusal in FORGOT

    def check(self, asked: Collection[str], answered: Collection[str]) -> None:
        """Refuses to go on with too few answers."""
        missing = [member for member in asked if member not in answered]
        if missing and (self.everyone or len(answered) < min(self.fewest, len(asked))):
            raise PartiesMissing(", ".join(missing))
