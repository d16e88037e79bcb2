"""Requests and messages that are not as they should be, and how they are met. It tests nothing itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import Kind, Outcome, Place
from securetm.contracts import Exchange
from securetm.errors import Refused
from securetm.sessions.framing import places_bytes
from tests.aggregation.played import COORDINATOR, TERMS, Played, vectors_of

N = 5  # threshold 3
ROUNDS = 2
TERMS32 = replace(TERMS, bits=32)


def masked(played: Played, number: int = 0) -> dict[str, Exchange]:
    """Every party has sent its masked vector, and waits."""
    parties = fresh(played, number)
    for party in parties.values():
        party.begin()
    return parties


def fresh(played: Played, number: int = 0) -> dict[str, Exchange]:
    """No party has sent anything in this round."""
    return played.begin(played.cohort(number), vectors_of(played.members), MaskedSum().admit(TERMS, played.cohort()))[1]


def place_of(played: Played, number: int = 0) -> Place:
    message = fresh(played, number)[played.members[0]].begin()[0][1]
    return Place(message[4:36], message[36:68], int.from_bytes(message[68:72], "big"))


def unmask(outcome: Outcome, signatures: dict[int, bytes] | None = None) -> bytes:
    given = signatures or {}
    return outcome.body(Kind.UNMASK) + places_bytes(sorted(given)) + b"".join(given[place] for place in sorted(given))


def asked(played: Played, survivors: tuple[int, ...], dropped: tuple[int, ...], number: int = 0) -> tuple[Exchange, bytes]:
    """The first party, and a request to open the round with these lists."""
    return masked(played, number)[played.members[0]], unmask(Outcome(place_of(played, number), survivors, dropped))


def refused(exchange: Exchange, message: bytes, refusal: type[Refused], sender: str = COORDINATOR) -> None:
    with pytest.raises(refusal) as caught:
        exchange.receive(sender, message)
    assert str(caught.value)
    assert caught.value.advice()


def flip(message: bytes, at: int) -> bytes:
    return message[:at] + bytes([message[at] ^ 1]) + message[at + 1 :]


def only(message: bytes, size: int, keep: tuple[int, ...]) -> bytes:
    parts = [message[4 + size * n : 4 + size * (n + 1)] for n in keep]
    return message[:2] + len(parts).to_bytes(2, "big") + b"".join(parts)
