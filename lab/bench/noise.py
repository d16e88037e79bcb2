"""A million draws of each kind of noise beside opendp's in the same run, both in 64 bits. It judges no law; the tests do.

opendp has integer Laplace and Gaussian noise only: rounded Gaussian and Skellam noise stand beside its Gaussian of the same
deviation, and the case says so. opendp draws once, ours nine times, of which the median counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from statistics import median
from typing import Any, NamedTuple

from lab.measuring import OnProgress, Row, figure, record, seconds, timed, told, within
from securetm.entropy import OperatingSystem
from securetm.mechanisms.samplers import Sampler, discrete_gaussian, discrete_laplace, rounded_gaussian, skellam

NAME = "opendp"
ASKED = 50.0  # times faster than the peer
TURNS = 9
PIECE = 1 << 17


class SamplerCase(NamedTuple):
    """One of our samplers, and the scale at which the peer draws the same kind, or a Gaussian of the same deviation."""

    title: str
    make: Callable[[], Sampler]
    kind: str
    scale: float
    each: int  # bytes that nearly every draw takes


_BESIDE = "(beside the discrete one)"
CASES = (
    SamplerCase("discrete Laplace, scale 8", partial(discrete_laplace, 8.0), "laplace", 8.0, 8),
    SamplerCase("discrete Laplace, scale 1e6", partial(discrete_laplace, 1e6), "laplace", 1e6, 4),
    SamplerCase("discrete Gaussian, deviation 8", partial(discrete_gaussian, 8.0), "gaussian", 8.0, 8),
    SamplerCase("discrete Gaussian, deviation 1e6", partial(discrete_gaussian, 1e6), "gaussian", 1e6, 4),
    SamplerCase(f"rounded Gaussian {_BESIDE}, deviation 8", partial(rounded_gaussian, 8.0), "gaussian", 8.0, 8),
    SamplerCase(f"rounded Gaussian {_BESIDE}, deviation 1e6", partial(rounded_gaussian, 1e6), "gaussian", 1e6, 4),
    SamplerCase("Skellam (beside the discrete Gaussian), deviation 8", partial(skellam, 64.0), "gaussian", 8.0, 8),
    SamplerCase("Skellam (beside the discrete Gaussian), deviation 1e6", partial(skellam, 1e12), "gaussian", 1e6, 8),
)


def bench(draws: int = 1_000_000, peer_draws: int = 1_000_000, on_progress: OnProgress | None = None) -> Row:
    """Seconds for that many draws. Where the peer draws another number, its seconds are scaled, and the row says so."""
    theirs = import_module("opendp.prelude") if find_spec(NAME) else None
    rows = [_row(case, draws, peer_draws, theirs) for case in told(CASES, on_progress)]
    return record("noise", rows, missing=[] if theirs else [NAME])


def _row(case: SamplerCase, draws: int, peer_draws: int, theirs: Any) -> Row:
    entropy, (building, sampler) = OperatingSystem(), timed(case.make)
    sampler.draw(entropy, 1000)  # compiles, or reads what is compiled
    ours = [seconds(lambda: sampler.draw(entropy, draws)) for _ in range(TURNS)]
    limit = [seconds(lambda: _bytes_alone(case.each * draws)) for _ in range(TURNS)]
    took, least = median(ours), median(limit)
    bytes_alone = within(least, least / took, 5, limit_is=f"their random bytes alone, {case.each} a draw")
    row = figure(f"{case.title}: {draws:,} draws", took, "s", 5, **bytes_alone, first_use=round(building, 4))
    if not theirs:
        return row
    release = _release(theirs, case)
    scaled = seconds(lambda: release([0] * peer_draws)) * draws / peer_draws
    peer = {"peer": f"{NAME} {version(NAME)}", "theirs": round(scaled, 4), "ratio": round(scaled / took, 1)}
    return {**row, **peer, "asked_ratio": ASKED, "peer_draws": peer_draws}


def _bytes_alone(n: int) -> None:
    """Asked for as samplers do, in pieces that stay in the processor's cache."""
    for start in range(0, n, PIECE):
        OperatingSystem().bytes(min(PIECE, n - start))


def _release(dp: Any, case: SamplerCase) -> Callable[[list[int]], Any]:
    """The peer's mechanism over vectors of 64-bit integers."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"))
    if case.kind == "laplace":
        release: Callable[[list[int]], Any] = dp.m.make_laplace(space, dp.l1_distance("i64"), scale=case.scale)
    else:
        release = dp.m.make_gaussian(space, dp.l2_distance("f64"), scale=case.scale)
    return release
