"""ProdLDA without batch normalisation, so that its gradient is a sum over documents: the federation's neural topic model.

It is Srivastava and Sutton's (2017) network: words go in, and a product of experts makes words of topic shares. With
`decoder = embedded` both ends go through frozen public word vectors (the embedded topic model of Dieng, Ruiz and Blei 2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from securetm.contracts import Array, Public, State
from securetm.data_classes import dataclass
from securetm.models.estimator import Count, Positive
from securetm.models.neural.cpu_kernels import FusedKernels, WordBatch, bags, with_embeddings
from securetm.models.neural.decoders import Decoder, EmbeddedExperts
from securetm.models.neural.neural_model import NeuralTopicModel
from securetm.models.public_knowledge import FREQUENCIES, MOST_DIMENSIONS, VECTORS, PublicKnowledge, public_fits, without_public
from securetm.settings import one_of

FULL, EMBEDDED = "full", "embedded"
DecoderName = Annotated[str, one_of(FULL, EMBEDDED)]
_LENGTH = 4.0  # of what a document's words give in the space of the vectors


@dataclass(frozen=True)
class ProdLDA(NeuralTopicModel):
    """An additive ProdLDA.

    Each document's logits are layer-normalised to deviation `gain` and added to a learned background. A small `gain` keeps
    topics apart; a larger one fits held-out words better. Settings were chosen on long posts and short titles, and judged on
    other corpora (`python -m lab reproduce additive-prodlda`).

    The embedded decoder has 64 weights a topic and one a word, and the encoder reads 64 numbers of a document.
    Vectors are frozen: they are in the state of whoever keeps the model, each party has its own copy, and no answer holds them.
    Without public vectors, as in `fit`, words have directions drawn from the seed.
    """

    batch: Count = 32  # documents of each party in a step
    word_spread: Positive = 0.2  # largest deviation of a word's weights over the topics, restored after each step
    relevance: float = 0.5  # how much of the background counts for a topic's words
    learning_rate: Positive = 5e-3  # of a step
    decoder: DecoderName = FULL  # full: a weight for each word in each topic; embedded: through frozen public word vectors
    name: ClassVar[str] = "prodlda"
    equal_words: ClassVar[bool] = False
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20, "batch": 64}
    # Under a budget a step is mostly noise: shorter ones of the topics wander less.
    budget_defaults: ClassVar[Mapping[str, Any]] = {"learning_rate": 2e-3, "background_rate": 5.0}

    def decoding(self, state: State) -> Decoder:
        if not self.needs_public:
            return super().decoding(state)
        frequencies = state.get(FREQUENCIES)
        logs = np.zeros(len(state[VECTORS])) if frequencies is None else np.log(frequencies)
        on = self._kernels.device
        return EmbeddedExperts(self.gain, self._vectors(state).to(on), torch.from_numpy(logs.astype(self.dtype)).to(on))

    @property
    def needs_public(self) -> bool:
        return self.decoder == EMBEDDED

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """Fresh weights. An embedded decoder has directions of its own for the words until it is given public vectors."""
        fresh = super().start(vocabulary, rng)
        return fresh if not self.needs_public else {**fresh, **_unknown(len(vocabulary), self.n_topics, rng).arrays()}

    def started(self, vocabulary: Sequence[str], public: Public, rng: np.random.Generator) -> State:
        """Fresh weights; topics begin at the middles of the public ones."""
        if not self.needs_public:
            return super().started(vocabulary, public, rng)
        fresh = without_public(self.start(vocabulary, rng))
        weights = fresh["weights"].copy()
        apart = np.log(public.topics) - np.log(public.topics).mean(axis=0)
        middles = _padded(public.vectors).T.astype(np.float64) @ apart.T  # dimensions x topics
        lengths = np.sqrt(np.square(middles).sum(axis=0))
        self._shape(weights).views(weights)["topics"][...] = (middles / np.where(lengths > 0, lengths, 1.0)).T
        return {**fresh, "weights": self.restored(weights), **public.arrays()}

    def fits(self, state: State, words: int) -> bool:
        if not self.needs_public:
            return super().fits(state, words)
        fresh = without_public(self.start([f"word{number}" for number in range(words)], np.random.default_rng(0)))
        like = {name: (array.shape, array.dtype) for name, array in fresh.items()}
        found = {name: (array.shape, array.dtype) for name, array in without_public(state).items()}
        return VECTORS in state and found == like and public_fits(state, self.n_topics, words)

    def sizes(self) -> tuple[int, int, int, bool, int]:
        """Behind vectors the encoder and each topic have as many numbers as these, whatever the vocabulary."""
        return (self.hidden, self.n_topics, MOST_DIMENSIONS, False, MOST_DIMENSIONS) if self.needs_public else super().sizes()

    def read(self, state: State, counts: Any, embeddings: Array | None) -> WordBatch:
        """Counts; for the embedded encoder also what each document's words give together, by itself."""
        if not self.needs_public:
            return super().read(state, counts, embeddings)
        batch, vectors = bags(counts, self.dtype), self._vectors(state)
        return with_embeddings(batch, FusedKernels().embed(batch, vectors, torch.zeros_like(vectors[0])).numpy(), _LENGTH)

    def _vectors(self, state: State) -> torch.Tensor:
        return torch.from_numpy(_padded(state[VECTORS]).astype(self.dtype))


def _padded(vectors: Array) -> Array:
    """Vectors with zeros behind, so that weights have one size whatever the source."""
    padded: Array = np.zeros((len(vectors), MOST_DIMENSIONS), vectors.dtype)
    padded[:, : vectors.shape[1]] = vectors
    return padded


def _unknown(words: int, topics: int, rng: np.random.Generator) -> PublicKnowledge:
    """What stands in for public knowledge: directions drawn for the words, and topics in which all are alike."""
    directions = rng.normal(size=(words, MOST_DIMENSIONS))
    vectors = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    return PublicKnowledge(np.full((topics, words), 1.0 / words), vectors.astype(np.float32))
