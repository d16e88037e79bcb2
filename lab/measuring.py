"""What all measurements share: progress, the clock, turns, rows beside a peer or a limit, drawn documents and the record."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from securetm.contracts import Array

T = TypeVar("T")
OnProgress = Callable[[int, int], None]  # how much is done, of how much
Row = dict[str, Any]
REPEATS = 15
RESULTS = Path(__file__).parent / "results"


class RoleMemory(dict[str, bytes]):
    """What a role remembers during one measurement; nothing is written to disk."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value


def told(items: Sequence[T], on_progress: OnProgress | None) -> Iterator[T]:
    """The items one by one; reports progress after the work on each."""
    step = stepper(len(items), on_progress)
    for item in items:
        yield item
        step()


def stepper(total: int, on_progress: OnProgress | None) -> Callable[[], None]:
    """Reports one further step each time it is called."""
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, total)

    return step


def timed(work: Callable[[], T]) -> tuple[float, T]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def seconds(work: Callable[[], object]) -> float:
    return timed(work)[0]


def fastest(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The least of several timings after one that is not counted: other load and first compilations only add."""
    work()
    return min(seconds(work) for _ in range(repeats))


def least_by_turns(works: Mapping[T, Callable[[], float]], turns: int, step: Callable[[], None]) -> dict[T, float]:
    """The least figure of each piece of work. They take turns, so that a busy machine slows all of them."""
    least = dict.fromkeys(works, float("inf"))
    for _ in range(turns):
        for name, work in works.items():
            least[name] = min(least[name], work())
            step()
    return least


def epochs_by_turns(
    fit: Callable[[Callable[[Any], None]], object], theirs: Callable[[], float]
) -> tuple[list[float], list[float]]:
    """Seconds of each of our epochs and of theirs, which run between two of ours, while ours wait in their own callback."""
    ours: list[float] = []
    others: list[float] = []
    begun = time.perf_counter()

    def take_turns(_: Any) -> None:
        nonlocal begun
        ours.append(time.perf_counter() - begun)
        others.append(theirs())
        begun = time.perf_counter()

    fit(take_turns)
    return ours, others


def figure(case: str, ours: float, unit: str, digits: int = 3, **facts: Any) -> Row:
    return {"case": case, "ours": round(ours, digits), "unit": unit, **facts}


def beside(
    case: str, ours: float, theirs: float, unit: str, peer: str, *, digits: int = 3, ratio: float | None = None
) -> Row:  # fmt: skip
    """A row with our figure and the peer's. `ratio` says how many times better ours is; unless given, less is better."""
    better = theirs / ours if ratio is None else ratio
    return figure(case, ours, unit, digits, peer=peer, theirs=round(theirs, digits), ratio=round(better, 3))


def within(limit: float, share: float, digits: int = 3, **facts: Any) -> Row:
    """What a row says of its limit: the limit, and the share of it that is reached."""
    return {"limit": round(limit, digits), "of_limit": round(share, 3), **facts}


def record(bench: str, rows: Sequence[Row], *, missing: Sequence[str] = (), packages: Sequence[str] = (), **facts: Any) -> Row:
    """The result of a bench: the machine, the versions of these packages, further facts, and all rows."""
    return {"bench": bench, "machine": machine(packages), **facts, "rows": list(rows), "missing": list(missing)}


def machine(packages: Sequence[str] = ()) -> str:
    known = [platform.machine(), f"{os.cpu_count()} cores", f"Python {platform.python_version()}"]
    return ", ".join([*known, *(f"{name} {version(name)}" for name in packages)])


def mean_with_interval(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and half of its interval (95 %) by Student's t; no interval of one value."""
    from scipy import stats

    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None
    return mean, float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)


def zipf_words(seed: int, shape: int | tuple[int, int], words: int) -> Array:
    """Word numbers drawn by Zipf's law, as sparse as news."""
    share = 1.0 / np.arange(1, words + 1)
    drawn: Array = np.random.default_rng(seed).choice(words, shape, p=share / share.sum())
    return drawn


def zipf_counts(documents: int, words: int, length: int = 70) -> Any:
    """Counts of documents of one length by Zipf's law, as a CSR array."""
    from scipy import sparse

    drawn = zipf_words(0, (documents, length), words)
    cells = (np.ones(drawn.size, dtype=np.int32), (np.repeat(np.arange(documents), length), drawn.ravel()))
    return sparse.coo_array(cells, (documents, words)).tocsr()


def committed(name: str) -> dict[str, Any]:
    """The committed result of that name: `bench-NAME` or `reproduce-NAME`."""
    kind, _, rest = name.partition("-")
    found: dict[str, Any] = json.loads((RESULTS / kind / f"{rest}.json").read_text("utf-8"))
    return found
