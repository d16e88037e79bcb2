"""Whoever lies in a masked sum: an active coordinator or a false party, in the set-up and in rounds, is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import (
    COMMIT_SIZE,
    HEADER_SIZE,
    PLACE_SIZE,
    REVEAL_SIZE,
    Kind,
    Outcome,
    Place,
    read_share,
)
from securetm.aggregation.masked.refusals import (
    AlreadyUnmasked,
    AnotherVector,
    BrokenCommitment,
    CalledDropped,
    ChangedMessage,
    FalseSecret,
    FalseShare,
    OtherSurvivors,
    OutOfStep,
    SecretsDisagree,
    SetsIncomplete,
    SetsOverlap,
    SharesDisagree,
    TooFewSignatures,
    TooFewSurvivors,
    WrongSetup,
)
from securetm.aggregation.masked.round import consent_body
from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import Exchange
from securetm.entropy import OperatingSystem
from securetm.errors import (
    BadVector,
    CohortTooSmall,
    Duplicate,
    Malformed,
    Mistake,
    NotInCohort,
    Refused,
    TooFewParties,
    UnknownRound,
)
from securetm.sessions.exchanges import UnexpectedMessage
from securetm.sessions.framing import Label, Reader, places_bytes
from securetm.sessions.identities import SIGNATURE, BadSignature, PinnedRoster, UnknownIdentity, identity_of
from securetm.sessions.sealing import NotSealedForUs

from .played import COORDINATOR, TERMS, Played, names, own_store, roster_of, signed_again, vectors_of
from .tampering import ROUNDS, TERMS32, N, asked, flip, masked, only, place_of, refused, unmask

# ---- a coordinator in a round ----------------------------------------------------------------------------------------------


# ---- survivors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("survivors", "dropped", "refusal"),
    [
        ((0, 1, 2, 3), (3, 4), SetsOverlap),  # both shares of party 3
        ((0, 1, 2, 3, 4), (0,), SetsOverlap),
        ((0, 1, 2), (4,), SetsIncomplete),  # whose masks stay?
        ((1, 2, 3, 4), (0,), CalledDropped),  # the key of whom has just sent its vector
        ((0, 1), (2, 3, 4), TooFewSurvivors),
        ((0,), (1, 2, 3, 4), TooFewSurvivors),  # one vector bare
        ((), (0, 1, 2, 3, 4), CalledDropped),
    ],
)
def test_lists_of_survivors_that_would_show_a_vector_are_refused(
    played: Played, survivors: tuple[int, ...], dropped: tuple[int, ...], refusal: type[Refused]
) -> None:
    party, message = asked(played, survivors, dropped)
    refused(party, message, refusal)
    good = unmask(Outcome(place_of(played), (0, 1, 2, 3), (4,)))
    assert party.receive(COORDINATOR, good)  # a refusal reveals nothing and blocks nothing


def test_lists_that_name_a_stranger_are_refused(played: Played) -> None:
    party, message = asked(played, (0, 1, 2, 3, 4), (5,))
    refused(party, message, Malformed)
    smaller = Played(MaskedSum(), names(N)).prepare(1)
    smaller.parties.pop(smaller.members[4])
    cohort = smaller.cohort(members=smaller.members[:4])
    _, parties = smaller.begin(cohort, vectors_of(smaller.members), MaskedSum().admit(TERMS, cohort))
    header = parties[smaller.members[0]].begin()[0][1]
    at = Place(header[4:36], header[36:68], 0)
    refused(parties[smaller.members[0]], unmask(Outcome(at, (0, 1, 2, 3), (4,))), NotInCohort)


def test_a_round_is_opened_for_one_list_of_survivors_only(played: Played) -> None:
    """The second list calls party 4 dropped: together the two answers would hold both of its shares."""
    party, message = asked(played, (0, 1, 2, 3, 4), ())
    first = party.receive(COORDINATOR, message)
    refused(party, unmask(Outcome(place_of(played), (0, 1, 2, 3), (4,))), AlreadyUnmasked)
    assert party.receive(COORDINATOR, message) == first  # the same request gets the same answer: nothing new is revealed


def test_the_same_holds_after_a_restart(played: Played) -> None:
    party, message = asked(played, (0, 1, 2, 3, 4), ())
    party.receive(COORDINATOR, message)
    played.restart(played.members[0])
    again = masked(played)[played.members[0]]
    refused(again, unmask(Outcome(place_of(played), (0, 1, 2, 3), (4,))), AlreadyUnmasked)


def test_nothing_is_opened_before_it_is_masked(played: Played) -> None:
    message = unmask(Outcome(place_of(played), (0, 1, 2, 3, 4), ()))
    cohort = played.cohort(1)
    vector = blocks_of(vectors_of(played.members)[played.members[0]], TERMS)
    fresh = played.parties[played.members[0]].round(cohort, TERMS, vector)
    refused(fresh, message, UnexpectedMessage)


def test_a_request_for_another_round_prekey_or_set_up_is_refused(played: Played) -> None:
    at = place_of(played)
    party = masked(played, 1)[played.members[0]]
    everybody = tuple(range(N))
    refused(party, unmask(Outcome(at, everybody, ())), UnknownRound)
    here = place_of(played, 1)
    refused(party, unmask(Outcome(replace(here, index=0), everybody, ())), OutOfStep)
    refused(party, unmask(Outcome(replace(here, epoch=bytes(32)), everybody, ())), WrongSetup)


def test_only_the_coordinator_is_answered(played: Played) -> None:
    party, message = asked(played, (0, 1, 2, 3, 4), ())
    refused(party, message, UnexpectedMessage, sender=played.members[1])


def test_a_cohort_below_the_threshold_is_not_entered(played: Played) -> None:
    session, two = played.parties[played.members[0]], played.cohort(members=played.members[:2])
    with pytest.raises(CohortTooSmall):
        session.round(two, TERMS, blocks_of(vectors_of(played.members)[played.members[0]], TERMS))


def test_parties_that_were_shown_different_cohorts_agree_on_no_list(careful: Played) -> None:
    """Under one round id, which the coordinator made up: whatever list it sends, one of the two sides refuses it."""
    vectors, members = vectors_of(careful.members), careful.members
    whole, fewer = careful.cohort(), replace(careful.cohort(), members=members[:4])
    sides = [careful.parties[members[0]].round(whole, TERMS32, blocks_of(vectors[members[0]], TERMS32))]
    sides += [careful.parties[members[1]].round(fewer, TERMS32, blocks_of(vectors[members[1]], TERMS32))]
    first, _ = (side.begin()[0][1] for side in sides)
    at = Place(first[4:36], first[36:68], 0)
    for survivors, dropped in (((0, 1, 2, 3, 4), ()), ((0, 1, 2, 3), (4,)), ((0, 1, 2, 3), ()), ((0, 1, 2), (3,))):
        accepted = [accepts(side, Outcome(at, survivors, dropped).body(Kind.SURVIVORS)) for side in sides]
        assert sum(accepted) <= 1


def accepts(exchange: Exchange, message: bytes) -> bool:
    try:
        exchange.receive(COORDINATOR, message)
    except (SetsIncomplete, NotInCohort, OtherSurvivors):
        return False
    return True


def test_different_round_ids_give_no_sum(played: Played) -> None:
    """A coordinator that shows one party another cohort shows it another round id, and its vector fits no sum."""
    cohort, vectors = played.cohort(), vectors_of(played.members)
    middle, _ = played.begin(cohort, vectors, TERMS32)
    odd = played.members[0]
    other = played.parties[odd].round(replace(cohort, round_id=b"o" * 32), TERMS32, blocks_of(vectors[odd], TERMS32))
    with pytest.raises(UnknownRound):
        middle.receive(odd, other.begin()[0][1])


# ---- consistency -----------------------------------------------------------------------------------------------------


def signatures_of(played: Played, outcome: Outcome, signers: tuple[int, ...]) -> dict[int, bytes]:
    whole = {place: identity_of(played.members[place], played.roster, own_store(played.members[place])) for place in signers}
    return {p: one.sign(Label.CONSENT, consent_body(p, outcome))[-SIGNATURE:] for p, one in whole.items()}


def agreed(played: Played, outcome: Outcome) -> Exchange:
    party = masked(played)[played.members[0]]
    party.receive(COORDINATOR, outcome.body(Kind.SURVIVORS))
    return party


def test_a_party_signs_one_list_of_survivors(careful: Played) -> None:
    at = place_of(careful)
    party = agreed(careful, Outcome(at, (0, 1, 2, 3, 4), ()))
    refused(party, Outcome(at, (0, 1, 2, 3), (4,)).body(Kind.SURVIVORS), OtherSurvivors)
    careful.restart(careful.members[0])
    refused(masked(careful)[careful.members[0]], Outcome(at, (0, 1, 2, 3), (4,)).body(Kind.SURVIVORS), OtherSurvivors)


def test_what_was_not_signed_is_not_opened(careful: Played) -> None:
    at = place_of(careful)
    whole, other = Outcome(at, (0, 1, 2, 3, 4), ()), Outcome(at, (0, 1, 2, 3), (4,))
    refused(agreed(careful, whole), unmask(other, signatures_of(careful, other, (0, 1, 2))), OtherSurvivors)
    fresh = Played(MaskedSum(consistency=True), names(N)).prepare(1)
    whole = Outcome(place_of(fresh), (0, 1, 2, 3, 4), ())
    party = masked(fresh)[fresh.members[0]]
    refused(party, unmask(whole, signatures_of(fresh, whole, (0, 1, 2))), OtherSurvivors)  # it never signed


def test_too_few_or_false_signatures_open_nothing(careful: Played) -> None:
    at = place_of(careful)
    outcome, other = Outcome(at, (0, 1, 2, 3), (4,)), Outcome(at, (0, 1, 2, 3, 4), ())
    party = agreed(careful, outcome)
    good = signatures_of(careful, outcome, (0, 1, 2, 4))
    refused(party, unmask(outcome, {0: good[0], 1: good[1]}), TooFewSignatures)
    refused(party, unmask(outcome), TooFewSignatures)
    refused(party, unmask(outcome, {0: good[0], 1: good[1], 2: good[1]}), BadSignature)
    refused(party, unmask(outcome, {**good, **signatures_of(careful, other, (2,))}), BadSignature)  # of another list
    refused(party, unmask(outcome, {0: good[0], 1: good[1], 4: good[4]}), NotInCohort)  # of one who is not in it
    assert party.receive(COORDINATOR, unmask(outcome, {place: good[place] for place in (0, 1, 2)}))


def test_without_consistency_nothing_is_signed(played: Played) -> None:
    outcome = Outcome(place_of(played), (0, 1, 2, 3, 4), ())
    refused(masked(played)[played.members[0]], outcome.body(Kind.SURVIVORS), UnexpectedMessage)


def test_a_key_opened_for_who_dropped_out_opens_that_round_and_no_other() -> None:
    """All shares that pass in a round are of that round's prekey, and its key gives no mask of the next round."""
    from securetm.aggregation.masked.pairs import Copies, secret_of
    from securetm.aggregation.masked.setup import pairs_of

    played = Played(MaskedSum(), names(N)).prepare(ROUNDS)
    gone = played.members[4]
    played.leaves = {Kind.UNMASKED: {gone}}
    left = played.parties[gone]._prekeys.prepared()
    played.change_up = lambda name, message: message
    played.leaves = {Kind.MASKED: {gone}}
    played.play(played.cohort(), vectors_of(played.members))
    shares = {}
    for name, message in played.seen:
        if message[1] == Kind.UNMASKED:
            reader = Reader(message[:-SIGNATURE], name)
            reader.take(2 + PLACE_SIZE)
            shares[played.members.index(name) + 1] = [read_share(reader) for _ in range(N)][4]
    points = tuple(sorted(shares))[:3]
    secret = shamir.combine(points, [shares[p] for p in points]).to_bytes(32, "big")
    assert secret not in left.seeds
    setup = played.middle.memory.relayed.setup
    told = pairs_of(played.stores[COORDINATOR], setup, 4)
    for peer in range(4):
        for index in range(ROUNDS):
            opened = Copies(setup, 4, {index: secret}, N).turned(peer, secret_of(told[peer][1], index))
            assert (opened == secret_of(left.peers[peer], index)) == (index == 0)


# ---- a coordinator in the set-up -------------------------------------------------------------------------------------------


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


# ---- a party ---------------------------------------------------------------------------------------------------------------


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
