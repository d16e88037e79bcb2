"""Other packages' LDA: trained a slice at a time on request, so that another model can take turns with it, or once at scale.

Run by an interpreter that has the package:
    python lda.py slices NAME COUNTS.npz TOPICS ALPHA ETA THREADS METHOD
    python lda.py once NAME TOKENS.npy TOPICS WORDS ALPHA ETA WORKERS PASSES
METHOD says whether tomotopy learns its priors (0 or 1), or how scikit-learn learns (online or batch). Slices: a line of input
is a number of passes and a file for topics, or "-"; each line of output is one JSON document. Once: TOKENS.npy holds a row of
word numbers for each document, and is read as a stream; one line of JSON has seconds and the peak.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

_AT_ONCE = 8_192  # documents


class Tomotopy:
    """Collapsed Gibbs sampling; documents are in its own memory, and their words are numbers."""

    def __init__(
        self, rows: Iterable[Any], words: int, topics: int, alpha: float, eta: float, threads: int, learned: str
    ) -> None:
        import tomotopy  # type: ignore[import-not-found]  # in the peers' environment only

        warnings.simplefilter("ignore")  # that two threads do not repeat themselves
        self.model, self.threads, self.words = tomotopy.LDAModel(k=topics, alpha=alpha, eta=eta, seed=1), threads, words
        self.hello = {"instructions": tomotopy.isa}
        self.model.optim_interval = self.model.burn_in = 10 if learned == "1" else 0
        names = [str(word) for word in range(words)]
        for row in rows:
            self.model.add_doc([names[word] for word in row])
        self.model.train(0)

    def train(self, passes: int) -> None:
        if passes:
            self.model.train(passes, workers=self.threads)

    def topics(self) -> tuple[Any, Any]:
        """Topics x words with rows that sum to one, and each topic's prior."""
        used = np.array([int(word) for word in self.model.used_vocabs])
        topics = np.full((self.model.k, self.words), 1e-12)  # a word that no document holds
        for topic in range(self.model.k):
            topics[topic, used] = self.model.get_topic_word_dist(topic)
        return topics, np.broadcast_to(np.asarray(self.model.alpha, dtype=float), self.model.k)


def _scikit(topics: int, alpha: float, eta: float, threads: int, method: str, documents: int) -> Any:
    from sklearn.decomposition import LatentDirichletAllocation

    return LatentDirichletAllocation(
        topics,
        doc_topic_prior=alpha,
        topic_word_prior=eta,
        learning_method=method,
        total_samples=documents,
        n_jobs=threads,
        random_state=1,
    )


class ScikitInSlices:
    """Variational inference; a pass is what its `fit` does: all documents in one step, or a step for each of its batches."""

    def __init__(self, counts: Any, topics: int, alpha: float, eta: float, threads: int, method: str) -> None:
        self.hello: dict[str, str] = {}
        self.counts, self.alpha, self.method = counts.astype(np.float64), np.full(topics, alpha), method
        self.model = _scikit(topics, alpha, eta, threads, method, counts.shape[0])
        self.model._init_latent_vars(counts.shape[1], dtype=self.counts.dtype)  # what fit begins with; it could not go on later

    def train(self, passes: int) -> None:
        documents = self.counts.shape[0]
        for _ in range(passes):
            if self.method == "batch":
                self.model._em_step(self.counts, total_samples=documents, batch_update=True)
                continue
            for first in range(0, documents, self.model.batch_size):
                self.model.partial_fit(self.counts[first : first + self.model.batch_size])

    def topics(self) -> tuple[Any, Any]:
        return self.model.components_ / self.model.components_.sum(axis=1, keepdims=True), self.alpha


class Bags:
    """Documents as gensim reads them: made of the matrix each time."""

    def __init__(self, tokens: Any) -> None:
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        for row in self.tokens:
            words, counts = np.unique(row, return_counts=True)
            yield list(zip(words.tolist(), counts.tolist(), strict=True))


class Gensim:
    """Online variational LDA, with several workers in a process each."""

    def __init__(self, tokens: Any, topics: int, words: int, alpha: float, eta: float, workers: int) -> None:
        from gensim.models import LdaModel, LdaMulticore  # type: ignore[import-not-found]  # in the peers' environment only

        self.bags, self.kind = Bags(tokens), LdaMulticore if workers > 1 else LdaModel
        names = {word: str(word) for word in range(words)}
        self.settings = {"num_topics": topics, "id2word": names, "alpha": [alpha] * topics, "eta": eta}
        self.settings |= {"workers": workers} if workers > 1 else {}

    def train(self, passes: int) -> None:
        self.kind(self.bags, passes=passes, eval_every=None, random_state=1, **self.settings)


class ScikitAtScale:
    """Online variational LDA, a batch at a time."""

    def __init__(self, tokens: Any, topics: int, words: int, alpha: float, eta: float, workers: int) -> None:
        self.tokens, self.words = tokens, words
        self.model = _scikit(topics, alpha, eta, workers, "online", len(tokens))

    def train(self, passes: int) -> None:
        for first in [*range(0, len(self.tokens), _AT_ONCE)] * passes:
            rows = np.array(self.tokens[first : first + _AT_ONCE])
            ends = np.arange(len(rows) + 1) * rows.shape[1]
            counts = sparse.csr_matrix((np.ones(rows.size), rows.ravel(), ends), (len(rows), self.words))
            counts.sum_duplicates()
            self.model.partial_fit(counts)


def _processor() -> float:
    """Seconds of processor time, of workers that have ended too."""
    return sum(os.times()[:4])


def _rows(counts: Any) -> Iterator[Any]:
    counts = counts.astype(np.int64)
    for first, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        yield np.repeat(counts.indices[first:end], counts.data[first:end])


def slices(name: str, path: str, topics: str, alpha: str, eta: str, threads: str, method: str) -> None:
    """Trains as the lines of input say, until there are none."""
    counts, settings = sparse.load_npz(path).tocsr(), (int(topics), float(alpha), float(eta), int(threads), method)
    peer: Any = Tomotopy(_rows(counts), counts.shape[1], *settings) if name == "tomotopy" else ScikitInSlices(counts, *settings)
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


def once(name: str, path: str, topics: str, words: str, alpha: str, eta: str, workers: str, passes: str) -> None:
    """Reads, trains, and says how long both took."""
    begun, processor = time.perf_counter(), _processor()
    tokens, settings = np.load(path, mmap_mode="r"), (float(alpha), float(eta), int(workers))
    if name == "tomotopy":
        peer: Any = Tomotopy(tokens, int(words), int(topics), *settings, "0")
    else:
        peer = {"gensim": Gensim, "scikit-learn": ScikitAtScale}[name](tokens, int(topics), int(words), *settings)
    built, processor_built = time.perf_counter(), _processor()
    peer.train(int(passes))
    ended = time.perf_counter()
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    facts = {"version": version(name), "build_seconds": built - begun, "seconds": (ended - built) / int(passes)}
    facts |= {"build_processor": processor_built - processor, "processor": (_processor() - processor_built) / int(passes)}
    print(json.dumps({**facts, "peak_mib": int(lines["VmHWM"].split()[0]) / 1024}), flush=True)  # noqa: T201


if __name__ == "__main__":
    train: Any = {"slices": slices, "once": once}[sys.argv[1]]
    train(*sys.argv[2:])
