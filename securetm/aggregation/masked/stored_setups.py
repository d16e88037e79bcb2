"""What each role of a masked sum keeps after a set-up, and the order of the coordinator's prekeys. It has no cryptography.

A party keeps its own secrets and the shares it holds for others; the coordinator keeps public keys and commitments only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from securetm.aggregation.masked.graph import GRAPHS, Risk
from securetm.aggregation.masked.masked_errors import NotPrepared
from securetm.contracts import Store
from securetm.sessions.framing import hashed
from securetm.sessions.identities import PinnedRoster
from securetm.sessions.labels import Label
from securetm.sessions.session_memory import SessionMemory

_RELAYED, _ROUNDS, _HEADERS = "masked relayed", "masked rounds", "masked headers {}"
_SKIPPED = bytes(32)


@dataclass(frozen=True)
class Policy:
    """What all roles of a session agreed on before it began: it follows from the profile and the roster."""

    risk: Risk
    consistency: bool

    def digest(self, rounds: int) -> bytes:
        """Bound into the set-up, so that two roles with other settings, or another rule for graphs, never share a mask."""
        risk = self.risk
        numbers = (risk.threshold, risk.colluding, risk.complete_up_to, risk.degree, int(self.consistency), rounds, GRAPHS)
        return hashed(Label.POLICY, *(str(number).encode() for number in numbers), repr((risk.failure, risk.stall)).encode())


@dataclass(frozen=True)
class Prepared:
    """A party's set-up: for each round one mask key, one self-mask seed, and two shares from each neighbour."""

    epoch: bytes
    places: tuple[int, ...]  # who takes part in this set-up
    mask_keys: tuple[bytes, ...] = field(repr=False)  # secret, one a round
    seeds: tuple[bytes, ...] = field(repr=False)  # secret, one a round
    peers: Mapping[int, tuple[bytes, ...]]  # public mask keys of those it masks with, one a round
    bundles: Mapping[int, bytes] = field(repr=False)  # the shares this party holds, by dealer; one dealer is itself

    @property
    def rounds(self) -> int:
        """Prekeys in all."""
        return len(self.seeds)


@dataclass(frozen=True)
class PublicSetup:
    """The coordinator's set-up: nothing in it is secret."""

    epoch: bytes
    setup: bytes
    threshold: int  # shares that open a secret
    rounds: int
    neighbours: Mapping[int, tuple[int, ...]]  # who holds shares of whose secrets, of those who take part
    partners: Mapping[int, tuple[int, ...]]  # who masks with whom
    mask_keys: Mapping[int, tuple[bytes, ...]]  # by place, of those who take part
    commitments: Mapping[int, tuple[bytes, ...]]  # to their self-mask seeds

    @property
    def places(self) -> tuple[int, ...]:
        """Who takes part in this set-up."""
        return tuple(sorted(self.mask_keys))


class CoordinatorMemory:
    """The coordinator's set-up, which prekey each round used, and what parties signed under it. It outlives a restart."""

    def __init__(self, register: PinnedRoster, store: Store) -> None:
        self.store, self._memory = store, SessionMemory(store, register.hash)
        self._relayed = self._memory.load(_RELAYED, PublicSetup)
        self._tags: list[bytes] = []  # of the rounds so far; their positions are their prekeys
        self.headers: dict[int, dict[int, bytes]] = {}  # prekey -> party -> what it signed: how a reused prekey shows
        if self._relayed is not None:
            self._tags = self._of_setup.load(_ROUNDS, list[bytes]) or []
            kept = {index: self._of_setup.load(_HEADERS.format(index), dict[int, bytes]) for index in range(len(self._tags))}
            self.headers = {index: signed for index, signed in kept.items() if signed}

    @property
    def relayed(self) -> PublicSetup:
        """The set-up, or a refusal."""
        if self._relayed is None:
            raise NotPrepared()
        return self._relayed

    @property
    def left(self) -> int:
        """Rounds left in this set-up."""
        return 0 if self._relayed is None else self._relayed.rounds - len(self._tags)

    @property
    def _of_setup(self) -> SessionMemory:
        return self._memory.of(self.relayed.epoch)

    def adopt(self, relayed: PublicSetup) -> None:
        """Takes a new set-up in the place of the old one."""
        self._memory.save(_RELAYED, relayed)
        self._relayed, self._tags, self.headers = relayed, [], {}

    def index(self, tag: bytes) -> int:
        """The prekey that this round uses. It is on disk before any party is asked; a round begun before keeps its own."""
        if tag not in self._tags:
            if not self.left:
                raise NotPrepared()
            self.go_to(len(self._tags), tag)
        return self._tags.index(tag)

    def go_to(self, index: int, tag: bytes) -> None:
        """Gives the round that prekey and skips earlier ones that this role does not know."""
        self._tags = [_SKIPPED if known == tag else known for known in self._tags]
        self._tags += [_SKIPPED] * (index - len(self._tags)) + [tag]
        self._of_setup.save(_ROUNDS, self._tags)

    def keep_headers(self, index: int) -> None:
        """Keeps on disk what parties signed under that prekey."""
        self._of_setup.save(_HEADERS.format(index), self.headers.get(index, {}))
