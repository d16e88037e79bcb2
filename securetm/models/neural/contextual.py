"""CombinedTM and ZeroShotTM: ProdLDA whose encoder reads a document's embedding, beside its words or instead of them.

CombinedTM is Bianchi et al.'s (ACL 2021), ZeroShotTM theirs of EACL 2021. Embeddings are given; none is computed here.
"""

from __future__ import annotations

from typing import ClassVar

from securetm.contracts import Reads
from securetm.data_classes import dataclass
from securetm.models.estimator import Count, Finite
from securetm.models.neural.neural_model import NeuralTopicModel


@dataclass(frozen=True)
class ContextualTopicModel(NeuralTopicModel):
    """A product of experts behind an encoder that reads embeddings, each scaled to one length.

    A document's words have length 1. An embedding spreads its length over all its numbers, and ZeroShotTM learns slowly at 1.
    """

    embedding_size: Count = 384  # numbers of a document's embedding; all-MiniLM-L6-v2 gives 384
    embedding_length: Finite = 4.0  # to which each embedding is scaled
    reads: ClassVar[frozenset[Reads]] = frozenset({Reads.COUNTS, Reads.EMBEDDINGS})


@dataclass(frozen=True)
class CombinedTM(ContextualTopicModel):
    """The encoder reads words and embedding. The first layer adds what it makes of each."""

    name: ClassVar[str] = "combined-tm"


@dataclass(frozen=True)
class ZeroShotTM(ContextualTopicModel):
    """The encoder reads the embedding alone, so a document has topics whatever its words are, in any language."""

    name: ClassVar[str] = "zeroshot-tm"
    reads_words: ClassVar[bool] = False
