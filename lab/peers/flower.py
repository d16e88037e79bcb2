"""Flower's SecAgg+ beside ours: its own functions, timed in its own environment, in the same run. It imports no flwr.

`make bench-peers` makes that environment; without it the peer is reported as missing.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lab.measuring import REPEATS, RoleMemory, Row, beside, fastest
from lab.peers import scripts
from securetm.aggregation.masked.mask_stream import apply_masks
from securetm.contracts import Block, Cohort, RoundContext, Terms
from securetm.entropy import OperatingSystem
from securetm.mechanisms.quantising import FixedPoint

NAME = "flwr (in an environment of its own: make bench-peers)"
HOLDERS, THRESHOLD = 100, 67
NEIGHBOURS = (10, 99)


def interpreter(environment: str = ".venv-peers") -> Path | None:
    """The Python of an environment of its own, in this folder or beside the package's."""
    roots = (Path.cwd(), Path(scripts.__file__).resolve().parents[3])
    found = (root / environment / "bin" / "python" for root in roots)
    return next((path for path in found if path.is_file()), None)


def compared(length: int, shamir: Mapping[str, float]) -> list[Row] | None:
    """A client's whole masking (quantise, then every stream), ours and theirs in turn, and Shamir's scheme beside our seconds
    for it; None if the peer is missing."""
    python = interpreter()
    if python is None:
        return None
    rows = []
    for neighbours in NEIGHBOURS:
        repeats = REPEATS if length <= 1_000_000 else 3
        theirs = _theirs(python, length, neighbours, repeats)
        ours = fastest(_masking(length, neighbours), repeats)
        case = f"client masking, {neighbours} neighbours on both sides, {length:,} values (rounding: ours nearest)"
        rows.append(_row(case, ours, theirs, "mask"))
    case = f"Shamir, one 32-byte secret, {HOLDERS} holders, threshold {THRESHOLD}"
    return rows + [_row(f"{case}: {what}", shamir[f"{what}, one secret"], theirs, what) for what in ("create", "combine")]


def _row(case: str, ours: float, theirs: Mapping[str, Any], what: str) -> Row:
    return beside(case, ours, theirs[f"{what}_seconds"], "s", f"flwr {theirs['version']}", digits=7)


def _theirs(python: Path, length: int, neighbours: int, repeats: int) -> dict[str, Any]:
    script = Path(scripts.__file__).with_name("flower_secagg.py")
    sizes = (length, neighbours, HOLDERS, THRESHOLD, repeats)
    ended = subprocess.run([python, script, *map(str, sizes)], capture_output=True, text=True, check=True)  # noqa: S603
    return dict(json.loads(ended.stdout))


def _masking(length: int, neighbours: int) -> Callable[[], object]:
    """What a party does between having a vector and sending it; the keys are agreed on beforehand, as theirs are."""
    members = tuple(f"party {n}" for n in range(neighbours + 1))
    context = RoundContext(Cohort(bytes(32), 0, members), OperatingSystem(), RoleMemory())
    mechanism = FixedPoint(span=8.0, rounding="nearest")
    terms = mechanism.admit(Terms((Block("values", (length,)),)), context.cohort)
    vector = np.random.default_rng(0).normal(size=length).astype(np.float32)
    masks = [(context.entropy.bytes(32), n % 2 == 0) for n in range(neighbours + 1)]

    def once() -> None:
        apply_masks(mechanism.on_vector(vector, terms, context).view(np.uint32), masks)

    return once
