"""What the closed form reads in one vector of ProdLDA, of a party or of several: documents, words, words that belong together.

It judges nothing, and does not care how the vector came to be seen.
"""

from __future__ import annotations

from securetm.leakage.attack import Reconstruction
from securetm.leakage.parts.closed_form import documents_in, linked_words, words_in
from securetm.leakage.parts.prodlda_layers import documents_said, layers_of
from securetm.leakage.reading import ReadVector


def invert_gradient(heard: ReadVector, model: object, summands: int = 0) -> Reconstruction:
    """The guess at one vector's documents; of a sum of so many vectors, words that stand in one document are linked too."""
    layers = layers_of(heard, model)
    documents = documents_in(layers, documents_said(heard, layers.words.shape[1]))
    groups = linked_words(layers, summands) if summands else []
    return Reconstruction(heard.round.serial, heard.party, tuple(documents), words_in(layers), tuple(groups))
