"""The sessions of a masked sum, a party's and the coordinator's, which outlive rounds. There is no cryptography here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from securetm.aggregation.masked.coordinator_round import CoordinatorRoundState, MaskedCoordinatorRound
from securetm.aggregation.masked.coordinator_setup import MaskedCoordinatorSetup
from securetm.aggregation.masked.graph import Risk
from securetm.aggregation.masked.masked_errors import NotPrepared
from securetm.aggregation.masked.messages import HEADER_SIZE, MOST_ROUNDS, Place, ring_type
from securetm.aggregation.masked.party_round import MaskedPartyRound, PartyRoundState
from securetm.aggregation.masked.party_setup import MaskedPartySetup
from securetm.aggregation.masked.prekeys import Prekeys
from securetm.aggregation.masked.stored_setups import Policy, PublicSetup, read_public_setup
from securetm.contracts import Array, Cohort, Entropy, Exchange, Store, Terms
from securetm.errors import BadSetting, BrokenPromise, CohortTooSmall, NotInCohort
from securetm.sessions.identities import Identity, PinnedRoster
from securetm.sessions.session_memory import SessionMemory
from securetm.sessions.session_roles import CoordinatorSession, PartySession
from securetm.sessions.survivors import SurvivorList

_RELAYED, _ROUNDS = "masked relayed", "masked rounds"
_TAG = 16


def _active(register: PinnedRoster, cohort: Cohort, places: tuple[int, ...], risk: Risk) -> tuple[tuple[int, ...], int]:
    """Who is in the set-up and in the cohort, and how many of them must survive."""
    wanted = {register.place(member) for member in cohort.members}
    found, need = tuple(place for place in places if place in wanted), max(risk.threshold, cohort.threshold)
    if len(found) < need:
        raise CohortTooSmall(len(found), need)
    return found, need


def _asked(rounds: int) -> int:
    if not 0 < rounds <= MOST_ROUNDS:
        raise BadSetting("prepare", "rounds", str(rounds), f"must lie between 1 and {MOST_ROUNDS}")
    return rounds


class MaskedPartySession(PartySession):
    """Run by a party. It opens nothing; `clamped` counts values that it clipped to the promised reach."""

    def __init__(self, identity: Identity, policy: Policy, entropy: Entropy, store: Store) -> None:
        self._identity, self._policy, self._entropy = identity, policy, entropy
        self._prekeys, self._store = Prekeys(identity.register, store), store
        self.clamped = 0

    @property
    def prepared(self) -> int:
        """Prekeys left."""
        return self._prekeys.left

    def prepare(self, rounds: int) -> Exchange:
        """A new set-up for that many rounds; the old one ends when the new one is stored."""
        return MaskedPartySetup(self._identity, self._policy, _asked(rounds), self._entropy, self._prekeys.adopt)

    def round(self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None) -> Exchange:
        """Masks this party's vector with the next prekey."""
        if vector is None or self._identity.me not in cohort.members:
            raise NotInCohort(self._identity.me)
        places = self._prekeys.prepared().places
        active, need = _active(self._identity.register, cohort, places, self._policy.risk)
        only = SurvivorList.of(self._store, cohort)
        state = PartyRoundState(self._identity, self._policy, self._entropy, self._prekeys, only, active, need)
        parts = [_whole(vector[block.name], block.shape, block.name) for block in terms.layout]
        return MaskedPartyRound(state, self._identity.register.round_tag(cohort.round_id), lambda: self._in_ring(parts, terms))

    def _in_ring(self, parts: Sequence[Array], terms: Terms) -> Array:
        """A copy modulo 2^32 or 2^64. Values beyond the promised reach are clipped, because a refusal would reveal them."""
        reach, flat, at = int(terms.reach), np.empty(terms.size, ring_type(terms)), 0
        for part in parts:
            if part.size and (part.max() > reach or part.min() < -reach):
                self.clamped += int(np.count_nonzero((part > reach) | (part < -reach)))
                part = np.clip(part, -reach, reach)
            flat[at : at + part.size] = part
            at += part.size
        return flat


def _whole(part: Array, shape: tuple[int, ...], name: str) -> Array:
    if part.shape != shape or not np.issubdtype(part.dtype, np.signedinteger):
        raise BrokenPromise(f"block {name!r} of whole numbers", part.size, int(np.prod(shape)))
    return part.ravel()


class MaskedCoordinatorSession(CoordinatorSession):
    """Run by the coordinator, which learns sums. It keeps one running sum at a time."""

    def __init__(self, register: PinnedRoster, policy: Policy, store: Store) -> None:
        super().__init__(register)
        self.policy, self.store, self._memory = policy, store, SessionMemory(store, register.hash)
        self._relayed: PublicSetup | None = None
        self._tags: list[bytes] = []  # of the rounds so far; their places are their prekeys
        self._headers: dict[int, dict[int, bytes]] = {}  # prekey -> party -> what it signed
        if (stored := self._memory.get(_RELAYED)) is not None:
            self._relayed = read_public_setup(stored)
            memory = self._memory.of(self._relayed.epoch)
            tags = memory.get(_ROUNDS) or b""
            self._tags = [tags[at : at + _TAG] for at in range(0, len(tags), _TAG)]
            kept = {index: memory.get(_headers_key(index)) for index in range(len(self._tags))}
            self._headers = {index: _unlisted(listed) for index, listed in kept.items() if listed}

    @property
    def prepared(self) -> int:
        """Rounds left in this set-up."""
        return 0 if self._relayed is None else self._relayed.rounds - len(self._tags)

    def prepare(self, rounds: int) -> Exchange:
        """Carries one set-up."""
        return MaskedCoordinatorSetup(self.register, self.policy, _asked(rounds), self.store, self._adopt)

    def round(self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None = None) -> Exchange:
        """Collects masked vectors into one sum. A round begun before keeps its prekey."""
        del vector
        if self._relayed is None:
            raise NotPrepared()
        tag = self.register.round_tag(cohort.round_id)
        at = Place(self._relayed.epoch, tag, self._index(tag))
        active, need = _active(self.register, cohort, self._relayed.places, self.policy.risk)
        only = SurvivorList.of(self.store, cohort)
        state = CoordinatorRoundState(self.register, self.policy, self._relayed, self.store, self._headers, only, active, need)
        kept = lambda: self._keep_headers(tag)  # noqa: E731
        return self.begun(cohort, MaskedCoordinatorRound(state, at, terms, lambda index: self._go_to(index, tag), kept))

    # ---- what is kept ------------------------------------------------------------------------------------------------

    def _index(self, tag: bytes) -> int:
        """The prekey that this round uses. It is on disk before any party is asked."""
        assert self._relayed is not None
        if tag[:_TAG] in self._tags:
            return self._tags.index(tag[:_TAG])
        if not self.prepared:
            raise NotPrepared()
        self._go_to(len(self._tags), tag)
        return len(self._tags) - 1

    def _go_to(self, index: int, tag: bytes) -> None:
        """Gives the round that prekey and skips earlier ones that this role does not know."""
        assert self._relayed is not None
        self._tags = [bytes(_TAG) if known == tag[:_TAG] else known for known in self._tags]
        self._tags += [bytes(_TAG)] * (index - len(self._tags)) + [tag[:_TAG]]
        self._put(_ROUNDS, b"".join(self._tags))

    def _keep_headers(self, tag: bytes) -> None:
        index = self._tags.index(tag[:_TAG])
        listed = sorted(self._headers.get(index, {}).items())
        self._put(_headers_key(index), b"".join(place.to_bytes(2, "big") + signed for place, signed in listed))

    def _adopt(self, relayed: PublicSetup) -> None:
        self._memory.put(_RELAYED, relayed.pack())
        self._relayed, self._tags, self._headers = relayed, [], {}

    def _put(self, key: str, value: bytes) -> None:
        assert self._relayed is not None
        self._memory.of(self._relayed.epoch).put(key, value)


def _headers_key(index: int) -> str:
    return f"masked headers {index}"


def _unlisted(stored: bytes) -> dict[int, bytes]:
    step = 2 + HEADER_SIZE
    return {int.from_bytes(stored[at : at + 2], "big"): stored[at + 2 : at + step] for at in range(0, len(stored), step)}
