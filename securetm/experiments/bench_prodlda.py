"""How fast ProdLDA learns and how much memory it takes, beside a plain dense one in the same run. It judges no topic.

Both run on one thread and take turns epoch by epoch, so that a busy machine slows both; the fastest epoch of each counts.
"""

from __future__ import annotations

import multiprocessing
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from scipy import sparse

from securetm.experiments.dense_prodlda import DenseTraining
from securetm.experiments.newsgroups import most_frequent, newsgroups_file, read_newsgroups
from securetm.experiments.peaks import measurable, peak_mebibytes
from securetm.models.estimator import BagOfWords, as_documents
from securetm.models.neural.prodlda import ProdLDA

PEER = "dense batch-norm ProdLDA in torch"
VOCABULARIES = (2_000, 20_000)
EPOCHS = 3
MEMORY_STEPS = 60  # batches after which the peak no longer grows


OnProgress = Callable[[int, int], None]


def bench(
    on_progress: OnProgress | None = None, vocabularies: tuple[int, ...] = VOCABULARIES, documents: int | None = None
) -> dict[str, Any]:
    """Seconds per epoch and peak memory of ours and theirs, for each size of vocabulary; fewer documents for a quick look."""
    measures = (_speed, _memory, _growth) if measurable() else (_speed,)
    total, done = len(measures) * len(vocabularies), 0
    rows: list[dict[str, Any]] = []
    name, corpora = _corpora(vocabularies, documents)
    for counts in corpora:
        case = f"{name}, {counts.shape[0]:,} documents, V = {counts.shape[1]:,}, K = 50, batch 64, 1 thread"
        for measured in measures:
            rows.append(measured(case, counts))
            done += 1
            if on_progress is not None:
                on_progress(done, total)
    return {
        "bench": "prodlda",
        "machine": _machine(),
        "corpus": name,
        "rows": rows,
        "missing": [] if measurable() else ["peak memory: only on Linux"],
    }


# ---- speed ---------------------------------------------------------------------------------------------------------


def _speed(case: str, counts: Any) -> dict[str, Any]:
    with _one_thread():
        ours, theirs = _epochs(as_documents(counts), DenseTraining(counts, seed=0))
    return _row(f"seconds per epoch: {case}", min(ours), min(theirs), "s per epoch")


def _epochs(documents: BagOfWords, peer: DenseTraining) -> tuple[list[float], list[float]]:
    """Times of our epochs and theirs in turn: theirs run between two of ours, while ours wait in their own callback."""
    ours: list[float] = []
    theirs: list[float] = []
    ProdLDA().fit(documents.select(np.arange(64)), epochs=1)  # compiles
    begun = time.perf_counter()

    def take_turns(_: Any) -> None:
        nonlocal begun
        ours.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        peer.epoch()
        theirs.append(time.perf_counter() - begun)
        begun = time.perf_counter()

    ProdLDA().fit(documents, epochs=EPOCHS, on_progress=take_turns)
    return ours, theirs


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# ---- memory --------------------------------------------------------------------------------------------------------


def _memory(case: str, counts: Any) -> dict[str, Any]:
    """The peak above what the sparse counts and the imports take."""
    ours, theirs = (peak_mebibytes(work, counts) for work in (_learn_ours, _learn_theirs))
    return _row(f"peak memory while learning: {case}", ours, theirs, "MiB")


def _growth(case: str, counts: Any) -> dict[str, Any]:
    """Our peak on all documents and on a quarter of them: the same, if memory does not grow with documents times words."""
    quarter, whole = (peak_mebibytes(_learn_ours, part) for part in (counts[: counts.shape[0] // 4], counts))
    dense = float(np.prod(counts.shape)) * 4 / 2**20
    facts = {"on_a_quarter": round(quarter, 1), "documents_times_words": round(dense, 1)}
    return {"case": f"our peak memory, of which documents x words: {case}", "ours": round(whole, 1), "unit": "MiB", **facts}


def _learn_ours(counts: Any) -> Callable[[], object]:
    torch.set_num_threads(1)
    documents = as_documents(counts)
    ProdLDA().fit(BagOfWords(sparse.csr_array((64, 8)), ("",) * 8, documents.keys[:64]), epochs=1)  # compiles
    return lambda: ProdLDA().fit(documents, epochs=1)


def _learn_theirs(counts: Any) -> Callable[[], object]:
    torch.set_num_threads(1)
    return lambda: DenseTraining(counts, seed=0).epoch(MEMORY_STEPS)


# ---- documents and the record --------------------------------------------------------------------------------------


def _corpora(vocabularies: tuple[int, ...], documents: int | None) -> tuple[str, Iterator[Any]]:
    if newsgroups_file() is None:
        return "synthetic (20 Newsgroups is not here)", (_synthetic(documents or 18_000, words) for words in vocabularies)
    corpus = read_newsgroups()
    return "20 Newsgroups", (most_frequent(corpus, words).counts[:documents] for words in vocabularies)


def _synthetic(documents: int, words: int) -> Any:
    """Documents of about seventy words by Zipf's law: as sparse as news, without anybody's words."""
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(1, words + 1)
    drawn = rng.choice(words, (documents, 70), p=share / share.sum())
    cells = (np.ones(drawn.size, dtype=np.int32), (np.repeat(np.arange(documents), 70), drawn.ravel()))
    return sparse.coo_array(cells, (documents, words)).tocsr()


def _row(case: str, ours: float, theirs: float, unit: str) -> dict[str, Any]:
    figures = {"ours": round(ours, 3), "unit": unit, "peer": PEER, "theirs": round(theirs, 3)}
    return {"case": case, **figures, "ratio": round(theirs / ours, 2)}


def _machine() -> str:
    cores, python = multiprocessing.cpu_count(), platform.python_version()
    return f"{platform.machine()}, {cores} cores, Python {python}, torch {torch.__version__}"
