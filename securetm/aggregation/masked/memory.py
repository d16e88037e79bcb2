"""What each role of a masked sum keeps: its set-up, and which prekeys are used. It has no cryptography.

A party keeps its own secrets and the shares it holds for others; the coordinator keeps public keys and commitments only.
A prekey is used once, even across crashes: a round that was begun is answered with the same bytes again, or abandoned. What a
party signed under a prekey is kept, and not the vector: the same vector gives the same bytes again, and another one none.
Of several session objects over one store only the newest uses prekeys: each reads what was used only when it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from securetm.aggregation.masked.graph import GRAPHS, Risk
from securetm.aggregation.masked.messages import HEADER_SIZE, read_header
from securetm.aggregation.masked.refusals import NotPrepared, RestoredState, RoundAbandoned, WrongSetup
from securetm.contracts import Store
from securetm.data_classes import dataclass, field
from securetm.errors import UnknownRound
from securetm.sessions.framing import VERSION, Label, hashed
from securetm.sessions.identities import PinnedRoster
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
    """A party's set-up: for each round one self-mask seed, one secret with each partner, and two shares from each neighbour."""

    epoch: bytes
    places: tuple[int, ...]  # who takes part in this set-up
    seeds: tuple[bytes, ...] = field(repr=False)  # secret, one a round
    peers: Mapping[int, bytes] = field(repr=False)  # secrets with those it masks with, one a round end to end
    bundles: Mapping[int, bytes] = field(repr=False)  # the shares this party holds, by dealer; one dealer is itself

    @property
    def rounds(self) -> int:
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
    commitments: Mapping[int, tuple[bytes, ...]]  # by place, of those who take part: to the secrets that they dealt

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(sorted(self.commitments))


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
        return 0 if self._relayed is None else self._relayed.rounds - len(self._tags)

    @property
    def _of_setup(self) -> SessionMemory:
        return self._memory.of(self.relayed.epoch)

    def adopt(self, relayed: PublicSetup) -> None:
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


_SETUP, _FLOOR, _PAST, _SESSIONS = "masked setup", "masked floor", "masked past", "masked sessions"
_VOID = 2**32 - 1


class Prekeys:
    """A party's position in its set-up. Every change is in the store before it takes effect."""

    def __init__(self, register: PinnedRoster, store: Store) -> None:
        self._store, self._memory = store, SessionMemory(store, register.hash)
        self.next = 0  # the first prekey that was never used
        self.restarted = self._void = False
        self.used: dict[bytes, int] = {}  # round -> prekey, of this set-up
        self._session = int.from_bytes(store.get(_SESSIONS) or b"") + 1  # how many session objects there were over this store
        store.put(_SESSIONS, self._session.to_bytes(8))
        self._prepared = self._memory.load(_SETUP, Prepared)
        if self._prepared is not None:
            self.restarted = True
            self._read_used()

    @property
    def left(self) -> int:
        """Rounds that can still be masked."""
        return 0 if self._void or self._prepared is None else self._prepared.rounds - self.next

    def prepared(self) -> Prepared:
        """This party's set-up, or a refusal."""
        if self._void:
            raise RestoredState()
        if self._prepared is None:
            raise NotPrepared()
        return self._prepared

    def check_current(self, name: bytes, under: Prepared | None = None) -> None:
        """Refuses what an older session object over this store began, and what belongs to a replaced set-up."""
        if int.from_bytes(self._store.get(_SESSIONS) or b"") != self._session:
            raise UnknownRound(name.hex()[:16])
        if under is not None and under is not self._prepared:
            raise WrongSetup()

    def adopt(self, prepared: Prepared) -> None:
        """Takes a new set-up and erases the old one's secrets. Rounds that began under the old one are not begun again."""
        self.check_current(prepared.epoch)
        self._memory.save(_PAST, sorted(self._past() | set(self.used)))
        self._memory.save(_SETUP, prepared)
        self._prepared, self.next, self.restarted, self._void = prepared, 0, False, False
        self.used = {}

    # ---- using a prekey ----------------------------------------------------------------------------------------------

    def sent(self, tag: bytes) -> bytes:
        """What this party signed in this round before, or nothing. Refuses a round of an earlier set-up."""
        if tag not in self.used and tag in self._past():
            raise RoundAbandoned(tag.hex()[:16])
        return self.header(self.used[tag]) if tag in self.used else b""

    def header(self, index: int) -> bytes:
        """What this party signed when it used that prekey, or nothing."""
        stored = (self._store.get(f"masked sent {index}") or b"")[:HEADER_SIZE]
        assert self._prepared is not None
        ours = len(stored) == HEADER_SIZE and stored[0] == VERSION
        return stored if ours and read_header(stored, "").at.epoch == self._prepared.epoch else b""

    def use(self, index: int, tag: bytes, header: bytes) -> None:
        """Marks the prekey as used and keeps what is signed under it. It is on disk when this returns."""
        self.check_current(tag)
        if index != self.next or self.header(index):
            raise RestoredState()
        self._store.put(f"masked sent {index}", header)  # as it is: it says which set-up and round it is of
        self.used[tag], self.next = index, index + 1

    def skip_to(self, index: int) -> None:
        """Skips prekeys, because the other parties have used theirs. It never goes back."""
        if index > self.next:
            self.of_setup.put(_FLOOR, index.to_bytes(4, "big"))
            self.next = index

    def void(self) -> None:
        """No prekey of this set-up is used any more: some of them may have been used before."""
        self.of_setup.put(_FLOOR, _VOID.to_bytes(4, "big"))
        self._void = True

    @property
    def of_setup(self) -> SessionMemory:
        """What this party said under the prekeys of its set-up. It is on disk before it is sent."""
        assert self._prepared is not None
        return SessionMemory(self._store, self._prepared.epoch)

    # ---- after a restart ---------------------------------------------------------------------------------------------

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Goes on in another process as the same object. What it used after it was put away is in its store."""
        self.__dict__.update(kept)
        if self._prepared is not None:
            self._read_used()

    def _read_used(self) -> None:
        assert self._prepared is not None
        for index in range(self._prepared.rounds):
            if sent := self.header(index):
                self.used[read_header(sent, "").at.tag], self.next = index, max(self.next, index + 1)
        if floor := self.of_setup.get(_FLOOR):
            at = int.from_bytes(floor, "big")
            self._void, self.next = at == _VOID, self.next if at == _VOID else max(self.next, at)

    def _past(self) -> set[bytes]:
        return self._memory.load(_PAST, set[bytes]) or set()
