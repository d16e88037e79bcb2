"""The channel through a relay that both ends distrust: what the relay changes, repeats or forges is refused by name."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from securetm.credentials.hybrid_identity import FORMER, Purpose, purposed
from securetm.errors import Malformed, Refused, SecuretmError
from securetm.federation.flower.sealed_channel import (
    CoordinatorEnd,
    NotIntroduced,
    Offer,
    OtherRoster,
    PartyEnd,
    ReplayedMessage,
    UnprovenName,
)
from securetm.sessions.hybrid import BadKey

COORDINATOR, NORTH, SOUTH = (bytes([n]) * 32 for n in (1, 2, 3))
ROSTER = bytes(range(32))


def public(secret: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


KEYS = {"north": public(NORTH), "south": public(SOUTH)}


def party(name: str = "north", identity: bytes = NORTH, roster: bytes = ROSTER) -> PartyEnd:
    return PartyEnd(name, identity, public(COORDINATOR), roster)


def offer(identity: bytes = COORDINATOR) -> Offer:
    return Offer.make(identity, ROSTER)


def opened() -> tuple[CoordinatorEnd, PartyEnd]:
    made, end = offer(), party()
    return made.opened(end.answer(made.message), KEYS), end


def test_both_directions_carry_what_was_sent_and_the_party_is_known_by_what_it_signed() -> None:
    here, there = opened()
    assert here.party == "north"
    for content in (b"", b"a question", bytes(100_000)):
        assert there.unseal(here.seal(content)) == content
        assert here.unseal(there.seal(content[::-1])) == content[::-1]


def test_nothing_of_the_content_is_on_the_wire_and_the_same_content_looks_unlike_each_time() -> None:
    here, _ = opened()
    first, second = here.seal(b"patient record"), here.seal(b"patient record")
    assert b"patient" not in first + second
    assert first[10:] != second[10:]


def test_a_repeated_request_is_refused_and_an_old_reply_too() -> None:
    here, there = opened()
    request = here.seal(b"one")
    there.unseal(request)
    old = there.seal(b"reply to one")
    with pytest.raises(ReplayedMessage):
        there.unseal(request)
    here.unseal(old)
    there.unseal(here.seal(b"two"))
    with pytest.raises(ReplayedMessage):
        here.unseal(old)


def test_a_request_cannot_come_back_as_the_reply() -> None:
    here, _ = opened()
    with pytest.raises(NotIntroduced):
        here.unseal(here.seal(b"one"))


def test_a_message_of_another_channel_is_of_none() -> None:
    (here, _), (_, other) = opened(), opened()
    with pytest.raises(NotIntroduced):
        other.unseal(here.seal(b"one"))
    with pytest.raises(NotIntroduced):
        party().unseal(here.seal(b"one"))
    with pytest.raises(NotIntroduced):
        party().seal(b"a reply")


def test_only_the_coordinator_of_the_roster_opens_a_channel() -> None:
    with pytest.raises(UnprovenName, match="the coordinator"):
        party().answer(offer(identity=SOUTH).message)
    with pytest.raises(OtherRoster):
        party(roster=bytes(32)).answer(offer().message)


def test_only_the_owner_of_a_name_answers_for_it() -> None:
    made = offer()
    with pytest.raises(UnprovenName, match="south"):
        made.opened(party("south", NORTH).answer(made.message), KEYS)
    with pytest.raises(UnprovenName, match="west"):
        made.opened(party("west", NORTH).answer(made.message), KEYS)
    with pytest.raises(UnprovenName, match="north"):  # an answer to an offer that was made before
        made.opened(party().answer(offer().message), KEYS)


def test_a_replayed_offer_gives_its_relay_no_channel() -> None:
    made, there = offer(), party()
    here = made.opened(there.answer(made.message), KEYS)
    there.answer(made.message)
    with pytest.raises(NotIntroduced):
        there.unseal(here.seal(b"one"))


def test_a_key_that_gives_everybody_the_same_secret_is_refused() -> None:
    made, there = replace(offer(), secret=bytes(32)), party()
    stated = made.message[:34] + bytes(32) + made.message[66:-64]
    signed = stated + Ed25519PrivateKey.from_private_bytes(COORDINATOR).sign(purposed(Purpose.OFFER, stated, protocol=FORMER))
    with pytest.raises(BadKey):
        there.answer(signed)


def test_mutated_messages_are_refused_by_name_whatever_was_changed() -> None:
    drawn, made = random.Random(5), offer()
    answer = party().answer(made.message)
    here, there = opened()
    request = here.seal(b"content")
    for _ in range(2_000):
        for original, read in (
            (made.message, party().answer),
            (answer, lambda message: made.opened(message, KEYS)),
            (request, there.unseal),
        ):
            changed = mutated(original, drawn)
            if changed != original:
                with pytest.raises((Malformed, Refused)) as told:
                    read(changed)
                assert issubclass(told.type, SecuretmError)


def mutated(message: bytes, drawn: random.Random) -> bytes:
    content = bytearray(message)
    for _ in range(drawn.randint(1, 3)):
        how, at = drawn.randrange(4), drawn.randrange(len(content))
        if how == 0:
            content[at] ^= 1 << drawn.randrange(8)
        elif how == 1:
            del content[at : at + drawn.randint(1, 40)]
            content = content or bytearray(b"\0")
        elif how == 2:
            content[at:at] = drawn.randbytes(drawn.randint(1, 40))
        else:
            content = content[: at + 1]
    return bytes(content)
