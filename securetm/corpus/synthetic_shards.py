"""Writes a stream of synthetic documents as a corpus on disk, block by block. It reads no source, and has no text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.shards.block_columns import size_of_block
from securetm.corpus.shards.block_layout import BlockLayout, digest_of
from securetm.corpus.shards.manifest import WORDS, BlockEntry, Manifest, shard_name, write_whole
from securetm.corpus.synthetic_stream import SyntheticStream, stream_digests
from securetm.corpus.tokeniser import Tokeniser
from securetm.private_files import private_folder, writing

_SHARD_BLOCKS = 16  # blocks in a file
_LAYOUT = BlockLayout.of((), 0, counted=True)


def write_stream(stream: SyntheticStream, folder: Path, told: Callable[[], object] = lambda: None) -> Manifest:
    """Writes all documents; tells of each block. Equal streams give equal bytes."""
    private_folder(folder)
    blocks: list[BlockEntry] = []
    shards = [min(_SHARD_BLOCKS, stream.blocks - first) for first in range(0, stream.blocks, _SHARD_BLOCKS)]
    for number, held in enumerate(shards):
        with writing(folder / shard_name(number)) as file:
            for _ in range(held):
                columns = _columns(stream.block(len(blocks)), len(blocks) * stream.block_documents)
                blocks.append(BlockEntry(size_of_block(columns), _LAYOUT.write(file, columns)))
                told()
    words = write_whole(folder / WORDS, {"vocabulary": stream.vocabulary})
    manifest = Manifest(
        name=stream.name,
        block_documents=stream.block_documents,
        tokeniser=Tokeniser().settings() or {},
        columns={},
        names=(),
        width=0,
        words=stream.words,
        words_digest=digest_of(words),
        read=stream.documents,
        dropped=(),
        blocks=tuple(blocks),
        shards=tuple(shards),
    ).sealed()
    manifest.write(folder)
    return manifest


def _columns(documents: Corpus, first: int) -> dict[str, Array]:
    """The columns of a block. A document without text has digests all the same: of its number in the stream."""
    assert documents.tokens is not None
    assert documents.token_ends is not None
    assert documents.sentence_ends is not None
    counts, numbers = documents.counts, np.arange(first, first + len(documents))
    return {
        "rows": numbers,
        "texts": np.column_stack([documents.keys, ~documents.keys]).view(np.uint8),
        "digests": stream_digests(numbers),
        "copies": np.zeros(len(numbers), np.int32),
        "token_ends": documents.token_ends,
        "sentence_ends": documents.sentence_ends,
        "tokens": documents.tokens,
        "starts": counts.indptr,
        "words": counts.indices,
        "times": counts.data,
    }
