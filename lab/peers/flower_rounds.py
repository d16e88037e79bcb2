"""Rounds of Flower's SecAgg+ over its own engine, in its own environment, on the same work as ours. It imports no flwr.

`make flower` makes that environment; without it the peer is reported as missing.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from lab.measuring import Row, beside
from lab.peers import scripts
from lab.peers.flower import interpreter
from securetm.aggregation.masked.masked_sum import MaskedSum

NAME = "flwr with ray (in an environment of its own: make flower)"
FEW = 50  # parties: with more a round takes many minutes, of which starting the engine is a small part
ROUNDS = {True: (1, 2), False: (0, 1)}  # not counted, and counted, with few parties and with more
LARGEST_ERROR = 0.01  # of the mean that a round opens, of vectors from -1 to 1; what is opened of no vector at all is off by 1
_QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def of_flower(parties: int, length: int) -> Mapping[str, Any] | None:
    """Runs a few rounds, with as many neighbours and as many shares to open a secret as ours have. None without the peer."""
    python = interpreter(".venv-flower")
    if python is None:
        return None
    geometry = MaskedSum().geometry(parties)
    sizes = (parties, length, geometry.degree, geometry.threshold, *ROUNDS[parties <= FEW], os.cpu_count() or 1)
    script = Path(scripts.__file__).with_name("flower_secagg_rounds.py")
    command = [str(python), str(script), *map(str, sizes)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **_QUIET})  # noqa: S603
    return dict(json.loads(ended.stdout.strip().rpartition("\n")[2]))


def lacking(theirs: Mapping[str, Any] | None, parties: int) -> str:
    """Says what of the peer is missing; nothing if it opened the right sum. It ends a round that failed without an error."""
    if theirs is None:
        return NAME
    opened = theirs["error"] <= LARGEST_ERROR
    return "" if opened else f"flwr {theirs['version']} with {parties} parties: its round ended without a sum"


def beside_ours(case: str, theirs: Mapping[str, Any], seconds: float, megabytes: float, memory: float) -> list[Row]:
    """Our round, with its share of the set-up that serves all rounds, beside theirs, which is set up each time."""
    peer = f"flwr {theirs['version']} SecAgg+ over its own engine (ray {theirs['ray']})"
    up = median(theirs["bytes_up"]) / 1e6
    return [
        beside(f"{case}: a round with its share of the set-up", seconds, median(theirs["seconds"]), "s", peer),
        beside(f"{case}: bytes of a round to the coordinator, beside a peer", megabytes, up, "MB", peer),
        beside(f"{case}: coordinator's peak memory, beside a peer", memory, theirs["peak_mebibytes"], "MiB", peer),
    ]
