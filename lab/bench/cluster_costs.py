"""What 10^9 documents cost over many workers: the committed figures of `bench scale`, put into simulated rounds.

Measured are seconds a document, bytes and additions. Assumed are the network, the disks, and how many workers are slow or lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lab.bench.cluster_round import Cluster, Rates, SimulatedRound, rounds
from lab.bench.scale_cases import BUILD, CHOICE, DISK, LARGE, PARTS, ROUND, TEXT

RESULT = Path(__file__).parents[1] / "results" / "bench-scale.json"
DOCUMENTS, WORKERS, ROUNDS = 10**9, 100, 100
LINK, DISK_RATE = 1.25e9, 0.5e9  # bytes a second: assumed
SIMULATED = 20  # rounds, each with slow and lost workers of its own
SWEPT = (10, 30, 100, 300, 1_000, 3_000)  # workers
CALM = Cluster(WORKERS, slow=0.0, lost_an_hour=0.0)
HUGE_VALUES = 1_000 * 100_000  # topics x words


@dataclass(frozen=True)
class Setting:
    """A model that the rounds are simulated for."""

    topics: int
    words: int
    rates: Rates
    measured: bool = True  # whether the seconds of a document were

    def __str__(self) -> str:
        return f"{self.topics:,} topics, {self.words:,} words"


@cache
def measured_rows() -> tuple[Mapping[str, Any], ...]:
    """All rows of the committed result."""
    return tuple(json.loads(RESULT.read_text("utf-8"))["measured"])


def row_of(what: str, model: str = "", documents: int | None = None) -> Mapping[str, Any]:
    """The row of this case on disk with one thread; of the most documents, unless a number is given."""
    same = {"what": what, "model": model, "place": DISK, "threads": 1}
    found = [row for row in measured_rows() if same.items() <= row.items() and documents in (None, row["documents"])]
    return max(found, key=lambda row: int(row["documents"]))


@cache
def settings() -> tuple[Setting, ...]:
    """LDA with few topics and words, with more, and with very many, whose seconds are at least those of the second."""
    small, large = row_of(PARTS, "lda"), row_of(LARGE, "lda")
    first = _rates(small, row_of(ROUND, "lda"))
    second = _rates(large, large)
    times = HUGE_VALUES / large["values"]
    grown = {name: getattr(second, name) * times for name in ("add_seconds", "update_seconds")}
    sent = {name: int(getattr(second, name) * times) for name in ("question_bytes", "sum_bytes")}
    huge = replace(second, **grown, **sent)
    return Setting(50, 2_000, first), Setting(200, 20_000, second), Setting(1_000, 100_000, huge, measured=False)


def _rates(parts: Mapping[str, Any], answered: Mapping[str, Any]) -> Rates:
    return Rates(
        document_seconds=answered["seconds"] / answered["documents"],
        document_bytes=round((parts["stored_bytes"] + 2 * parts["kept_bytes"]) / parts["documents"]),
        question_bytes=parts["question_bytes"],
        sum_bytes=parts["sum_bytes"],
        add_seconds=parts["add_seconds"],
        update_seconds=parts["update"],
        link=LINK,
        disk=DISK_RATE,
    )


@cache
def simulated(setting: Setting, cluster: Cluster) -> tuple[SimulatedRound, ...]:
    """Rounds of 10^9 documents."""
    return tuple(rounds(DOCUMENTS, cluster, setting.rates, SIMULATED if cluster.lost_an_hour else 1))


def median(found: tuple[SimulatedRound, ...], figure: str) -> float:
    """The middle of a figure of these rounds."""
    return float(np.median([getattr(one, figure) for one in found]))


def curve(setting: Setting) -> Iterator[tuple[int, float]]:
    """Workers, and seconds of a round with so many of them when nothing goes wrong."""
    for workers in SWEPT:
        yield workers, median(simulated(setting, replace(CALM, workers=workers)), "seconds")


def best_workers(setting: Setting) -> int:
    """How many of the swept numbers of workers are the fastest."""
    workers: int = min(curve(setting), key=lambda point: point[1])[0]
    return workers


# ---- what does not depend on workers ------------------------------------------------------------------------------------


def build_hours() -> float:
    """Of building the corpus on disk from texts, which one process does."""
    row = row_of(TEXT)
    return float(row["seconds"]) / int(row["documents"]) * DOCUMENTS / 3600


def driver_bytes() -> float:
    """Memory for choosing the documents that are held out, by how it grows from the least to the most documents measured."""
    rows = sorted((row for row in measured_rows() if row.get("what") == CHOICE), key=lambda row: int(row["documents"]))
    least, most = rows[0], rows[-1]
    grown, documents = float(most["peak_mib"] - least["peak_mib"]), int(most["documents"] - least["documents"])
    return grown * 2**20 / documents * DOCUMENTS


def stored_bytes() -> float:
    """Of the corpus on disk."""
    row = row_of(BUILD)
    return float(row["bytes"]) / int(row["documents"]) * DOCUMENTS


def kept_bytes() -> float:
    """Of what the party remembers between rounds."""
    row = row_of(PARTS, "lda")
    return float(row["kept_bytes"]) / int(row["documents"]) * DOCUMENTS


def epoch_hours(batch: int) -> float:
    """Of one epoch of mini-batches: a batch is one process's."""
    return float(row_of(ROUND, "prodlda")["seconds"]) * DOCUMENTS / batch / 3600
