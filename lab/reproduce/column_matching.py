"""How many columns without names an attacker names who has text of the same kind: by frequencies, and by pairs of words.

One half of a corpus is the parties', the other half is public. The coordinator of a blind run knows each column's frequency;
where a model asks for pairs of words (moments), it knows how often two columns stand in one document, too. The arithmetic
is that of the attacks `column_frequencies` and `column_pairs`, which try a recorded run. With noise, all of a document's budget
is spent on this one answer, so that the rows are the most that it can tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from lab.measuring import OnProgress, Row, told
from lab.reproduce.common_vocabulary import noise_of
from lab.research_corpora import FILE, INSTEAD, newsgroups_file, research_corpus
from securetm.auditing.parts.column_matching import by_pairs, by_ranks
from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.docstrings import docstring_parties

WORDS, MOST_SHARE = 1_000, 0.5  # the most frequent ones, but for those in half of all documents
EPSILONS = (None, 8.0, 3.0, 1.0)


def reproduce(words: int = WORDS, epsilons: Sequence[float | None] = EPSILONS, on_progress: OnProgress | None = None) -> Row:
    """One row for each noise: the share of columns that are named right, by ranks and by pairs."""
    corpus = _corpus()
    private, public, order = _halves(corpus, words)
    rows: list[Row] = []
    for number, epsilon in enumerate(told(list(epsilons), on_progress)):
        rng = np.random.default_rng(number)
        noise = 0.0 if epsilon is None else noise_of(epsilon)
        seen = private + _symmetric(rng, len(private)) * noise
        by = {"ranks": by_ranks(np.diag(seen), np.diag(public)), "pairs": by_pairs(seen, public)}
        named = {f"named_by_{how}": round(float(np.mean(found == order)), 4) for how, found in by.items()}
        rows.append({"corpus": corpus.name, "epsilon": epsilon, "columns": len(order), **named})
    return {"reproduction": "column-matching", "documents": len(corpus), "rows": rows}


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
    return research_corpus(FILE).replace(name="20 Newsgroups")
