"""tomotopy's or scikit-learn's LDA, trained a slice at a time on request, so that another model can take turns with it.

Run by an interpreter that has it: python lda_slices.py NAME COUNTS.npz TOPICS ALPHA ETA THREADS METHOD
METHOD says whether tomotopy learns its priors (0 or 1), or how scikit-learn learns (online or batch).
Each line of input is a number of passes and a file for topics, or "-"; each line of output is one JSON document.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse


class Tomotopy:
    """Gibbs sampling over documents whose words are their numbers."""

    def __init__(self, counts: Any, topics: int, alpha: float, eta: float, threads: int, learned: str) -> None:
        import tomotopy  # type: ignore[import-not-found]  # in the peers' environment only

        warnings.simplefilter("ignore")  # that two threads do not repeat themselves
        self.model, self.threads, self.words = (
            tomotopy.LDAModel(k=topics, alpha=alpha, eta=eta, seed=1),
            threads,
            counts.shape[1],
        )
        self.hello = {"instructions": tomotopy.isa}
        self.model.optim_interval = self.model.burn_in = 10 if learned == "1" else 0
        names = [str(word) for word in range(self.words)]
        counts = counts.astype(np.int64)
        for first, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
            self.model.add_doc([names[word] for word in np.repeat(counts.indices[first:end], counts.data[first:end])])
        self.model.train(0)

    def train(self, passes: int) -> None:
        """So many passes over the documents."""
        if passes:
            self.model.train(passes, workers=self.threads)

    def topics(self) -> tuple[Any, Any]:
        """Topics x words with rows that sum to one, and each topic's prior."""
        used = np.array([int(word) for word in self.model.used_vocabs])
        topics = np.full((self.model.k, self.words), 1e-12)  # a word that no document holds
        for topic in range(self.model.k):
            topics[topic, used] = self.model.get_topic_word_dist(topic)
        return topics, np.broadcast_to(np.asarray(self.model.alpha, dtype=float), self.model.k)


class Scikit:
    """Variational inference; a pass is what its `fit` does: all documents in one step, or a step for each of its batches."""

    def __init__(self, counts: Any, topics: int, alpha: float, eta: float, threads: int, method: str) -> None:
        from sklearn.decomposition import LatentDirichletAllocation

        self.hello: dict[str, str] = {}
        self.counts, self.alpha, self.method = counts.astype(np.float64), np.full(topics, alpha), method
        self.model = LatentDirichletAllocation(
            topics,
            doc_topic_prior=alpha,
            topic_word_prior=eta,
            learning_method=method,
            total_samples=counts.shape[0],
            n_jobs=threads,
            random_state=1,
        )
        self.model._init_latent_vars(counts.shape[1], dtype=self.counts.dtype)  # what fit begins with; it could not go on later

    def train(self, passes: int) -> None:
        """So many passes over the documents."""
        documents = self.counts.shape[0]
        for _ in range(passes):
            if self.method == "batch":
                self.model._em_step(self.counts, total_samples=documents, batch_update=True)
                continue
            for first in range(0, documents, self.model.batch_size):
                self.model.partial_fit(self.counts[first : first + self.model.batch_size])

    def topics(self) -> tuple[Any, Any]:
        """Topics x words with rows that sum to one, and each topic's prior."""
        return self.model.components_ / self.model.components_.sum(axis=1, keepdims=True), self.alpha


def main() -> None:
    """Trains as the lines of input say, until there are none."""
    name, path, topics, alpha, eta, threads, method = sys.argv[1:]
    kind = {"tomotopy": Tomotopy, "scikit-learn": Scikit}[name]
    peer: Any = kind(sparse.load_npz(path).tocsr(), int(topics), float(alpha), float(eta), int(threads), method)
    print(json.dumps({"version": version(name), **peer.hello}), flush=True)  # noqa: T201
    for line in sys.stdin:
        passes, out = line.split()
        begun = time.perf_counter()
        peer.train(int(passes))
        seconds = time.perf_counter() - begun
        if out != "-":
            shares, prior = peer.topics()
            np.savez(out, topics=shares, alpha=prior)
        print(json.dumps({"seconds": seconds}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
