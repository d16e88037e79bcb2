"""The contract of documents in blocks: runs of a party's documents that are answered one after another, or by many workers.

A block is the unit of an answer and of what a party remembers. It never changes which block a document is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from securetm.contracts.model import Documents
from securetm.contracts.terms import Memory

BLOCK_DOCUMENTS = 65_536  # documents in a block, where a corpus does not say otherwise


ON_DISK = "file"  # where a block wrote its memory to disk: the file's name as bytes, and nothing else, is what is kept of it


@dataclass(frozen=True)
class Keeping:
    """Under which name a block writes down what the party remembers of it after an answer; an empty one: it stays in memory.

    Names of versions rise with the answers. A block deletes its earlier versions that nobody needs, and never a later one: a
    worker that was given up may come back.
    """

    folder: str = ""  # of this run, beside each shard: a name, not a path
    version: str = ""  # of this answer; no other answer of the run has it
    needed: frozenset[str] = field(default=frozenset(), repr=False)  # files that the party may go back to, by name


IN_MEMORY = Keeping()


class DocumentBlock(Protocol):
    """One block, perhaps with only some of its documents. It can be pickled, and is then read where it arrives."""

    @property
    def number(self) -> int: ...  # in the whole corpus
    @property
    def shard(self) -> str: ...  # on which file or folder it lies; empty: it is in memory
    def read(self) -> Documents: ...
    def recall(self, kept: Memory) -> Memory: ...  # what the party remembers of it, from what `keep` returned
    def keep(self, memory: Memory, keeping: Keeping) -> Memory: ...  # that memory, or `ON_DISK` and a file's name


class BlockedDocuments(Documents, Protocol):
    """A party's documents, in memory or not. `select`, `project`, `split` and `halves` leave each document in its block."""

    def in_blocks(self) -> Self: ...  # as a party's whole corpus, from which all else is made
    def blocks(self) -> Sequence[DocumentBlock]: ...  # those with a document, by number; at least one, perhaps empty
    def gathered(self) -> Any: ...  # all documents in memory, in their order; refused where they are too many
