"""What one adversary of a threat model sees of a recorded run, and how its messages are read. Nothing here opens a file.

An attack gets an `AdversaryView` and nothing else: no folder, no store and no document. Formats are public, so an attacker
reads messages with the parties' own code. A masked vector is read as the random-looking numbers that it holds, a noised one
like any other; a ciphertext is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from securetm.aggregation.masked.messages import HEADER_SIZE
from securetm.aggregation.vectors import unpack_vector, wire_type
from securetm.answers.clipped_sum import blocks_of
from securetm.answers.route import compile_route
from securetm.contracts import Adversary, Array, Domain, Profile, State, Terms, TopicModel
from securetm.data_classes import dataclass, field
from securetm.errors import SecuretmError
from securetm.federation.questions import FREQUENCIES, HELD_OUT, MARKS, TRAIN, Questions
from securetm.federation.shared_words import OpenedWords
from securetm.federation.wire import wire
from securetm.plans.agreement import Agreement
from securetm.plans.profiles import cohort_of
from securetm.plans.schema import Plan

MODEL, VOCABULARY = "model", "vocabulary"
SET_UP = "set-up"  # among an attack's questions: what was said before the first question
TIMES = "times"  # of replies that a network carried; the content is how many seconds after its request one came, as text
SIZES = "sizes"  # of the messages on all channels; the content of such a message is a length in bytes, as text


class NotGranted(SecuretmError):
    """the attack asked for the channel {channel!r}, which {adversary} does not see or the attack does not declare"""

    channel: str
    adversary: str
    hint = "name the channel among the attack's needs; if the threat model does not grant it, no attack may read it"


class NotTestable(SecuretmError):
    """the attack cannot be tried here: {why}"""

    why: str
    hint = "the audit gives the attack the verdict `not tested`, with this reason"


@dataclass(frozen=True)
class Message:
    serial: int
    channel: str
    sender: str
    receiver: str
    content: bytes


@dataclass(frozen=True)
class PublicFacts:
    """How the run was set up. Everybody knows this. It holds no path of documents."""

    members: tuple[str, ...]
    agreement: Agreement

    @property
    def plan(self) -> Plan:
        return self.agreement.plan

    @property
    def profile(self) -> Profile:
        return self.agreement.profile

    @property
    def model(self) -> TopicModel:
        return self.agreement.model


@dataclass(frozen=True)
class ColludingParty:
    """All that a colluding party holds; it shares everything with the adversary."""

    name: str
    documents: Any = field(repr=False)  # its training documents in the agreed words (contracts.Documents)
    secrets: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # the keys in its own store, by name


@dataclass(frozen=True)
class AdversaryView:
    """What one adversary sees of one run, limited to the channels that one attack declares.

    `question` is the judge's question, never the answer; `redrawn` makes the question of the control. `prepared` is what the
    attack computed from the question and the public facts. `again` is the view of a second run without some parties.
    """

    adversary: Adversary
    setting: PublicFacts | None  # None: of a model from elsewhere
    seen: Mapping[str, tuple[Message, ...]]
    words: tuple[str, ...] | None = None
    weights: State | None = field(default=None, repr=False)
    insiders: tuple[ColludingParty, ...] = ()
    question: Any = field(default=None, repr=False)
    redrawn: Callable[[np.random.Generator], Any] | None = field(default=None, repr=False)
    prepared: Any = field(default=None, repr=False)
    again: AdversaryView | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if len(self.insiders) > self.adversary.colludes_with_parties:
            raise NotGranted(f"what {len(self.insiders)} parties hold", self.adversary.name)
        beside = ((VOCABULARY, self.words), (MODEL, self.weights))
        for channel in (*self.seen, *(channel for channel, held in beside if held is not None)):
            if channel not in self.adversary.sees or any(one.channel != channel for one in self.seen.get(channel, ())):
                raise NotGranted(channel, self.adversary.name)

    @property
    def public(self) -> PublicFacts:
        if self.setting is None:
            raise NotTestable("it is not known how the model was trained")
        return self.setting

    @property
    def helpers(self) -> frozenset[str]:
        return frozenset(insider.name for insider in self.insiders)

    def messages(self, channel: str) -> tuple[Message, ...]:
        """The messages on a channel, in order. A channel that was not granted is an error, not an empty list."""
        if channel not in self.seen:
            raise NotGranted(channel, self.adversary.name)
        return self.seen[channel]

    def vocabulary(self) -> tuple[str, ...]:
        if self.words is None:
            raise NotGranted(VOCABULARY, self.adversary.name)
        return self.words

    def model_state(self) -> State:
        if self.weights is None:
            raise NotGranted(MODEL, self.adversary.name)
        return self.weights


# ---- messages as questions, vectors and sums ------------------------------------------------------------------------

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


@dataclass(frozen=True)
class ReadVector:
    """The numbers of one vector: of one party, or of the sum of all (party "")."""

    round: RoundQuestion
    party: str
    blocks: Mapping[str, Array]


def questions_in(view: AdversaryView) -> dict[int, RoundQuestion]:
    """The questions in the view, by the number of their round."""
    final = Questions(view.public.agreement)
    final.adopt(view.vocabulary())
    candidates = Questions(view.public.agreement, view.vocabulary())
    found: dict[int, RoundQuestion] = {}
    for message in view.messages(REQUEST):
        _, body = wire.unpack_request(message.content)
        if isinstance(body, wire.Adopt):  # the next question about frequencies is about this longer list
            candidates.adopt(tuple(body.words.decode().split("\n")))
        if not isinstance(body, wire.Ask) or message.serial in found:
            continue
        questions, public, state = candidates if body.question == FREQUENCIES else final, view.public, body.state
        if not state and body.question in (TRAIN, HELD_OUT):  # a fresh state gives terms of the same form
            fresh = public.model.start(questions.vocabulary, np.random.default_rng(public.plan.seed))
            state = public.model.for_party(fresh, "")
        elif not state and body.question == MARKS:
            state = OpenedWords(public.plan.vocabulary, questions.buckets).about_marks()
        query, cohort = questions.make(body.question, state), cohort_of(public.profile, body.members)
        terms = compile_route(query.terms, public.profile, cohort).terms
        found[message.serial] = RoundQuestion(message.serial, body.question, body.number, body.state, terms)
    return found


def question_in(request: bytes) -> wire.Ask | None:
    """The question in a request; None if it holds another message."""
    body = wire.unpack_request(request)[1]
    return body if isinstance(body, wire.Ask) else None


def party_vectors(view: AdversaryView) -> Iterator[ReadVector]:
    """The vector of each party in each round, sent in the clear or masked."""
    for asked, sender, parcel in first_parts(view, ANSWER):
        if vector_at(parcel, asked.terms) is not None:  # other messages are about ledgers
            blocks = unpack_vector(parcel, asked.terms, sender)
            yield ReadVector(asked, sender, {name: _off_grid(b, asked.terms) for name, b in blocks.items()})
    # the masked vectors among sealed messages: those with a vector's length; the others carry shares and consents
    found = list(first_parts(view, SEALED))
    if found and _encrypted(view):
        raise _closed(found[0][1])
    masked = [(asked, sender, parcel) for asked, sender, parcel in found if vector_at(parcel, asked.terms)]
    if found and not masked:
        raise _no_vector(found[0][1])
    for asked, sender, parcel in masked:
        flat = np.frombuffer(parcel, wire_type(asked.terms), offset=HEADER_SIZE)
        yield ReadVector(asked, sender, blocks_of(_off_grid(flat, asked.terms), asked.terms))


def totals(view: AdversaryView) -> Iterator[ReadVector]:
    """The opened sums."""
    known, messages = questions_in(view), view.messages(TOTAL)
    if known and not messages and _encrypted(view):
        raise _closed("the parties")
    for message in messages:
        if message.serial in known:
            terms = known[message.serial].terms
            flat = np.frombuffer(message.content, opened_type(message, terms))
            yield ReadVector(known[message.serial], "", blocks_of(flat, terms))


def heard(view: AdversaryView, *blocks: str) -> dict[str, list[ReadVector]]:
    """Vectors with one of these blocks, by party where answers are sent in the open, else the sums (party "")."""
    found: dict[str, list[ReadVector]] = {}
    for one in party_vectors(view) if view.seen.get(ANSWER) else totals(view):
        if not one.blocks.keys().isdisjoint(blocks):
            found.setdefault(one.party, []).append(one)
    return found


def _closed(sender: str) -> NotTestable:
    why = "is a ciphertext: without the parties' secret key it was not opened, nor was the encryption attacked"
    return NotTestable(f"what {sender} sent {why}")


def _no_vector(sender: str) -> NotTestable:
    return NotTestable(f"a message from {sender} holds no vector that its terms would allow")


def _encrypted(view: AdversaryView) -> bool:
    """Whether only the parties can open a sum."""
    return view.public.profile.aggregation.opened_by == "parties"


def _off_grid(numbers: Array, terms: Terms) -> Array:
    return numbers * terms.grid if terms.grid else numbers


def first_parts(view: AdversaryView, channel: str) -> Iterator[tuple[RoundQuestion, str, bytes]]:
    """Of each message on a channel: the question of its round, the party, and the first part."""
    messages = view.seen.get(channel, ())
    known = questions_in(view) if messages else {}
    for message in messages:
        if message.serial in known:
            yield known[message.serial], message.sender, first_part(message)


def first_part(message: Message) -> bytes:
    """The first part of a party's message, which holds its vector; empty if the message has no parts."""
    outcome = wire.unpack_reply(message.content, message.sender)[1]
    return bytes(outcome.parcels[0]) if isinstance(outcome, wire.Accepted) and outcome.parcels else b""


def opened_type(message: Message, terms: Terms) -> np.dtype[Any]:
    """The type of the numbers in an opened sum. The length of the message determines it."""
    width, rest = divmod(len(message.content), terms.size)
    if rest or width not in (4, 8):
        raise _no_vector(message.sender)
    whole = terms.domain is Domain.INTEGER and terms.grid == 0
    return np.dtype(f"<{'i' if whole else 'f'}{width}")


def vector_at(parcel: bytes, terms: Terms) -> int | None:
    """The offset of the vector, plain or masked, in the first part of a message; None if that part holds none."""
    width = wire_type(terms).itemsize
    size = terms.size * width
    if terms.ragged:  # rows of one length, at most as many as the terms say
        row = size // terms.layout[0].shape[0]
        return 0 if len(parcel) % row == 0 and 0 < len(parcel) <= size else None
    return {size: 0, HEADER_SIZE + size: HEADER_SIZE}.get(len(parcel))
