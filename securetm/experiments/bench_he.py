"""Encrypted sums beside the parameters that NVFlare ships, in one run: seconds and bytes of every phase. It judges no secrecy.

Ours go through sessions, from vector to bytes and back, on one thread; theirs through TenSEAL's high-level vectors, with the
public context in every message, as NVFlare sends it. The two take turns, and the fastest turn of each counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from securetm.aggregation.homomorphic.bfv import BfvSum
from securetm.aggregation.homomorphic.ckks import CkksSum
from securetm.contracts import Aggregation, Array, Block, Cohort, Domain, Exchange, Parcel, Roster, Session, Terms
from securetm.entropy import OperatingSystem
from securetm.experiments.bench_frame import OnProgress, RoleMemory, Row, beside, record, timed, told
from securetm.sessions.identities import COORDINATOR

PEER = "NVFlare's parameters: TenSEAL CKKS 8192 [60, 40, 40], scale 2^40"
TURNS = 3
PHASES = ("encrypt, one party", "add, coordinator", "decrypt, one party")
LEAST = {"ckks": 2.0, "bfv": 3.5}  # times smaller on the wire than the peer that is asked for

Figures = dict[str, float]  # seconds of each phase, and bytes up and down for one party

_Message = tuple[bytes, list[bytes]]  # the peer's: a context and ciphertexts
_SLOTS = 4096


def bench(length: int = 200_000, parties: int = 10, on_progress: OnProgress | None = None) -> Row:
    """CKKS and BFV sums of that many values over that many parties, beside the peer."""
    rng = np.random.default_rng(0)
    reals = {f"party{i:03}": rng.normal(0, 0.1, length).astype(np.float32) for i in range(parties)}
    counts = {m: rng.poisson(3.0, length) for m in reals}
    whole = Terms((Block("counts", (length,)),), domain=Domain.INTEGER, bits=32)
    ours = {
        "ckks": _OurSums(CkksSum(), Terms((Block("weights", (length,)),), reach=8.0), reals),
        "bfv": _OurSums(BfvSum(), whole, counts),
    }
    theirs = _TenSealSums(reals)
    best: dict[str, Figures] = {}
    runs: list[tuple[str, Callable[[], Figures]]] = [*((name, one.turn) for name, one in ours.items()), ("peer", theirs.turn)]
    for name, run in told(runs * TURNS, on_progress):
        found = run()
        best[name] = {key: min(value, best.get(name, found)[key]) for key, value in found.items()}
    rows = [row for name in ours for row in _rows(name, best[name], best["peer"], length, parties)]
    return record("he", rows, peer=PEER, length=length, parties=parties)


# ---- ours ------------------------------------------------------------------------------------------------------------


@dataclass
class _OurSums:
    """A session of ours: prepared once, then one round a turn."""

    code: Aggregation
    terms: Terms
    vectors: Mapping[str, Array]

    def __post_init__(self) -> None:
        members = tuple(self.vectors)
        identities = {m: hashlib.sha256(m.encode()).digest() for m in members}
        keys = {m: Ed25519PrivateKey.from_private_bytes(k).public_key().public_bytes_raw() for m, k in identities.items()}
        roster = Roster(bytes(32), bytes(32), members, keys)
        self.parties: dict[str, Session] = {
            m: self.code.party(m, roster, OperatingSystem(), RoleMemory(identity=identities[m])) for m in members
        }
        self.middle = self.code.coordinator(roster, RoleMemory())
        self.number = 0
        self._carry({COORDINATOR: self.middle.prepare(TURNS), **{m: s.prepare(TURNS) for m, s in self.parties.items()}})

    def turn(self) -> Figures:
        """One round; the sum must be right."""
        self.number += 1
        members = tuple(self.vectors)
        during = Cohort(hashlib.sha256(b"%d" % self.number).digest(), self.number, members, threshold=len(members))
        terms, block = self.code.admit(self.terms, during), self.terms.layout[0].name
        adding = self.middle.round(during, terms, None)
        exchanges = {m: one.round(during, terms, {block: self.vectors[m]}) for m, one in self.parties.items()}
        encrypting, sent = timed(lambda: {members[0]: exchanges[members[0]].begin()[0][1]})
        sent |= {m: exchanges[m].begin()[0][1] for m in members[1:]}
        added, sums = timed(lambda: _collected(adding, sent))
        opening, _ = timed(lambda: exchanges[members[0]].receive(COORDINATOR, sums[0][1]))
        total = self.parties[members[0]].answer(during.round_id).total
        assert total is not None
        plain = np.sum([v.astype(np.float64) for v in self.vectors.values()], axis=0)
        assert np.abs(total[block] - plain).max() <= self.code.error(terms, during)
        return _figures(encrypting, added, opening, len(sent[members[0]]), len(sums[0][1]))

    def _carry(self, exchanges: Mapping[str, Exchange]) -> None:
        sent = {name: message for name, one in exchanges.items() for _, message in one.begin()}
        while sent:
            further = _collected(exchanges[COORDINATOR], sent)
            sent = {to: reply for to, message in further for _, reply in exchanges[to].receive(COORDINATOR, message)}


def _collected(adding: Exchange, sent: Mapping[str, bytes]) -> Sequence[Parcel]:
    """One wave, and what the coordinator sends at its end."""
    for sender, message in sent.items():
        adding.receive(sender, message)
    return adding.expire(())


# ---- theirs ------------------------------------------------------------------------------------------------------------


class _TenSealSums:
    """TenSEAL's vectors with one key for all, as NVFlare's clients and server use them."""

    def __init__(self, vectors: Mapping[str, Array]) -> None:
        self.tenseal = import_module("tenseal")
        self.vectors = [v.tolist() for v in vectors.values()]
        self.context = self.tenseal.context(self.tenseal.SCHEME_TYPE.CKKS, 8192, coeff_mod_bit_sizes=[60, 40, 40])
        self.context.global_scale = 2**40
        self.public = self.context.copy()
        self.public.make_context_public()

    def turn(self) -> Figures:
        """One round with one tensor a party."""
        encrypting, first = timed(lambda: self._sealed(self.vectors[0]))
        sent = [first, *(self._sealed(v) for v in self.vectors[1:])]
        added, (context, total) = timed(lambda: self._added(sent))
        opening, _ = timed(lambda: [self.tenseal.ckks_vector_from(self.context, part).decrypt() for part in total])
        return _figures(
            encrypting, added, opening, len(first[0]) + sum(map(len, first[1])), len(context) + sum(map(len, total))
        )

    def _sealed(self, values: list[float]) -> _Message:
        """One ciphertext at a time: TenSEAL prints a warning for longer vectors, on the stream where results belong."""
        parts = [values[i : i + _SLOTS] for i in range(0, len(values), _SLOTS)]
        return self._context_bytes(), [self.tenseal.ckks_vector(self.context, part).serialize() for part in parts]

    def _context_bytes(self) -> bytes:
        """What a message carries besides the ciphertexts: parameters and public key, no rotation keys."""
        left_out = {"save_secret_key": False, "save_galois_keys": False, "save_relin_keys": False}
        return bytes(self.public.serialize(save_public_key=True, **left_out))

    def _added(self, sent: list[_Message]) -> _Message:
        total: list[Any] = []
        for context, ciphertexts in sent:
            public = self.tenseal.context_from(context)
            held = [self.tenseal.ckks_vector_from(public, part) for part in ciphertexts]
            total = [one + two for one, two in zip(total, held, strict=True)] if total else held
        return sent[0][0], [part.serialize() for part in total]


# ---- figures -------------------------------------------------------------------------------------------------------------


def _figures(encrypting: float, adding: float, opening: float, up: int, down: int) -> Figures:
    return {**dict(zip(PHASES, (encrypting, adding, opening), strict=True)), "up": float(up), "down": float(down)}


def _rows(name: str, ours: Figures, theirs: Figures, length: int, parties: int) -> list[Row]:
    case = f"{name}, {length:,} values, {parties} parties"
    named = [(f"{phase}: {case}", phase, "s", 1.0) for phase in PHASES]
    named += [(f"bytes {way} for one party: {case}", way, "bytes", LEAST[name]) for way in ("up", "down")]
    rows = []
    for title, key, unit, asked in named:
        mine, peer = ours[key], theirs[key]
        times = {"times_float32": round(mine / (4 * length), 3)} if unit == "bytes" else {}
        rows.append({**beside(title, mine, peer, unit, PEER, digits=5), "asked_ratio": asked, **times})
    return rows
