"""tomotopy's LDA, trained a slice at a time on request, so that another model can take turns with it.

Run by an interpreter that has tomotopy: python tomotopy_lda.py COUNTS.npz TOPICS ALPHA ETA THREADS LEARNED
Each line of input is a number of iterations and a file for topics, or "-"; each line of output is one JSON document.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
import tomotopy  # type: ignore[import-not-found]  # in the peers' environment only
from scipy import sparse


def model_of(counts: Any, topics: int, alpha: float, eta: float, learned: bool) -> Any:
    """An untrained model that holds the documents; words are their numbers."""
    model = tomotopy.LDAModel(k=topics, alpha=alpha, eta=eta, seed=1)
    model.optim_interval = 10 if learned else 0
    model.burn_in = 10 if learned else 0
    names = [str(word) for word in range(counts.shape[1])]
    for row in range(counts.shape[0]):
        places = slice(counts.indptr[row], counts.indptr[row + 1])
        model.add_doc([names[word] for word in np.repeat(counts.indices[places], counts.data[places])])
    model.train(0)
    return model


def save_topics(model: Any, words: int, path: str) -> None:
    """Topics x words with rows that sum to one, and each topic's prior."""
    used = np.array([int(word) for word in model.used_vocabs])
    topics = np.full((model.k, words), 1e-12)  # a word that no document holds
    for topic in range(model.k):
        topics[topic, used] = model.get_topic_word_dist(topic)
    np.savez(path, topics=topics, alpha=np.broadcast_to(np.asarray(model.alpha, dtype=float), model.k))


def main() -> None:
    """Trains as the lines of input say, until there are none."""
    path, topics, alpha, eta, threads, learned = sys.argv[1:]
    warnings.simplefilter("ignore")  # that two threads do not repeat themselves
    counts = sparse.load_npz(path).astype(np.int64)
    model = model_of(counts, int(topics), float(alpha), float(eta), learned == "1")
    sys.stdout.write(json.dumps({"version": version("tomotopy"), "instructions": tomotopy.isa}) + "\n")
    sys.stdout.flush()
    for line in sys.stdin:
        iterations, out = line.split()
        begun = time.perf_counter()
        if int(iterations):
            model.train(int(iterations), workers=int(threads))
        seconds = time.perf_counter() - begun
        if out != "-":
            save_topics(model, counts.shape[1], out)
        sys.stdout.write(json.dumps({"seconds": seconds}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
