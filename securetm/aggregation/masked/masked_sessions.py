"""The sessions of a masked sum, a party's and the coordinator's, which outlive rounds. There is no cryptography here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from securetm.aggregation.masked.coordinator_round import MaskedCoordinatorRound
from securetm.aggregation.masked.coordinator_setup import MaskedCoordinatorSetup
from securetm.aggregation.masked.graph import Risk
from securetm.aggregation.masked.messages import MOST_ROUNDS, ring_type
from securetm.aggregation.masked.party_round import MaskedPartyRound, Quorum, Ring
from securetm.aggregation.masked.party_setup import MaskedPartySetup
from securetm.aggregation.masked.prekeys import Prekeys
from securetm.aggregation.masked.stored_setups import CoordinatorMemory, Policy
from securetm.aggregation.vectors import CLAMPED, parts_of, whole_numbers
from securetm.contracts import PART, Array, Cohort, Entropy, Exchange, Store, Terms
from securetm.errors import BadSetting, BrokenPromise, CohortTooSmall, NotInCohort
from securetm.sessions.identities import Identity, PinnedRoster
from securetm.sessions.roomy import Roomy
from securetm.sessions.session_memory import count_up
from securetm.sessions.session_roles import CoordinatorSession, PartySession
from securetm.sessions.survivors import SurvivorList


def _quorum(register: PinnedRoster, cohort: Cohort, places: tuple[int, ...], risk: Risk, store: Store) -> Quorum:
    """Who is in the set-up and in the cohort, and how many of them must survive."""
    wanted = {register.place(member) for member in cohort.members}
    found, need = tuple(place for place in places if place in wanted), max(risk.threshold, cohort.fewest)
    if len(found) < need:
        raise CohortTooSmall(len(found), need)
    return Quorum(found, need, SurvivorList(store, register.roster, cohort))


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
        """Prekeys left."""
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

        def reveal(survivors: int) -> bytes:
            return b"".join(kept[part] for part in terms.unneeded(survivors))

        return MaskedPartyRound(*own, quorum, tag, lambda: self._in_ring(parts, terms), reveal)

    def _in_ring(self, parts: Sequence[Array], terms: Terms) -> Ring:
        """A copy modulo 2^32 or 2^64, the only one: it is masked and sent from where it lies."""
        kind = ring_type(terms)
        room = Roomy(sum(part.size for part in parts) * kind.itemsize)
        vector = np.frombuffer(room.content, kind)
        count_up(self._store, CLAMPED, whole_numbers(parts, int(terms.reach), vector.view(f"i{kind.itemsize}")))
        return Ring(room, vector)


class MaskedCoordinatorSession(CoordinatorSession):
    """Run by the coordinator, which learns sums. It keeps one running sum at a time."""

    def __init__(self, register: PinnedRoster, policy: Policy, store: Store) -> None:
        super().__init__(register)
        self.memory, self._policy = CoordinatorMemory(register, store), policy

    @property
    def prepared(self) -> int:
        """Rounds left in this set-up."""
        return self.memory.left

    def prepare(self, rounds: int) -> Exchange:
        """Carries one set-up."""
        return MaskedCoordinatorSetup(self.register, self._policy, _asked(rounds), self.memory.store, self.memory.adopt)

    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None = None, surplus: Sequence[bytes] = ()
    ) -> Exchange:
        """Collects masked vectors into one sum. A round begun before keeps its prekey."""
        quorum = _quorum(self.register, cohort, self.memory.relayed.places, self._policy.risk, self.memory.store)
        tag = self.register.round_tag(cohort.round_id)
        return self.begun(cohort, MaskedCoordinatorRound(self.register, self._policy, self.memory, quorum, tag, terms))
