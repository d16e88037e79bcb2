"""An active coordinator tries what it may not: each forbidden request ends in its named refusal, at the party."""

from __future__ import annotations

from dataclasses import replace

import pytest

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import PLACE_SIZE, Kind, Outcome, Place, read_share
from securetm.aggregation.masked.refusals import (
    AlreadyUnmasked,
    CalledDropped,
    OtherSurvivors,
    OutOfStep,
    SetsIncomplete,
    SetsOverlap,
    TooFewSignatures,
    TooFewSurvivors,
    WrongSetup,
)
from securetm.aggregation.masked.round import consent_body
from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import Exchange
from securetm.errors import CohortTooSmall, Malformed, NotInCohort, Refused, UnknownRound
from securetm.sessions.exchanges import UnexpectedMessage
from securetm.sessions.framing import Label, Reader
from securetm.sessions.identities import SIGNATURE, BadSignature, identity_of
from tests.aggregation.played import COORDINATOR, TERMS, Played, names, own_store, vectors_of

from .tampering import ROUNDS, TERMS32, N, asked, masked, place_of, refused, unmask

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
