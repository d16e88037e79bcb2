"""The masked sum: parties add masks that cancel, and the coordinator opens nothing but the total. It adds no noise.

After Bonawitz et al. (2017) and Bell et al. (2020), with one-time prekeys: one set-up serves many rounds. The protocol is
written down in protocols/masked_sum.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from securetm.aggregation.masked.graph import Geometry, Risk, disconnected, geometry, holds, stalled
from securetm.aggregation.masked.memory import CoordinatorMemory, Policy, Prekeys
from securetm.aggregation.masked.messages import (
    HEADER_SIZE,
    MOST_PARTIES,
    MOST_ROUNDS,
    longest_in_round,
    longest_in_set_up,
    ring_type,
)
from securetm.aggregation.masked.round import MaskedCoordinatorRound, MaskedPartyRound, Quorum, Ring
from securetm.aggregation.masked.setup import MaskedCoordinatorSetup, MaskedPartySetup
from securetm.aggregation.vectors import CLAMPED, parts_of, whole_numbers
from securetm.contracts import (
    INF,
    PART,
    Aggregation,
    Array,
    Claim,
    Cohort,
    Domain,
    Entropy,
    Exchange,
    Needs,
    Roster,
    Store,
    Terms,
)
from securetm.data_classes import dataclass, replace
from securetm.errors import (
    BadSetting,
    BrokenPromise,
    CohortTooSmall,
    Mismatch,
    NeedsIntegers,
    NeedsReach,
    NeedsSum,
    NotInCohort,
    SumTooWide,
    check_setting,
)
from securetm.sessions.exchanges import CoordinatorSession, PartySession
from securetm.sessions.framing import MessageBuffer
from securetm.sessions.identities import COORDINATOR, Identity, PinnedRoster, identity_of
from securetm.sessions.session_memory import count_up
from securetm.sessions.survivors import SurvivorList


@dataclass(frozen=True)
class MaskedSum(Aggregation):
    """Sums of whole numbers of which nobody sees a part. `threshold` and `colluding` are the profile's."""

    consistency: bool = False  # a third message a round, in which parties sign who survived: for an active coordinator
    rounds: int = 64  # that one set-up prepares
    threshold: int = 0  # parties that must survive; 0: the fewest that are sound
    colluding: int = 0  # parties that may share what they know with the coordinator
    complete_up_to: int = 32  # parties; beyond that each has random neighbours
    degree: int = 0  # neighbours of each party beyond that; 0: computed from `failure` and `stall`
    failure: float = 2.0**-40
    stall: float = 2.0**-20
    most_parties: ClassVar[int] = MOST_PARTIES
    names_survivors: ClassVar[bool] = True
    from_profile: ClassVar[tuple[str, ...]] = ("colluding",)

    def __post_init__(self) -> None:
        check_setting(self, "rounds", 0 < self.rounds <= MOST_ROUNDS, f"must lie between 1 and {MOST_ROUNDS}")
        check_setting(self, "threshold", self.threshold >= 0, "must not be negative")
        check_setting(self, "colluding", self.colluding >= 0, "must not be negative")
        check_setting(self, "complete_up_to", self.complete_up_to >= 2, "must be at least 2")
        even = self.degree >= 0 and self.degree % 2 == 0
        check_setting(self, "degree", even, "must be even: as many neighbours on both sides of a ring")
        check_setting(self, "failure", 0 < self.failure <= 2.0**-20, "must be positive and at most 2^-20")
        check_setting(self, "stall", 0 < self.stall < 1, "must lie between 0 and 1")

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        """What holds against the coordinator, and the largest number of colluding parties."""
        bound = self._bound(cohort)
        if bound < 0:
            return frozenset()
        said = ("sees only sums", "cannot speak for a party")
        also = ("cannot show parties different cohorts",) if self.consistency else ()
        return frozenset(Claim(what, COORDINATOR, bound) for what in (*said, *also))

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The terms with the ring that the sum fits into, or a refusal with its reason."""
        if terms.needs is not Needs.SUM or terms.ragged:
            raise NeedsSum("a masked sum")
        if terms.domain is not Domain.INTEGER:
            raise NeedsIntegers("a masked sum")
        self.check(len(cohort.members), cohort.threshold, cohort.colluding)
        return replace(terms, bits=_ring_bits(terms, len(cohort.members)))

    def error(self, terms: Terms, cohort: Cohort) -> float:
        """No error: whole numbers are added in a ring that they fit into."""
        return 0.0

    def remaining(self, cohort: Cohort, joined: int) -> int:
        """The number of survivors that a party requires before it reveals a share."""
        return max(cohort.fewest, self._threshold(joined))

    def longest(self, parties: int, rounds: int, terms: Terms | None) -> tuple[int, int]:
        """Of a round, the vector in the widest ring or a list of all parties; of a set-up, lists of parties and rounds."""
        if terms is None:
            return longest_in_set_up(parties, rounds)
        up, down = longest_in_round(parties)
        return max(up + PART * len(terms.surplus), HEADER_SIZE + 8 * terms.size), down

    def waves(self) -> tuple[int, int]:
        """For a commitment, a reveal and shares; then for a vector, a consent where there is one, and shares of secrets."""
        return 3, 3 if self.consistency else 2

    def check(self, parties: int, threshold: int, colluding: int) -> None:
        """Refuses numbers of parties for which the sum would not be hidden, or could never be opened."""
        if parties > MOST_PARTIES:
            raise BadSetting("MaskedSum", "parties", str(parties), f"must be at most {MOST_PARTIES}")
        shares = self._threshold(parties)  # that open a secret, where everybody holds one
        need, feared = max(threshold, shares), max(colluding, self.colluding)
        if need > parties:
            raise Mismatch(
                "a threshold of {threshold} cannot be reached by {parties} parties",
                hint="lower the threshold, or let more parties take part",
                threshold=need,
                parties=parties,
            )
        if need - feared < 2:
            raise Mismatch(
                "a threshold of {threshold} with {colluding} colluding parties leaves fewer than two honest parties in a sum",
                hint="the threshold has to be at least two above the number of colluding parties",
                threshold=need,
                colluding=feared,
            )
        if 2 * shares <= parties + feared:
            raise Mismatch(
                (
                    "with a threshold of {threshold} among {holders}, {colluding} of them colluding, two lists of "
                    "survivors could both open"
                ),
                hint="raise the threshold to {need} or more, or accept fewer colluding parties",
                threshold=shares,
                holders=parties,
                colluding=feared,
                need=(parties + feared) // 2 + 1,
            )
        risk, drawn = self._risk(parties, colluding), self.geometry(parties)
        if not holds(drawn, risk):
            apart = disconnected(parties, drawn.degree, risk) + stalled(parties, drawn.degree, drawn.threshold, risk)
            raise Mismatch(
                "{degree} neighbours for each of {parties} parties fail more often than once in {once}",
                hint="leave the degree to be computed (0), raise it, or raise the threshold",
                degree=drawn.degree,
                parties=parties,
                once=1 / max(apart, 1e-300),
            )

    def party(self, me: str, roster: Roster, entropy: Entropy, store: Store) -> MaskedPartySession:
        """A party's session; its private key lies in its store under "identity"."""
        policy = self._policy(roster)
        return MaskedPartySession(identity_of(me, roster, store), policy, entropy, store)

    def coordinator(self, roster: Roster, store: Store) -> MaskedCoordinatorSession:
        """The coordinator's session; it needs no secret."""
        return MaskedCoordinatorSession(PinnedRoster(roster), self._policy(roster), store)

    def geometry(self, parties: int) -> Geometry:
        """The number of neighbours of each party, and the number of shares that open a secret."""
        return geometry(parties, self._risk(parties))

    def _threshold(self, parties: int) -> int:
        return self.threshold or max((parties + self.colluding) // 2 + 1, self.colluding + 2)

    def _risk(self, parties: int, colluding: int = 0) -> Risk:
        feared, threshold = max(colluding, self.colluding), self._threshold(parties)
        return Risk(threshold, feared, self.complete_up_to, self.degree, self.failure, self.stall, self.consistency)

    def _policy(self, roster: Roster) -> Policy:
        """What all roles agree on, or a refusal of this number of parties."""
        self.check(len(roster.members), 0, 0)
        return Policy(self._risk(len(roster.members)), self.consistency)

    def _bound(self, cohort: Cohort) -> int:
        """The most colluding parties against whom this cohort's sums are hidden; negative where they are not hidden at all."""
        parties, shares = len(cohort.members), self._threshold(len(cohort.members))
        need = max(cohort.threshold, shares)
        if need > parties:
            return -1
        most = min(2 * shares - parties - 1, need - 2)
        return most if self.geometry(parties).complete else min(most, self.colluding)


def _ring_bits(terms: Terms, parties: int) -> int:
    """32 or 64: the sum of what every party may send at most fits, with its sign."""
    if terms.reach == INF:
        raise NeedsReach("a masked sum")
    for bits in (32, 64):
        if parties * int(terms.reach) < 2 ** (bits - 1):
            return bits
    raise SumTooWide("a ring of 64 bits", parties, f"{terms.reach:g}")


def _quorum(register: PinnedRoster, cohort: Cohort, places: tuple[int, ...], risk: Risk, store: Store) -> Quorum:
    """Who is in the set-up and in the cohort, and how many of them must survive."""
    wanted = {register.place(member) for member in cohort.members}
    found, need = tuple(place for place in places if place in wanted), max(risk.threshold, cohort.fewest)
    if len(found) < need:
        raise CohortTooSmall(len(found), need)
    return Quorum(found, need, SurvivorList(store, register.roster, cohort))


def _unneeded(surplus: Sequence[bytes], terms: Terms, survivors: int) -> bytes:
    """The parts of a party's noise that a sum over so many survivors does not need."""
    return b"".join(surplus[part] for part in terms.unneeded(survivors))


def _asked(rounds: int) -> int:
    if not 0 < rounds <= MOST_ROUNDS:
        raise BadSetting("prepare", "rounds", str(rounds), f"must lie between 1 and {MOST_ROUNDS}")
    return rounds


class MaskedPartySession(PartySession):
    """Run by a party. It opens nothing."""

    def __init__(self, identity: Identity, policy: Policy, entropy: Entropy, store: Store) -> None:
        self._identity, self._policy, self._entropy = identity, policy, entropy
        self._prekeys, self._store = Prekeys(identity.register, store), store

    @property
    def prepared(self) -> int:
        return self._prekeys.left

    def prepare(self, rounds: int) -> Exchange:
        """A new set-up for that many rounds; the old one ends when the new one is stored."""
        return MaskedPartySetup(self._identity, self._policy, _asked(rounds), self._entropy, self._prekeys.adopt)

    def missed_rounds(self) -> None:
        """Others used prekeys meanwhile, so it asks for their index before it masks anything."""
        self._prekeys.restarted = True

    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None, surplus: Sequence[bytes] = ()
    ) -> Exchange:
        """Masks this party's vector with the next prekey."""
        if vector is None or self._identity.me not in cohort.members:
            raise NotInCohort(self._identity.me)
        register = self._identity.register
        quorum = _quorum(register, cohort, self._prekeys.prepared().places, self._policy.risk, self._store)
        parts = parts_of(vector, terms)
        if not all(np.issubdtype(part.dtype, np.signedinteger) for part in parts):
            raise BrokenPromise("vector of whole numbers", 0, terms.size)
        own, tag = (self._identity, self._policy, self._entropy, self._prekeys), register.round_tag(cohort.round_id)
        kept = tuple(surplus) or (bytes(PART),) * len(terms.surplus)  # zeros reveal nothing: the noise stays
        return MaskedPartyRound(*own, quorum, tag, partial(self._in_ring, parts, terms), partial(_unneeded, kept, terms))

    def _in_ring(self, parts: Sequence[Array], terms: Terms) -> Ring:
        """A copy modulo 2^32 or 2^64, the only one: it is masked and sent from where it lies."""
        kind = ring_type(terms)
        buffer = MessageBuffer(sum(part.size for part in parts) * kind.itemsize)
        vector = np.frombuffer(buffer.content, kind)
        count_up(self._store, CLAMPED, whole_numbers(parts, int(terms.reach), vector.view(f"i{kind.itemsize}")))
        return Ring(buffer, vector)


class MaskedCoordinatorSession(CoordinatorSession):
    """Run by the coordinator, which learns sums. It keeps one running sum at a time."""

    def __init__(self, register: PinnedRoster, policy: Policy, store: Store) -> None:
        super().__init__(register)
        self.memory, self._policy = CoordinatorMemory(register, store), policy

    @property
    def prepared(self) -> int:
        return self.memory.left

    def prepare(self, rounds: int) -> Exchange:
        return MaskedCoordinatorSetup(self.register, self._policy, _asked(rounds), self.memory.store, self.memory.adopt)

    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None = None, surplus: Sequence[bytes] = ()
    ) -> Exchange:
        """Collects masked vectors into one sum. A round begun before keeps its prekey."""
        quorum = _quorum(self.register, cohort, self.memory.relayed.places, self._policy.risk, self.memory.store)
        tag = self.register.round_tag(cohort.round_id)
        return self.begun(cohort, MaskedCoordinatorRound(self.register, self._policy, self.memory, quorum, tag, terms))
