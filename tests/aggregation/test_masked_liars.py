"""False messages of a party, at the coordinator: a wrong share names who sent it, and there is never a wrong sum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import HEADER_SIZE, PLACE_SIZE, Kind
from securetm.aggregation.masked.refusals import (
    AnotherVector,
    BrokenCommitment,
    FalseSecret,
    FalseShare,
    OutOfStep,
    SecretsDisagree,
    SharesDisagree,
)
from securetm.errors import BadVector, Duplicate, Malformed, Refused, TooFewParties
from securetm.sessions.identities import SIGNATURE, BadSignature, identity_of
from securetm.sessions.sealing import NotSealedForUs
from tests.aggregation.played import COORDINATOR, TERMS, Played, names, own_store, signed_again, vectors_of

from .tampering import ROUNDS, N, flip


def changing(played: Played, kind: Kind, change: Callable[[bytes], bytes], resign: bool = True) -> Played:
    """The second party sends something else; signed again with its own key, unless the network did it."""
    liar = played.members[1]
    identity = identity_of(liar, played.roster, own_store(liar))

    def change_up(name: str, message: bytes) -> bytes:
        if name != liar or message[1] != kind:
            return message
        return signed_again(identity, change(message[:-SIGNATURE]) + bytes(SIGNATURE)) if resign else change(message)

    played.change_up = change_up
    return played


def test_a_false_share_names_who_sent_it(played: Played) -> None:
    first_share = 4 + PLACE_SIZE + shamir.SHARE - 1
    with pytest.raises(FalseShare) as caught:
        changing(played, Kind.UNMASKED, lambda m: flip(m, first_share)).play(played.cohort(), vectors_of(played.members))
    assert (caught.value.sender, caught.value.owner) == (played.members[1], played.members[0])


def test_the_share_of_the_other_secret_is_a_false_share(played: Played) -> None:
    """The holder says that party 0 left although it stayed."""
    bundle = played.parties[played.members[1]]._prekeys.prepared().bundles[0]
    start = 4 + PLACE_SIZE
    lie = changing(played, Kind.UNMASKED, lambda m: m[:start] + bundle[: shamir.SHARE] + m[start + shamir.SHARE :])
    with pytest.raises(FalseShare):
        lie.play(played.cohort(), vectors_of(played.members))


def test_a_dealer_that_deals_another_secret_is_named() -> None:
    played = Played(MaskedSum(), names(N))
    setup = played.parties[played.members[1]].prepare(ROUNDS)
    commits = setup._seeds
    parties = {name: session.prepare(ROUNDS) for name, session in played.parties.items() if name != played.members[1]}

    def deals_others(message: bytes, honest=setup._deal) -> bytes:
        setup._seeds = tuple(bytes([seed[0] ^ 1]) + seed[1:] for seed in commits)
        return honest(message)

    setup._deal = deals_others
    played.run(played.middle.prepare(ROUNDS), {**parties, played.members[1]: setup})
    with pytest.raises(FalseSecret) as caught:
        played.play(played.cohort(), vectors_of(played.members))
    assert caught.value.sender == played.members[1]


def test_a_receipt_for_other_shares_names_both() -> None:
    with pytest.raises(SharesDisagree):
        changing(Played(MaskedSum(), names(N)), Kind.STORED, lambda m: flip(m, 40)).prepare(ROUNDS)


@pytest.mark.parametrize("changed", ["a ciphertext", "a copy", "a hash"])
def test_a_pair_that_does_not_agree_makes_no_sum(changed: str) -> None:
    """A changed ciphertext or hash shows in the set-up, and a false copy when its party is gone: never as a wrong sum."""
    played = Played(MaskedSum(), names(N), leaves={Kind.MASKED: {names(N)[1]}})
    at = {"a ciphertext": -1, "a copy": -1, "a hash": -(ROUNDS * 32) - 1}[changed]
    kind = Kind.REVEAL if changed == "a ciphertext" else Kind.SHARES
    changing(played, kind, lambda m: flip(m, len(m) + at), kind != Kind.REVEAL)

    def all_rounds() -> None:
        played.prepare(ROUNDS)
        for number in range(ROUNDS):
            played.play(played.cohort(number), vectors_of(played.members))

    refusals = {"a ciphertext": NotSealedForUs, "a copy": FalseSecret, "a hash": SecretsDisagree}
    with pytest.raises(refusals[changed]) as caught:
        all_rounds()
    assert played.members[1] in vars(caught.value).values()


def test_a_reveal_of_another_number_is_refused() -> None:
    played = Played(MaskedSum(), names(N))

    def other(name: str, message: bytes) -> bytes:
        return flip(message, 10) if name == played.members[1] and message[1] == Kind.REVEAL else message

    played.change_up = other
    with pytest.raises(BadSignature):
        played.prepare(ROUNDS)


def test_a_broken_commitment_is_refused() -> None:
    played = Played(MaskedSum(), names(N))
    setup = played.parties[played.members[1]].prepare(ROUNDS)
    setup._nonce = bytes(32)
    parties = {name: session.prepare(ROUNDS) for name, session in played.parties.items() if name != played.members[1]}
    with pytest.raises(BrokenCommitment):
        played.run(played.middle.prepare(ROUNDS), {**parties, played.members[1]: setup})


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (lambda m: m[:-4], BadVector),
        (lambda m: m + m[-4:], BadVector),
        (lambda m: flip(m, 3), Malformed),  # in another party's name
        (lambda m: flip(m, 80), BadSignature),
        (lambda m: flip(m, len(m) - 1), AnotherVector),
        (lambda m: m[:HEADER_SIZE] + bytes(len(m) - HEADER_SIZE), AnotherVector),
        (lambda m: m[: HEADER_SIZE - 1], BadSignature),
        (lambda m: b"", Malformed),
    ],
)
def test_masked_vectors_that_are_not_as_promised_are_refused(
    played: Played, change: Callable[[bytes], bytes], refusal: type[Refused]
) -> None:
    with pytest.raises(refusal):
        changing(played, Kind.MASKED, change, resign=False).play(played.cohort(), vectors_of(played.members))


def test_a_refused_message_leaves_the_sum_as_it_was(played: Played) -> None:
    cohort, vectors = played.cohort(), vectors_of(played.members)
    middle, parties = played.begin(cohort, vectors, MaskedSum().admit(TERMS, cohort))
    sent = {name: party.begin()[0][1] for name, party in parties.items()}
    for name, message in sent.items():
        with pytest.raises(Refused):
            middle.receive(name, flip(message, 80))
        middle.receive(name, message)
        with pytest.raises(Duplicate):
            middle.receive(name, message)
    for name, request in middle.expire(()):
        middle.receive(name, parties[name].receive(COORDINATOR, request)[0][1])
    middle.expire(())
    total = played.middle.answer(cohort.round_id).total
    assert total is not None
    assert np.array_equal(np.concatenate([p.ravel() for p in total.values()]), sum(vectors.values()))


@pytest.mark.parametrize("index", [ROUNDS, 2**20])
def test_parties_that_all_name_a_prekey_beyond_the_set_up_move_nobody_there(played: Played, index: int) -> None:
    """The coordinator takes the index of enough parties as its own, and keeps a few bytes for each index before it."""
    before, vectors = played.middle.prepared, vectors_of(played.members)
    round_terms = MaskedSum().admit(TERMS, played.cohort())
    middle, parties = played.begin(played.cohort(), vectors, round_terms)
    for name, party in parties.items():
        ((_, message),) = party.begin()
        signed = message[: 4 + PLACE_SIZE - 4] + index.to_bytes(4, "big") + message[4 + PLACE_SIZE : HEADER_SIZE]
        liar = identity_of(name, played.roster, own_store(name))
        with pytest.raises(OutOfStep):
            middle.receive(name, signed_again(liar, signed) + message[HEADER_SIZE:])
    with pytest.raises(TooFewParties):
        middle.expire(played.members)
    assert played.middle.prepared == before - 1
