"""A million draws of each kind of noise beside opendp's in the same run, both in 64 bits. It judges no law; the tests do.

opendp has integer Laplace and Gaussian noise only: rounded Gaussian and Skellam noise stand beside its Gaussian of the same
deviation, and the case says so. opendp draws once, ours nine times, of which the median counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from platform import machine, python_version
from statistics import median
from typing import Any

from securetm.entropy import OperatingSystem
from securetm.mechanisms.samplers import Sampler, discrete_gaussian, discrete_laplace, rounded_gaussian, skellam

NAME = "opendp"
ASKED = 50.0  # times faster than the peer
TURNS = 9
PIECE = 1 << 17

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class _Case:
    """One of our samplers, and the scale at which the peer draws the same kind, or a Gaussian of the same deviation."""

    title: str
    make: Callable[[], Sampler]
    kind: str
    scale: float
    each: int  # bytes that nearly every draw takes


CASES = (
    _Case("discrete Laplace, scale 8", lambda: discrete_laplace(8.0), "laplace", 8.0, 8),
    _Case("discrete Laplace, scale 1e6", lambda: discrete_laplace(1e6), "laplace", 1e6, 4),
    _Case("discrete Gaussian, deviation 8", lambda: discrete_gaussian(8.0), "gaussian", 8.0, 8),
    _Case("discrete Gaussian, deviation 1e6", lambda: discrete_gaussian(1e6), "gaussian", 1e6, 4),
    _Case("rounded Gaussian (beside the discrete one), deviation 8", lambda: rounded_gaussian(8.0), "gaussian", 8.0, 8),
    _Case("rounded Gaussian (beside the discrete one), deviation 1e6", lambda: rounded_gaussian(1e6), "gaussian", 1e6, 4),
    _Case("Skellam (beside the discrete Gaussian), deviation 8", lambda: skellam(64.0), "gaussian", 8.0, 8),
    _Case("Skellam (beside the discrete Gaussian), deviation 1e6", lambda: skellam(1e12), "gaussian", 1e6, 8),
)


def bench(draws: int = 1_000_000, peer_draws: int = 1_000_000, on_progress: OnProgress | None = None) -> dict[str, Any]:
    """Seconds for that many draws. Where the peer draws another number, its seconds are scaled, and the row says so."""
    theirs, rows = _peer(), []
    for done, case in enumerate(CASES, 1):
        rows.append(_row(case, draws, peer_draws, theirs))
        if on_progress is not None:
            on_progress(done, len(CASES))
    return {"bench": "noise", "machine": _machine(), "rows": rows, "missing": [] if theirs else [NAME]}


def _row(case: _Case, draws: int, peer_draws: int, theirs: Any) -> dict[str, Any]:
    entropy, (building, sampler) = OperatingSystem(), _timed(case.make)
    sampler.draw(entropy, 1000)  # compiles, or reads what is compiled
    ours = [_timed(lambda: sampler.draw(entropy, draws))[0] for _ in range(TURNS)]
    limit = [_timed(lambda: _bytes_alone(case.each * draws))[0] for _ in range(TURNS)]
    seconds, least = median(ours), median(limit)
    facts = {
        "limit": round(least, 5),
        "of_limit": round(least / seconds, 3),
        "limit_is": f"their random bytes alone, {case.each} a draw",
    }
    row = {"case": f"{case.title}: {draws:,} draws", "ours": round(seconds, 5), "unit": "s", **facts}
    row |= {"first_use": round(building, 4)}
    if not theirs:
        return row
    release = _release(theirs, case)
    scaled = _timed(lambda: release([0] * peer_draws))[0] * draws / peer_draws
    peer = {"peer": f"{NAME} {version(NAME)}", "theirs": round(scaled, 4), "ratio": round(scaled / seconds, 1)}
    return {**row, **peer, "asked_ratio": ASKED, "peer_draws": peer_draws}


def _bytes_alone(n: int) -> None:
    """Asked for as samplers do, in pieces that stay in the processor's cache."""
    for start in range(0, n, PIECE):
        OperatingSystem().bytes(min(PIECE, n - start))


def _peer() -> Any:
    """opendp, or None where it is not installed."""
    try:
        version(NAME)
    except PackageNotFoundError:
        return None
    return import_module("opendp.prelude")


def _release(dp: Any, case: _Case) -> Callable[[list[int]], Any]:
    """The peer's mechanism over vectors of 64-bit integers."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"))
    if case.kind == "laplace":
        release: Callable[[list[int]], Any] = dp.m.make_laplace(space, dp.l1_distance("i64"), scale=case.scale)
    else:
        release = dp.m.make_gaussian(space, dp.l2_distance("f64"), scale=case.scale)
    return release


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def _machine() -> str:
    return f"{machine()}, {os.cpu_count()} cores, Python {python_version()}"
