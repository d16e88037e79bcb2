"""What the sessions of all aggregations have in common: a party that opens nothing, and a coordinator with one open round."""

from __future__ import annotations

import sys

from securetm.contracts import Answer, Cohort, Exchange
from securetm.errors import UnknownRound
from securetm.sessions.exchanges import CoordinatorExchange, PartyExchange
from securetm.sessions.identities import PinnedRoster

WITHOUT_END = sys.maxsize  # rounds that can be run where nothing is used up


class PartySession:
    """A party's session. Unless an aggregation says otherwise, nothing is prepared and the coordinator opens the sums."""

    @property
    def prepared(self) -> int:
        """How many more rounds can be run."""
        return WITHOUT_END

    def prepare(self, rounds: int) -> Exchange:
        """Returns an exchange that prepares nothing."""
        return PartyExchange()

    def missed_rounds(self) -> None:
        """Called before a round if the party was not asked in the ones before it. Nothing depends on that."""

    def answer(self, round_id: bytes) -> Answer:
        """Refuses: a party opens nothing."""
        raise UnknownRound(round_id.hex()[:16])


class CoordinatorSession:
    """The coordinator's session. It keeps the round that was begun last, and what was opened in it."""

    def __init__(self, register: PinnedRoster) -> None:
        self.register = register
        self._last: tuple[bytes, CoordinatorExchange] | None = None

    @property
    def prepared(self) -> int:
        """How many more rounds can be run."""
        return WITHOUT_END

    def prepare(self, rounds: int) -> Exchange:
        """Returns an exchange that prepares nothing."""
        return CoordinatorExchange(self.register)

    def missed_rounds(self) -> None:
        """Does nothing: the coordinator is in every round."""

    def begun(self, cohort: Cohort, exchange: CoordinatorExchange) -> Exchange:
        """Keeps this round in place of the one before."""
        self._last = cohort.round_id, exchange
        return exchange

    def answer(self, round_id: bytes) -> Answer:
        """Returns what was opened in the last round, or refuses."""
        answer = self._last[1].opened() if self._last is not None and self._last[0] == round_id else None
        if answer is None:
            raise UnknownRound(round_id.hex()[:16])
        return answer
