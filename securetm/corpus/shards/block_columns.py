"""Chooses, joins and reorders documents that are columns of plain arrays, as a block has them. It opens no file.

A column is a name and an array; `block_layout.py` lists them. What is computed here costs time by the chosen documents, and
not by the block that they are chosen from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from securetm.contracts import Array
from securetm.corpus.chosen_runs import order_of, runs_of
from securetm.corpus.shards.block_layout import BY_DOCUMENT, BlockSize

Columns = Mapping[str, Array]


def size_of_block(columns: Columns) -> BlockSize:
    """How much these columns hold."""
    nonzeros = len(columns["words"]) if "words" in columns else 0
    return BlockSize(len(columns["rows"]), len(columns["tokens"]), len(columns["sentence_ends"]), nonzeros)


def chosen_documents(columns: Columns, rows: Array) -> dict[str, Array]:
    """The documents with these row numbers, in that order, copied."""
    found = {name: columns[name][rows] for name in BY_DOCUMENT if name in columns}
    found |= order_of(columns["tokens"], columns["token_ends"], columns["sentence_ends"], rows)
    return found | (_chosen_counts(columns, rows) if "starts" in columns else {})


def _chosen_counts(columns: Columns, rows: Array) -> dict[str, Array]:
    begin, end = columns["starts"][rows], columns["starts"][rows + 1]
    starts = np.concatenate([[0], np.cumsum(end - begin)]).astype(np.int32)
    return {"starts": starts, "words": runs_of(columns["words"], begin, end), "times": runs_of(columns["times"], begin, end)}


def joined_documents(parts: Sequence[Columns]) -> dict[str, Array]:
    """All documents of these parts, one after the other."""
    if len(parts) == 1:
        return dict(parts[0])
    found = {name: np.concatenate([part[name] for part in parts]) for name in (*BY_DOCUMENT, "tokens") if name in parts[0]}
    before = np.cumsum([0, *(len(part["tokens"]) for part in parts[:-1])])
    for name in ("token_ends", "sentence_ends"):
        found[name] = np.concatenate([part[name] + shift for part, shift in zip(parts, before, strict=True)])
    return found | (_joined_counts(parts) if "starts" in parts[0] else {})


def _joined_counts(parts: Sequence[Columns]) -> dict[str, Array]:
    found = {name: np.concatenate([part[name] for part in parts]) for name in ("words", "times")}
    before = np.cumsum([0, *(len(part["words"]) for part in parts[:-1])])
    starts = [part["starts"][:-1] + shift for part, shift in zip(parts, before, strict=True)]
    return {**found, "starts": np.append(np.concatenate(starts), len(found["words"])).astype(np.int32)}


def counts_of(columns: Columns, words: int) -> Any:
    """The counts as a CSR array over so many words, without copying them."""
    return sparse.csr_array((columns["times"], columns["words"], columns["starts"]), shape=(len(columns["rows"]), words))
