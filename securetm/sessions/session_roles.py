"""What the sessions of all aggregations share: a party that opens nothing, and a coordinator with one round under way."""

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
        """Rounds that can still be run."""
        return WITHOUT_END

    def prepare(self, rounds: int) -> Exchange:
        """Nothing is prepared."""
        return PartyExchange()

    def answer(self, round_id: bytes) -> Answer:
        """A party opens nothing."""
        raise UnknownRound(round_id.hex()[:16])


class CoordinatorSession:
    """The coordinator's session. It keeps the round that was begun last, and what was opened in it."""

    def __init__(self, register: PinnedRoster) -> None:
        self.register = register
        self._last: tuple[bytes, CoordinatorExchange] | None = None

    @property
    def prepared(self) -> int:
        """Rounds that can still be run."""
        return WITHOUT_END

    def prepare(self, rounds: int) -> Exchange:
        """Nothing is prepared."""
        return CoordinatorExchange(self.register)

    def begun(self, cohort: Cohort, exchange: CoordinatorExchange) -> Exchange:
        """Keeps this round in the place of the one before."""
        self._last = cohort.round_id, exchange
        return exchange

    def answer(self, round_id: bytes) -> Answer:
        """What was opened in the last round, or a refusal."""
        answer = self._last[1].opened() if self._last is not None and self._last[0] == round_id else None
        if answer is None:
            raise UnknownRound(round_id.hex()[:16])
        return answer
