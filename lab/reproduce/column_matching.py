"""How many columns without names an attacker names who has text of the same kind: by frequencies, and by pairs of words.

One half of a corpus is the parties', the other half is public. The coordinator of a blind run knows each column's frequency;
where a model asks for pairs of words (moments), it knows how often two columns stand in one document, too. Ranks are matched as
they are; pairs by the assignment that agrees best with the public ones (Frank and Wolfe's steps, after Vogelstein et al. 2015).
With noise, all of a document's budget is spent on this one answer, so that the rows are the most that it can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from lab.measuring import OnProgress, Row, told
from lab.reproduce.common_vocabulary import noise_of
from lab.research_corpora import FILE, INSTEAD, newsgroups_file, research_file
from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.docstrings import docstring_parties
from securetm.corpus.readers import read_corpus

WORDS, MOST_SHARE = 1_000, 0.5  # the most frequent ones, but for those in half of all documents
EPSILONS = (None, 8.0, 3.0, 1.0)
STEPS = 20
_NEAR = 0.1  # of the logarithm of a frequency: how far two ranks are taken for the same at the beginning
_RARE = 1e-4  # beside a share, so that no pair that is never met decides


def reproduce(words: int = WORDS, epsilons: Sequence[float | None] = EPSILONS, on_progress: OnProgress | None = None) -> Row:
    """One row for each noise: the share of columns that are named right, by ranks and by pairs."""
    corpus = _corpus()
    private, public, order = _halves(corpus, words)
    rows: list[Row] = []
    for number, epsilon in enumerate(told(list(epsilons), on_progress)):
        rng = np.random.default_rng(number)
        noise = 0.0 if epsilon is None else noise_of(epsilon)
        seen = private + _symmetric(rng, len(private)) * noise
        by = {"ranks": by_ranks(seen, public), "pairs": by_pairs(seen, public)}
        named = {f"named_by_{how}": round(float(np.mean(found == order)), 4) for how, found in by.items()}
        rows.append({"corpus": corpus.name, "epsilon": epsilon, "columns": len(order), **named})
    return {"reproduction": "column-matching", "documents": len(corpus), "rows": rows}


def by_ranks(private: Array, public: Array) -> Array:
    """Which public word each column is, by the order of frequencies."""
    found = np.empty(len(private), dtype=np.int64)
    found[np.argsort(-np.diag(private), kind="stable")] = np.argsort(-np.diag(public), kind="stable")
    return found


def by_pairs(private: Array, public: Array) -> Array:
    """Which public word each column is, by how pairs agree. It begins at words of about the same frequency."""
    ours, theirs = (np.log(np.maximum(np.diag(table), 0) + 1) for table in (private, public))
    weights = np.exp(-(((ours[:, None] - theirs[None]) / _NEAR) ** 2)) + 1e-12
    for _ in range(50):
        weights /= weights.sum(axis=1, keepdims=True)
        weights /= weights.sum(axis=0, keepdims=True)
    one, other = _told_by_pairs(private), _told_by_pairs(public)
    *_, found = _improved(one, other, weights)
    return found


def _improved(one: Array, other: Array, weights: Array) -> Iterator[Array]:
    """The best assignment after each step, until it stays the same."""
    before = np.zeros(len(one), dtype=np.int64)
    for _ in range(STEPS):
        product = one @ weights @ other
        _, found = linear_sum_assignment(-product)
        yield found
        if np.array_equal(found, before):
            return
        step = -weights
        step[np.arange(len(found)), found] += 1
        stepped = one @ step @ other
        square, line = float((stepped * step).sum()), float((product * step).sum() + (stepped * weights).sum())
        far = 1.0 if square >= 0 else min(1.0, max(0.0, -line / (2 * square)))
        weights, before = weights + far * step, found


def _told_by_pairs(table: Array) -> Array:
    """How much more often two words stand together than by chance, as logarithms."""
    lengths = np.sqrt(np.maximum(np.diag(table), 1e-9))
    shares = np.maximum(table / np.outer(lengths, lengths), 0)
    np.fill_diagonal(shares, 0)
    whole = shares.sum(axis=1)
    told_by: Array = np.log((shares + _RARE) / (np.outer(whole, whole) / max(whole.sum(), 1e-9) + _RARE))
    return told_by


def _halves(corpus: Corpus, words: int) -> tuple[Array, Array, Array]:
    """The pairs of both halves, the private one's columns in an order that nobody knows, and that order."""
    rng = np.random.default_rng(0)
    held, order = sparse.csr_array(corpus.counts > 0, dtype=np.float64), rng.permutation(len(corpus))
    often = np.asarray(held.sum(axis=0)).ravel()
    chosen = np.argsort(-often, kind="stable")
    chosen = chosen[often[chosen] <= MOST_SHARE * len(corpus)][:words]
    hidden = rng.permutation(len(chosen))
    half = len(corpus) // 2
    return _pairs(held[order[:half]][:, chosen[hidden]]), _pairs(held[order[half:]][:, chosen]), hidden


def _pairs(held: sparse.csr_array) -> Array:
    """The sum over documents of the products of two words' entries, in rows of length 1."""
    lengths = np.sqrt(np.maximum(np.asarray(held.sum(axis=1)).ravel(), 1))
    rows = sparse.diags_array(1 / lengths) @ held
    return np.asarray((rows.T @ rows).todense())


def _symmetric(rng: np.random.Generator, size: int) -> Array:
    """Noise of deviation 1 in each pair, the same for both orders."""
    upper = np.triu(rng.normal(size=(size, size)))
    return upper + np.triu(upper, 1).T


def _corpus() -> Corpus:
    if not newsgroups_file():
        return Corpus.concat(list(docstring_parties().values()), name=INSTEAD)
    return read_corpus(research_file(FILE)).replace(name="20 Newsgroups")
