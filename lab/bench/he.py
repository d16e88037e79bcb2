"""Encrypted sums beside the parameters that NVFlare ships, in one run: seconds and bytes of every phase. It judges no secrecy.

Ours go through sessions, from vector to bytes and back, on one thread; theirs through TenSEAL's high-level vectors, with the
public context in every message, as NVFlare sends it. The two take turns, and the fastest turn of each counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from lab.bench.sessions import MeasuredSession
from lab.measuring import OnProgress, Row, beside, record, timed, told
from securetm.aggregation.homomorphic.bfv import BfvSum
from securetm.aggregation.homomorphic.ckks import CkksSum
from securetm.contracts import Array, Block, Domain, Terms

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
    reals = [rng.normal(0, 0.1, length).astype(np.float32) for _ in range(parties)]
    counts = [rng.poisson(3.0, length) for _ in range(parties)]
    whole = Terms((Block("counts", (length,)),), domain=Domain.INTEGER, bits=32)
    ckks = MeasuredSession(CkksSum(), Terms((Block("weights", (length,)),), reach=8.0), parties, TURNS)
    bfv, theirs = MeasuredSession(BfvSum(), whole, parties, TURNS), _TenSealSums(reals)
    best: dict[str, Figures] = {}
    turns: Mapping[str, Callable[[int], Figures]] = {
        "ckks": partial(_our_turn, ckks, reals), "bfv": partial(_our_turn, bfv, counts), "peer": theirs.turn,
    }  # fmt: skip
    for number, name in told(list(product(range(1, TURNS + 1), turns)), on_progress):
        found = turns[name](number)
        best[name] = {key: min(value, best.get(name, found)[key]) for key, value in found.items()}
    rows = [row for name in LEAST for row in _rows(name, best[name], best["peer"], length, parties)]
    return record("he", rows, peer=PEER, length=length, parties=parties)


def _our_turn(session: MeasuredSession, vectors: Sequence[Array], number: int) -> Figures:
    """One round: its first wave brings ciphertexts, its second brings their sum to the parties."""
    sealing, opening = session.round(number, dict(zip(session.members, vectors, strict=True)))
    return _figures(sealing.party[0], sealing.coordinator, opening.party[0], sealing.up[0], opening.down[0])


class _TenSealSums:
    """TenSEAL's vectors with one key for all, as NVFlare's clients and server use them."""

    def __init__(self, vectors: Sequence[Array]) -> None:
        self.tenseal = import_module("tenseal")
        self.vectors = [vector.tolist() for vector in vectors]
        self.context = self.tenseal.context(self.tenseal.SCHEME_TYPE.CKKS, 8192, coeff_mod_bit_sizes=[60, 40, 40])
        self.context.global_scale = 2**40
        self.public = self.context.copy()
        self.public.make_context_public()

    def turn(self, number: int) -> Figures:
        """One round with one tensor a party; all rounds are alike."""
        del number
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
        # what a message carries besides the ciphertexts: parameters and public key, no rotation keys
        left_out = {"save_secret_key": False, "save_galois_keys": False, "save_relin_keys": False}
        context = bytes(self.public.serialize(save_public_key=True, **left_out))
        return context, [self.tenseal.ckks_vector(self.context, part).serialize() for part in parts]

    def _added(self, sent: list[_Message]) -> _Message:
        total: list[Any] = []
        for context, ciphertexts in sent:
            public = self.tenseal.context_from(context)
            held = [self.tenseal.ckks_vector_from(public, part) for part in ciphertexts]
            total = [one + two for one, two in zip(total, held, strict=True)] if total else held
        return sent[0][0], [part.serialize() for part in total]


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
