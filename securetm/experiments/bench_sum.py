"""What a masked sum costs, phase by phase, beside the speed of its cipher in the same run. It judges no protocol.

One process plays all parties in turn, so every figure is one core's; each party's own seconds are what one machine would take.
"""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.mask_stream import BLOCK, apply_masks
from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.contracts import Block, Cohort, Domain, Exchange, Roster, Terms
from securetm.entropy import OperatingSystem
from securetm.experiments.bench_frame import OnProgress, RoleMemory, Row, record, seconds, timed, told
from securetm.experiments.flower_peer import NAME, compared

COORDINATOR = "coordinator"
ROUNDS = 8  # that the measured set-up prepares
REPEATS = 3
MEMORY_PARTIES = (10, 30)
SHAMIR_HOLDERS, SHAMIR_THRESHOLD = 100, 67


def bench(parties: int = 10, length: int = 1_000_000, on_progress: OnProgress | None = None) -> Row:
    """Seconds and bytes of each phase, masks per second, Shamir's scheme, and the coordinator's memory."""
    one = min(1, parties - MaskedSum().geometry(parties).threshold)  # may leave, unless there are too few
    steps: Sequence[Callable[[], list[Row]]] = (
        lambda: _expansion(parties, length),
        _shamir,
        lambda: _phases(parties, length, leaving=0),
        lambda: _phases(parties, length, leaving=one) if one else [],
        lambda: _memory(length),
    )
    rows = list(against := compared(length) or [])
    for step in told(steps, on_progress):
        rows += step()
    return record("sum", rows, missing=[] if against else [NAME], packages=("cryptography",))


# ---- masks and shares ------------------------------------------------------------------------------------------------


def _expansion(parties: int, length: int) -> list[Row]:
    """Keystream added to a vector, for all masks of one party, beside the keystream alone; both take turns."""
    neighbours, entropy = MaskedSum().geometry(parties).degree, OperatingSystem()
    vector, masks = np.zeros(length, np.uint32), [(entropy.bytes(32), n % 2 == 0) for n in range(neighbours + 1)]
    total = (neighbours + 1) * vector.nbytes
    ours, limit = [], []
    for _ in range(3 * REPEATS):
        ours.append(seconds(lambda: apply_masks(vector, masks)))
        limit.append(seconds(lambda: _keystream(total)))
    speed, most = total / min(ours) / 1e9, total / min(limit) / 1e9
    case = f"mask expansion, {neighbours} neighbours, {length:,} values"
    alone = f"AES-256-CTR alone on {multiprocessing.cpu_count()} cores"
    facts = {"limit": round(most, 2), "of_limit": round(speed / most, 3), "limit_is": alone}
    return [
        {"case": case, "ours": round(speed, 2), "unit": "GB/s", **facts, "neighbours": neighbours},
        {"case": f"{case}: one party's masks", "ours": round(min(ours), 6), "unit": "s", "neighbours": neighbours},
    ]


def _keystream(total: int) -> None:
    """On as many cores as the masks are drawn with."""
    cores = multiprocessing.cpu_count()
    with ThreadPoolExecutor(cores) as pool:
        for done in [pool.submit(_keystream_alone, total // cores) for _ in range(cores)]:
            done.result()


def _keystream_alone(total: int) -> None:
    stream = Cipher(algorithms.AES256(bytes(32)), modes.CTR(bytes(16))).encryptor()
    zeros, drawn = bytes(BLOCK), bytearray(BLOCK + 16)
    for _ in range(-(-total // BLOCK)):
        stream.update_into(zeros, drawn)


def _shamir() -> list[Row]:
    """One secret among a hundred, as peers are measured, and what one costs among the many of a set-up."""
    entropy = OperatingSystem()
    holders = range(1, SHAMIR_HOLDERS + 1)

    def create(secrets: int) -> float:
        drawn = [entropy.bytes(32) for _ in range(secrets)]
        return min(seconds(lambda: shamir.deal(drawn, holders, SHAMIR_THRESHOLD, entropy)) for _ in range(REPEATS)) / secrets

    points = tuple(range(1, SHAMIR_THRESHOLD + 1))
    shares = [one[0] for one in shamir.deal([entropy.bytes(32)], points, SHAMIR_THRESHOLD, entropy)]

    def combine() -> None:
        shamir.weights_at_zero.cache_clear()
        shamir.combine(points, shares)

    case = f"Shamir, {SHAMIR_HOLDERS} holders, threshold {SHAMIR_THRESHOLD}"
    again = min(seconds(lambda: shamir.combine(points, shares)) for _ in range(REPEATS))
    costs = {
        "create, one secret": create(1),
        "create, each of 128 secrets": create(128),
        "combine, one secret": min(seconds(combine) for _ in range(REPEATS)),
        "combine, each further secret of the same survivors": again,
    }
    return [{"case": f"{case}: {what}", "ours": round(took, 7), "unit": "s"} for what, took in costs.items()]


# ---- a whole session -------------------------------------------------------------------------------------------------


@dataclass
class MeasuredSession:
    """All sessions, and a clock and a counter of bytes for each of them."""

    parties: int
    length: int
    consistency: bool = False

    def __post_init__(self) -> None:
        self.members = tuple(f"party {place}" for place in range(self.parties))
        keys = {name: hashlib.sha256(name.encode()).digest() for name in self.members}
        public = {n: Ed25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw() for n, key in keys.items()}
        roster, self.aggregation = Roster(bytes(32), bytes(32), self.members, public), MaskedSum(self.consistency)
        terms = Terms((Block("values", (self.length,)),), domain=Domain.INTEGER, reach=2**20)
        self.cohort = Cohort(bytes(32), 0, self.members, 1)
        self.terms = self.aggregation.admit(terms, self.cohort)
        self.roles = {n: self.aggregation.party(n, roster, OperatingSystem(), RoleMemory({"identity": keys[n]})) for n in keys}
        self.middle = self.aggregation.coordinator(roster, RoleMemory())
        self.vector = {"values": np.arange(self.length) % 1000}

    def prepare(self) -> list[WaveCost]:
        """One set-up of several rounds."""
        return run(self.middle.prepare(ROUNDS), {name: one.prepare(ROUNDS) for name, one in self.roles.items()})

    def round(self, number: int, leaving: int = 0) -> list[WaveCost]:
        """One round; the last few parties never answer in it."""
        cohort = Cohort(number.to_bytes(32, "big"), number, self.members, 1)
        staying = self.members[: self.parties - leaving]
        exchanges = {name: self.roles[name].round(cohort, self.terms, self.vector) for name in staying}
        waves = run(self.middle.round(cohort, self.terms), exchanges)
        total = self.middle.answer(cohort.round_id).total
        assert total is not None
        assert np.array_equal(total["values"], self.vector["values"] * len(staying))
        return waves


@dataclass
class WaveCost:
    """What one message from each party cost."""

    party: list[float] = field(default_factory=list)  # seconds, one party each
    coordinator: float = 0.0
    up: list[int] = field(default_factory=list)
    down: list[int] = field(default_factory=list)


def run(middle: Exchange, parties: Mapping[str, Exchange]) -> list[WaveCost]:
    """Wave after wave until nothing is left to say. Only one message at a time is in memory."""
    waves, further = [], {name: (exchange.begin, 0) for name, exchange in parties.items()}
    while further:
        wave = WaveCost()
        for name, (act, size) in further.items():
            took, out = timed(act)
            wave.party.append(took)
            wave.down.append(size)
            wave.up.append(sum(len(message) for _, message in out))
            begun = time.perf_counter()
            for _, message in out:
                middle.receive(name, message)
            del out
            wave.coordinator += time.perf_counter() - begun
        took, parcels = timed(lambda: list(middle.expire(())))
        wave.coordinator += took
        waves.append(wave)
        further = {to: (_later(parties[to], message), len(message)) for to, message in parcels}
    return waves


def _later(party: Exchange, message: bytes) -> Callable[[], Any]:
    return lambda: party.receive(COORDINATOR, message)


SETUP = ("set-up: commit", "set-up: reveal", "set-up: deal shares", "set-up: store shares")
ROUND = ("round: mask", "round: unmask")


def _phases(parties: int, length: int, leaving: int) -> list[Row]:
    session = MeasuredSession(parties, length)
    setup = session.prepare()
    rounds = [session.round(number, leaving) for number in range(REPEATS)]
    case = f"{parties} parties, {length:,} values" + (f", {leaving} missing" if leaving else "")
    rows = (
        [] if leaving else [row for name, wave in zip(SETUP, setup, strict=True) for row in _costs(f"{name}, {case}", [wave])]
    )
    for name, waves in zip(ROUND, zip(*rounds, strict=True), strict=True):
        rows += _costs(f"{name}, {case}", waves)
    return rows


def _costs(case: str, waves: Sequence[WaveCost]) -> list[Row]:
    party = min(median(wave.party) for wave in waves)
    up, down = max(max(wave.up) for wave in waves), max(max(wave.down) for wave in waves)
    of_coordinator = min(wave.coordinator for wave in waves)
    return [
        {"case": f"{case}: each party", "ours": round(party, 6), "unit": "s", "bytes_up": up, "bytes_down": down},
        {"case": f"{case}: coordinator", "ours": round(of_coordinator, 6), "unit": "s"},
    ]


# ---- memory ----------------------------------------------------------------------------------------------------------


def _memory(length: int) -> list[Row]:
    """What the coordinator allocates in a round, with few and with more parties."""
    peaks = {parties: _peak(parties, length) for parties in MEMORY_PARTIES}
    few, more = MEMORY_PARTIES
    rows = [
        {"case": f"coordinator's peak memory in a round, {parties} parties, {length:,} values", "ours": mib, "unit": "MiB"}
        for parties, mib in peaks.items()
    ]
    growth = {"case": f"coordinator's memory, {more} parties against {few}", "ours": round(peaks[more] / peaks[few], 3)}
    return [*rows, {**growth, "unit": "times"}]


def _peak(parties: int, length: int) -> float:
    """Counted by the interpreter: the running sum, one message at a time and what opening takes; messages wait on disk."""
    session = MeasuredSession(parties, length)
    session.prepare()
    exchanges = {name: one.round(session.cohort, session.terms, session.vector) for name, one in session.roles.items()}
    with TemporaryDirectory() as folder:
        files = {name: Path(folder) / str(place) for place, name in enumerate(exchanges)}
        for name, file in files.items():
            file.write_bytes(exchanges[name].begin()[0][1])
        gc.collect()
        tracemalloc.start()
        middle = session.middle.round(session.cohort, session.terms)
        for name, file in files.items():
            middle.receive(name, file.read_bytes())
    for name, request in middle.expire(()):
        middle.receive(name, exchanges[name].receive(COORDINATOR, request)[0][1])
    middle.expire(())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return round(peak / 2**20, 2)
