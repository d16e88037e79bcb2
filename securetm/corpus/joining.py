"""Joins corpora into one, as a centre without a federation would have it. It runs on one machine and sends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from securetm.contracts import Array
from securetm.corpus.contents import content_digests
from securetm.corpus.corpus_errors import RepeatedKeys, UnlikeCorpora
from securetm.corpus.counted_documents import CountedDocuments

D = TypeVar("D", bound=CountedDocuments)


def joined(kind: type[D], corpora: Sequence[D], *, name: str = "") -> D:
    """All documents, in the order of the corpora, over the union of the vocabularies in alphabetical order."""
    if not corpora:
        return kind(sparse.csr_array((0, 0), dtype=np.int32), (), np.zeros(0, np.uint64), name=name)
    vocabulary = tuple(sorted(set().union(*(c.vocabulary for c in corpora))))
    parts = [c.project(vocabulary) for c in corpora]
    keys = np.concatenate([p.keys for p in parts])
    repeated = len(keys) - len(np.unique(keys))
    if repeated:
        raise RepeatedKeys(repeated)
    persons, people = _persons(parts)
    names: dict[str, Any] = {
        column: _strings([getattr(p, column) for p in parts], parts) for column in ("labels", "parties", "dates")
    }
    return kind(
        sparse.csr_array(sparse.vstack([p.counts for p in parts], format="csr", dtype=np.int32)),
        vocabulary,
        keys,
        **_order(parts),
        **names,
        embeddings=_embeddings(parts),
        persons=persons,
        people=people,
        texts=None if all(p.texts is None for p in parts) else np.concatenate([content_digests(p) for p in parts]),
        name=name or "+".join(dict.fromkeys(p.name for p in parts if p.name)),
        skipped=sum(p.skipped for p in parts),
        dropped=tuple(one for p in parts for one in p.dropped),
    )


def _order(parts: Sequence[CountedDocuments]) -> dict[str, Any]:
    if all(p.tokens is None for p in parts):
        return {}
    if any(p.tokens is None for p in parts):
        raise UnlikeCorpora("tokens")
    sizes = [0 if p.tokens is None else len(p.tokens) for p in parts]
    shifts = np.cumsum([0, *sizes[:-1]])
    ordered: dict[str, Any] = {"tokens": np.concatenate([p.tokens for p in parts if p.tokens is not None])}
    for column in ("token_ends", "sentence_ends"):
        ordered[column] = np.concatenate([getattr(p, column) + shift for p, shift in zip(parts, shifts, strict=True)])
    return ordered


def _strings(columns: Sequence[Array | None], parts: Sequence[CountedDocuments]) -> Array | None:
    """A column of strings that some corpora lack is empty there."""
    if all(column is None for column in columns):
        return None
    return np.concatenate([np.full(len(p), "") if c is None else c for c, p in zip(columns, parts, strict=True)])


def _embeddings(parts: Sequence[CountedDocuments]) -> Array | None:
    given = [p.embeddings for p in parts if p.embeddings is not None]
    if not given:
        return None
    if len(given) != len(parts) or len({e.shape[1] for e in given}) != 1:
        raise UnlikeCorpora("embeddings")
    return np.concatenate(given)


def _persons(parts: Sequence[CountedDocuments]) -> tuple[Array | None, str]:
    """The persons of all parts: equal numbers are one person only within one numbering.

    A document that names nobody becomes a person of its own: dropping the column would weaken the unit of privacy.
    """
    if all(p.persons is None for p in parts):
        return None, ""
    shifts: dict[str, int] = {}
    free = 0
    columns: list[Array] = []
    for part in parts:
        numbers = np.arange(len(part)) if part.persons is None else part.persons
        numbering = f"documents of {len(columns)}" if part.persons is None else part.people
        if numbering not in shifts:
            shifts[numbering] = free
            free += 1 + max((_highest(p) for p in parts if p.people == numbering), default=len(part))
        columns.append(numbers + shifts[numbering])
    return np.concatenate(columns).astype(np.int64), "+".join(sorted(shifts))


def _highest(part: CountedDocuments) -> int:
    return int(part.persons.max()) if part.persons is not None and len(part) else 0
