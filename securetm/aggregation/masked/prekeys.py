"""Which of a party's prekeys are used. That is on disk before the first byte is sent. It computes no mask.

A prekey is used once, even across crashes: a round that was begun is answered with the same bytes again, or abandoned.
Of several session objects over one store only the newest uses prekeys: each reads what was used only when it is made.
"""

from __future__ import annotations

from securetm.aggregation.masked.masked_errors import NotPrepared, RestoredState, RoundAbandoned, WrongSetup
from securetm.aggregation.masked.messages import HEADER_SIZE, read_header
from securetm.aggregation.masked.stored_setups import Prepared, read_prepared
from securetm.contracts import Store
from securetm.errors import UnknownRound
from securetm.sessions.identities import PinnedRoster
from securetm.sessions.labels import VERSION
from securetm.sessions.session_memory import SessionMemory

KEPT = 64 * 2**20  # bytes of sent messages that are kept for a restart
_SHORT = 16
_SETUP, _FLOOR, _PAST, _SEATS = "masked setup", "masked floor", "masked past", "masked seats"
_VOID = 2**32 - 1


class Prekeys:
    """A party's position in its set-up. Every change is in the store before it takes effect."""

    def __init__(self, register: PinnedRoster, store: Store) -> None:
        self._store, self._memory = store, SessionMemory(store, register.hash)
        self._prepared: Prepared | None = None
        self._next, self.restarted, self._void = 0, False, False
        self._used: dict[bytes, int] = {}  # round -> prekey, of this set-up
        self._sizes: dict[int, int] = {}  # of the messages that are still kept
        self._seat = int.from_bytes(store.get(_SEATS) or b"") + 1  # how many session objects there were over this store
        store.put(_SEATS, self._seat.to_bytes(8))
        self._load()

    @property
    def left(self) -> int:
        """Rounds that can still be masked."""
        return 0 if self._void or self._prepared is None else self._prepared.rounds - self._next

    @property
    def next(self) -> int:
        """The first prekey that was never used."""
        return self._next

    def prepared(self) -> Prepared:
        """This party's set-up, or a refusal."""
        if self._void:
            raise RestoredState()
        if self._prepared is None:
            raise NotPrepared()
        return self._prepared

    def check_current(self, name: bytes, under: Prepared | None = None) -> None:
        """Refuses what an older session object over this store began, and what belongs to a replaced set-up."""
        if int.from_bytes(self._store.get(_SEATS) or b"") != self._seat:
            raise UnknownRound(name.hex()[:16])
        if under is not None and under is not self._prepared:
            raise WrongSetup()

    def adopt(self, prepared: Prepared) -> None:
        """Takes a new set-up and erases the old one's secrets. Rounds that began under the old one are not begun again."""
        self.check_current(prepared.epoch)
        past = self._past() | {tag[:_SHORT] for tag in self._used}
        self._memory.put(_PAST, b"".join(sorted(past)))
        self._memory.put(_SETUP, prepared.pack())
        self._prepared, self._next, self.restarted, self._void = prepared, 0, False, False
        self._used, self._sizes = {}, {}

    # ---- using a prekey ----------------------------------------------------------------------------------------------

    def sent(self, tag: bytes) -> bytes | None:
        """The message sent in this round before, if there is one. Refuses if it was sent and its bytes are gone."""
        if tag in self._used:
            stored = self._sent(self._used[tag])
            if len(stored) > HEADER_SIZE:
                return stored
            raise RoundAbandoned(tag.hex()[:16])
        if tag[:_SHORT] in self._past():
            raise RoundAbandoned(tag.hex()[:16])
        return None

    def header(self, index: int) -> bytes:
        """What this party signed when it used that prekey, or nothing."""
        return self._sent(index)[:HEADER_SIZE]

    def use(self, index: int, tag: bytes, message: bytes) -> None:
        """Marks the prekey as used and keeps the message for a restart. Both are on disk before this returns."""
        self.check_current(tag)
        if index != self._next or self._sent(index):
            raise RestoredState()
        self._store.put(f"masked sent {index}", message)  # as it is: its header says which set-up and round it is of
        self._used[tag], self._next = index, index + 1
        self._sizes[index] = len(message)
        while sum(self._sizes.values()) > KEPT and len(self._sizes) > 1:
            self._forget(min(self._sizes))

    def _forget(self, index: int) -> None:
        self._store.put(f"masked sent {index}", self.header(index))
        del self._sizes[index]

    def _sent(self, index: int) -> bytes:
        stored = self._store.get(f"masked sent {index}") or b""
        assert self._prepared is not None
        ours = len(stored) >= HEADER_SIZE and stored[0] == VERSION
        return stored if ours and read_header(stored, "").at.epoch == self._prepared.epoch else b""

    def skip_to(self, index: int) -> None:
        """Skips prekeys, because the other parties have used theirs. It never goes back."""
        if index > self._next:
            self._of_setup.put(_FLOOR, index.to_bytes(4, "big"))
            self._next = index

    def void(self) -> None:
        """No prekey of this set-up is used any more: some of them may have been used before."""
        self._of_setup.put(_FLOOR, _VOID.to_bytes(4, "big"))
        self._void = True

    def index_of(self, tag: bytes) -> int | None:
        """Which prekey that round used."""
        return self._used.get(tag)

    # ---- what was said about a round ----------------------------------------------------------------------------------

    def recorded(self, what: str, index: int) -> bytes | None:
        """What this party signed (`agreed`) or revealed (`revealed`) under this prekey."""
        return self._of_setup.get(f"masked {what} {index}")

    def record(self, what: str, index: int, value: bytes) -> None:
        """Keeps it on disk before it is sent."""
        self._of_setup.put(f"masked {what} {index}", value)

    @property
    def _of_setup(self) -> SessionMemory:
        assert self._prepared is not None
        return SessionMemory(self._store, self._prepared.epoch)

    # ---- after a restart ---------------------------------------------------------------------------------------------

    def _load(self) -> None:
        stored = self._memory.get(_SETUP)
        if stored is None:
            return
        self._prepared, self.restarted = read_prepared(stored), True
        for index in range(self._prepared.rounds):
            if sent := self._sent(index):
                self._used[read_header(sent, "").at.tag], self._next = index, index + 1
                if len(sent) > HEADER_SIZE:
                    self._sizes[index] = len(sent)
        if floor := self._of_setup.get(_FLOOR):
            at = int.from_bytes(floor, "big")
            self._void, self._next = at == _VOID, self._next if at == _VOID else max(self._next, at)

    def _past(self) -> set[bytes]:
        past = self._memory.get(_PAST) or b""
        return {past[at : at + _SHORT] for at in range(0, len(past), _SHORT)}
