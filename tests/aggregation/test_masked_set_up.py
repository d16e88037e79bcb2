"""An active coordinator tampers with a set-up: what it changes, swaps or passes on again is refused at the party."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import COMMIT_SIZE, REVEAL_SIZE, Kind
from securetm.aggregation.masked.refusals import ChangedMessage, WrongSetup
from securetm.entropy import OperatingSystem
from securetm.errors import CohortTooSmall, Malformed, Mistake, Refused
from securetm.sessions.framing import Label, places_bytes
from securetm.sessions.identities import BadSignature, PinnedRoster, UnknownIdentity
from securetm.sessions.sealing import NotSealedForUs
from tests.aggregation.played import Played, names, own_store, roster_of

from .tampering import ROUNDS, N, flip, only


def setting_up(change: Callable[[str, bytes], bytes], n: int = N) -> Played:
    """A set-up whose coordinator alters what it passes on to the first party."""
    first = names(n)[0]
    return Played(MaskedSum(), names(n), change=lambda name, message: change(name, message) if name == first else message)


def altered(kind: Kind, change: Callable[[bytes], bytes]) -> Callable[[str, bytes], bytes]:
    return lambda _, message: change(message) if message[1] == kind else message


REVEAL = REVEAL_SIZE


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (altered(Kind.COMMITS, lambda m: flip(m, 4 + COMMIT_SIZE + 10)), BadSignature),  # a number of its own for party 1
        (altered(Kind.COMMITS, lambda m: flip(m, 4 + 10)), BadSignature),
        (altered(Kind.COMMITS, lambda m: only(m, COMMIT_SIZE, (1, 2, 3, 4))), ChangedMessage),  # without this party
        (altered(Kind.COMMITS, lambda m: only(m, COMMIT_SIZE, (0, 1))), CohortTooSmall),
        (altered(Kind.COMMITS, lambda m: only(m, COMMIT_SIZE, (0, 1, 1, 2))), Malformed),  # one party twice
        (
            altered(Kind.COMMITS, lambda m: only(m, COMMIT_SIZE, (0, 1, 2, 3))),
            Malformed,
        ),  # a shorter list to one: a ciphertext is missing
        (altered(Kind.REVEALS, lambda m: flip(m, 4 + REVEAL + 40)), BadSignature),  # a key of its own for party 1
        (altered(Kind.REVEALS, lambda m: only(m, REVEAL, (1, 2, 3, 4))), ChangedMessage),
        (altered(Kind.REVEALS, lambda m: only(m, REVEAL, (0, 1))), CohortTooSmall),
        (altered(Kind.DELIVERY, lambda m: m[:-1] + bytes([m[-1] ^ 1])), NotSealedForUs),
        (altered(Kind.DELIVERY, lambda m: flip(m, 5)), WrongSetup),
        (altered(Kind.DELIVERY, lambda m: m[:34] + places_bytes((1, 2, 3, 4)) + m[46:]), ChangedMessage),
        (altered(Kind.DELIVERY, lambda m: m[:34] + places_bytes((0, 1)) + m[46:]), CohortTooSmall),
        (altered(Kind.DELIVERY, lambda m: m + b"\0"), Malformed),
    ],
)
def test_a_set_up_that_was_tampered_with_is_refused(change: Callable[[str, bytes], bytes], refusal: type[Refused]) -> None:
    with pytest.raises(refusal):
        setting_up(change).prepare(ROUNDS)


def test_shares_for_somebody_else_are_not_opened() -> None:
    def swap(message: bytes) -> bytes:  # the sealed bundles of two dealers change places
        size = (len(message) - 46) // (N - 1)
        return message[:46] + message[46 + size : 46 + 2 * size] + message[46 : 46 + size] + message[46 + 2 * size :]

    with pytest.raises(NotSealedForUs):
        setting_up(altered(Kind.DELIVERY, swap)).prepare(ROUNDS)


def test_a_different_list_of_dealers_for_one_party_shows_at_once() -> None:
    def shorter(message: bytes) -> bytes:
        size = (len(message) - 46) // (N - 1)
        return message[:34] + places_bytes((0, 1, 2, 3)) + message[46 : 46 + 3 * size]

    with pytest.raises(WrongSetup):
        setting_up(altered(Kind.DELIVERY, shorter)).prepare(ROUNDS)


def test_messages_of_an_earlier_set_up_cannot_be_passed_on_again() -> None:
    """Their keys may have been opened since; a reveal holds only beside the commitments that its reader made."""
    old = Played(MaskedSum(), names(N)).prepare(ROUNDS)
    reveals = next(message for name, message in old.sent if message[1] == Kind.REVEALS)

    def mixed(message: bytes) -> bytes:
        return message[: 4 + REVEAL] + reveals[4 + REVEAL :]

    with pytest.raises(BadSignature):
        setting_up(altered(Kind.REVEALS, mixed)).prepare(ROUNDS)


def test_set_ups_under_another_profile_session_or_roster_do_not_mix() -> None:
    members = names(N)
    theirs = Played(MaskedSum(), members)
    theirs.roster = replace(theirs.roster, profile=b"q" * 32)
    theirs.parties[members[1]] = theirs.session(members[1])
    with pytest.raises(BadSignature):
        theirs.prepare(ROUNDS)


def test_other_settings_make_another_set_up() -> None:
    played = Played(MaskedSum(), names(N))
    played.parties[played.members[1]] = MaskedSum(consistency=True).party(
        played.members[1], played.roster, OperatingSystem(), played.stores[played.members[1]]
    )
    with pytest.raises(WrongSetup):
        played.prepare(ROUNDS)


def test_unknown_and_foreign_identities_are_refused() -> None:
    members = names(3)
    whole = roster_of(members)
    unpinned = replace(whole, keys={m: key for m, key in whole.keys.items() if m != members[1]})
    with pytest.raises(UnknownIdentity):
        MaskedSum().party(members[1], unpinned, OperatingSystem(), own_store(members[1]))
    with pytest.raises(Mistake, match="this party's own private key is missing,"):
        MaskedSum().party(members[1], whole, OperatingSystem(), own_store(members[2]))
    with pytest.raises(UnknownIdentity):
        PinnedRoster(unpinned).verify(1, Label.COMMITMENT, b"message", bytes(64))
