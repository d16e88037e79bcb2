"""One round of an encrypted sum, both halves: fresh ciphertexts to the coordinator, the sum back to the parties. No keys here.

An opened total never goes to the coordinator: one that may see totals could hand in a single party's ciphertext as "the sum".
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from securetm.aggregation.homomorphic.homomorphic_errors import BadCiphertext, NoSumKey, OpenedBefore, TooFewInSum, UnlikeKeys
from securetm.aggregation.homomorphic.key_messages import (
    FRESH,
    KEY_ID,
    SUM,
    as_list,
    body,
    head,
    keep,
    kept,
    key_id,
    listed,
    sized,
    unpack_secret,
)
from securetm.aggregation.homomorphic.key_setup import COORDINATOR, HOLDERS, SECRET_KEY, KeyCoordinatorSetup, KeyPartySetup
from securetm.aggregation.homomorphic.parameters import DEGREE, SEED, Fit, from_digits, real_or_whole, to_digits, whole_numbers
from securetm.aggregation.homomorphic.seal_library import Code, RunningSum, decrypt, encrypt, seal
from securetm.contracts import Answer, Array, Block, Cohort, Domain, Entropy, Exchange, Parcel, Roster, Store, Terms
from securetm.errors import Duplicate, Malformed, NotInCohort, TooFewParties, UnknownRound
from securetm.sessions.survivors import SurvivorList

WITHOUT_END = sys.maxsize
OPENED, CLAMPED = "sum opened", "clamped"
LEAST = 2  # parties in a sum: over one party, it is that party's own vector
Fitting = Callable[[Terms, Cohort], tuple[Terms, Fit]]


def tag_of(round_id: bytes) -> bytes:
    """A round's name in 32 bytes."""
    return hashlib.sha256(round_id).digest()


def pack_residues(residues: Array, fit: Fit) -> bytes:
    """Each residue in as many bytes as the modulus has, the lowest first."""
    wide = np.ascontiguousarray(residues, dtype="<u8").view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(wide[:, : fit.modulus.width]).tobytes()


def unpack_residues(content: bytes, fit: Fit, sender: str) -> Array:
    """Polynomials from untrusted bytes of the right length, every residue below the modulus."""
    wide = np.zeros((len(content) // fit.modulus.width, 8), dtype=np.uint8)
    wide[:, : fit.modulus.width] = np.frombuffer(content, dtype=np.uint8).reshape(-1, fit.modulus.width)
    residues = wide.view("<u8").reshape(-1, DEGREE)
    if (residues >= fit.modulus.value).any():
        raise BadCiphertext(sender, "a residue is not below the modulus")
    return residues


# ---- the party -----------------------------------------------------------------------------------------------------------


@dataclass
class EncryptedPartySession:
    """Run by a party. It knows the secret key, its own vector, and each sum that it opens."""

    me: str
    roster: Roster
    entropy: Entropy
    store: Store
    code: Code
    fitting: Fitting
    unopened: tuple[bytes, Exception] | None = None  # the last sum that would not open, and why: said to its own party only

    @property
    def prepared(self) -> int:
        """One key serves all rounds of a session."""
        return WITHOUT_END if kept(self.store, self.roster, SECRET_KEY) else 0

    def prepare(self, rounds: int) -> Exchange:
        """A new key for the session."""
        del rounds
        return KeyPartySetup(self.me, self.roster, self.code.name, self.entropy, self.store)

    def round(self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None) -> Exchange:
        """Encrypts this party's vector, and opens the sum that comes back."""
        if vector is None or self.me not in cohort.members:
            raise NotInCohort(self.me)
        terms, fit = self.fitting(terms, cohort)
        numbers, clamped = whole_numbers(vector, terms, fit.reach)
        if clamped:  # the party's own log: a refusal that depended on the data would be an answer
            before = int.from_bytes(self.store.get(CLAMPED) or b"")
            self.store.put(CLAMPED, (before + clamped).to_bytes(8))
        return EncryptedPartyRound(self, cohort, terms, fit, numbers)

    def answer(self, round_id: bytes) -> Answer:
        """The sum of the last round that this party opened, also after a restart."""
        if self.unopened is not None and self.unopened[0] == round_id:
            raise self.unopened[1]
        stored = kept(self.store, self.roster, OPENED)
        if stored is None or stored[:32] != tag_of(round_id):
            raise UnknownRound(round_id.hex()[:16])
        (size,) = struct.unpack("<I", stored[32:36])
        facts = json.loads(stored[36 : 36 + size])
        layout = tuple(Block(name, tuple(shape)) for name, shape in facts["layout"])
        total = np.frombuffer(stored[36 + size :], dtype="<i8").astype(np.int64)
        return Answer(real_or_whole(total, layout, facts["grid"]), {}, tuple(facts["survivors"]))

    def secret(self) -> bytes:
        """The session's secret key."""
        packed = kept(self.store, self.roster, SECRET_KEY)
        if packed is None:
            raise NoSumKey(self.me)
        return packed

    def has_opened(self, round_id: bytes) -> bool:
        """Whether the last sum opened was this round's."""
        stored = kept(self.store, self.roster, OPENED)
        return stored is not None and stored[:32] == tag_of(round_id)

    def remember(self, round_id: bytes, terms: Terms, survivors: Sequence[str], total: Array) -> None:
        """Durable: a party that starts again still has the answer, and opens no second sum of the round."""
        layout = [[block.name, list(block.shape)] for block in terms.layout]
        grid = terms.grid if terms.domain is Domain.REAL else 0.0
        facts = json.dumps({"layout": layout, "grid": grid, "survivors": list(survivors)}).encode()
        stored = tag_of(round_id) + struct.pack("<I", len(facts)) + facts + total.astype("<i8").tobytes()
        keep(self.store, self.roster, OPENED, stored)


@dataclass
class EncryptedPartyRound:
    """A party's half of one round."""

    seat: EncryptedPartySession
    cohort: Cohort
    terms: Terms
    fit: Fit
    numbers: Array

    def begin(self) -> Sequence[Parcel]:
        """This party's ciphertexts. Asked again, it encrypts again with fresh randomness: that gives nothing away."""
        seat, packed = self.seat, self.seat.secret()
        ternary = unpack_secret(packed, seat.me)
        first, seeds = encrypt(seat.code, self.fit, ternary, to_digits(self.numbers, self.fit), seat.entropy)
        content = tag_of(self.cohort.round_id) + key_id(packed) + pack_residues(first, self.fit) + seeds.tobytes()
        return ((COORDINATOR, head(FRESH, seat.roster) + content),)

    def receive(self, sender: str, message: bytes) -> Sequence[Parcel]:
        """Opens the sum, once. Nothing is sent back."""
        if sender != COORDINATOR:
            raise NotInCohort(sender)
        survivors, content = self._checked(body(message, SUM, self.seat.roster, sender))
        first, second = np.split(unpack_residues(content, self.fit, sender), 2)
        if not second.any(axis=1).all():
            raise BadCiphertext(sender, "one of them hides nothing")
        SurvivorList.of(self.seat.store, self.cohort).hold(survivors)
        ternary = unpack_secret(self.seat.secret(), self.seat.me)
        try:
            total = from_digits(decrypt(self.seat.code, self.fit, ternary, first, second), self.fit, self.terms.size)
        except Exception as failure:  # noqa: BLE001 - whether ciphertexts open would tell of the key and of what is in them
            self.seat.unopened = self.cohort.round_id, failure
        else:
            self.seat.remember(self.cohort.round_id, self.terms, survivors, total)
        return ()

    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]:
        """A party waits for nobody."""
        del missing
        return ()

    def _checked(self, content: bytes) -> tuple[tuple[str, ...], bytes]:
        """Who is in the sum, and its ciphertexts; refused before any of them is looked at."""
        seat, start = self.seat, 32 + KEY_ID
        if content[:32] != tag_of(self.cohort.round_id):
            raise UnknownRound(content[:8].hex())
        if content[32:start] != key_id(seat.secret()):
            raise UnlikeKeys(COORDINATOR)
        if seat.has_opened(self.cohort.round_id):
            raise OpenedBefore()
        size = self.fit.sum_bytes(self.terms.size)
        survivors = tuple(listed(seat.roster, content[start : max(start, len(content) - size)], 0, COORDINATOR))
        for name in survivors:
            if name not in self.cohort.members:
                raise NotInCohort(name)
        need = max(LEAST, self.cohort.threshold)
        if len(survivors) < need:
            raise TooFewInSum(len(survivors), need)
        return survivors, content[len(content) - size :]


# ---- the coordinator -----------------------------------------------------------------------------------------------------


@dataclass
class EncryptedCoordinatorSession:
    """Run by the coordinator. It adds what it cannot read, and learns who answered."""

    roster: Roster
    store: Store
    code: Code
    fitting: Fitting
    _rounds: dict[bytes, EncryptedCoordinatorRound] = field(default_factory=dict)

    @property
    def prepared(self) -> int:
        """One key serves all rounds of a session."""
        return WITHOUT_END if kept(self.store, self.roster, HOLDERS) else 0

    def prepare(self, rounds: int) -> Exchange:
        """Carries the messages with which the parties come to a key."""
        del rounds
        seal()  # a missing library is found now, not when the first vector arrives
        return KeyCoordinatorSetup(self.roster, self.code.name, self.store)

    def round(self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None = None) -> Exchange:
        """Adds up one vector of ciphertexts from each party of the cohort."""
        del vector
        terms, fit = self.fitting(terms, cohort)
        holders = kept(self.store, self.roster, HOLDERS)
        if holders is None:
            raise NoSumKey(COORDINATOR)
        only, running = SurvivorList.of(self.store, cohort), RunningSum(self.code, fit)
        opened = EncryptedCoordinatorRound(self.roster, cohort, fit, terms.size, only, running, holders[:KEY_ID])
        self._rounds = {cohort.round_id: opened}
        return opened

    def answer(self, round_id: bytes) -> Answer:
        """Who answered. There is no total here, and there must be none."""
        if round_id not in self._rounds:
            raise UnknownRound(round_id.hex()[:16])
        return Answer(None, {}, self._rounds[round_id].survivors())


@dataclass
class EncryptedCoordinatorRound:
    """The coordinator's half of one round."""

    roster: Roster
    cohort: Cohort
    fit: Fit
    size: int
    only: SurvivorList  # of survivors, over which this question is opened
    running: RunningSum
    key: bytes
    _answered: set[str] = field(default_factory=set)
    _closed: bool = False

    def begin(self) -> Sequence[Parcel]:
        """The parties speak first."""
        return ()

    def receive(self, sender: str, message: bytes) -> Sequence[Parcel]:
        """Checks one party's ciphertexts and adds them; the last party's bring the sum out."""
        if sender not in self.cohort.members:
            raise NotInCohort(sender)
        if sender in self._answered:
            raise Duplicate(sender)
        if self._closed:
            raise Malformed(sender, "it comes after the round was closed")
        first, seeds = self._checked(sender, body(message, FRESH, self.roster, sender))
        if self.only.counts(sender):
            self.running.add(first, seeds)
        self._answered.add(sender)
        return self._close() if len(self._answered) == len(self.cohort.members) else ()

    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]:
        """Whoever has not answered is left out of the sum; nothing has to be recovered."""
        del missing
        return () if self._closed else self._close()

    def survivors(self) -> tuple[str, ...]:
        """Who is in the sum, if they are enough."""
        found = tuple(m for m in self.cohort.members if m in self._answered and self.only.counts(m))
        need = max(LEAST, self.cohort.threshold)
        if len(found) < need:
            raise TooFewParties(len(found), len(self.cohort.members), need)
        return found

    def _checked(self, sender: str, content: bytes) -> tuple[Array, Array]:
        """Round, key, count, size and range, before anything is computed."""
        start = 32 + KEY_ID
        sized(content, start + self.fit.fresh_bytes(self.size), sender)
        if content[:32] != tag_of(self.cohort.round_id):
            raise UnknownRound(content[:8].hex())
        if content[32:start] != self.key:
            raise UnlikeKeys(sender)
        seeds = len(content) - SEED * self.fit.ciphertexts(self.size)
        first = unpack_residues(content[start:seeds], self.fit, sender)
        return first, np.frombuffer(content[seeds:], dtype=np.uint8).reshape(-1, SEED)

    def _close(self) -> Sequence[Parcel]:
        """The sum, to the whole cohort: a party that was late needs it as much as the others."""
        survivors = self.survivors()
        self.only.settle(survivors)
        self._closed = True
        first, second = self.running.polynomials()
        named = as_list(self.roster, dict.fromkeys(survivors, b""))
        polynomials = pack_residues(first, self.fit) + pack_residues(second, self.fit)
        message = head(SUM, self.roster) + tag_of(self.cohort.round_id) + self.key + named + polynomials
        return tuple((m, message) for m in self.cohort.members)
