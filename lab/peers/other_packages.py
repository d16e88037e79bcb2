"""Other packages, each run in an environment of its own, beside ours in the same run: topic models, and Flower's SecAgg+.

`make bench-peers` and `make flower` make these environments; without one a peer is missing, and said to be. This file
imports no peer.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Self

import numpy as np

from lab.measuring import REPEATS, RoleMemory, Row, beside, fastest
from securetm.aggregation.masked.mask_stream import apply_masks
from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.contracts import Array, Block, Cohort, RoundContext, Terms
from securetm.entropy import OperatingSystem
from securetm.mechanisms.quantising import FixedPoint

TOMOTOPY, SCIKIT = "tomotopy", "scikit-learn"
_SLICE = 1.0  # seconds that a peer trains at a time, about


def interpreter(environment: str = ".venv-peers") -> Path | None:
    """The Python of an environment of its own, in this folder or beside the package's."""
    found = (root / environment / "bin" / "python" for root in (Path.cwd(), Path(__file__).resolve().parents[2]))
    return next((path for path in found if path.is_file()), None)


def command(python: Path, script: str, *arguments: Any) -> list[str]:
    return [str(python), str(Path(__file__).parent / "scripts" / script), *map(str, arguments)]


def printed(command: list[str], **environment: str) -> dict[str, Any]:
    """The JSON document that such a script prints last."""
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})  # noqa: S603
    return dict(json.loads(ended.stdout.strip().rpartition("\n")[2]))


# ---- topic models, asked to train a slice at a time ----------------------------------------------------------------------


class PeerMissing(Exception):
    """A peer that is not installed, and how it would be."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} (in an environment of its own: make bench-peers)")


class PeerProcess:
    """One peer's model in a process of its own, which waits while others train."""

    def __init__(
        self, name: str, counts: Path, settings: tuple[Any, ...], script: tuple[str, ...] = ("lda.py", "slices")
    ) -> None:
        python = interpreter()
        if python is None:
            raise PeerMissing(name)
        self._process = subprocess.Popen(  # noqa: S603
            command(python, *script, name, counts, *settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._folder = tempfile.TemporaryDirectory()
        self.seconds, self.passes = 0.0, 0
        hello = self._heard(name)
        self.title = f"{name} {hello['version']} ({hello.get('instructions', settings[-1])})"

    def advance(self, at_most: float) -> None:
        """Passes over the documents for about a second, or for what is left until then; never less than one."""
        each = self.seconds / self.passes if self.passes else _SLICE
        passes = max(1, int(min(_SLICE, at_most - self.seconds) / each))
        self.seconds += self.train(passes)

    def train(self, passes: int) -> float:
        """So many passes over the documents, and the seconds that they took."""
        self.passes += passes
        return self._told(passes, "-")

    def topics(self) -> tuple[Array, Array]:
        """Topics x words, and each topic's prior, as they are now."""
        path = Path(self._folder.name) / "topics.npz"
        self._told(0, str(path))
        with np.load(path) as found:
            return found["topics"], found["alpha"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate("")  # it ends where its input does
        self._folder.cleanup()

    def _told(self, passes: int, path: str) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{passes} {path}\n")
        self._process.stdin.flush()
        return float(self._heard("")["seconds"])

    def _heard(self, name: str) -> dict[str, Any]:
        """Its next line; a peer that says nothing at first is not installed, and one that stops later has failed."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return dict(json.loads(line))
        _, complaint = self._process.communicate()
        if name and "ModuleNotFoundError" in complaint:
            raise PeerMissing(name)
        raise RuntimeError(complaint)


# ---- one client's masking in Flower's SecAgg+, and Shamir's scheme --------------------------------------------------------

FLOWER = "flwr (in an environment of its own: make bench-peers)"
HOLDERS, THRESHOLD = 100, 67
NEIGHBOURS = (10, 99)


def flower_masking(length: int, shamir: Mapping[str, float]) -> list[Row] | None:
    """A client's whole masking (quantise, then every stream), ours and theirs in turn, and Shamir's scheme beside our seconds
    for it; None if the peer is missing."""
    python = interpreter()
    if python is None:
        return None
    rows = []
    for neighbours in NEIGHBOURS:
        repeats = REPEATS if length <= 1_000_000 else 3
        theirs = printed(command(python, "flower_secagg.py", length, neighbours, HOLDERS, THRESHOLD, repeats))
        ours = fastest(_masking(length, neighbours), repeats)
        case = f"client masking, {neighbours} neighbours on both sides, {length:,} values (rounding: ours nearest)"
        rows.append(_row(case, ours, theirs, "mask"))
    case = f"Shamir, one 32-byte secret, {HOLDERS} holders, threshold {THRESHOLD}"
    return rows + [_row(f"{case}: {what}", shamir[f"{what}, one secret"], theirs, what) for what in ("create", "combine")]


def _row(case: str, ours: float, theirs: Mapping[str, Any], what: str) -> Row:
    return beside(case, ours, theirs[f"{what}_seconds"], "s", f"flwr {theirs['version']}", digits=7)


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


# ---- whole rounds of SecAgg+ over Flower's own engine ----------------------------------------------------------------------

FLOWER_ROUNDS = "flwr with ray (in an environment of its own: make flower)"
FEW = 50  # parties: with more a round takes many minutes, of which starting the engine is a small part
ROUNDS = {True: (1, 2), False: (0, 1)}  # not counted, and counted, with few parties and with more
LARGEST_ERROR = 0.01  # of the mean that a round opens, of vectors from -1 to 1; what is opened of no vector at all is off by 1
_QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def flower_rounds(parties: int, length: int) -> Mapping[str, Any] | None:
    """Runs a few rounds, with as many neighbours and as many shares to open a secret as ours have. None without the peer."""
    python = interpreter(".venv-flower")
    if python is None:
        return None
    geometry = MaskedSum().geometry(parties)
    sizes = (parties, length, geometry.degree, geometry.threshold, *ROUNDS[parties <= FEW], os.cpu_count() or 1)
    return printed(command(python, "flower_secagg_rounds.py", *sizes), **_QUIET)


def lacks_of_flower(theirs: Mapping[str, Any] | None, parties: int) -> str:
    """Says what of the peer is missing; nothing if it opened the right sum. It ends a round that failed without an error."""
    if theirs is None:
        return FLOWER_ROUNDS
    opened = theirs["error"] <= LARGEST_ERROR
    return "" if opened else f"flwr {theirs['version']} with {parties} parties: its round ended without a sum"


def beside_flower(case: str, theirs: Mapping[str, Any], seconds: float, megabytes: float, memory: float) -> list[Row]:
    """Our round, with its share of the set-up that serves all rounds, beside theirs, which is set up each time."""
    peer = f"flwr {theirs['version']} SecAgg+ over its own engine (ray {theirs['ray']})"
    up = median(theirs["bytes_up"]) / 1e6
    return [
        beside(f"{case}: a round with its share of the set-up", seconds, median(theirs["seconds"]), "s", peer),
        beside(f"{case}: bytes of a round to the coordinator, beside a peer", megabytes, up, "MB", peer),
        beside(f"{case}: coordinator's peak memory, beside a peer", memory, theirs["peak_mebibytes"], "MiB", peer),
    ]
