"""The corpora of FedNMF's experiments, their clients with different mixtures of labels, and how coherent topics are on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from lab.measuring import Row
from lab.research_corpora import BESIDE, MEASURED, PUBLIC, SMS, SOURCES, chosen_folder, research_file
from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import no_column
from securetm.corpus.readers import read_corpus
from securetm.corpus.tokeniser import prune
from securetm.corpus.word_vectors import GLOVE, read_vectors
from securetm.errors import BadSetting
from securetm.models.quality import diversity, document_npmi
from securetm.quality.measures import embedding_coherence

CORPORA: Mapping[str, str] = {"SMS Spam": SMS, "TagMyNews": PUBLIC[0], "StackOverflow": PUBLIC[1]}


def file_of(corpus: str) -> Path:
    """A research corpus by its name, or any labelled one by its file's name in the folder of corpora."""
    name = CORPORA.get(corpus, corpus)
    own = (chosen_folder() or BESIDE) / name
    if name in SOURCES or not own.is_file():
        return research_file(name) if name in SOURCES else _no_corpus(own)
    return own


def _no_corpus(file: Path) -> Path:
    raise BadSetting(
        "reproduce fednmf", "--only", f"corpus={file.name}", f"is none of {', '.join(CORPORA)}, and no file {file}"
    )


@lru_cache(2)
def labelled(corpus: str, documents: int | None) -> Corpus:
    """All documents, or so many drawn at random: always the same ones."""
    whole = read_corpus(file_of(corpus), tokeniser=MEASURED)
    if whole.labels is None:
        raise no_column("label")
    if documents is None or documents >= len(whole):
        return whole
    return whole.select(np.sort(np.random.default_rng(0).permutation(len(whole))[:documents]))


@lru_cache(2)
def frequent(corpus: str, documents: int | None, words: int) -> Corpus:
    """The documents with a word among the most frequent ones."""
    found = labelled(corpus, documents)
    found = found.project(prune(found, max_words=words))
    return found.select(np.flatnonzero(found.lengths() > 0))


@dataclass(frozen=True, eq=False)
class Clients:
    """A corpus that is dealt out to clients with different mixtures of labels."""

    parties: Mapping[str, Corpus]
    everything: Corpus  # in the order of the clients: all but the few documents that cannot be shared out evenly

    @property
    def labels(self) -> Array:
        return np.asarray(self.everything.labels)


@lru_cache(2)
def dealt(corpus: str, documents: int | None, words: int, clients: int, alpha: float, seed: int) -> Clients:
    parties = papers_partition(frequent(corpus, documents, words), clients, alpha, seed)
    return Clients(parties, Corpus.concat(list(parties.values()), name=corpus))


def coherence(top: Array, documents: Corpus) -> Row:
    """By word vectors, as the paper measures it, with those that are here; by documents; and how diverse the words are."""
    vectors = read_vectors(GLOVE, documents.vocabulary).matrix(documents.vocabulary)
    return {
        "we_coherence": float(embedding_coherence(top, vectors).mean()),
        "npmi": float(document_npmi(top, documents.counts).mean()),
        "diversity": float(diversity(top)),
    }


# ---- parties of one size whose mixtures of labels differ, as in section IV-D of the paper -----------------------------


def papers_partition(corpus: Corpus, parties: int, alpha: float, seed: int = 0) -> dict[str, Corpus]:
    """Parties whose mixtures of labels differ: q ~ Dir(alpha p), p being the label distribution of all documents.

    Every party gets documents // parties documents, drawn without replacement: first a label by q, then a document that has
    it. When a label has run out, q is renormalised over those that are left. alpha = inf gives every party the mixture p,
    alpha near 0 a single label (until it runs out). Documents that are left over belong to no party.
    """
    labels = corpus.labels
    if labels is None:
        raise no_column("label")
    if not alpha > 0:
        raise BadSetting("dirichlet", "alpha", str(alpha), "must be above zero")
    rng = np.random.default_rng(seed)
    _, member = np.unique(labels, return_inverse=True)
    piles = [rng.permutation(np.flatnonzero(member == label)) for label in range(int(member.max()) + 1)]
    share = np.bincount(member) / len(member)
    stock = np.bincount(member)
    parts = []
    for _ in range(parties):
        taken = _draw(len(corpus) // parties, share, stock, alpha, rng)
        parts.append(
            np.sort(np.concatenate([pile[left - n : left] for pile, left, n in zip(piles, stock, taken, strict=True)]))
        )
        stock = stock - taken
    return {f"party-{number}": corpus.of_party(rows, f"party-{number}") for number, rows in enumerate(parts, 1)}


def _draw(documents: int, share: Array, stock: Array, alpha: float, rng: np.random.Generator) -> Array:
    """The number of documents of each label that one party gets."""
    mixture = _mixture(share, alpha, rng)
    taken = np.zeros(len(share), dtype=np.int64)
    while taken.sum() < documents:
        left = stock - taken
        mixture = np.where(left > 0, mixture, 0.0)
        if mixture.sum() <= 0.0:  # q is 0 on all labels that are left: the Dirichlet's neutrality allows to draw that part anew
            mixture = _mixture(np.where(left > 0, share, 0.0), alpha, rng)
        mixture = mixture / mixture.sum()
        taken += _until_one_runs_out(mixture, left, int(documents - taken.sum()), rng)
    return taken


def _until_one_runs_out(mixture: Array, left: Array, documents: int, rng: np.random.Generator) -> Array:
    """Draws labels one after the other, and stops before the first that has run out."""
    labels = rng.choice(len(mixture), size=documents, p=mixture)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(len(mixture)))
    nth = np.empty(documents, dtype=np.int64)
    nth[order] = np.arange(documents) - starts[labels[order]]
    missing = np.flatnonzero(nth >= left[labels])
    return np.bincount(labels[: missing[0] if len(missing) else documents], minlength=len(mixture))


def _mixture(share: Array, alpha: float, rng: np.random.Generator) -> Array:
    present = np.flatnonzero(share)
    mixture = np.zeros(len(share))
    if np.isinf(alpha):
        mixture[present] = share[present] / share[present].sum()
        return mixture
    concentration = np.maximum(alpha * share[present], np.finfo(float).tiny)
    drawn = rng.dirichlet(concentration)
    if not np.isfinite(drawn).all() or drawn.sum() == 0.0:  # alpha is too small for floating point: one label, by its share
        drawn = np.eye(len(present))[rng.choice(len(present), p=share[present] / share[present].sum())]
    mixture[present] = drawn
    return mixture
