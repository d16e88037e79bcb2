"""Reads a few documents from the file of their block, without mapping it: the cost is that of these documents alone.

A mini-batch from a large corpus finds nearly every document in another block. It compares no digest; the store does that.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from securetm.contracts import Array
from securetm.corpus.shards.block_layout import BlockLayout, BlockSize
from securetm.corpus.shards.shard_errors import DamagedShard

FEW = 8  # documents of one block that are read alone; for more of them the block is mapped
_NEAR = 32  # sentence ends read on each side of where one is expected


@dataclass(frozen=True)
class BlockInFile:
    """A block in an open file."""

    path: str
    file: int
    at: int  # its first byte
    layout: BlockLayout
    size: BlockSize

    def raw(self, column: str, first: int, last: int) -> bytes:
        """The entries of a column from `first` up to `last`, as they are in the file."""
        place, width = self.layout.entries(self.size)[column]
        found = os.pread(self.file, (last - first) * width, self.at + place + first * width)
        if len(found) < (last - first) * width:
            raise DamagedShard(self.path, "it is shorter than when it was written")
        return found

    def tokens_of(self, row: int) -> tuple[int, int]:
        """The places of the tokens of a document."""
        if not row:
            return 0, struct.unpack("<q", self.raw("token_ends", 0, 1))[0]
        return struct.unpack("<qq", self.raw("token_ends", row - 1, row + 1))

    def counts_of(self, row: int) -> tuple[int, int]:
        """The places of the counts of a document."""
        return struct.unpack("<ii", self.raw("starts", row, row + 2))

    def sentence_ends(self, start: int, stop: int) -> Array:
        """Where sentences end, beyond the first and up to the last of these places of tokens."""
        first = self._sentences_up_to(start)
        last = self._sentences_up_to(stop)
        return np.frombuffer(self.raw("sentence_ends", first, last), "<i8")

    def _sentences_up_to(self, place: int) -> int:
        """How many sentences end at this token or before: first looked for where equal sentences would end."""
        count, tokens = self.size.sentences, self.size.tokens
        guess = place * count // max(tokens, 1)
        low, high = max(0, guess - _NEAR), min(count, guess + _NEAR)
        near = np.frombuffer(self.raw("sentence_ends", low, high), "<i8")
        found = int(near.searchsorted(place, side="right"))
        if (found or not low) and (found < len(near) or high == count):
            return low + found
        return bisect_right(range(count), place, key=self._sentence_end)

    def _sentence_end(self, sentence: int) -> int:
        found: int = struct.unpack("<q", self.raw("sentence_ends", sentence, sentence + 1))[0]
        return found


def documents_alone(wanted: Iterable[tuple[BlockInFile, int]], layout: BlockLayout) -> dict[str, Array]:
    """The columns of documents, each named by its block and its row there, in that order."""
    plain, counted = layout.by_document, "starts" in layout.columns
    taken: dict[str, list[bytes]] = {column: [] for column in (*plain, "tokens", *(("words", "times") if counted else ()))}
    token_ends, starts, sentences = [0], [0], [np.empty(0, np.int64)]
    for block, row in wanted:
        for column in plain:
            taken[column].append(block.raw(column, row, row + 1))
        start, stop = block.tokens_of(row)
        taken["tokens"].append(block.raw("tokens", start, stop))
        sentences.append(block.sentence_ends(start, stop) + (token_ends[-1] - start))
        token_ends.append(token_ends[-1] + stop - start)
        if counted:
            begin, end = block.counts_of(row)
            for column in ("words", "times"):
                taken[column].append(block.raw(column, begin, end))
            starts.append(starts[-1] + end - begin)
    found = {column: layout.array(column, bytearray().join(pieces)) for column, pieces in taken.items()}
    found |= {"token_ends": np.array(token_ends[1:], np.int64), "sentence_ends": np.concatenate(sentences)}
    return {**found, "starts": np.array(starts, np.int32)} if counted else found
