"""What a party keeps, in one store: its answers, whom it gave them to, its memory of the training, its figures, its refusals.

Where asked again, it gives the same released value, which costs nothing. All of it is on disk before an answer leaves.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from securetm.aggregation.vectors import pack_vector, unpack_vector, wire_type
from securetm.answers.block_answers import files_in
from securetm.contracts import PART, Array, Entropy, Keeping, Memory, State, Terms
from securetm.data_classes import dataclass, field
from securetm.federation.refusal_errors import AnotherCohort, AnotherList, AskedOtherwise, OutOfTurn
from securetm.federation.store import COMMON, SqliteStore, read_arrays, write_arrays
from securetm.sessions.identities import public_identity

_TABLES = (
    COMMON
    + """
CREATE TABLE IF NOT EXISTS rounds (serial INTEGER PRIMARY KEY, question TEXT NOT NULL, number INTEGER NOT NULL,
  documents INTEGER NOT NULL, loss REAL, bytes_out INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS answered (question TEXT PRIMARY KEY, asked BLOB NOT NULL, vector BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS asked (question TEXT NOT NULL, number INTEGER NOT NULL, members BLOB NOT NULL,
  about BLOB NOT NULL, answer BLOB, PRIMARY KEY (question, number));
CREATE TABLE IF NOT EXISTS words (what TEXT PRIMARY KEY, digest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS refusals (at INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS figures (name TEXT PRIMARY KEY, value REAL);
CREATE TABLE IF NOT EXISTS failures (at INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, reason TEXT NOT NULL,
  advice TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS lost (serial INTEGER PRIMARY KEY, question TEXT NOT NULL, numbers INTEGER NOT NULL);
"""
)
_VECTOR, _MEMORY, _SURPLUS = "vector", "memory/", "surplus"  # in the file of a kept answer
_BESIDE_SHARDS = "memory beside shards"  # in the store: the folder of this run's memory of blocks on disk
_FAST = 1  # zeros deflate at any level
Asked = tuple[str, int, bytes, bytes]  # question, number, and the digests of whom and what about


@dataclass(frozen=True)
class KeptAnswer:
    """An answer as it was paid for, before anything masks or encrypts it."""

    asked: Asked
    vector: bytes
    memory: Mapping[str, Array]  # of the training, after it
    surplus: tuple[bytes, ...] = field(default=(), repr=False)  # what reveals the noise in it that a large sum does not need


class PartyStore(SqliteStore):
    """A party's store, and how far its training went. Memory is on disk for the rounds that the coordinator keeps."""

    def __init__(self, folder: Path, *, synced: bool = True) -> None:
        super().__init__(folder / "own.sqlite", _TABLES, synced=synced)
        self.folder = folder
        self.last = 0  # the last serial number that was answered
        self.memory: Memory = {}  # what the model remembers of the training
        self.lineage = b""  # names the questions that the memory came from
        self.after = 0  # the answer that the memory came with
        self.counted = 0  # the last answer that is in a sum, where the coordinator says so: it may come back to it

    # ---- what was asked

    def check_asked(self, question: str, number: int, members: bytes, about: bytes) -> None:
        """Refuses a question whose number was answered before to another cohort or about something else, in any session."""
        before = self.rows("SELECT members, about FROM asked WHERE question = ? AND number = ?", question, number)
        if before and before[0][0] != members:
            raise AnotherCohort(question, number)
        if before and before[0][1] != about:
            raise AskedOtherwise(question, number)

    def note_asked(self, question: str, number: int, members: bytes, about: bytes) -> None:
        """Writes the question to disk before it is answered. `check_asked` found any earlier record to be the same."""
        self.now("INSERT OR IGNORE INTO asked VALUES (?, ?, ?, ?, NULL)", question, number, members, about)

    def hold_list(self, what: str, digest: bytes) -> None:
        """Keeps the digest of the run's list of words, and refuses any other list."""
        before = self.held_list(what)
        if before and before != digest:
            raise AnotherList()
        if not before:
            self.now("INSERT INTO words VALUES (?, ?)", what, digest)

    def held_list(self, what: str) -> bytes:
        """The digest of that list; empty if there is none."""
        found = self.rows("SELECT digest FROM words WHERE what = ?", what)
        return bytes(found[0][0]) if found else b""

    # ---- answers

    def first_answer(self, question: str, number: int, answer: bytes) -> bytes:
        """The first answer to that number; if there was none, keeps and returns this one."""
        before = self.rows("SELECT answer FROM asked WHERE question = ? AND number = ?", question, number)
        if before and before[0][0] is not None:
            return bytes(before[0][0])
        self.now("UPDATE asked SET answer = ? WHERE question = ? AND number = ?", answer, question, number)
        return answer

    def keep_only_answer(self, question: str, asked: bytes, vector: State, terms: Terms) -> None:
        self.now("INSERT INTO answered VALUES (?, ?, ?)", question, asked, stored(vector, terms))

    def asked_once(self, question: str) -> bytes:
        """The digest of what that question was when it was answered; empty before."""
        found = self.rows("SELECT asked FROM answered WHERE question = ?", question)
        return bytes(found[0][0]) if found else b""

    def only_answer(self, question: str, terms: Terms, owner: str) -> State:
        ((kept,),) = self.rows("SELECT vector FROM answered WHERE question = ?", question)
        return read_stored(bytes(kept), terms, owner)

    def keep_answer(self, asked: Asked, vector: bytes, surplus: Sequence[bytes] = ()) -> None:
        """Writes the answer and the present memory to disk in the place of the answer before, or leaves that one whole."""
        question, number, members, about = asked
        arrays = {_VECTOR: np.frombuffer(vector, np.uint8), **{_MEMORY + name: array for name, array in self.memory.items()}}
        if surplus:
            arrays[_SURPLUS] = np.frombuffer(b"".join(surplus), np.uint8)
        write_arrays(self._answer(question), arrays, {"asked": [question, number, members.hex(), about.hex()]})

    def last_answer(self, question: str) -> KeptAnswer | None:
        """The last answer to that question that was kept. A damaged one is refused, and not computed anew."""
        path = self._answer(question)
        return _read_answer(path) if path.is_file() else None

    def _answer(self, question: str) -> Path:
        return self.folder / f"kept-{question}.safetensors"

    # ---- what the model remembers

    def resume(self, serial: int) -> None:
        """Goes back to the memory that was kept after that round. Later rounds will be asked again."""
        self.memory, self.lineage = self._recalled(serial)
        self.now("DELETE FROM rounds WHERE serial > ?", serial)
        self.now("DELETE FROM lost WHERE serial > ?", serial)
        for later in self.kept_serials():
            if later > serial:
                self._memory_after(later).unlink()
        self.last = self.after = self.counted = serial

    def go_on_from(self, counted: int) -> None:
        """Forgets an answer that came into no sum: what is remembered is that of the last one that did.

        So what a party remembers, and with it the model, depends on who was in which sum, and not on which reply was late.
        """
        self.counted = counted
        if counted != self.after:
            self.memory, self.lineage = self._recalled(counted)
            self.after = counted

    def _recalled(self, serial: int) -> tuple[Memory, bytes]:
        if serial and serial not in self.kept_serials():
            raise OutOfTurn(serial, max(self.kept_serials(), default=0))
        return self.kept_memory(serial) if serial else ({}, b"")

    def keep_memory(self, serial: int, memory: State | None = None) -> None:
        """Writes the memory after this round, or another in its place.

        It keeps the one before, too, and that of the round that counted last.
        """
        self.keep()
        facts = {"serial": serial, "lineage": self.lineage.hex()}
        write_arrays(self._memory_after(serial), self.memory if memory is None else memory, facts)
        for old in self.kept_serials()[:-2]:
            if old != self.counted:
                self._memory_after(old).unlink()

    def kept_serials(self) -> list[int]:
        return sorted(int(path.stem.split("-")[1]) for path in self.folder.glob("memory-*.safetensors"))

    def kept_memory(self, serial: int) -> tuple[dict[str, Array], bytes]:
        """The memory after that round, and its lineage."""
        arrays, facts = read_arrays(self._memory_after(serial))
        return arrays, bytes.fromhex(facts["lineage"])

    def keeping(self, version: str, entropy: Entropy) -> Keeping:
        """How blocks on disk keep what the party remembers of them: files that it may go back to stay."""
        folder = self.get(_BESIDE_SHARDS)
        if folder is None:  # named without a draw: noise is then the same wherever documents lie, under the same draws
            own = public_identity(self, entropy) + bytes(self.folder.resolve())
            self.put(_BESIDE_SHARDS, folder := hashlib.blake2b(own, digest_size=8).hexdigest().encode())
        kept = (self.kept_memory(serial)[0] for serial in self.kept_serials())
        answers = (_read_answer(path).memory for path in sorted(self.folder.glob(self._answer("*").name)))
        return Keeping(folder.decode(), version, frozenset().union(*map(files_in, (self.memory, *kept, *answers))))

    def _memory_after(self, serial: int) -> Path:
        return self.folder / f"memory-{serial}.safetensors"

    # ---- figures of the party's own documents

    def keep_figures(self, whose: str, figures: Mapping[str, float]) -> None:
        with self.at_once():
            for name, value in figures.items():
                self.later("INSERT OR REPLACE INTO figures VALUES (?, ?)", f"{whose} {name}", value)

    def kept_figures(self, whose: str) -> dict[str, float]:
        found = self.rows("SELECT name, value FROM figures WHERE name LIKE ?", f"{whose} %")
        return {name.removeprefix(f"{whose} "): float("nan") if value is None else float(value) for name, value in found}


def stored(vector: State, terms: Terms) -> bytes:
    """The bytes to keep. Those of a vector without a fixed length stay as they are."""
    whole = pack_vector(vector, terms)
    short = whole if terms.ragged else zlib.compress(whole, _FAST)
    return min(whole, short, key=len)  # of two as long the vector itself: that is how its length is read


def read_stored(kept: bytes, terms: Terms, owner: str) -> State:
    """The vector in these bytes: bytes that have its length are the vector itself."""
    length = terms.size * wire_type(terms).itemsize
    whole = kept if terms.ragged or len(kept) >= length else zlib.decompressobj().decompress(kept, length)
    return unpack_vector(whole, terms, owner)


def _read_answer(path: Path) -> KeptAnswer:
    arrays, facts = read_arrays(path)
    question, number, members, about = facts["asked"]
    memory = {name.removeprefix(_MEMORY): array for name, array in arrays.items() if name.startswith(_MEMORY)}
    surplus = arrays[_SURPLUS].tobytes() if _SURPLUS in arrays else b""
    parts = tuple(surplus[start : start + PART] for start in range(0, len(surplus), PART))
    return KeptAnswer(
        (question, number, bytes.fromhex(members), bytes.fromhex(about)), arrays[_VECTOR].tobytes(), memory, parts
    )
