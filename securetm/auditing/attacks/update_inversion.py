"""Words and documents from how the shared weights change: every party gets them each round, and they move by the sum.

The attack reads no message of another party, no opened sum and no key. It needs two consecutive questions. It cannot tell
which party a document came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from operator import attrgetter
from typing import cast

import numpy as np

from securetm.auditing.adversary_view import AdversaryView
from securetm.auditing.attack import Attack, Effort, RoundReconstruction
from securetm.auditing.parts.closed_form import GradientLayers, documents_in, linked_words, whole_documents, words_in
from securetm.auditing.parts.reconstruction_scores import MEASURES, judged
from securetm.auditing.parts.weight_updates import (
    MOST_ROWS,
    RecoveredGradient,
    edges,
    gradient_behind,
    groups_alike,
    inputs_along,
)
from securetm.auditing.reading import RoundQuestion, questions_in
from securetm.federation.questions import TRAIN
from securetm.models.neural.network_shape import NetworkShape
from securetm.models.neural.optimisers import ADAM
from securetm.models.neural.prodlda import ProdLDA

_SHARP = 1e-3  # the closed form for exact sums works where the step's error is a smaller share of each number


def attack(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    """Reads the steps between the questions of training."""
    model = cast(ProdLDA, view.public.model)
    steps = [pair for pair in _steps(view) if model.optimiser != ADAM or pair[0].number == 0]
    return tuple(_reconstructed(before, after, model, len(view.public.members)) for before, after in steps[: effort["steps"]])


def _steps(view: AdversaryView) -> Iterator[tuple[RoundQuestion, RoundQuestion]]:
    """Consecutive rounds: the weights of the second are those of the first after one step."""
    trained = (one for one in questions_in(view).values() if one.question == TRAIN and "weights" in one.state)
    found = sorted(trained, key=attrgetter("number"))
    return ((one, two) for one, two in pairwise(found) if two.number == one.number + 1)


def _reconstructed(before: RoundQuestion, after: RoundQuestion, model: ProdLDA, parties: int) -> RoundReconstruction:
    weights = np.asarray(before.state["weights"])
    undone = gradient_behind(weights, np.asarray(after.state["weights"]), model.optimiser, model.learning_rate)
    shape, held = NetworkShape.of(weights, model.hidden, model.n_topics), before.terms.batch * parties or model.hidden
    on_grid = before.terms.grid * np.sqrt(parties / 4.0)  # each party rounded its own sum, by half a step at most
    sums, errors = shape.views(held * undone.values), shape.views(np.hypot(held * undone.errors, on_grid))
    layers = GradientLayers.of(sums, 2.0 * float(np.median(errors["words"])))  # as if each number had been rounded
    occur = words_in(layers)
    rows = RecoveredGradient(sums["words"][occur], errors["words"][occur])
    sharp = undone.blur < _SHARP
    whole = tuple(documents_in(layers, held)) if sharp else ()
    if rows.blur < _SHARP:
        return RoundReconstruction(before.serial, "", whole, occur, tuple(linked_words(layers, 1)))
    if len(occur) > MOST_ROWS:
        return RoundReconstruction(before.serial, "", whole, occur)
    rays = edges(rows, groups_alike(rows), held)
    together = tuple(occur[group] for group, _ in rays if len(group) > 1)
    if rays and not sharp:  # the length of a ray is irrelevant: a document's input has length one
        whole = tuple(whole_documents(inputs_along(np.array([ray for _, ray in rays]), rows), layers, occur))
    return RoundReconstruction(before.serial, "", whole, occur, together)


ATTACK = Attack(
    name="update_inversion",
    title="Words and documents from how the shared weights move",
    citation="Zhu et al. 2019 (arXiv 1906.08935) and Geiping et al. 2020 (arXiv 2003.14053), on gradients; that a step of the "
    "weights shows their sum, and what Adam's first step keeps of sizes, is our own",
    cost="a second or two on one core for one step over a hundred documents",
    given="the model's settings and words, and how many parties and documents are in a sum",
    models=("prodlda",),
    measures=MEASURES,
    attack=attack,
    judge=judged,
    efforts=("steps",),
    limits=(
        "steps of Adam after the first, whose sizes and signs are mixed with those of earlier ones",
        "noise: it does not model noise, so it names every word and finds nothing more",
        f"which words belong together, where more than {MOST_ROWS:,} of them occur in a sum and the step blurs their rows",
        "rounds that are not consecutive",
        "subtracting the party's own documents, which it knows, from the sum",
        "finding out which documents took part where secret coins chose them: shares are then of all documents",
    ),
)
