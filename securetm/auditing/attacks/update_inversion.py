"""Words and documents from differences of weights: of the shared model between rounds, or of a party's own model.

Every party gets the shared weights each round, and they move by the sum of all answers. A party that trains alone for whole
epochs sends the difference itself.
"""

from __future__ import annotations

from functools import partial
from itertools import islice, pairwise
from operator import attrgetter
from typing import cast

import numpy as np
from scipy.optimize import nnls

from securetm.auditing.attack import Attack, Effort, RoundReconstruction
from securetm.auditing.parts.gradients import GradientLayers, documents_in, linked_words, whole_documents, words_in
from securetm.auditing.parts.reconstruction_scores import MEASURES, WORDS, judged
from securetm.auditing.views import (
    BY_PARTIES,
    REQUEST,
    VOCABULARY,
    AdversaryView,
    ReadVector,
    RoundQuestion,
    party_vectors,
    questions_in,
)
from securetm.contracts import Array
from securetm.data_classes import dataclass, replace
from securetm.federation.questions import TRAIN
from securetm.models.fednmf import FedNMF
from securetm.models.gradients import ADAM, TINY
from securetm.models.neural.network import NetworkShape
from securetm.models.neural.prodlda import ProdLDA

# ---- the gradient behind one step -----------------------------------------------------------------------------------
# A plain step gives the gradient up to rounding. Adam's first step divides each number by its own size plus a tiny constant;
# the constant keeps a little of the size, which is read here. Later steps of Adam mix several gradients and are not inverted.

_ARITHMETIC = 3e-7  # the rounding of the optimiser, as a share of a step
_NEAR = 0.98  # the cosine from which on two rays count as one
_OUTSIDE = 10.0  # how far outside the others' cone a ray must lie, in squares of its error
_SAME_SIGNS = 0.4  # the least correlation of signs before two rows are compared
_NEIGHBOURS = 200  # the nearest rays, which a mixture may consist of
MOST_ROWS = 2000  # words whose rows are compared with each other; beyond it words are only named


@dataclass(frozen=True)
class RecoveredGradient:
    """A mean gradient, and the possible error of each number."""

    values: Array
    errors: Array

    @property
    def blur(self) -> float:
        """The relative error of a typical number."""
        there = self.values != 0
        return float(np.median(self.errors[there] / np.abs(self.values[there]))) if there.any() else 0.0


def gradient_behind(before: Array, after: Array, optimiser: str, rate: float) -> RecoveredGradient:
    """The mean gradient of a plain step, or of Adam's first step."""
    moved = before.astype(np.float64) - after.astype(np.float64)
    rounding = np.maximum(np.spacing(np.abs(before)), np.spacing(np.abs(after))).astype(np.float64) / 2
    if optimiser != ADAM:
        return RecoveredGradient(moved / rate, rounding / rate)
    share = np.abs(moved) / rate  # of the full step: size / (size + TINY)
    off = rounding / rate + _ARITHMETIC * (before.dtype == np.float32) * share
    share = np.minimum(share, 1.0 - np.maximum(off, np.finfo(np.float64).eps))
    sizes = TINY * share / (1.0 - share)
    return RecoveredGradient(np.sign(moved) * sizes, (sizes + TINY) ** 2 / TINY * off)


def groups_alike(rows: RecoveredGradient) -> list[Array]:
    """Groups of rows that are multiples of each other within their errors, the largest first. A group may have one row."""
    precision = ((rows.values / rows.errors) ** 2).sum(axis=1)
    free, groups = np.ones(len(precision), dtype=bool), list[Array]()
    signs = np.sign(rows.values).astype(np.float32)
    for first in np.argsort(-precision, kind="stable"):  # the most precise first, so groups form around them
        if free[first]:
            near = np.flatnonzero(free & (signs @ signs[first] > _SAME_SIGNS * signs.shape[1]))
            times, off = _compared(
                RecoveredGradient(rows.values[near], rows.errors[near]), rows.values[first], rows.errors[first]
            )
            group = np.union1d(near[(times > 0) & (off < 1.0)], [first])
            free[group] = False
            groups.append(group)
    return sorted(groups, key=len, reverse=True)


def _compared(rows: RecoveredGradient, ray: Array, errors: Array) -> tuple[Array, Array]:
    """The multiple of the ray that fits each row, and the mean squared residual, relative to both errors."""
    weights = rows.errors**-2.0
    times = (weights * rows.values * ray).sum(axis=1) / (weights * ray * ray).sum(axis=1)
    spread = rows.errors**2 + np.square(times[:, None] * errors)
    return times, ((rows.values - times[:, None] * ray) ** 2 / spread).mean(axis=1)


def edges(rows: RecoveredGradient, groups: list[Array], most: int) -> list[tuple[Array, Array]]:
    """The groups that are extreme rays of the cone of all rows, each with its ray: no mixture of the others explains it."""
    parts = [RecoveredGradient(rows.values[group], rows.errors[group]) for group in groups]
    rays, found = np.array([_ray(part) for part in parts]), list[int]()
    for i, part in enumerate(parts):
        if len(found) == most:
            break
        nearest = np.argsort(-(rays @ rays[i]), kind="stable")[: _NEIGHBOURS + len(part.values)]
        others = rays[nearest[(rays[nearest] @ rays[i]) < _NEAR]]
        sizes = np.linalg.norm(part.values, axis=1, keepdims=True)
        precision = np.sqrt(((sizes / part.errors) ** 2).sum(axis=0))
        left = nnls((others * precision).T, rays[i] * precision, maxiter=100 * len(others))[1] if len(others) else np.inf
        outside = float(left) ** 2 / len(precision)
        if outside > _OUTSIDE and not any(rays[j] @ rays[i] >= _NEAR for j in found):
            found.append(i)
    return [(groups[i], rays[i]) for i in found]


def _ray(rows: RecoveredGradient) -> Array:
    """The common direction of parallel rows, weighted by their errors."""
    weights = rows.errors**-2.0
    ray = rows.values[int((weights * rows.values**2).sum(axis=1).argmax())]
    for _ in range(8):
        times = (weights * rows.values * ray).sum(axis=1) / (weights * ray * ray).sum(axis=1)
        ray = (weights * rows.values * times[:, None]).sum(axis=0) / (weights * times[:, None] ** 2).sum(axis=0)
    return np.asarray(ray / np.linalg.norm(ray))


def inputs_along(rays: Array, rows: RecoveredGradient) -> Array:
    """How much of each ray is in each row: rays x rows. Values that are too small for a word's input are 0."""
    precision = 1.0 / rows.errors
    solved = [nnls((rays * s).T, row * s, maxiter=100 * len(rays))[0] for row, s in zip(rows.values, precision, strict=True)]
    inputs = np.array(solved).T
    lengths = np.linalg.norm(inputs, axis=1, keepdims=True)
    return np.where(inputs > 0.04 * lengths, inputs, 0.0)  # of a document's length; a smaller input counts as an error


# ---- how the shared weights move ------------------------------------------------------------------------------------

_SHARP = 1e-3  # the closed form for exact sums works where the step's error is a smaller share of each number


def read_steps(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    """Reads the steps between the questions of training."""
    model = cast("ProdLDA", view.public.model)
    trained = (one for one in questions_in(view).values() if one.question == TRAIN and "weights" in one.state)
    in_order = pairwise(sorted(trained, key=attrgetter("number")))
    steps = [
        (one, two) for one, two in in_order if two.number == one.number + 1 and (model.optimiser != ADAM or one.number == 0)
    ]
    return tuple(_from_step(before, after, model, len(view.public.members)) for before, after in steps[: effort["steps"]])


def _from_step(before: RoundQuestion, after: RoundQuestion, model: ProdLDA, parties: int) -> RoundReconstruction:
    weights = np.asarray(before.state["weights"])
    undone = gradient_behind(weights, np.asarray(after.state["weights"]), model.optimiser, model.learning_rate)
    shape, held = NetworkShape.from_weights(weights, model.hidden, model.n_topics), before.terms.batch * parties or model.hidden
    on_grid = before.terms.grid * np.sqrt(parties / 4.0)  # each party rounded its own sum, by half a step at most
    sums, errors = shape.views(held * undone.values), shape.views(np.hypot(held * undone.errors, on_grid))
    layers = GradientLayers.from_blocks(sums, 2.0 * float(np.median(errors["words"])))  # as if each number had been rounded
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


UPDATE_INVERSION = Attack(
    name="update_inversion",
    title="Words and documents from how the shared weights move",
    citation="Zhu et al. 2019 (arXiv 1906.08935) and Geiping et al. 2020 (arXiv 2003.14053), on gradients; that a step of the "
    "weights shows their sum, and what Adam's first step keeps of sizes, is our own",
    cost="a second or two on one core for one step over a hundred documents",
    given="the model's settings and words, and how many parties and documents are in a sum",
    models=("prodlda",),
    measures=MEASURES,
    bears_on=("singling out", "inference"),
    attack=read_steps,
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


# ---- a party's own difference of ProdLDA ----------------------------------------------------------------------------
# A document's input is the same at every step, so the sum of plain gradient steps is a cone like that of one gradient. Adam's
# steps keep only the signs, and which words move alike.

_DIFFERENCE, _DOCUMENTS = "difference", "documents"
_EVEN = 2e-3  # how far Adam's steps along two multiples of one gradient may differ, as a share of them


def read_differences(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    model, differences = cast("ProdLDA", view.public.model), (one for one in party_vectors(view) if _DIFFERENCE in one.blocks)
    return tuple(_from_difference(one, model) for one in islice(differences, effort["answers"]))


def _from_difference(vector: ReadVector, model: ProdLDA) -> RoundReconstruction:
    stated = float(vector.blocks[_DOCUMENTS][0])
    held = round(stated) if 1 <= stated <= 1e6 else model.hidden
    shape = NetworkShape.from_weights(vector.blocks[_DIFFERENCE], model.hidden, model.n_topics)
    layers = GradientLayers.from_blocks(
        shape.views(-np.asarray(vector.blocks[_DIFFERENCE], dtype=np.float64)), vector.round.terms.grid
    )
    occur = words_in(layers)
    if model.optimiser == ADAM:
        # words of one document alone move alike at every step: in the same direction in each column, and about as far
        rows, linked = layers.words[occur], list[Array]()
        if 0 < len(rows) <= MOST_ROWS:
            errors = _EVEN * np.abs(rows) + _EVEN * float(np.median(np.abs(rows)))
            linked = [occur[group] for group in groups_alike(RecoveredGradient(rows, errors)) if len(group) > 1]
        return RoundReconstruction(vector.round.serial, vector.party, (), occur, tuple(linked))
    words = shape.views(np.asarray(vector.round.state["weights"]))["words"]
    step = max(vector.round.terms.grid, held * float(np.median(np.spacing(np.abs(words)))))  # the weights are rounded as well
    rounded = replace(layers, step=step)
    documents, groups = tuple(documents_in(rounded, held)), tuple(linked_words(rounded, 1))
    return RoundReconstruction(vector.round.serial, vector.party, documents, occur, groups)


LOCAL_EPOCHS = Attack(
    name="local_epochs",
    title="Words and documents from a party's model difference",
    citation="Geiping et al. 2020 (arXiv 2003.14053), on differences of models (McMahan et al. 2017, arXiv 1602.05629); that a "
    "document's input makes one ray of all its steps, and the links behind Adam, are our own",
    cost="under a second on one core for an answer over thousands of documents",
    given="the model's settings and words, and how many documents a party has",
    either=BY_PARTIES,
    models=("prodlda",),
    measures=MEASURES,
    bears_on=("singling out", "inference"),
    attack=read_differences,
    judge=judged,
    efforts=("answers",),
    limits=(
        "whole documents behind Adam, which leaves little of a gradient's size",
        "whole documents where a party has more of them than the model's first layer is wide",
        "noise: it does not model noise, so it names every word and finds nothing more",
        f"which words belong together, where more than {MOST_ROWS:,} of them move behind Adam",
        "the sum over all parties' differences, where the coordinator sees no single party's",
        "comparing the differences of several rounds over the same documents",
    ),
)


# ---- a party's own difference of a factorisation's topics -----------------------------------------------------------
# A gradient step raises a topic's weight of a word that documents hold, and lowers the weights of words that they lack. So the
# words whose weights rise are those that occur. No document is found: a difference is a sum over all of a party's.


def name_risen_words(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    """Names the words whose weights rise, in each party's own answer."""
    model, found = cast("FedNMF", view.public.model), []
    for vector in islice((one for one in party_vectors(view) if _DIFFERENCE in one.blocks), effort["answers"]):
        topics: Array = model.split(np.asarray(vector.blocks[_DIFFERENCE], dtype=np.float64))[0]
        risen = topics.reshape(model.n_topics, -1).sum(axis=0) > 0
        found.append(RoundReconstruction(vector.round.serial, vector.party, words=np.flatnonzero(risen)))
    return tuple(found)


FACTOR_UPDATES = Attack(
    name="factor_updates",
    title="Which words a party uses, from its own difference of a factorisation's topics",
    citation="the step of FedNMF itself (Si et al. 2022, Algorithm 1): what a gradient adds to a topic is a sum of documents",
    cost="no time at all",
    given="the words, and the model's settings",
    needs=(REQUEST, VOCABULARY),
    either=BY_PARTIES,
    models=("fednmf",),
    measures=WORDS,
    bears_on=("inference",),
    attack=name_risen_words,
    judge=partial(judged, wanted=WORDS),
    efforts=("answers",),
    limits=(
        "which words stand in one document",
        "how often a word occurs",
        "several rounds of one party, whose differences show more together than each alone",
    ),
)
