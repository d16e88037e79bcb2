"""When a party's replies leave: at times that do not depend on which documents a secret coin chose. It computes no reply.

How long an answer took shows roughly how many documents were sampled for it, and a privacy budget counts on nobody knowing
that. So where a budget is spent, every reply that documents were read for waits. The carrier of a real network uses it; a
simulation, whose coordinator could look into the parties anyway, does not.
"""

from __future__ import annotations

import logging
import math
import threading
import time

import numpy as np

from securetm.answers.route import compile_route
from securetm.contracts import RoundContext, Sampling
from securetm.data_classes import dataclass, field, replace
from securetm.federation.budget.prices import bill_of
from securetm.federation.party.party import Party
from securetm.federation.party.state import PartyState
from securetm.federation.questions import BUCKET_SUMS, JOINT, PAIRS, TRAIN
from securetm.plans.profiles import cohort_of

FINEST = 1 / 16  # seconds: times are this number, twice this number, four times, and so on
ROOM = 2.0  # an interval is so many times what the longest answer took when it was measured
KEPT_AS = "reply interval in seconds"  # in the party's store, so that a restart measures nothing again
_ADOPT = "adopt"  # the message that tells a party the list of words
_READ_DOCUMENTS = (_ADOPT, JOINT, BUCKET_SUMS, PAIRS, TRAIN)  # all that a party reads documents for under a budget
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class SystemClock:
    """This machine's clock. Whoever sets `stopped` ends every wait: the process is about to end, and no reply leaves."""

    stopped: threading.Event = field(default_factory=threading.Event)

    def now(self) -> float:
        """Returns seconds that never go back."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Waits so long, or until it is stopped."""
        self.stopped.wait(max(0.0, seconds))


def on_grid(seconds: float) -> float:
    """Returns the next longer time of the coarse grid that everybody knows: powers of two of the finest."""
    return FINEST * 2.0 ** max(0, math.ceil(math.log2(max(seconds, FINEST) / FINEST)))


@dataclass
class PacedParty:
    """A party whose replies leave at a fixed interval where a privacy budget is spent. Elsewhere it holds no reply back.

    Before its first answer it measures how long one takes with all documents, whatever the sample is. An answer leaves when
    the interval has passed since the request arrived. If it took longer, the interval is doubled until it fits, for good: that
    shows at most as often as there are doublings. What reads all documents in any case leaves at the next time of the grid.
    """

    party: Party
    clock: SystemClock = field(default_factory=SystemClock)
    interval: float | None = None  # seconds after which an answer leaves; None before the first one
    longest: float | None = None  # seconds with the documents, of an answer that all of them take part in
    overruns: int = 0  # answers that took longer than the interval

    def __post_init__(self) -> None:
        self.party.clock = self.clock.now
        kept = self.party.store.get(KEPT_AS)
        self.interval = float(kept) if kept is not None else None

    @property
    def most_bytes(self) -> int:
        return self.party.most_bytes

    def handle(self, message: bytes) -> bytes | memoryview:
        """Answers one request, and returns when the reply may leave."""
        arrived, self.party.seconds_with_documents = self.clock.now(), 0.0
        reply = self.party.handle(message)
        if self.party.agreement.budget is None or self.party.heard not in _READ_DOCUMENTS:
            return reply
        if self.party.heard != TRAIN:
            self._prepare()
        took = self.clock.now() - arrived
        leaves = self._leaves(took) if self.party.heard == TRAIN else on_grid(took)
        self.clock.wait(arrived + leaves - self.clock.now())
        return reply

    def close(self) -> None:
        self.party.close()

    def _prepare(self) -> None:
        """Does what the first answer of the training must not be measured with: it is done once, and again after a restart."""
        party = self.party
        if not party.questions.vocabulary or party.session is None or party.session.guard is None:
            return
        with party.failure_log.logged():
            bill = bill_of(party.agreement, len(party.members))
            each = bill.round or bill.once
            assert each is not None  # what is admitted under a budget is noised
            party.session.guard.look_ahead(each, bill.rounds)
        if party.heard == _ADOPT and self.longest is None:
            self.longest = longest_answer(party)

    def _leaves(self, took: float) -> float:
        """Returns how long after its request an answer to a question of the training leaves."""
        if self.interval is None and not self.party.seconds_with_documents:
            return on_grid(took)  # it was refused: an interval that is measured on it would be too short for every answer
        beside = took - self.party.seconds_with_documents  # masks, signatures and the disk, which no document changes
        interval = self.interval or self._kept(on_grid(ROOM * ((self.longest or took) + beside)))
        if took <= interval:
            return interval
        _LOG.warning("an answer took longer than the interval of %g s; it is %g s from now on", interval, on_grid(took))
        self.overruns += 1
        return self._kept(on_grid(took))

    def _kept(self, interval: float) -> float:
        self.party.store.put(KEPT_AS, repr(interval).encode())
        self.interval = interval
        return interval


def longest_answer(own: PartyState) -> float:
    """Returns how many seconds an answer takes in which all documents take part. Nothing of it is kept, paid for or sent.

    It is about the state that the plan's seed gives, so it depends on the party's documents and machine, and on no coin and no
    coordinator. The first of two is not counted: kernels are compiled then.
    """
    agreement, nothing, seed = own.agreement, _Forgetting(), own.agreement.plan.seed
    state = own.questions.shown(TRAIN, agreement.model.start(own.questions.vocabulary, np.random.default_rng(seed)), "")
    query, cohort = own.questions.make(TRAIN, state), cohort_of(agreement.profile, own.members, seed=seed)
    route = compile_route(query.terms, agreement.profile, cohort)
    whole = replace(route, steps=tuple(step for step in route.steps if step.mechanism.sampling is not Sampling.COINS))
    taken = 0.0
    for _ in range(2):
        with own.failure_log.logged():
            begun = own.clock()
            context = RoundContext(cohort, own.entropy, nothing, nothing)
            documents, rng = own.documents.for_question(TRAIN), np.random.default_rng(seed)
            whole.answer(query, documents, context, {}, rng, own.engine)
            taken = own.clock() - begun
    return taken


class _Forgetting(dict[str, bytes]):
    """A store (contracts.Store) in memory, for what is computed only to see how long it takes."""

    put = dict.__setitem__
