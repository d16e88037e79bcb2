"""What a masked sum costs, phase by phase, beside the speed of its cipher in the same run. It judges no protocol.

One process plays all parties in turn, so every figure is one core's; each party's own seconds are what one machine would take.
"""

from __future__ import annotations

import gc
import multiprocessing
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from lab.bench.sessions import MeasuredSession
from lab.measuring import OnProgress, Row, fastest, figure, least_by_turns, record, seconds, told, within
from lab.peers.other_packages import FLOWER, HOLDERS, THRESHOLD, flower_masking
from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.mask_stream import BLOCK, apply_masks
from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.contracts import Array, Block, Domain, Terms
from securetm.entropy import OperatingSystem
from securetm.sessions.identities import COORDINATOR

ROUNDS = 8  # that the measured set-up prepares
REPEATS = 3
MEMORY_PARTIES = (10, 30)


def bench(parties: int = 10, length: int = 1_000_000, on_progress: OnProgress | None = None) -> Row:
    """Seconds and bytes of each phase, masks per second, Shamir's scheme, and the coordinator's memory."""
    one = min(1, parties - MaskedSum().geometry(parties).threshold)  # may leave, unless there are too few
    shamir_seconds = _shamir()
    case = f"Shamir, {HOLDERS} holders, threshold {THRESHOLD}"
    steps: Sequence[Callable[[], list[Row]]] = (
        lambda: _expansion(parties, length),
        lambda: [figure(f"{case}: {what}", took, "s", 7) for what, took in shamir_seconds.items()],
        lambda: _phases(parties, length, leaving=0),
        lambda: _phases(parties, length, leaving=one) if one else [],
        lambda: _memory(length),
    )
    rows = list(against := flower_masking(length, shamir_seconds) or [])
    for step in told(steps, on_progress):
        rows += step()
    return record("sum", rows, missing=[] if against else [FLOWER], packages=("cryptography",))


def _expansion(parties: int, length: int) -> list[Row]:
    """Keystream added to a vector, for all masks of one party, beside the keystream alone; both take turns."""
    neighbours, entropy = MaskedSum().geometry(parties).degree, OperatingSystem()
    vector, masks = np.zeros(length, np.uint32), [(entropy.bytes(32), n % 2 == 0) for n in range(neighbours + 1)]
    total = (neighbours + 1) * vector.nbytes
    works = {"ours": lambda: apply_masks(vector, masks), "limit": lambda: _keystream(total)}
    least = least_by_turns({name: partial(seconds, work) for name, work in works.items()}, 3 * REPEATS, lambda: None)
    speed, most = total / least["ours"] / 1e9, total / least["limit"] / 1e9
    case = f"mask expansion, {neighbours} neighbours, {length:,} values"
    cipher = within(most, speed / most, 2, limit_is=f"AES-256-CTR alone on {multiprocessing.cpu_count()} cores")
    return [
        figure(case, speed, "GB/s", 2, **cipher, neighbours=neighbours),
        figure(f"{case}: one party's masks", least["ours"], "s", 6, neighbours=neighbours),
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


def _shamir() -> dict[str, float]:
    """Seconds for one secret among a hundred, as peers are measured, and for one among the many of a set-up."""
    entropy = OperatingSystem()
    holders, points = range(1, HOLDERS + 1), tuple(range(1, THRESHOLD + 1))

    def create(secrets: int) -> float:
        drawn = [entropy.bytes(32) for _ in range(secrets)]
        return fastest(lambda: shamir.deal(drawn, holders, THRESHOLD, entropy)) / secrets

    shares = [one[0] for one in shamir.deal([entropy.bytes(32)], points, THRESHOLD, entropy)]

    def combine() -> None:
        shamir.weights_at_zero.cache_clear()
        shamir.combine(points, shares)

    return {
        "create, one secret": create(1),
        "create, each of 128 secrets": create(128),
        "combine, one secret": fastest(combine),
        "combine, each further secret of the same survivors": fastest(lambda: shamir.combine(points, shares)),
    }


SETUP = ("set-up: commit", "set-up: reveal", "set-up: deal shares", "set-up: store shares")
ROUND = ("round: mask", "round: unmask")


def _session(parties: int, length: int) -> tuple[MeasuredSession, dict[str, Array]]:
    terms = Terms((Block("values", (length,)),), domain=Domain.INTEGER, reach=2**20)
    session = MeasuredSession(MaskedSum(), terms, parties, ROUNDS)
    return session, dict.fromkeys(session.members, np.arange(length) % 1000)


def _phases(parties: int, length: int, leaving: int) -> list[Row]:
    session, vectors = _session(parties, length)
    staying = {name: vectors[name] for name in session.members[: parties - leaving]}
    rounds = [session.round(number, staying) for number in range(REPEATS)]
    case = f"{parties} parties, {length:,} values" + (f", {leaving} missing" if leaving else "")
    named = [] if leaving else [(name, [wave]) for name, wave in zip(SETUP, session.setup, strict=True)]
    named += [(name, list(waves)) for name, waves in zip(ROUND, zip(*rounds, strict=True), strict=True)]
    rows = []
    for name, waves in named:
        party, of_coordinator = min(median(wave.party) for wave in waves), min(wave.coordinator for wave in waves)
        up, down = max(max(wave.up) for wave in waves), max(max(wave.down) for wave in waves)
        rows.append(figure(f"{name}, {case}: each party", party, "s", 6, bytes_up=up, bytes_down=down))
        rows.append(figure(f"{name}, {case}: coordinator", of_coordinator, "s", 6))
    return rows


def _memory(length: int) -> list[Row]:
    """What the coordinator allocates in a round, with few and with more parties."""
    peaks = {parties: _peak(parties, length) for parties in MEMORY_PARTIES}
    few, more = MEMORY_PARTIES
    case = f"coordinator's peak memory in a round, {{}} parties, {length:,} values"
    rows = [figure(case.format(parties), mib, "MiB", 2) for parties, mib in peaks.items()]
    return [*rows, figure(f"coordinator's memory, {more} parties against {few}", peaks[more] / peaks[few], "times")]


def _peak(parties: int, length: int) -> float:
    """Counted by the interpreter: the running sum, one message at a time and what opening takes; messages wait on disk."""
    session, vectors = _session(parties, length)
    exchanges = session.exchanges(0, vectors)
    with TemporaryDirectory() as folder:
        files = {name: Path(folder) / str(place) for place, name in enumerate(exchanges)}
        for name, file in files.items():
            file.write_bytes(exchanges[name].begin()[0][1])
        gc.collect()
        tracemalloc.start()
        coordinator = session.coordinator.round(session.cohort(0), session.terms, None)
        for name, file in files.items():
            coordinator.receive(name, file.read_bytes())
    for name, request in coordinator.expire(()):
        coordinator.receive(name, exchanges[name].receive(COORDINATOR, request)[0][1])
    coordinator.expire(())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return round(peak / 2**20, 2)
