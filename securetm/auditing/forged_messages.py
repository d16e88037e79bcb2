"""Forged messages of a malicious coordinator: for each honest message, those that parties must refuse beside it.

It only makes messages. `protocol_violations` sends them and records the answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from securetm.aggregation.masked.messages import HEADER_SIZE, MOST_PARTIES, Kind, Outcome, read_outcome
from securetm.contracts import State
from securetm.federation.wire import wire
from securetm.sessions.framing import Reader, head, places_bytes
from securetm.sessions.identities import COORDINATOR, SIGNATURE

ANSWERED = "answered"
Forged = Iterator[tuple[str, wire.Body]]  # what is attempted, and the message
_OWN_WEIGHTS: State = {"weights": np.ones(1, dtype=np.float32)}


def invitations(invite: wire.Invite) -> Forged:
    """Invitations to something else."""
    yield "an invitation under another profile", replace(invite, profile=bytes(32))
    yield "an invitation under another plan", replace(invite, agreement=bytes(32))
    yield "an invitation with a member that the coordinator made up", replace(invite, members=(*invite.members, "nobody"))


def heads_of_ledgers(witness: wire.Witness) -> Forged:
    """Heads with links that are reversed."""
    if witness.links:
        broken = tuple(way[::-1] for way in witness.links)
        yield "heads of ledgers with links that do not lead to them", replace(witness, links=broken)


def questions(ask: wire.Ask, before: wire.Ask | None, victim: str, minimum: int) -> Forged:
    """Questions to other parties, about other weights, or asked before; `before` is the question of the previous round."""
    few = tuple(m for m in ask.members if m != victim)[: minimum - 2]
    yield "a question to fewer parties than the least number", replace(ask, members=(victim, *few))
    yield "a question in a cohort with a party that nobody knows", replace(ask, members=(*ask.members, "nobody"))
    yield "a question that no plan has", replace(ask, question="documents")
    if ask.witnesses:
        yield "a question without the others' signatures under the ledger", replace(ask, witnesses=())
    if ask.state:
        weights = ask.state["weights"]
        others = {
            "weights of another shape": weights[:-1],
            "weights that are no numbers": np.full_like(weights, np.nan),
            "other weights for one party than for the others in the same round": weights * 2,
        }
        for attempt, other in others.items():
            yield attempt, replace(ask, state={**ask.state, "weights": other})
    else:
        yield "weights of the coordinator's own, where the parties learn by themselves", replace(ask, state=_OWN_WEIGHTS)
    if before is not None:
        yield "the round before, once more", before
        yield "this question under the round id of the one before", replace(ask, round_id=before.round_id)


# ---- lists of survivors ----------------------------------------------------------------------------------------------


def false_lists(forward: wire.Forward, victim: int) -> Forged:
    """False lists of survivors, for before the real one is sent."""
    for outcome, rest, kind in outcome_in(forward):
        cohort = tuple(sorted((*outcome.survivors, *outcome.dropped)))
        others = tuple(place for place in cohort if place != victim)
        signing = "to sign " if kind == Kind.SURVIVORS else ""
        substitutes = {
            "calls the party dropped, which answered": (others, (victim,)),
            "has another party both stay and drop out": (cohort, others[-1:]),
            "leaves a party out": (tuple(p for p in cohort if p != others[-1]), ()),
            "names two survivors": (tuple(sorted((victim, others[0]))), others[1:]),
        }
        for attempt, (survivors, dropped) in substitutes.items():
            lists = replace(outcome, survivors=survivors, dropped=dropped)
            yield f"a list {signing}that {attempt}", replace(forward, parcel=lists.body(kind) + rest)
        if len(rest) > len(places_bytes(())):
            cut = outcome.body(kind) + places_bytes(())
            yield "the real list with nobody's signature", replace(forward, parcel=cut)


def second_lists(forward: wire.Forward) -> Forged:
    """A second list that calls a survivor dropped, for after the first was signed or answered."""
    for outcome, rest, kind in outcome_in(forward):
        other = without(outcome, outcome.survivors[-1])
        done = "signed" if kind == Kind.SURVIVORS else ANSWERED
        yield f"a second list of survivors, after one was {done}", replace(forward, parcel=other.body(kind) + rest)


def outcome_in(forward: wire.Forward) -> Iterator[tuple[Outcome, bytes, Kind]]:
    """The lists in a message of a masked round, the bytes after them, and the kind of message; nothing for other messages."""
    reader = Reader(forward.parcel, COORDINATOR)
    if reader.kind in (Kind.SURVIVORS, Kind.UNMASK):
        outcome = read_outcome(reader, MOST_PARTIES)
        yield outcome, bytes(reader.rest()), Kind(reader.kind)


def without(outcome: Outcome, place: int) -> Outcome:
    """The lists with one survivor called dropped."""
    survivors = tuple(one for one in outcome.survivors if one != place)
    return replace(outcome, survivors=survivors, dropped=tuple(sorted((*outcome.dropped, place))))


def signatures_without(listed: bytes, place: int) -> bytes:
    """The places and signatures behind a list of survivors, without one place; nothing if there are none."""
    if not listed:
        return b""
    reader = Reader(head(Kind.UNMASK) + listed, COORDINATOR)
    kept = {one: signature for one, signature in reader.entries(reader.places(MOST_PARTIES), SIGNATURE).items() if one != place}
    return places_bytes(kept) + b"".join(kept.values())


def another_vector(parcel: bytes) -> bytes:
    """The signed header with another vector of the same length."""
    return parcel[:HEADER_SIZE] + bytes(255 - one for one in parcel[HEADER_SIZE:])
