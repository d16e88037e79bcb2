"""Gradients of the neural models in what was read: the layers of each, and the documents that the closed form finds in it.

It scores nothing, and it does not matter how the vector came to be seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np

from securetm.auditing.attack import RoundReconstruction
from securetm.auditing.parts.closed_form import GradientLayers, documents_in, linked_words, words_in
from securetm.auditing.reading import ReadVector
from securetm.contracts import Array
from securetm.models.neural.network_shape import NetworkShape
from securetm.models.neural.neural_model import NeuralTopicModel

GRADIENT, DOCUMENTS = "gradient", "documents"


def gradients(vectors: Iterable[ReadVector]) -> list[ReadVector]:
    """The vectors that are gradients of a neural model."""
    return [one for one in vectors if GRADIENT in one.blocks]


def layers_of(vector: ReadVector, model: object) -> GradientLayers:
    """The layers of the gradient that words pass through."""
    return GradientLayers.of(shape_of(vector, model).views(vector.blocks[GRADIENT]), vector.round.terms.grid)


def weights_of(vector: ReadVector, model: object) -> dict[str, Array]:
    """The weights that the question showed, layer by layer."""
    return shape_of(vector, model).views(np.asarray(vector.round.state["weights"], dtype=np.float64))


def shape_of(vector: ReadVector, model: object) -> NetworkShape:
    """The shapes of the layers."""
    return network_shape(vector.blocks[GRADIENT], model)


def network_shape(flat: Array, model: object) -> NetworkShape:
    """The shapes of the layers in a flat vector of weights or gradients."""
    network = cast(NeuralTopicModel, model)
    return NetworkShape.of(flat, network.hidden, network.n_topics, network.embedding_size, network.reads_words)


def embedding_gradient(vector: ReadVector, model: object) -> Array:
    """The gradient of the layer that reads embeddings: a row for each number of an embedding, a column for each unit."""
    found: Array = shape_of(vector, model).views(vector.blocks[GRADIENT])["embedding"]
    return found


def document_count(vector: ReadVector, most: int) -> int:
    """How many documents are in a gradient: the answer's own number, or the public batch size if that is impossible."""
    stated = float(vector.blocks[DOCUMENTS][0])
    return round(stated) if 1 <= stated <= most else min(vector.round.terms.batch or most, most)


def invert_gradient(vector: ReadVector, model: object, summands: int = 0) -> RoundReconstruction:
    """The documents and words in one vector. In a sum of `summands` vectors, words of one document alone are linked too."""
    layers = layers_of(vector, model)
    documents = documents_in(layers, document_count(vector, layers.words.shape[1]))
    groups = linked_words(layers, summands) if summands else []
    return RoundReconstruction(vector.round.serial, vector.party, tuple(documents), words_in(layers), tuple(groups))
