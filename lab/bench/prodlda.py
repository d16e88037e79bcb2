"""How fast ProdLDA learns and how much memory it takes, beside a plain dense one in the same run. It judges no topic.

Both run on one thread and take turns epoch by epoch, so that a busy machine slows both; the fastest epoch of each counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy import sparse

from lab.measuring import OnProgress, Row, beside, epochs_by_turns, figure, record, seconds, told, zipf_counts
from lab.peers.prodlda import DenseTraining, one_thread
from lab.processes import measurable, peak_mebibytes
from lab.research_corpora import most_frequent, newsgroups_file, read_newsgroups
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.models.given_documents import as_documents
from securetm.models.neural.prodlda import ProdLDA

PEER = "dense batch-norm ProdLDA in torch"
VOCABULARIES = (2_000, 20_000)
BATCH = 64  # documents in a step, of both
EPOCHS = 3
MEMORY_STEPS = 60  # batches after which the peak no longer grows


def bench(
    on_progress: OnProgress | None = None, vocabularies: tuple[int, ...] = VOCABULARIES, documents: int | None = None
) -> Row:
    """Seconds per epoch and peak memory of ours and theirs, for each size of vocabulary; fewer documents for a quick look."""
    measures = (_speed, _memory, _growth) if measurable() else (_speed,)
    if newsgroups_file() is None:
        name = "synthetic (20 Newsgroups is not here)"
        corpora: Iterator[Any] = (zipf_counts(documents or 18_000, words) for words in vocabularies)
    else:
        name, corpus = "20 Newsgroups", read_newsgroups()
        corpora = (most_frequent(corpus, words).counts[:documents] for words in vocabularies)
    work = [(counts, measured) for counts in corpora for measured in measures]
    rows = [
        measured(f"{name}, {counts.shape[0]:,} documents, V = {counts.shape[1]:,}, K = 50, batch 64, 1 thread", counts)
        for counts, measured in told(work, on_progress)
    ]
    missing = [] if measurable() else ["peak memory: only on Linux"]
    return record("prodlda", rows, missing=missing, packages=("torch",), corpus=name)


def _speed(case: str, counts: Any) -> Row:
    with one_thread():
        documents, peer = as_documents(counts), DenseTraining(counts, seed=0)
        ProdLDA(batch=BATCH).fit(documents.select(np.arange(64)), epochs=1)  # compiles
        fit = partial(ProdLDA(batch=BATCH).fit, documents, epochs=EPOCHS)
        ours, theirs = epochs_by_turns(lambda turn: fit(on_progress=turn), lambda: seconds(peer.epoch))
    return beside(f"seconds per epoch: {case}", min(ours), min(theirs), "s per epoch", PEER)


def _memory(case: str, counts: Any) -> Row:
    """The peak above what the sparse counts and the imports take."""
    ours, theirs = (peak_mebibytes(work, counts) for work in (_learn_ours, _learn_theirs))
    return beside(f"peak memory while learning: {case}", ours, theirs, "MiB", PEER)


def _growth(case: str, counts: Any) -> Row:
    """Our peak on all documents and on a quarter of them: the same, if memory does not grow with documents times words."""
    quarter, whole = (peak_mebibytes(_learn_ours, part) for part in (counts[: counts.shape[0] // 4], counts))
    dense = float(np.prod(counts.shape)) * 4 / 2**20
    facts = {"on_a_quarter": round(quarter, 1), "documents_times_words": round(dense, 1)}
    return figure(f"our peak memory, of which documents x words: {case}", whole, "MiB", 1, **facts)


def _learn_ours(counts: Any) -> Callable[[], object]:
    torch.set_num_threads(1)
    documents = as_documents(counts)
    tiny = Corpus(HeldDocuments(sparse.csr_array((64, 8)), ("",) * 8, documents.keys[:64]))
    ProdLDA(batch=BATCH).fit(tiny, epochs=1)  # compiles
    return lambda: ProdLDA(batch=BATCH).fit(documents, epochs=1)


def _learn_theirs(counts: Any) -> Callable[[], object]:
    torch.set_num_threads(1)
    return lambda: DenseTraining(counts, seed=0).epoch(MEMORY_STEPS)
