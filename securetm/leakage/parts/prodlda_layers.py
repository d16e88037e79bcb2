"""ProdLDA's gradients in what was read: the layers of each gradient, and the documents that the closed form finds in it.

It scores nothing, and it does not matter how the vector came to be seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np

from securetm.contracts import Array
from securetm.leakage.attack import RoundReconstruction
from securetm.leakage.parts.closed_form import GradientLayers, documents_in, linked_words, words_in
from securetm.leakage.reading import ReadVector
from securetm.models.neural.network_shape import NetworkShape
from securetm.models.neural.prodlda import ProdLDA

GRADIENT, DOCUMENTS = "gradient", "documents"


def gradients(vectors: Iterable[ReadVector]) -> list[ReadVector]:
    """The vectors that are gradients of ProdLDA."""
    return [one for one in vectors if GRADIENT in one.blocks]


def layers_of(vector: ReadVector, model: object) -> GradientLayers:
    """The layers of the gradient that words pass through."""
    return GradientLayers.of(shape_of(vector, model).views(vector.blocks[GRADIENT]), vector.round.terms.grid)


def weights_of(vector: ReadVector, model: object) -> dict[str, Array]:
    """The weights that the question showed, layer by layer."""
    return shape_of(vector, model).views(np.asarray(vector.round.state["weights"], dtype=np.float64))


def shape_of(vector: ReadVector, model: object) -> NetworkShape:
    """The shapes of the layers."""
    network = cast(ProdLDA, model)
    return NetworkShape.of(vector.blocks[GRADIENT], network.hidden, network.n_topics)


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
