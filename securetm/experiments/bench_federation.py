"""What hiding the sums costs a whole federation: the same run under `open` and under another profile, in turn.

It measures rounds as the coordinator's own record has them, on one machine where all parties take turns.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import equal
from securetm.corpus.synthetic import LdaNodes, lda_nodes
from securetm.federation.folder import Unwatched, begin
from securetm.federation.simulation import train
from securetm.federation.store import CoordinatorStore
from securetm.plans import read_plan

WAYS: Mapping[str, Mapping[str, Any]] = {
    "one local epoch a round": {"model.name": "prodlda", "model.local_epochs": 1, "training.rounds": 5},
    "a gradient per mini-batch": {"model.name": "prodlda", "training.rounds": 60},
}
REPEATS = 3


def bench(parties: int = 10, length: int = 0, on_progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Seconds per round under `masked` beside `open`, runs in turn; the fastest of each counts. `length` is not used."""
    del length
    corpora, rows, done = _parties(parties), [], 0
    for way, settings in WAYS.items():
        seconds: dict[str, list[float]] = {"masked": [], "open": []}
        for _ in range(REPEATS):
            for profile, found in seconds.items():
                found.append(_seconds_per_round(profile, settings, corpora))
                done += 1
                if on_progress is not None:
                    on_progress(done, 2 * REPEATS * len(WAYS))
        rows.append(_row(way, min(seconds["masked"]), min(seconds["open"])))
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    return {"bench": "federation", "machine": machine, "parties": parties, "rows": rows, "missing": []}


def _parties(count: int) -> Mapping[str, Corpus]:
    """Synthetic documents over a vocabulary of 2,000 words, dealt out evenly."""
    nodes = lda_nodes(LdaNodes(nodes=1, topics=20, shared_topics=20, words=2_000, documents=1_900 * count), seed=0)
    return equal(next(iter(nodes.train.values())), count, seed=0)


def _seconds_per_round(profile: str, settings: Mapping[str, Any], corpora: Mapping[str, Corpus]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "words.txt"
        words.write_text("\n".join(next(iter(corpora.values())).vocabulary), "utf-8")
        public = {"vocabulary.source": "file", "vocabulary.file": str(words), "profile": profile}
        run = begin(Path(folder) / "run", read_plan(None, {**settings, **public}), corpora)
        train(run, Unwatched())
        store = CoordinatorStore(run.coordinator)
        found = [row[0] for row in store.rows("SELECT seconds FROM rounds WHERE question = 'train' ORDER BY serial")]
        store.close()
    return float(np.mean(found[1:]))  # the first also waits for whatever is compiled or set up once


def _row(way: str, masked: float, plain: float) -> dict[str, Any]:
    ours = {"case": f"masked, {way}", "ours": round(masked, 4), "unit": "s per round"}
    return {**ours, "peer": "open", "theirs": round(plain, 4), "ratio": round(plain / masked, 3)}
