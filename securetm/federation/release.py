"""What may leave of a run: the folder `release/` in the run's folder, with the model, its topics, and the statement about them.

A run's other files may not leave: some hold documents, some figures of single parties that no guarantee covers. Every role
has the same folder: a simulation and a coordinator in the run's folder, a party in the folder of the run in its home.
The model lies here and nowhere else, so that nobody looks for it beside files that must stay.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from securetm.contracts import State, TopicModel
from securetm.contracts.origin import Origin
from securetm.federation.store import write_bytes
from securetm.foreign_text import csv_text
from securetm.models.quality import named_topics
from securetm.models.stored_model import write_model
from securetm.private_files import private_folder

RELEASE, MODEL, TOPICS = "release", "model.safetensors", "topics.csv"
_TOP_WORDS = 20


def released_model(folder: Path) -> Path:
    """The file of the model in the folder of a run, or of what a party has of one."""
    return folder / RELEASE / MODEL


def release(folder: Path, model: TopicModel, state: State, vocabulary: tuple[str, ...], origin: Origin) -> None:
    """Writes the model and its topics into the folder's `release/`. Written again, they are the same."""
    private_folder(folder / RELEASE)
    write_model(released_model(folder), model, state, vocabulary, origin=origin)
    weights = np.asarray(model.topics(state))
    lines = (  # the heaviest words of each topic; topics count from 0, as in `--json`
        (topic, rank, word, f"{weight:.8g}")
        for topic, (words, row) in enumerate(zip(named_topics(weights, vocabulary, _TOP_WORDS), weights, strict=True))
        for rank, (word, weight) in enumerate(zip(words, np.sort(row)[::-1], strict=False), 1)
    )
    write_bytes(folder / RELEASE / TOPICS, csv_text(("topic", "rank", "word", "weight"), lines).encode())
