"""What messages mean to somebody who knows the format: questions, and vectors of parties or of all. It opens nothing sealed.

Formats are public, so an attacker reads them with the parties' own code. Of a masked vector it reads what is there: numbers
that look random. Noised vectors are read like any others; a ciphertext is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from securetm.aggregation.masked.messages import HEADER_SIZE
from securetm.aggregation.vectors import unpack_vector, wire_type
from securetm.clipped_sum import blocks_of
from securetm.contracts import Array, Domain, State, Terms
from securetm.federation import wire
from securetm.federation.questions import FREQUENCIES, HELD_OUT, TRAIN, Questions
from securetm.leakage.adversary_view import AdversaryView, Message
from securetm.leakage.leakage_errors import ClosedCiphertext, UnreadableMessage
from securetm.profiles import cohort_of
from securetm.route import compile_route

REQUEST, ANSWER, SEALED, TOTAL = "request", "answer", "sealed", "total"
BY_PARTIES = (ANSWER, SEALED)


@dataclass(frozen=True)
class RoundQuestion:
    """One question, with the state that came with it and the public terms of its answers."""

    serial: int
    question: str
    number: int
    state: State
    terms: Terms

    @property
    def step(self) -> float:
        """The grid on which numbers were rounded; 0 if on none."""
        return self.terms.grid


@dataclass(frozen=True)
class ReadVector:
    """One vector as numbers: a party's, or the sum of all (party "")."""

    round: RoundQuestion
    party: str
    blocks: Mapping[str, Array]


def questions_in(view: AdversaryView) -> dict[int, RoundQuestion]:
    """Every question that the view holds, by the number of its round."""
    final = Questions(view.public.agreement)
    final.adopt(view.vocabulary())
    candidates = Questions(view.public.agreement, view.vocabulary())
    found: dict[int, RoundQuestion] = {}
    for message in view.messages(REQUEST):
        _, body = wire.unpack_request(message.content)
        if isinstance(body, wire.Adopt):  # the list that the next question about frequencies goes through is longer
            candidates.adopt(tuple(body.words.decode().split("\n")))
        if isinstance(body, wire.Ask) and message.serial not in found:
            questions = candidates if body.question == FREQUENCIES else final
            found[message.serial] = _understood(message.serial, body, questions, view)
    return found


def _understood(serial: int, ask: wire.Ask, questions: Questions, view: AdversaryView) -> RoundQuestion:
    """A question with its terms. Where the parties learn by themselves none comes with a state, but all have its form."""
    public, state = view.public, ask.state
    if not state and ask.question in (TRAIN, HELD_OUT):
        fresh = public.model.start(questions.vocabulary, np.random.default_rng(public.plan.seed))
        state = public.model.for_party(fresh, "")
    query, cohort = questions.make(ask.question, state), cohort_of(public.profile, ask.members)
    return RoundQuestion(serial, ask.question, ask.number, ask.state, compile_route(query.terms, public.profile, cohort).terms)


def question_in(request: bytes) -> wire.Ask | None:
    """The question in a request, if it is one."""
    body = wire.unpack_request(request)[1]
    return body if isinstance(body, wire.Ask) else None


def party_vectors(view: AdversaryView) -> Iterator[ReadVector]:
    """Each party's vector of each round: what it sent in the clear, or what its sealed message shows."""
    known = questions_in(view)
    for message in view.seen.get(ANSWER, ()):
        parcel = first_part(message) if message.serial in known else b""
        if parcel and vector_at(parcel, known[message.serial].terms) is not None:  # other messages speak of ledgers
            terms = known[message.serial].terms
            blocks = unpack_vector(parcel, terms, message.sender)
            yield ReadVector(known[message.serial], message.sender, {name: _off_grid(b, terms) for name, b in blocks.items()})
    yield from _sealed([message for message in view.seen.get(SEALED, ()) if message.serial in known], known, view)


def _sealed(messages: list[Message], known: Mapping[int, RoundQuestion], view: AdversaryView) -> Iterator[ReadVector]:
    """Messages as long as a masked vector; the others of a round carry shares and consents."""
    if messages and _encrypted(view):
        raise ClosedCiphertext(messages[0].sender)
    found = [(message, first_part(message)) for message in messages]
    masked = [(m, p) for m, p in found if vector_at(p, known[m.serial].terms)]
    if messages and not masked:
        raise UnreadableMessage(messages[0].sender)
    for message, parcel in masked:
        terms = known[message.serial].terms
        flat = np.frombuffer(parcel, wire_type(terms), offset=HEADER_SIZE)
        yield ReadVector(known[message.serial], message.sender, blocks_of(_off_grid(flat, terms), terms))


def totals(view: AdversaryView) -> Iterator[ReadVector]:
    """The opened sums."""
    known, messages = questions_in(view), view.messages(TOTAL)
    if known and not messages and _encrypted(view):
        raise ClosedCiphertext("the parties")
    for message in messages:
        if message.serial in known:
            terms = known[message.serial].terms
            flat = np.frombuffer(message.content, opened_type(message, terms))
            yield ReadVector(known[message.serial], "", blocks_of(flat, terms))


def _encrypted(view: AdversaryView) -> bool:
    """Whether sums are opened by the parties alone, with a key of their own."""
    return view.public.profile.aggregation.opened_by == "parties"


def _off_grid(numbers: Array, terms: Terms) -> Array:
    """Whole numbers that stand for real ones, as these."""
    return numbers * terms.grid if terms.grid else numbers


def first_part(message: Message) -> bytes:
    """What a party says first in a round: its vector; in further messages of a round it may say nothing."""
    outcome = wire.unpack_reply(message.content, message.sender)[1]
    return outcome.parcels[0] if isinstance(outcome, wire.Accepted) and outcome.parcels else b""


def opened_type(message: Message, terms: Terms) -> np.dtype[Any]:
    """How an opened sum was written down: as long as its numbers are wide."""
    width, rest = divmod(len(message.content), terms.size)
    if rest or width not in (4, 8):
        raise UnreadableMessage(message.sender)
    whole = terms.domain is Domain.INTEGER and terms.grid == 0
    return np.dtype(f"<{'i' if whole else 'f'}{width}")


def vector_at(parcel: bytes, terms: Terms) -> int | None:
    """Where the vector begins in a party's message, plain or masked; None in one of the messages that follow."""
    width = wire_type(terms).itemsize
    size = terms.size * width
    if terms.ragged:  # rows of one length, at most as many as the terms say
        row = size // terms.layout[0].shape[0]
        return 0 if len(parcel) % row == 0 and 0 < len(parcel) <= size else None
    return {size: 0, HEADER_SIZE + size: HEADER_SIZE}.get(len(parcel))
