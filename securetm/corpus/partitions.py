"""Divides the documents of one place among parties, to try a federation on one machine. A real federation does not use it.

Who holds a document is drawn from its key and from public numbers, and no other document moves it. So sizes are about equal,
not exactly. Shares of labels follow a Dirichlet distribution, as Yurochkin et al. (2019) draw them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

import numpy as np

from securetm.contracts import Array
from securetm.corpus.corpus import Corpus, least_keys
from securetm.corpus.document_names import mixed, uniform
from securetm.corpus.records import Dropped, counted
from securetm.data_classes import dataclass, replace
from securetm.errors import BadSetting, Mistake

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


def left_out(corpora: Mapping[str, Corpus]) -> dict[str, Any]:
    """The dropped documents, ready for JSON: of the source, and of each party by its name."""
    remainder = corpora.remainder if isinstance(corpora, Partition) else Remainder()
    dropped = {name: counted(corpus.dropped) for name, corpus in corpora.items()}
    whole = [*remainder.nobodys, *(one for corpus in corpora.values() for one in corpus.dropped)]
    read = sum(map(len, corpora.values())) + sum(one.documents for one in whole)
    source = {"read": read, "without_a_party": remainder.without_a_party, "unnamed": remainder.unnamed}
    return {"source": {**source, "dropped": counted(remainder.nobodys, named=True)}, "dropped": dropped}


def without_any(corpora: Mapping[str, Corpus], words: Iterable[str]) -> dict[str, int]:
    """The number of documents of each party that have none of these words."""
    known = frozenset(words)
    found = {}
    for name, corpus in corpora.items():
        there = np.fromiter((word in known for word in corpus.vocabulary), np.int64, len(corpus.vocabulary))
        found[name] = sum(int(np.sum(part.counts @ there == 0)) for _, part in corpus.parts())
    return found


def by_column(corpus: Corpus, column: Literal["party", "label", "date"] = "party") -> dict[str, Corpus]:
    """One party per name in that column, in the order of the names; documents that name none go to one called "unnamed"."""
    corpus = corpus.in_source_order()
    columns = {"party": corpus.parties, "label": corpus.labels, "date": corpus.dates}
    if column not in columns:
        raise BadSetting("by_column", "column", repr(column), f"must be one of {tuple(columns)}")
    entries = columns[column]
    if entries is None:
        raise no_column(column)
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


def equal(corpus: Corpus, parties: int, seed: int = 0, *, persons_whole: bool = True) -> dict[str, Corpus]:
    """Deals documents out at random, each by its key alone, a person's together. Parties are of about one size, not exactly."""
    _check_enough(corpus, parties)
    corpus = corpus.in_source_order()
    member = (_places(_owners(corpus, persons_whole), seed) * parties).astype(np.int64)
    return _named(corpus, parties, member)


def dirichlet(corpus: Corpus, parties: int, alpha: float, seed: int = 0, *, persons_whole: bool = True) -> dict[str, Corpus]:
    """Parties whose mixtures of labels differ: of each label, party p holds the share q_p, where q ~ Dir(alpha, ..., alpha).

    The seed and the label decide on q, and a document's key on its party. A person's documents go where the one with the least
    key goes. alpha = inf deals equally; alpha near 0 gives each label to one party.
    """
    _check_enough(corpus, parties)
    corpus = corpus.in_source_order()
    labels = corpus.labels
    if labels is None:
        raise no_column("label")
    if not alpha > 0:
        raise BadSetting("dirichlet", "alpha", str(alpha), "must be above zero")
    owners = _owners(corpus, persons_whole)
    if persons_whole and corpus.persons is not None:  # the label of the document whose key decides
        order = np.argsort(corpus.keys)
        labels = labels[order[np.searchsorted(corpus.keys, owners, sorter=order)]]
    drawn, member = _places(owners, seed), np.empty(len(corpus), dtype=np.int64)
    for label in np.unique(labels):
        own = labels == label
        ends = np.cumsum(_shares_of(str(label), parties, alpha, seed))
        member[own] = np.minimum(np.searchsorted(ends, drawn[own] * ends[-1], side="right"), parties - 1)
    return _named(corpus, parties, member)


def _owners(corpus: Corpus, persons_whole: bool) -> Array:
    """The key that decides about each document: the least one of its person, or its own."""
    return least_keys(corpus.keys, corpus.persons if persons_whole else None)


def _places(owners: Array, seed: int) -> Array:
    """A fraction for each document. Whether it is held out is drawn from the same keys, but with other words."""
    return uniform(mixed(owners, f"party of a partition, {seed}"))


def _shares_of(label: str, parties: int, alpha: float, seed: int) -> Array:
    """How much of a label each party holds. Labels that other documents have play no part."""
    if np.isinf(alpha):
        return np.full(parties, 1.0 / parties)
    digest = hashlib.blake2b(label.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    rng = np.random.default_rng([seed, int.from_bytes(digest, "little")])
    drawn = rng.dirichlet(np.full(parties, max(alpha, np.finfo(float).tiny)))
    if not np.isfinite(drawn).all() or drawn.sum() == 0.0:  # alpha is too small for floating point: one party
        drawn = np.eye(parties)[rng.integers(parties)]
    return drawn


def _check_enough(corpus: Corpus, parties: int) -> None:
    if parties < 1 or len(corpus) < parties:
        raise BadSetting("[corpus]", "parties", str(parties), f"must be 1 to {len(corpus)}, the number of documents")


def _named(corpus: Corpus, parties: int, member: Array) -> dict[str, Corpus]:
    """Numbered parties. Documents that were dropped earlier belong to no party."""
    width = len(str(parties))
    names = [f"party-{number:0{width}d}" for number in range(1, parties + 1)]
    parts = [np.flatnonzero(member == number) for number in range(parties)]
    if empty := [name for name, rows in zip(names, parts, strict=True) if not len(rows)]:
        problem = f"leaves {empty[0]} without a document"
        instead = "each document's party is drawn: take fewer parties, another seed, or with dirichlet a larger alpha"
        raise BadSetting("[corpus]", "parties", str(parties), problem, instead=instead)
    nobodys = tuple(replace(one, party="") for one in corpus.dropped)
    return Partition({name: corpus.of_party(rows, name) for name, rows in zip(names, parts, strict=True)}, Remainder(nobodys))


def no_column(column: str) -> Mistake:
    """Documents without the column by which they would be divided."""
    return Mistake(
        "the documents have no {column}",
        hint="name the column that holds it: --{column} COLUMN (in a plan {column} of [corpus], in Python {column}=)",
        column=column,
    )
