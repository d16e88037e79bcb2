"""CombinedTM beside contextualized-topic-models' CombinedTM: seconds an epoch, and how coherent the topics are.

Ours and theirs take turns epoch by epoch on one thread, so that a busy machine slows both; the fastest epoch of each counts.
Embeddings take the same time whatever their numbers are, so speed is measured with drawn ones, on all documents. Coherence is
of models that learned from every tenth document, with the sentence model's embeddings, judged on all other documents.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lab.measuring import OnProgress, Row, beside, epochs_by_turns, figure, record, stepper
from lab.peers.other_packages import PeerMissing, PeerProcess
from lab.peers.prodlda import one_thread
from lab.research_corpora import FEWEST_WORDS, MEASURED, most_frequent, news, newsgroups_file, read_newsgroups
from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.text_embeddings import TextEmbedder
from securetm.models.neural.contextual import CombinedTM
from securetm.models.quality import diversity, document_npmi, top_words

PEER = "contextualized-topic-models"
TOPICS, BATCH, SIZE = 50, 64, 384
VOCABULARIES = (2_000, 20_000)
SEEDS = (0, 1, 2)
TIMED = 3  # epochs of each
EPOCHS = 100  # of learning for coherence: the peer's own number
EVERY = 10  # one document in so many is learned from
Tick = Callable[[], None]


def bench(
    on_progress: OnProgress | None = None,
    documents: int | None = None,
    epochs: int = EPOCHS,
    vocabularies: tuple[int, ...] = VOCABULARIES,
) -> Row:
    """Rows of speed for each size of vocabulary, and of coherence; fewer documents or epochs for a quick look."""
    tick = stepper(TIMED * len(vocabularies) + epochs * len(SEEDS), on_progress)
    rows: list[Row] = []
    missing: list[str] = []
    name = ""
    with one_thread():
        try:
            for words in vocabularies:
                name, corpus = news(words, documents or 18_000)
                rows.append(_speed(corpus.select(np.arange(min(len(corpus), documents or len(corpus)))), tick))
            learn, judge = _documents(vocabularies[0], documents)
            rows += _coherence(learn, judge, epochs, tick)
        except PeerMissing as absent:
            missing.append(str(absent))
    return record("neural", rows, missing=missing, packages=("torch", "numpy"), corpus=name)


@dataclass(frozen=True)
class TrainedByTurns:
    peer: str
    our_seconds: float  # of the fastest epoch
    their_seconds: float
    ours: Array  # topics x words
    theirs: Array


def by_turns(documents: Any, epochs: int, seed: int, tick: Tick) -> TrainedByTurns:
    model = CombinedTM(n_topics=TOPICS, batch=BATCH, embedding_size=SIZE, device="cpu")
    model.fit(documents.select(np.arange(min(BATCH, len(documents)))), epochs=1)  # compiles
    with tempfile.TemporaryDirectory() as folder, _peer(Path(folder), documents, seed) as peer:

        def theirs() -> float:
            took = peer.train(1)
            tick()
            return took

        fit = partial(model.fit, documents, epochs=epochs, seed=seed)
        ours, others = epochs_by_turns(lambda turn: fit(on_progress=turn), theirs)
        return TrainedByTurns(peer.title, min(ours), min(others), model.components_, peer.topics()[0])


def _peer(folder: Path, documents: Any, seed: int) -> PeerProcess:
    counts, embeddings = folder / "counts.npz", folder / "embeddings.npy"
    sparse.save_npz(counts, sparse.csr_matrix(documents.counts))
    np.save(embeddings, documents.embeddings)
    return PeerProcess(PEER, counts, (embeddings, TOPICS, BATCH, seed), script=("ctm_epochs.py",))


def _speed(corpus: Corpus, tick: Tick) -> Row:
    drawn = np.random.default_rng(0).standard_normal((len(corpus), SIZE)).astype(np.float32)
    found = by_turns(corpus.replace(embeddings=drawn), TIMED, 0, tick)
    sizes = f"{len(corpus):,} documents, V = {len(corpus.vocabulary):,}, K = {TOPICS}, batch {BATCH}, 1 thread"
    return beside(f"seconds per epoch: {sizes}", found.our_seconds, found.their_seconds, "s per epoch", found.peer)


def _coherence(learn: Corpus, judge: Corpus, epochs: int, tick: Tick) -> list[Row]:
    """For each seed NPMI and diversity, and the means over the seeds."""
    rows, figures = [], []
    for seed in SEEDS:
        found = by_turns(learn, epochs, seed, tick)
        pair = np.array([_figures(topics, judge) for topics in (found.ours, found.theirs)])
        figures.append(pair)
        rows += _judged(f"seed {seed}", pair, found.peer, learn, judge, epochs)
    return rows + _judged(f"mean of {len(SEEDS)} seeds", np.mean(figures, axis=0), found.peer, learn, judge, epochs)


def _figures(topics: Array, judge: Corpus) -> tuple[float, float]:
    return float(document_npmi(top_words(topics, 10), judge.counts).mean()), diversity(top_words(topics, 25))


def _judged(which: str, pair: Array, peer: str, learn: Corpus, judge: Corpus, epochs: int) -> list[Row]:
    of = f"{which}, {len(learn):,} documents, {epochs} epochs, V = {len(learn.vocabulary):,}, K = {TOPICS}"
    rows = []
    for column, what in enumerate((f"document NPMI of 10 words in {len(judge):,} other documents", "diversity of 25 words")):
        ours, theirs = (float(figure) for figure in pair[:, column])
        facts = {"peer": peer, "theirs": round(theirs, 4), "difference": round(ours - theirs, 4)}
        rows.append(figure(f"{what}: {of}", ours, what.split(" of ")[0], 4, **facts))
    return rows


def _documents(words: int, documents: int | None) -> tuple[Corpus, Corpus]:
    """Every tenth document with its embedding, and the others, over the most frequent words of all."""
    path = newsgroups_file()
    if path is None:
        _, corpus = news(words, documents or 18_000)
        learned = np.arange(len(corpus)) % EVERY == 0
        drawn = corpus.counts @ np.random.default_rng(1).normal(size=(len(corpus.vocabulary), SIZE))  # of the words alone
        corpus = corpus.replace(embeddings=drawn.astype(np.float32))
        return corpus.select(np.flatnonzero(learned)), corpus.select(np.flatnonzero(~learned))
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        texts = [json.loads(line)["text"] for line in stream]
    texts = texts[:: max(1, len(texts) // (documents or len(texts)))]  # the file goes newsgroup by newsgroup
    vocabulary = most_frequent(read_newsgroups(), words).vocabulary
    learn = Corpus.from_strings(texts[::EVERY], tokeniser=MEASURED, embeddings=TextEmbedder().embed(texts[::EVERY]))
    judge = Corpus.from_strings([text for number, text in enumerate(texts) if number % EVERY], tokeniser=MEASURED)
    projected = (part.project(vocabulary) for part in (learn, judge))
    learn, judge = (part.select(np.flatnonzero(part.lengths() >= FEWEST_WORDS)) for part in projected)
    return learn, judge
