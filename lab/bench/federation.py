"""What hiding the sums costs a whole federation: the same run under `open` and under another profile, in turn.

It measures rounds as the coordinator's own record has them, on one machine where all parties take turns. With the length of a
vector it measures the network instead (`network_load.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from lab.bench.network_load import measured
from lab.federations import begun
from lab.measuring import OnProgress, Row, beside, least_by_turns, record, stepper
from lab.synthetic_documents import LdaNodes, lda_nodes
from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import equal
from securetm.federation.simulation.simulation import train
from securetm.federation.store import CoordinatorStore
from securetm.stages import Unwatched

WAYS: Mapping[str, Mapping[str, Any]] = {
    "one local epoch a round": {"model": {"name": "prodlda", "local_epochs": 1}, "training": {"rounds": 5}},
    "a gradient per mini-batch": {"model": {"name": "prodlda"}, "training": {"rounds": 60}},
}
REPEATS = 3


def bench(parties: int = 10, length: int = 0, on_progress: OnProgress | None = None) -> Row:
    """Seconds per round under `masked` beside `open`, runs in turn; the fastest of each counts.

    With a `length`, masked rounds of such vectors over the network, beside the same roles in one process and Flower's SecAgg+.
    """
    if length:
        rows, missing = measured(parties, length, on_progress)
        return record("federation", rows, missing=missing, parties=parties, length=length, packages=("grpcio",))
    corpora, step = _parties(parties), stepper(len(WAYS) * REPEATS * 2, on_progress)
    rows = []
    for way, settings in WAYS.items():
        works = {profile: partial(_seconds_per_round, profile, settings, corpora) for profile in ("masked", "open")}
        least = least_by_turns(works, REPEATS, step)
        rows.append(beside(f"masked, {way}", least["masked"], least["open"], "s per round", "open", digits=4))
    return record("federation", rows, parties=parties)


def _parties(count: int) -> Mapping[str, Corpus]:
    """Synthetic documents over a vocabulary of 2,000 words, dealt out evenly."""
    nodes = lda_nodes(LdaNodes(nodes=1, topics=20, shared_topics=20, words=2_000, documents=1_900 * count), seed=0)
    return equal(next(iter(nodes.train.values())), count, seed=0)


def _seconds_per_round(profile: str, settings: Mapping[str, Any], corpora: Mapping[str, Corpus]) -> float:
    words = next(iter(corpora.values())).vocabulary
    with begun(corpora, words, {**settings, "profile": profile}) as run:
        train(run, Unwatched())
        store = CoordinatorStore(run.coordinator)
        found = [row[0] for row in store.rows("SELECT seconds FROM rounds WHERE question = 'train' ORDER BY serial")]
        store.close()
    return float(np.mean(found[1:]))  # the first also waits for whatever is compiled or set up once
