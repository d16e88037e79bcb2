"""The layers of ProdLDA's gradient, from the blocks of a vector as anybody who knows the model cuts it. It inverts nothing."""

from __future__ import annotations

from typing import cast

from securetm.leakage.parts.closed_form import GradientLayers
from securetm.leakage.reading import ReadVector
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.neural.prodlda_losses import Shape

GRADIENT, DOCUMENTS = "gradient", "documents"


def layers_of(heard: ReadVector, model: object) -> GradientLayers:
    """The parts of the gradient that words pass through."""
    parts = shape_of(heard, model).views(heard.blocks[GRADIENT])
    return GradientLayers(parts["words"], parts["words_bias"], parts["topics"], parts["background"], heard.round.step)


def shape_of(heard: ReadVector, model: object) -> Shape:
    """Where each layer lies."""
    network = cast(ProdLDA, model)
    return Shape.of(heard.blocks[GRADIENT], network.hidden, network.n_topics)


def documents_said(heard: ReadVector, most: int) -> int:
    """How many documents are in a gradient: the answer says so itself; where that is no such number, the batch is public."""
    said = float(heard.blocks[DOCUMENTS][0])
    return round(said) if 1 <= said <= most else min(heard.round.terms.batch or most, most)
