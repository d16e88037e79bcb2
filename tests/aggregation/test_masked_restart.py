"""A prekey is used once, even across crashes: the same bytes again or nothing, and an old copy of a memory is noticed."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import HEADER_SIZE, Kind
from securetm.aggregation.masked.refusals import PrekeyReused, RestoredState, RoundAbandoned, WrongSetup
from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import Exchange
from securetm.errors import TooFewParties, UnknownRound
from securetm.sessions.framing import head
from securetm.testing.few_documents import EmptyStore
from tests.aggregation.played import COORDINATOR, TERMS, Played, flat, names, plain_sum, vectors_of

ASKED = MaskedSum().admit(TERMS, Played(MaskedSum(), names(4)).cohort())


@pytest.fixture
def played() -> Played:
    return Played(MaskedSum(), names(4)).prepare(6)


def first_message(played: Played, name: str, number: int, seed: int = 0) -> bytes:
    return begun(played, name, number, seed).begin()[0][1]


def begun(played: Played, name: str, number: int, seed: int = 0) -> Exchange:
    vector = blocks_of(vectors_of(played.members, seed=seed)[name], ASKED)
    return played.parties[name].round(played.cohort(number), ASKED, vector)


def masked_message(played: Played, name: str, number: int, seed: int) -> bytes:
    """What the party sends once it has been told, after a restart, that its next prekey is fresh."""
    exchange = begun(played, name, number, seed)
    message = exchange.begin()[0][1]
    if message[1] == Kind.HELLO:
        ((_, message),) = exchange.receive(COORDINATOR, head(Kind.ADVANCE) + message[4:72])
    return message


def test_a_restarted_party_sends_the_same_bytes_for_the_same_vector_and_none_for_another(played: Played) -> None:
    name = played.members[0]
    before = first_message(played, name, 0)
    played.restart(name)
    assert first_message(played, name, 0) == before
    with pytest.raises(RoundAbandoned):
        first_message(played, name, 0, seed=1)
    played.restart(name)
    with pytest.raises(RoundAbandoned):
        first_message(played, name, 0, seed=2)
    assert first_message(played, name, 0) == before
    assert played.parties[name].prepared == 5


def test_a_round_goes_on_after_every_role_restarted(played: Played) -> None:
    vectors, cohort = vectors_of(played.members), played.cohort()
    for name in played.members:
        first_message(played, name, 0)
    for name in (COORDINATOR, *played.members):
        played.restart(name)
    assert np.array_equal(flat(played.play(cohort, vectors)), plain_sum(vectors, played.members))


def test_after_a_restart_the_next_round_is_asked_for_and_everybody_is_in_it(played: Played) -> None:
    vectors = vectors_of(played.members)
    played.play(played.cohort(0), vectors)
    for name in (COORDINATOR, *played.members):
        played.restart(name)
    assert first_message(played, played.members[0], 1)[1] == Kind.HELLO  # nothing is masked before it is known to be fresh
    answer = played.play(played.cohort(1), vectors)
    assert answer.survivors == played.members
    assert np.array_equal(flat(answer), plain_sum(vectors, played.members))
    assert {session.prepared for session in (played.middle, *played.parties.values())} == {4}


class Crash(Exception):
    """The machine stops here."""


class Failing(EmptyStore):
    """A memory that stops the machine before or after one of its writes."""

    def __init__(self, kept: dict[str, bytes], at: int, after: bool) -> None:
        super().__init__(kept)
        self.left, self.after = at, after

    def put(self, key: str, value: bytes) -> None:
        self.left -= 1
        if self.left < 0 and not self.after:
            raise Crash
        super().put(key, value)
        if self.left < 0:
            raise Crash


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("write", range(4))
def test_no_prekey_masks_two_vectors_wherever_the_machine_stops(write: int, after: bool) -> None:
    """A party masks, stops at any of its writes, and is asked again with another vector: one salt per prekey at most."""
    played = Played(MaskedSum(), names(4)).prepare(6)
    name, out = played.members[0], list[bytes]()
    played.stores[name] = Failing(played.stores[name].kept, write, after)
    played.parties[name]._prekeys._store = played.stores[name]
    for attempt in range(8):
        try:
            out.append(masked_message(played, name, attempt // 2, attempt))
        except RoundAbandoned:  # it was begun with another vector
            continue
        except Crash:
            played.stores[name] = EmptyStore(played.stores[name].kept)
            played.restart(name)
    by_prekey: dict[bytes, set[bytes]] = {}
    for message in out:
        by_prekey.setdefault(message[68:72], set()).add(message)
    assert len(by_prekey) >= 3  # of a round whose prekey was written when the machine stopped, nothing ever left
    assert all(len(different) == 1 for different in by_prekey.values())


def test_what_is_signed_of_a_vector_is_on_disk_before_it_leaves_and_the_vector_is_not(played: Played) -> None:
    name = played.members[0]
    message = first_message(played, name, 0)
    kept = played.stores[name].kept.values()
    assert message[:HEADER_SIZE] in kept
    assert not any(message[HEADER_SIZE:][:64] in value for value in kept)


def test_a_round_begun_under_an_earlier_set_up_is_abandoned(played: Played) -> None:
    first_message(played, played.members[0], 0)
    played.prepare(2)
    with pytest.raises(RoundAbandoned):
        first_message(played, played.members[0], 0)
    played.restart(played.members[0])
    with pytest.raises(RoundAbandoned):
        first_message(played, played.members[0], 0)


def test_a_party_set_back_to_an_old_copy_notices_before_it_masks_anything(played: Played) -> None:
    name, vectors = played.members[0], vectors_of(played.members)
    played.play(played.cohort(0), vectors)
    old = deepcopy(played.stores[name])
    played.play(played.cohort(1), vectors)
    played.stores[name] = old
    played.restart(name)
    played.seen.clear()
    with pytest.raises(RestoredState):
        played.play(played.cohort(2), vectors)
    assert [message[1] for sender, message in played.seen if sender == name] == [Kind.HELLO]
    for _ in range(2):  # and it stays silent, after another restart too
        assert played.parties[name].prepared == 0
        with pytest.raises(RestoredState):
            first_message(played, name, 3)
        played.restart(name)
    answer = played.prepare(2).play(played.cohort(4), vectors)
    assert name in answer.survivors


def test_a_reused_prekey_is_noticed_by_the_coordinator_and_named(played: Played) -> None:
    """A party whose memory is set back while it runs does not ask; its first message gives it away."""
    name, vectors = played.members[0], vectors_of(played.members)
    old = dict(played.stores[name].kept)
    played.play(played.cohort(0), vectors)
    played.stores[name].kept = old
    played.parties[name]._prekeys.next, played.parties[name]._prekeys.used = 0, {}
    cohort = played.cohort(1)
    middle, parties = played.begin(cohort, vectors, ASKED)
    sent = {m: exchange.begin()[0][1] for m, exchange in parties.items()}
    with pytest.raises(PrekeyReused) as caught:
        middle.receive(name, sent[name])
    assert (caught.value.sender, caught.value.index) == (name, 0)
    for other in played.members[1:]:
        middle.receive(other, sent[other])
    told = dict(middle.expire([name]))
    with pytest.raises(RestoredState):
        parties[name].receive(COORDINATOR, told[name])
    for other in played.members[1:]:
        middle.receive(other, parties[other].receive(COORDINATOR, told[other])[0][1])
    middle.expire(())
    assert played.middle.answer(cohort.round_id).survivors == played.members[1:]


def test_a_coordinator_set_back_to_an_old_copy_catches_up(played: Played) -> None:
    vectors = vectors_of(played.members)
    old = deepcopy(played.stores[COORDINATOR])
    played.play(played.cohort(0), vectors)
    played.play(played.cohort(1), vectors)
    played.stores[COORDINATOR] = old
    played.restart(COORDINATOR)
    cohort = played.cohort(2)
    middle, parties = played.begin(cohort, vectors, ASKED)
    for name, exchange in parties.items():
        with pytest.raises(Exception, match="prekey"):
            middle.receive(name, exchange.begin()[0][1])
    with pytest.raises(TooFewParties):
        middle.expire(())
    assert np.array_equal(flat(played.play(cohort, vectors)), plain_sum(vectors, played.members))


def test_the_memory_of_another_session_is_not_used(played: Played) -> None:
    name = played.members[0]
    from dataclasses import replace

    other = MaskedSum().party(name, replace(played.roster, session=b"t" * 32), played.draw(name), played.stores[name])
    assert played.parties[name].prepared == 6
    assert other.prepared == 0


# ---- two seats over one memory ---------------------------------------------------------------------------------------------


def advanced(played: Played, exchange: Exchange, index: int) -> bytes:
    """What a party says when it is told that it may go on with that prekey."""
    hello = exchange.begin()[0][1]
    assert hello[1] == Kind.HELLO
    ((_, message),) = exchange.receive(COORDINATOR, head(Kind.ADVANCE) + hello[4:68] + index.to_bytes(4, "big"))
    return message


def test_a_round_of_an_older_seat_is_carried_on_no_more(played: Played) -> None:
    """Each session reads what is used when it is made, so what an older one uses is unknown to the newer one."""
    name = played.members[0]
    first_message(played, name, 0)
    played.restart(name)
    older = begun(played, name, 1)
    older.begin()
    played.restart(name)
    with pytest.raises(UnknownRound):
        advanced(played, older, 1)
    newer = begun(played, name, 2, seed=1)
    message = advanced(played, newer, 1)
    assert len(message) > HEADER_SIZE
    with pytest.raises(UnknownRound):
        advanced(played, older, 2)


def test_an_older_seat_begins_nothing(played: Played) -> None:
    name = played.members[0]
    older = begun(played, name, 0)
    played.restart(name)
    with pytest.raises(UnknownRound):
        older.begin()


def test_a_set_up_of_an_older_seat_is_not_stored(played: Played) -> None:
    name = played.members[0]
    older = played.parties[name].prepare(3)
    played.restart(name)
    kept = dict(played.stores[name].kept)
    exchanges = {member: session.prepare(3) for member, session in played.parties.items()}
    with pytest.raises(UnknownRound):
        played.run(played.middle.prepare(3), {**exchanges, name: older})
    assert played.stores[name].kept == kept


def test_a_round_of_the_set_up_before_masks_nothing(played: Played) -> None:
    """Its prekeys would be counted by the new set-up, and masked with the old one's keys."""
    name = played.members[0]
    first_message(played, name, 0)
    played.restart(name)
    older = begun(played, name, 1)
    older.begin()
    played.prepare(3)
    with pytest.raises(WrongSetup):
        advanced(played, older, 0)


def test_no_coordinator_sends_a_party_back_to_a_prekey_that_it_used(played: Played) -> None:
    name = played.members[0]
    exchange = begun(played, name, 0)
    message = exchange.begin()[0][1]
    exchange.receive(COORDINATOR, head(Kind.ADVANCE) + message[4:68] + bytes(4))
    assert first_message(played, name, 1)[68:72] == (1).to_bytes(4)


def test_a_prekey_that_was_used_is_found_on_disk_before_it_is_used_again(played: Played) -> None:
    """Also where a session does not know of it."""
    name = played.members[0]
    session, message = played.parties[name], first_message(played, name, 0)
    with pytest.raises(RestoredState):
        session._prekeys.use(0, bytes(32), message)
    session._prekeys.next, session._prekeys.used = 0, {}
    kept = dict(played.stores[name].kept)
    with pytest.raises(RestoredState):
        first_message(played, name, 1, seed=1)
    assert {key: value for key, value in played.stores[name].kept.items() if "sent" in key} == {
        key: value for key, value in kept.items() if "sent" in key
    }
