"""A block that is put together of short runs of its documents: its columns are lists of arrays that follow one another.

So no more is in memory than the block itself and one run. It reads no part and writes no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from securetm.contracts import Array
from securetm.corpus.counted_documents import counted_tokens
from securetm.corpus.shards.block_columns import Columns, chosen_documents
from securetm.corpus.shards.block_layout import BlockSize

_RUN = 1 << 17  # words of a run
BYTES_OF_RUN = 64 * _RUN  # in memory while a run is counted


@dataclass
class BlockPieces:
    """The columns of a block so far, with words by their place in the alphabet, and their counts."""

    place: Array  # in the alphabet, by the number of the word
    size: BlockSize = field(default_factory=lambda: BlockSize(0, 0, 0, 0))
    columns: dict[str, Array | list[Array]] = field(default_factory=dict, repr=False)

    def add(self, run: Columns) -> None:
        """Adds the documents of a run."""
        tokens, size = self.place[run["tokens"]], self.size
        counts = counted_tokens(tokens, run["token_ends"], len(self.place))
        starts = counts.indptr[1 if size.documents else 0 :] + size.nonzeros
        ends = {name: run[name] + size.tokens for name in ("token_ends", "sentence_ends")}
        counted = {"starts": starts.astype(np.int32), "words": counts.indices, "times": counts.data}
        for name, piece in {**run, **ends, "tokens": tokens, **counted}.items():
            held = self.columns.setdefault(name, [])
            assert isinstance(held, list)
            held.append(piece)
        self.size = BlockSize(
            size.documents + len(run["rows"]),
            size.tokens + len(tokens),
            size.sentences + len(run["sentence_ends"]),
            size.nonzeros + len(counts.data),
        )


def runs_of_documents(columns: Columns, rows: Array) -> Iterator[dict[str, Array]]:
    """The documents with these row numbers, in that order, copied a run at a time."""
    whole = np.cumsum(np.diff(columns["token_ends"], prepend=0)[rows])
    first = 0
    while first < len(rows):
        before = int(whole[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(whole, before + _RUN, side="right")))
        yield chosen_documents(columns, rows[first:last])
        first = last
