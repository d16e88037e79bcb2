"""Which documents of a pool took part in a gradient, by the sentence embeddings that an encoder read.

The gradient of the layer that reads embeddings is a sum of outer products, one for each document: its embedding times the
gradient at that layer. So its columns lie in the space that the embeddings of these documents span. An attacker with a pool of
candidate texts embeds them with the public sentence model, and asks which of them lie in that space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from securetm.auditing.attack import Attack, Challenge, Effort, GroundTruth, Proportion, Score
from securetm.auditing.parts.gradients import GRADIENT, directions, document_count, enough_gradients, shape_of
from securetm.auditing.record import Example
from securetm.auditing.views import (
    BY_PARTIES,
    REQUEST,
    TOTAL,
    VOCABULARY,
    AdversaryView,
    NotTestable,
    ReadVector,
    party_vectors,
    totals,
)
from securetm.contracts import Array
from securetm.data_classes import dataclass, replace

NAMED = "documents of a round that are named in the pool"
RIGHT = "named documents that took part"
MODELS = ("combined-tm", "zeroshot-tm")
_EVEN = 1e-3  # of the mean second moment, added to each: directions that hardly vary are not blown up


@dataclass(frozen=True)
class NamedCandidates:
    """The candidates that are said to be in one vector, by their places in the pool; the likeliest first."""

    serial: int
    party: str
    candidates: Array


@dataclass(frozen=True)
class PoolPlaces:
    """Where each document is in the pool. Documents with the same embedding are one candidate."""

    trained: dict[str, Array]  # party -> the candidate that each of its training documents is


def pose(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
    return Challenge(*whole_pool(truth, rng))


def whole_pool(truth: GroundTruth, rng: np.random.Generator) -> tuple[Array, PoolPlaces]:
    """The embeddings of all training and all held-out documents, shuffled, and where each training document is among them."""
    sides = [*truth.embeddings.items(), *truth.other_embeddings.items()]
    if not sides:
        raise NotTestable("the documents of this run have no embeddings")
    wide = np.concatenate([np.asarray(rows, dtype=np.float64) for _, rows in sides])
    unit = np.round(wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12), 6)  # so that equal texts are equal
    pool, place = np.unique(unit, axis=0, return_inverse=True)
    order = rng.permutation(len(pool))
    moved = np.argsort(order)[place.ravel()]
    ends = np.cumsum([len(rows) for _, rows in sides])[:-1]
    return pool[order], PoolPlaces(dict(zip(truth.embeddings, np.split(moved, ends), strict=False)))


def attack(
    view: AdversaryView, effort: Effort, read: Callable[[AdversaryView], Iterator[ReadVector]] = party_vectors
) -> tuple[NamedCandidates, ...]:
    """Names the candidates in each party's own gradient, or in the opened sums, until these hold enough documents."""
    found, most = list[NamedCandidates](), effort["documents"]
    for one in enough_gradients(read(view), most):
        gradient = shape_of(one, view.public.model).views(one.blocks[GRADIENT])["embedding"]
        named = candidates_in(gradient, view.question, document_count(one, most))
        found.append(NamedCandidates(one.round.serial, one.party, named))
    return tuple(found)


def candidates_in(gradient: Array, pool: Array, documents: int) -> Array:
    """The candidates that lie nearest to the space of the gradient's columns, as many as there are documents in it.

    `gradient` has a row for each number of an embedding and a column for each unit of the layer. With more documents than units
    the space is a part of theirs only, and a document of the sum lies no longer in it, but nearer than others. Both are first
    stretched so that the pool is spread alike in all directions: else a space of no meaning would lie near whole subjects.
    """
    wide = np.asarray(gradient, dtype=np.float64)
    if not np.isfinite(wide).all() or not wide.any():
        return np.zeros(0, dtype=np.int64)
    moments, axes = np.linalg.eigh(pool.T @ pool / max(len(pool), 1))
    stretch = (axes / np.sqrt(np.maximum(moments, 0.0) + _EVEN * moments.mean())) @ axes.T
    left, strengths, _ = np.linalg.svd(stretch @ wide, full_matrices=False)
    inside, spread = left[:, : min(documents, len(strengths))], directions(pool @ stretch)
    near = np.square(spread @ inside).sum(axis=1)
    return np.argsort(-near, kind="stable")[:documents]


def judge(guesses: tuple[NamedCandidates, ...], truth: GroundTruth) -> Score:
    """Compares the named candidates with the documents that may have taken part.

    Where secret coins choose who takes part, that is nearly the whole pool. So only as many names count as are right beyond
    what as many names at random would be.
    """
    hits, named, beyond, there, examples = 0, 0, 0, 0, list[Example]()
    size = sum(map(len, (*truth.embeddings.values(), *truth.other_embeddings.values())))
    for guess in guesses:
        real = took_part(guess, truth)
        right = int(np.isin(guess.candidates, real).sum())
        hits, named, there = hits + right, named + len(guess.candidates), there + len(real)
        by_luck = -(-len(guess.candidates) * len(real) // max(size, 1))
        beyond += max(right - by_luck, 0)
        said = f"{right} of them and {len(guess.candidates) - right} others named among {size:,} candidates"
        examples.append(Example(f"{len(real)} documents of round {guess.serial}", said, right == len(real) > 0))
    measures = {NAMED: Proportion(beyond, there), RIGHT: Proportion(hits, named)}
    return Score(measures, tuple(examples[:6]))


def took_part(guess: NamedCandidates, truth: GroundTruth) -> Array:
    """The candidates whose documents took part in a round at a party (at any honest one, for party "")."""
    places: Any = truth.answer
    parties = truth.honest(places.trained) if not guess.party else {guess.party: places.trained[guess.party]}
    rows = [known[truth.drawn[guess.serial, name]] for name, known in parties.items() if (guess.serial, name) in truth.drawn]
    return np.unique(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64)


_MEASURES = {NAMED: "document", RIGHT: "named document"}
_GIVEN = (
    "the texts of a pool of candidates, which all documents of the parties are among; the sentence model, which is public; "
    "and how many documents an answer holds"
)
_LIMITS = (
    "documents that are not in the pool: their embedding is found, and no text",
    "more documents in a sum than the layer has units: there it names the candidates that lie nearest",
    "noise: it does not model noise",
)
_CITATION = (
    "gradients of a linear layer span what went into it: Geiping et al. 2020 (arXiv 2003.14053); subspaces of batches: "
    "Petrov et al. 2024 (arXiv 2405.15586), for tokens of language models"
)

EMBEDDING_INVERSION = Attack(
    name="embedding_inversion",
    title="Which documents of a pool took part, from the embeddings in one party's gradient",
    citation=_CITATION,
    cost="under a second on one core for one answer and ten thousand candidates",
    given=_GIVEN,
    needs=(REQUEST, VOCABULARY),
    either=BY_PARTIES,
    models=MODELS,
    measures=_MEASURES,
    bears_on=("linking", "inference"),
    attack=attack,
    judge=judge,
    efforts=("documents",),
    pose=pose,
    limits=_LIMITS,
)

EMBEDDING_SUM_INVERSION = replace(
    EMBEDDING_INVERSION,
    either=(),
    name="embedding_sum_inversion",
    title="Which documents of a pool took part, from the embeddings in the sum over all parties",
    cost="under a second on one core for one sum and ten thousand candidates",
    needs=(REQUEST, TOTAL, VOCABULARY),
    attack=partial(attack, read=totals),
    remark="A secure sum hides whose document it is, and not that it took part: a sum over fewer documents than the layer has "
    "units names them all.",
)
