"""tomotopy's, gensim's or scikit-learn's LDA on a large matrix of words: one line of JSON with its seconds and its peak.

Run by an interpreter that has it: python lda_at_scale.py NAME TOKENS.npy TOPICS WORDS ALPHA ETA WORKERS PASSES
TOKENS.npy holds a row of word numbers for each document, and is read as a stream.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

_AT_ONCE = 8_192  # documents


class Tomotopy:
    """Collapsed Gibbs sampling; its documents are in its own memory."""

    def __init__(self, tokens: Any, topics: int, words: int, alpha: float, eta: float, workers: int) -> None:
        import tomotopy  # type: ignore[import-not-found]  # in the peers' environment only

        warnings.simplefilter("ignore")
        self.workers = workers
        self.model = tomotopy.LDAModel(k=topics, alpha=alpha, eta=eta, seed=1)
        self.model.optim_interval = self.model.burn_in = 0
        names = [str(word) for word in range(words)]
        for row in tokens:
            self.model.add_doc([names[word] for word in row])
        self.model.train(0)

    def train(self, passes: int) -> None:
        """So many sweeps."""
        self.model.train(passes, workers=self.workers)


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
        """So many passes over all documents."""
        self.kind(self.bags, passes=passes, eval_every=None, random_state=1, **self.settings)


class Scikit:
    """Online variational LDA, a batch at a time."""

    def __init__(self, tokens: Any, topics: int, words: int, alpha: float, eta: float, workers: int) -> None:
        from sklearn.decomposition import LatentDirichletAllocation

        self.tokens, self.words = tokens, words
        self.model = LatentDirichletAllocation(
            topics,
            doc_topic_prior=alpha,
            topic_word_prior=eta,
            learning_method="online",
            total_samples=len(tokens),
            n_jobs=workers,
            random_state=1,
        )

    def train(self, passes: int) -> None:
        """So many passes over all documents."""
        from scipy import sparse

        for first in [*range(0, len(self.tokens), _AT_ONCE)] * passes:
            rows = np.array(self.tokens[first : first + _AT_ONCE])
            ends = np.arange(len(rows) + 1) * rows.shape[1]
            counts = sparse.csr_matrix((np.ones(rows.size), rows.ravel(), ends), (len(rows), self.words))
            counts.sum_duplicates()
            self.model.partial_fit(counts)


def _processor() -> float:
    """Seconds of processor time, of workers that have ended too."""
    return sum(os.times()[:4])


def main() -> None:
    """Reads, trains, and says how long both took."""
    name, path, topics, words, alpha, eta, workers, passes = sys.argv[1:]
    kind = {"tomotopy": Tomotopy, "gensim": Gensim, "scikit-learn": Scikit}[name]
    begun, processor = time.perf_counter(), _processor()
    peer: Any = kind(np.load(path, mmap_mode="r"), int(topics), int(words), float(alpha), float(eta), int(workers))
    built, processor_built = time.perf_counter(), _processor()
    peer.train(int(passes))
    ended = time.perf_counter()
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    facts = {"version": version(name), "build_seconds": built - begun, "seconds": (ended - built) / int(passes)}
    facts |= {"build_processor": processor_built - processor, "processor": (_processor() - processor_built) / int(passes)}
    print(json.dumps({**facts, "peak_mib": int(lines["VmHWM"].split()[0]) / 1024}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
