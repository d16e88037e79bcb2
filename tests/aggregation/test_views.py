"""A message to the coordinator may be a view, as a long one is: whatever a role keeps of it is bytes of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.plain import PlainSum
from securetm.contracts import Aggregation, Block, Domain, Exchange, Message, Parcel, Terms
from securetm.testing.aggregation_laws import MEMBERS, LocalSession, cohort, flat
from securetm.testing.known_secrets import KnownSecrets
from tests.aggregation.played import COORDINATOR

TERMS = Terms((Block("counts", (7, 3)),), domain=Domain.INTEGER, bits=32, reach=1000)


@dataclass
class Viewed:
    """Gives a role each message as a view of memory that is written over as soon as the role returns."""

    role: Exchange

    def begin(self) -> Sequence[Parcel]:
        return self.role.begin()

    def receive(self, sender: str, message: Message) -> Sequence[Parcel]:
        lent = bytearray(message)
        sent = self.role.receive(sender, memoryview(lent).toreadonly())
        lent[:] = bytes(len(lent))
        return sent

    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]:
        return self.role.expire(missing)


class ViewedSession(LocalSession):
    def run(self, exchanges: Mapping[str, Exchange]) -> None:
        super().run({**exchanges, COORDINATOR: Viewed(exchanges[COORDINATOR])})


@pytest.mark.parametrize("aggregation", [MaskedSum(colluding=2), MaskedSum(colluding=2, consistency=True), PlainSum()])
def test_a_coordinator_takes_views_for_bytes_and_keeps_none(aggregation: Aggregation) -> None:
    rows = {name: np.arange(21, dtype=np.int64) * (place + 1) for place, name in enumerate(MEMBERS)}
    terms = aggregation.admit(TERMS, cohort())
    with KnownSecrets().come_again():
        played = [kind(aggregation, seed="views") for kind in (LocalSession, ViewedSession)]
    first, second = (flat(session.play(cohort(), terms, rows), terms) for session in played)
    assert np.array_equal(first, sum(rows.values()))
    assert np.array_equal(second, first)
    assert [bytes(message) for message in played[0].received] == [bytes(message) for message in played[1].received]
