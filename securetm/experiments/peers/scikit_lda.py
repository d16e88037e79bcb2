"""scikit-learn's LatentDirichletAllocation, a pass over the documents at a time on request.

Run by an interpreter that has scikit-learn: python scikit_lda.py COUNTS.npz TOPICS ALPHA ETA THREADS METHOD
Each line of input is a number of passes and a file for topics, or "-"; each line of output is one JSON document.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation


def one_pass(model: Any, counts: Any, batch: bool) -> None:
    """One pass as its `fit` does it: all documents in one step, or a step for each of its batches."""
    if batch:
        model._em_step(counts, total_samples=counts.shape[0], batch_update=True)
        return
    for first in range(0, counts.shape[0], model.batch_size):
        model.partial_fit(counts[first : first + model.batch_size])


def main() -> None:
    """Trains as the lines of input say, until there are none."""
    path, topics, alpha, eta, threads, method = sys.argv[1:]
    counts = sparse.load_npz(path).tocsr().astype(np.float64)
    model = LatentDirichletAllocation(
        int(topics),
        doc_topic_prior=float(alpha),
        topic_word_prior=float(eta),
        learning_method=method,
        total_samples=counts.shape[0],
        n_jobs=int(threads),
        random_state=1,
    )
    model._init_latent_vars(counts.shape[1], dtype=counts.dtype)  # what fit begins with; it could not go on later
    sys.stdout.write(json.dumps({"version": version("scikit-learn")}) + "\n")
    sys.stdout.flush()
    for line in sys.stdin:
        passes, out = line.split()
        begun = time.perf_counter()
        for _ in range(int(passes)):
            one_pass(model, counts, method == "batch")
        seconds = time.perf_counter() - begun
        if out != "-":
            shares = model.components_ / model.components_.sum(axis=1, keepdims=True)
            np.savez(out, topics=shares, alpha=np.full(int(topics), float(alpha)))
        sys.stdout.write(json.dumps({"seconds": seconds}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
