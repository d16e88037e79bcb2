"""Divides the documents of one place among parties, to try a federation on one machine. A real federation does not use it.

Dirichlet partitions follow Hsu, Qi and Brown (2019), as the FedNMF paper does in its section IV-D.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np

from securetm.contracts import Array
from securetm.corpus.corpus import Corpus, PartyCorpus
from securetm.corpus.corpus_errors import NoColumn
from securetm.corpus.dropped import NOT_DEALT, Dropped, counted
from securetm.corpus.shards.sharded_corpus import ShardedCorpus
from securetm.errors import BadSetting

C = TypeVar("C", Corpus, ShardedCorpus, PartyCorpus)
P = TypeVar("P")
UNNAMED = "unnamed"  # the party that holds the documents which name no party


@dataclass(frozen=True)
class Remainder:
    """The documents of a source that no party holds, and how many documents name no party."""

    nobodys: tuple[Dropped, ...] = ()
    without_a_party: int = 0
    unnamed: str = UNNAMED


class Partition(dict[str, P]):
    """The corpus of each party, and the remainder that no party holds."""

    def __init__(self, parts: Mapping[str, P], remainder: Remainder) -> None:
        super().__init__(parts)
        self.remainder = remainder


def left_out(corpora: Mapping[str, PartyCorpus]) -> dict[str, Any]:
    """The dropped documents, ready for JSON: of the source, and of each party by its name."""
    remainder = corpora.remainder if isinstance(corpora, Partition) else Remainder()
    dropped = {name: counted(corpus.dropped) for name, corpus in corpora.items()}
    whole = [*remainder.nobodys, *(one for corpus in corpora.values() for one in corpus.dropped)]
    read = sum(map(len, corpora.values())) + sum(one.documents for one in whole)
    source = {"read": read, "without_a_party": remainder.without_a_party, "unnamed": remainder.unnamed}
    return {"source": {**source, "dropped": counted(remainder.nobodys, named=True)}, "dropped": dropped}


def without_any(corpora: Mapping[str, PartyCorpus], words: Iterable[str]) -> dict[str, int]:
    """The number of documents of each party that have none of these words."""
    known = frozenset(words)
    found = {}
    for name, corpus in corpora.items():
        there = np.fromiter((word in known for word in corpus.vocabulary), np.int64, len(corpus.vocabulary))
        found[name] = sum(int(np.sum(part.counts @ there == 0)) for _, part in corpus.parts())
    return found


def by_column(corpus: C, column: Literal["party", "label", "date"] = "party") -> dict[str, C]:
    """One party per name in that column, in the order of the names; documents that name none go to one called "unnamed"."""
    corpus = corpus.in_source_order()
    columns = {"party": corpus.parties, "label": corpus.labels, "date": corpus.dates}
    if column not in columns:
        raise BadSetting("by_column", "column", repr(column), f"must be one of {tuple(columns)}")
    entries = columns[column]
    if entries is None:
        raise NoColumn(column)
    names: Array
    names, member = np.unique(entries, return_inverse=True)
    free = (UNNAMED, *(f"{UNNAMED}-{number}" for number in range(2, len(names) + 3)))
    unnamed = next(name for name in free if name not in names)  # a party may be called so
    parts = {str(name) or unnamed: np.flatnonzero(member == number) for number, name in enumerate(names)}
    dropped = [(getattr(one, column) or unnamed, one) for one in corpus.dropped]
    own = {name: tuple(one for party, one in dropped if party == name) for name in parts}
    lost = tuple(replace(one, party=party) for party, one in dropped if party not in parts)
    remainder = Remainder(lost, len(parts.get(unnamed, ())), unnamed)
    held = {name: replace(corpus.of_party(rows, name), dropped=own[name]) for name, rows in parts.items()}
    return Partition(held, remainder)


def equal(corpus: C, parties: int, seed: int = 0) -> dict[str, C]:
    """Divides all documents at random; the sizes of two parties differ by one document at most."""
    _check_enough(corpus, parties)
    corpus = corpus.in_source_order()
    rows = np.random.default_rng(seed).permutation(len(corpus))
    return _named(corpus, [np.sort(part) for part in np.array_split(rows, parties)])


def dirichlet(corpus: C, parties: int, alpha: float, seed: int = 0) -> dict[str, C]:
    """Parties whose mixtures of labels differ: q ~ Dir(alpha p), p being the label distribution of all documents.

    Every party gets documents // parties documents, drawn without replacement: first a label by q, then a document that has
    it. When a label has run out, q is renormalised over those that are left. alpha = inf gives every party the mixture p,
    alpha near 0 a single label (until it runs out). Documents that are left over belong to no party.
    """
    _check_enough(corpus, parties)
    corpus = corpus.in_source_order()
    labels = corpus.labels
    if labels is None:
        raise NoColumn("label")
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
    return _named(corpus, parts, len(corpus) % parties)


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


def _check_enough(corpus: PartyCorpus, parties: int) -> None:
    if parties < 1 or len(corpus) < parties:
        raise BadSetting("[corpus]", "parties", str(parties), f"must be 1 to {len(corpus)}, the number of documents")


def _named(corpus: C, parts: Sequence[Array], over: int = 0) -> dict[str, C]:
    """Numbered parties. Documents that were dropped earlier or are left over belong to no party."""
    width = len(str(len(parts)))
    names = [f"party-{number:0{width}d}" for number in range(1, len(parts) + 1)]
    nobodys = (*(replace(one, party="") for one in corpus.dropped), *((Dropped(NOT_DEALT, over),) if over else ()))
    return Partition({name: corpus.of_party(rows, name) for name, rows in zip(names, parts, strict=True)}, Remainder(nobodys))
