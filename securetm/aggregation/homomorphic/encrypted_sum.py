"""Encrypted sums under one shared key: who opens them, what they claim, and the sessions and rounds of both roles.

Fresh ciphertexts go to the coordinator, their sum goes back to the parties. An opened total never goes to the coordinator: one
that may see totals could hand in a single party's ciphertext as "the sum". BFV and CKKS bring their code and the fit of their
parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import ClassVar

import numpy as np

from securetm.aggregation.homomorphic.parameters import (
    DEGREE,
    DIGITS,
    MODULI,
    SEED,
    Fit,
    fit_whole,
    from_digits,
    real_or_whole,
    to_digits,
)
from securetm.aggregation.homomorphic.seal_library import Code, RunningSum, decrypt, draw_ternary, encrypt, seal
from securetm.aggregation.vectors import CLAMPED, parts_of, whole_numbers
from securetm.contracts import (
    Aggregation,
    Answer,
    Array,
    Block,
    Claim,
    Cohort,
    Domain,
    Entropy,
    Exchange,
    Message,
    Needs,
    Parcel,
    Roster,
    Store,
    Terms,
)
from securetm.data_classes import dataclass
from securetm.errors import NeedsIntegers, NeedsSum, NotInCohort, Refused, TooFewParties, UnknownRound
from securetm.sessions.exchanges import WITHOUT_END, CoordinatorExchange, CoordinatorSession, PartyExchange, PartySession
from securetm.sessions.framing import HASH, Label, Reader, head, places_bytes
from securetm.sessions.group_key import (
    HELLO_SIZE,
    KEY_ID,
    LEAST,
    SecretCoordinatorSetup,
    SecretPartySetup,
    SharedSecret,
    UnlikeKeys,
)
from securetm.sessions.identities import COORDINATOR, Identity, PinnedRoster, identity_of
from securetm.sessions.session_memory import SessionMemory, count_up
from securetm.sessions.survivors import SurvivorList, TooFewInSum


class BadCiphertext(Refused):
    """the ciphertexts from {sender} are refused: {problem}"""

    sender: str
    problem: str


SECRET = DEGREE // 4  # bytes: two bits a coefficient


class SumKind(IntEnum):
    """What a message of a round is. Odd kinds are sent by parties, even kinds by the coordinator."""

    SUM = 26
    FRESH = 27


def pack_secret(ternary: Array) -> bytes:
    """Four coefficients a byte, the lowest bits first; -1, 0, 1 are 0, 1, 2."""
    pairs = (ternary + 1).astype(np.uint8).reshape(-1, 4)
    return (pairs[:, 0] | pairs[:, 1] << 2 | pairs[:, 2] << 4 | pairs[:, 3] << 6).astype(np.uint8).tobytes()


def unpack_secret(packed: bytes, sender: str) -> Array:
    """The secret polynomial, refused if it is none or nothing but zeros."""
    quads = np.frombuffer(packed, dtype=np.uint8)
    ternary = np.stack([quads >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).ravel().astype(np.int64) - 1
    if len(ternary) != DEGREE or (ternary > 1).any() or not ternary.any():
        raise BadCiphertext(sender, "the secret key is no ternary polynomial")
    return ternary


def _drawn(entropy: Entropy) -> bytes:
    return pack_secret(draw_ternary(entropy))


def sum_key(code: str) -> SharedSecret:
    """The secret key that the parties of sums in this code share: how it is drawn, packed and named."""
    return SharedSecret(SECRET, _drawn, unpack_secret, Label.KEY_HELLO, Label.SUM_KEY_SEAL, Label.SUM_KEY_NAME, code.encode())


_KEY = sum_key("").key  # in the memory of a session
_BOX = sum_key("").box


class NoSumKey(Refused):
    """{party} holds no key of this session's encrypted sums"""

    party: str
    hint = "it was away when the key was exchanged: prepare the session again"


class OpenedBefore(Refused):
    """a second sum was sent for a round that is already opened"""


@dataclass(frozen=True)
class SharedKeySum(Aggregation):
    """The parties encrypt and open; the coordinator adds ciphertexts."""

    opened_by: ClassVar[str] = "parties"
    code: ClassVar[Code]

    def fit(self, terms: Terms, cohort: Cohort) -> tuple[Terms, Fit]:
        """The admitted terms, and the parameters that every role derives from them."""
        if terms.needs is not Needs.SUM or terms.ragged:
            raise NeedsSum(self.code.name)
        parties = len(cohort.members)
        return self.fit_real(terms, parties) if terms.domain is Domain.REAL else fit_whole(self.code.name, terms, parties)

    def fit_real(self, terms: Terms, parties: int) -> tuple[Terms, Fit]:
        """The same for real numbers. Refused, unless a sum says how it carries them."""
        raise NeedsIntegers(self.code.name)

    def error(self, terms: Terms, cohort: Cohort) -> float:
        """No error: whole numbers are added exactly."""
        return 0.0

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        """Against the coordinator alone: with the help of one party, who holds the key, it reads everything."""
        return frozenset({Claim("sees only sums", COORDINATOR, colluding=0)})

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        return self.fit(terms, cohort)[0]

    def remaining(self, cohort: Cohort, joined: int) -> int:
        """The number of parties in a sum that a party requires before it opens it."""
        return max(LEAST, cohort.fewest)

    def longest(self, parties: int, rounds: int, terms: Terms | None) -> tuple[int, int]:
        """Of a set-up, the sealed keys and the bundle of hellos; of a round, fresh ciphertexts and both halves of their sum."""
        named = 4 + HASH + KEY_ID + 2 + 2 * parties  # more than any message begins with
        if terms is None:
            return max(named + parties * _BOX, HELLO_SIZE), named + parties * HELLO_SIZE + _BOX
        most = Fit(MODULI[-1], parties, 1, digits=DIGITS[-1])  # the widest that any fit has
        return named + most.fresh_bytes(terms.size), named + most.sum_bytes(terms.size)

    def waves(self) -> tuple[int, int]:
        """For a hello, and for the sealed keys, which one party makes; then for a vector, and with the sum."""
        return 2, 2

    def party(self, me: str, roster: Roster, entropy: Entropy, store: Store) -> EncryptedPartySession:
        return EncryptedPartySession(identity_of(me, roster, store), entropy, store, self.code, self.fit)

    def coordinator(self, roster: Roster, store: Store) -> EncryptedCoordinatorSession:
        return EncryptedCoordinatorSession(PinnedRoster(roster), store, self.code, self.fit)


OPENED = "sum opened"
Fitting = Callable[[Terms, Cohort], tuple[Terms, Fit]]


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


def _check_round(reader: Reader, tag: bytes, key: bytes, sender: str) -> None:
    """Refuses what is of another round or under another key."""
    if (found := reader.take(HASH)) != tag:
        raise UnknownRound(found[:8].hex())
    if reader.take(KEY_ID) != key:
        raise UnlikeKeys(sender)


@dataclass(frozen=True)
class OpenedSum:
    """What a party keeps of the sum that it opened last: whole numbers, and their unit where they stand for real ones."""

    layout: tuple[Block, ...]
    grid: float
    survivors: tuple[str, ...]
    total: bytes


@dataclass
class EncryptedPartySession(PartySession):
    """Run by a party. It knows the secret key, its own vector, and each sum that it opens."""

    identity: Identity
    entropy: Entropy
    store: Store
    code: Code
    fitting: Fitting
    unopened: tuple[bytes, Exception] | None = None  # the last sum that would not open, and why: reported to its own party only

    def __post_init__(self) -> None:
        self.me, self.register = self.identity.me, self.identity.register
        self.memory = SessionMemory(self.store, self.register.hash)

    @property
    def prepared(self) -> int:
        """One key serves all rounds of a session."""
        return WITHOUT_END if self.memory.get(_KEY) else 0

    def prepare(self, rounds: int) -> Exchange:
        return SecretPartySetup(self.identity, sum_key(self.code.name), self.entropy, self.memory)

    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None, surplus: Sequence[bytes] = ()
    ) -> Exchange:
        """Encrypts this party's vector, and opens the sum that comes back."""
        if vector is None or self.me not in cohort.members:
            raise NotInCohort(self.me)
        terms, fit = self.fitting(terms, cohort)
        parts = parts_of(vector, terms)
        numbers = np.empty(sum(part.size for part in parts), np.int64)
        clamped = whole_numbers(parts, fit.reach, numbers, terms.grid or 1.0)
        count_up(self.store, CLAMPED, clamped)
        return EncryptedPartyRound(self, cohort, terms, fit, numbers)

    def answer(self, round_id: bytes) -> Answer:
        """The sum of the last round that this party opened, also after a restart."""
        if self.unopened is not None and self.unopened[0] == round_id:
            raise self.unopened[1]
        opened = self.memory.of(self.register.round_tag(round_id)).load(OPENED, OpenedSum)
        if opened is None:
            raise UnknownRound(round_id.hex()[:16])
        total = np.frombuffer(opened.total, dtype="<i8").astype(np.int64)
        return Answer(real_or_whole(total, opened.layout, opened.grid), {}, opened.survivors)

    def secret(self) -> bytes:
        packed = self.memory.get(_KEY)
        if packed is None:
            raise NoSumKey(self.me)
        return packed


class EncryptedPartyRound(PartyExchange):
    """A party's half of one round. It opens the sum once, and sends nothing back."""

    def __init__(self, session: EncryptedPartySession, cohort: Cohort, terms: Terms, fit: Fit, numbers: Array) -> None:
        self._session, self._cohort, self._terms, self._fit, self.numbers = session, cohort, terms, fit, numbers
        self._tag = session.register.round_tag(cohort.round_id)
        self._memory = session.memory.of(self._tag)
        self.answers = {SumKind.SUM: self._open}

    def begin(self) -> Sequence[Parcel]:
        """This party's ciphertexts. Asked again, it encrypts again with fresh randomness: that gives nothing away."""
        session, packed = self._session, self._session.secret()
        ternary = unpack_secret(packed, session.me)
        first, seeds = encrypt(session.code, self._fit, ternary, to_digits(self.numbers, self._fit), session.entropy)
        start = head(SumKind.FRESH, session.identity.place) + self._tag + sum_key(session.code.name).named(packed)
        return ((COORDINATOR, start + pack_residues(first, self._fit) + seeds.tobytes()),)

    def _open(self, message: bytes) -> bytes:
        session, packed = self._session, self._session.secret()
        survivors, content = self._checked(Reader(message, COORDINATOR, SumKind.SUM), sum_key(session.code.name).named(packed))
        first, second = np.split(unpack_residues(content, self._fit, COORDINATOR), 2)
        if not second.any(axis=1).all():
            raise BadCiphertext(COORDINATOR, "one of them hides nothing")
        SurvivorList(session.store, session.register.roster, self._cohort).hold(survivors)
        ternary = unpack_secret(packed, session.me)
        try:
            total = from_digits(decrypt(session.code, self._fit, ternary, first, second), self._fit, self._terms.size)
        except Exception as failure:  # noqa: BLE001 - whether ciphertexts open would tell of the key and of what is in them
            session.unopened = self._cohort.round_id, failure
        else:
            grid = self._terms.grid if self._terms.domain is Domain.REAL else 0.0
            opened = OpenedSum(self._terms.layout, grid, survivors, total.astype("<i8").tobytes())
            self._memory.save(OPENED, opened)  # a party that starts again has the answer, and opens no second sum of the round
        return b""

    def _checked(self, reader: Reader, key: bytes) -> tuple[tuple[str, ...], bytes]:
        """Who is in the sum, and its ciphertexts; refused before any of them is looked at."""
        _check_round(reader, self._tag, key, COORDINATOR)
        if self._memory.get(OPENED) is not None:
            raise OpenedBefore()
        register = self._session.register
        survivors = tuple(register.name(place) for place in reader.places(len(register)))
        for name in survivors:
            if name not in self._cohort.members:
                raise NotInCohort(name)
        need = max(LEAST, self._cohort.fewest)
        if len(survivors) < need:
            raise TooFewInSum(len(survivors), need)
        content = reader.take(self._fit.sum_bytes(self._terms.size))
        reader.end()
        return survivors, content


class EncryptedCoordinatorSession(CoordinatorSession):
    """Run by the coordinator. It adds ciphertexts, and learns who answered."""

    def __init__(self, register: PinnedRoster, store: Store, code: Code, fitting: Fitting) -> None:
        super().__init__(register)
        self.store, self.code, self.fitting, self.memory = store, code, fitting, SessionMemory(store, register.hash)

    @property
    def prepared(self) -> int:
        return WITHOUT_END if self.memory.get(f"{_KEY} name") else 0

    def prepare(self, rounds: int) -> Exchange:
        """Carries the messages with which the parties come to a key."""
        seal()  # a missing library is found now, not when the first vector arrives
        return SecretCoordinatorSetup(self.register, sum_key(self.code.name), self.memory)

    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None = None, surplus: Sequence[bytes] = ()
    ) -> Exchange:
        terms, fit = self.fitting(terms, cohort)
        key = self.memory.get(f"{_KEY} name")
        if key is None:
            raise NoSumKey(COORDINATOR)
        return self.begun(cohort, EncryptedCoordinatorRound(self, cohort, fit, terms.size, key))


class EncryptedCoordinatorRound(CoordinatorExchange):
    """The coordinator's half of one round: one running sum, which goes to the whole cohort when the wave ends."""

    def __init__(self, session: EncryptedCoordinatorSession, cohort: Cohort, fit: Fit, size: int, key: bytes) -> None:
        super().__init__(session.register)
        self._cohort, self._fit, self._size, self._key = cohort, fit, size, key
        self._only, self._running = SurvivorList(session.store, session.register.roster, cohort), RunningSum(session.code, fit)
        self._tag = session.register.round_tag(cohort.round_id)
        self._places = tuple(sorted(map(session.register.place, cohort.members)))
        self.ask(self._places, self._add, self._close)

    def _add(self, place: int, sender: str, message: Message) -> bool:
        """Checks round, key, size and range before anything is computed; says whether it went into the sum."""
        reader, seeds = Reader(message, sender, SumKind.FRESH), SEED * self._fit.ciphertexts(self._size)
        reader.speaks_for(place)
        _check_round(reader, self._tag, self._key, sender)
        content = reader.take(self._fit.fresh_bytes(self._size))
        reader.end()
        first = unpack_residues(content[:-seeds], self._fit, sender)
        if counts := self._only.counts(sender):
            self._running.add(first, np.frombuffer(content[-seeds:], dtype=np.uint8).reshape(-1, SEED))
        return counts

    def _close(self, came: Mapping[int, bool]) -> Sequence[Parcel]:
        """The sum, to the whole cohort: a party that was late needs it as much as the others."""
        places = [place for place, counts in came.items() if counts]
        survivors, need = tuple(map(self._register.name, places)), max(LEAST, self._cohort.fewest)
        if len(survivors) < need:
            raise TooFewParties(len(survivors), len(self._places), need)
        self._only.settle(survivors)
        self._answer = Answer(None, {}, survivors)  # there is no total here, and there must be none
        polynomials = b"".join(pack_residues(half, self._fit) for half in self._running.polynomials())
        message = head(SumKind.SUM) + self._tag + self._key + places_bytes(places) + polynomials
        return self.to(dict.fromkeys(self._places, message))
