"""Flower's SecAgg+ at work, timed through its own functions: one client's masking, and Shamir shares of its secrets.

Run by an interpreter that has flwr installed: python flower_secagg.py LENGTH NEIGHBOURS PARTIES THRESHOLD REPEATS
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version

import numpy as np
from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares
from flwr.common.secure_aggregation.ndarrays_arithmetic import (
    factor_combine,
    parameters_addition,
    parameters_mod,
    parameters_subtraction,
)
from flwr.common.secure_aggregation.quantization import quantize
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen

CLIPPING, TARGET, MODULUS = 8.0, 1 << 22, 1 << 32  # the defaults of its workflow


def masked(vector: np.ndarray, neighbours: int) -> list[np.ndarray]:
    """What a client does between having a vector and sending it, as in its mask stage."""
    parts = factor_combine(1, quantize([vector], CLIPPING, TARGET))
    shapes = [part.shape for part in parts]
    parts = parameters_addition(parts, pseudo_rand_gen(os.urandom(32), MODULUS, shapes))
    for number in range(neighbours):
        mask = pseudo_rand_gen(os.urandom(44), MODULUS, shapes)
        parts = parameters_addition(parts, mask) if number % 2 else parameters_subtraction(parts, mask)
    return list(parameters_mod(parts, MODULUS))


def fastest(work: object, repeats: int) -> float:
    """The least of several timings, which other load disturbs least."""
    work()  # type: ignore[operator]  # not counted
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()  # type: ignore[operator]
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def main() -> None:
    length, neighbours, parties, threshold, repeats = map(int, sys.argv[1:])
    vector = np.random.default_rng(0).normal(size=length)
    secret = os.urandom(32)
    shares = create_shares(secret, threshold, parties)
    result = {
        "version": version("flwr"),
        "mask_seconds": fastest(lambda: masked(vector, neighbours), repeats),
        "create_seconds": fastest(lambda: create_shares(secret, threshold, parties), repeats),
        "combine_seconds": fastest(lambda: combine_shares(shares[:threshold]), repeats),
        "bytes": int(masked(vector, 0)[-1].nbytes),
    }
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
