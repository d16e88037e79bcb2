"""Which documents of a pool stand behind the opened centres of semantic topics, and which of them moved.

Whoever has a text knows its embedding, and so in which sums it is in each round: centres are public. An opened sum then is
an equation for each number of each topic, and the unknowns are 0 or 1: who is there. A topic of few documents has more
equations than unknowns.
The difference of two rounds is a sum of those documents alone that moved from one topic to another, and these become few,
however many documents a topic has. A document that is alone in a topic, or in what a topic gained, needs no pool at all: its
words are those of the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, cast

import numpy as np

from securetm.auditing.attack import Attack, Challenge, Effort, GroundTruth, Proportion, Score
from securetm.auditing.attacks.embedding_inversion import NamedCandidates, PoolPlaces, took_part, whole_pool
from securetm.auditing.record import Example
from securetm.auditing.views import REQUEST, TOTAL, VOCABULARY, AdversaryView, NotTestable, questions_in, totals
from securetm.contracts import Array
from securetm.data_classes import dataclass, replace
from securetm.models.semantic import SemanticTopics, set_parts

RIGHT = "named documents that took part"
OF_FEW = "documents of small topics that are named"
OF_MOVED = "documents that moved between topics and are named"
ALONE = "documents alone in a sum whose words are all told"
_MOVED = 0.1  # the square of what changes of a document's parts in topics, from which on it counts as moved
_UNKNOWN = 0.25  # of the pool's own sum: half of what documents beyond it add on average, so that lone ones are not lost
_THERE = 0.7  # of a candidate, from which on it is named
_SWEEPS, _SETTLED = 100, 1e-3
_EVEN = 1e-3  # of the pool's mean second moment, added to each: directions that hardly vary are not blown up
_SURE = 0.01  # how near to 1 a document's size and the square of its words are where it is alone


@dataclass(frozen=True)
class CentreSums:
    """What an adversary has of one round, and where its candidates were in it."""

    serial: int
    number: int
    places: Array  # the topic of each candidate
    weights: Array  # candidates x topics: how much of each candidate's embedding is in each sum, if it is there
    sums: Array  # of the embeddings of each topic's documents
    sizes: Array
    words: Array  # of each topic, each document's divided by the root of their number; no rows where they are not seen
    deviation: float  # of the noise in each number of `sums`

    def since(self, before: CentreSums) -> CentreSums:
        """What moved: the difference to the round before."""
        return replace(
            self,
            weights=self.weights - before.weights,
            sums=self.sums - before.sums,
            sizes=self.sizes - before.sizes,
            words=self.words - before.words,
            deviation=float(np.hypot(self.deviation, before.deviation)),
        )

    def movement(self) -> float:
        return float(np.square(self.weights).sum())


@dataclass(frozen=True)
class NamedDocuments(NamedCandidates):
    """The candidates that are said to be there, and lists of words that one document alone is said to have."""

    among: Array  # the candidates that could be there, by public facts
    alone: tuple[Array, ...]


def pose(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
    """Asks about half of the training documents and as many held-out ones. Nobody has all texts: the others are unknown."""
    pool, places = whole_pool(truth, rng)
    inside = np.isin(np.arange(len(pool)), np.concatenate(list(places.trained.values())))
    members, others = np.flatnonzero(inside), np.flatnonzero(~inside)
    half = min(-(-len(members) // 2), len(others))
    if not half:
        raise NotTestable("no document was held out, so the pool could hold none that took no part")
    kept = np.sort(np.concatenate([rng.choice(side, half, replace=False) for side in (members, others)]))
    now = np.full(len(pool), -1)
    now[kept] = np.arange(len(kept))
    return Challenge(pool[kept], PoolPlaces({party: now[known] for party, known in places.trained.items()}))


def opened(view: AdversaryView) -> Iterator[CentreSums]:
    model = cast("SemanticTopics", view.public.model)
    parts = model.shares_of_parts
    for one in totals(view):
        sums, sizes, words = (np.asarray(one.blocks[part], dtype=np.float64) / share for part, share in parts.items())
        noise = one.round.terms.deviation * (one.round.terms.grid or 1.0) / parts["centres"]
        yield CentreSums(one.round.serial, one.round.number, *_topics(view, one.round.state), sums, sizes, words, noise)


def shared(view: AdversaryView) -> Iterator[CentreSums]:
    """The sums behind the centres of the next question, which are their directions.

    How long a sum of so many documents is follows from how alike the candidates are.
    """
    model, pool = cast("SemanticTopics", view.public.model), view.question
    asked = sorted(questions_in(view).values(), key=lambda one: one.number)
    for one, following in pairwise(asked):
        if following.number != one.number + 1:
            continue
        places, weights = _topics(view, one.state)
        sizes, there = np.asarray(following.state["sizes"], dtype=np.float64), np.bincount(places, minlength=weights.shape[1])
        alone = np.square(weights).sum(axis=0)
        together = np.square(weights.T @ pool).sum(axis=1) - alone
        squares = sizes * alone / np.maximum(there, 1) + sizes * (sizes - 1) * together / np.maximum(there * (there - 1), 1)
        sums = np.sqrt(np.maximum(squares, 0.0))[:, None] * model.checked(np.asarray(following.state["centres"]))
        yield CentreSums(one.serial, one.number, places, weights, sums, sizes, np.zeros((0, 0)), 0.0)


def _topics(view: AdversaryView, state: Any) -> tuple[Array, Array]:
    """The topic of each candidate under these centres, and how much of it each centre gets."""
    model = cast("SemanticTopics", view.public.model)
    near = view.question @ model.checked(state["centres"]).T
    weights = np.empty_like(near)
    set_parts(near, model.shared_within, weights)
    return near.argmax(axis=1), weights


def name_few(
    view: AdversaryView, effort: Effort, read: Callable[[AdversaryView], Iterator[CentreSums]] = opened
) -> tuple[NamedDocuments, ...]:
    """Names the candidates in topics of so many documents or fewer."""
    most = effort["documents"]
    return tuple(_named(view, seen, np.flatnonzero((np.rint(seen.sizes) <= most)[seen.places])) for seen in read(view))


def name_moved(view: AdversaryView, effort: Effort) -> tuple[NamedDocuments, ...]:
    """Names the candidates in so many differences of a round and the one before: in those in which candidates moved least."""
    differences = (seen.since(before) for before, seen in pairwise(opened(view)) if seen.number == before.number + 1)
    least = sorted(differences, key=CentreSums.movement)[: effort["differences"]]
    return tuple(_named(view, moved, np.flatnonzero(np.square(moved.weights).sum(axis=1) > _MOVED)) for moved in least)


def _named(view: AdversaryView, seen: CentreSums, among: Array) -> NamedDocuments:
    """The candidates with which the sums are explained best, if unknown documents are as the pool's, and noise is known."""
    pool = view.question
    moments, axes = np.linalg.eigh(pool.T @ pool / max(len(pool), 1))
    unknown = max(seen.movement() / len(seen.sums), 1.0)  # in a sum: as many as there are of the pool
    stretch = axes / np.sqrt(np.maximum(moments, 0.0) + _EVEN * moments.mean() + seen.deviation**2 / unknown)
    sums = seen.sums - _UNKNOWN * seen.weights.T @ pool
    there = presence(pool @ stretch, seen.weights, sums @ stretch, _SWEEPS)
    alone = []  # the words of the only document in a sum: all count alike, and their squares add up to 1
    for size, words in zip(seen.sizes, seen.words, strict=False):
        used = np.flatnonzero(words)
        if len(used) and abs(size - 1.0) < _SURE and (np.abs(words[used] / len(used) ** -0.5 - 1.0) < _SURE).all():
            alone.append(used)
    return NamedDocuments(seen.serial, "", among[there[among] > _THERE], among, tuple(alone))


def presence(vectors: Array, weights: Array, sums: Array, sweeps: int) -> Array:
    """How much of each vector is in the sums, from 0 to 1, by least squares. A vector adds its weight's part to each sum."""
    rest, found = sums.copy(), np.zeros(len(vectors))
    squares = np.square(vectors).sum(axis=1) * np.square(weights).sum(axis=1)
    asked = [(d, np.flatnonzero(weights[d])) for d in np.flatnonzero(squares)]
    for _ in range(sweeps):
        largest = 0.0
        for d, parts in asked:
            weight = weights[d, parts]
            now = min(max(found[d] + float(weight @ (rest[parts] @ vectors[d])) / squares[d], 0.0), 1.0)
            step = now - found[d]
            if step:
                rest[parts] -= np.outer(step * weight, vectors[d])
                found[d], largest = now, max(largest, abs(step))
        if largest < _SETTLED:
            break
    return found


def judge(guesses: tuple[NamedDocuments, ...], truth: GroundTruth, measure: str) -> Score:
    hits, named, there, whole, lists, examples = 0, 0, 0, 0, 0, list[Example]()
    for guess in guesses:
        real = np.intersect1d(took_part(guess, truth), guess.among)
        right = int(np.isin(guess.candidates, real).sum())
        hits, named, there = hits + right, named + len(guess.candidates), there + len(real)
        told = {words.tobytes() for words in guess.alone}
        held = {np.flatnonzero(counts).tobytes() for counts in truth.batch(guess.serial, guess.party)} if told else set()
        whole, lists = whole + len(told & held), lists + len(told)
        said = f"{right} of them and {len(guess.candidates) - right} others named among {len(guess.among):,} candidates"
        examples.append(Example(f"{len(real)} documents of round {guess.serial}", said, right == len(real) > 0))
    measures = {measure: Proportion(hits, there), RIGHT: Proportion(hits, named), ALONE: Proportion(whole, lists)}
    return Score(measures, tuple(examples[:6]))


_GIVEN = (
    "the texts of a pool of candidates, half of which took part and which hold half of the documents that did; the sentence "
    "model and the centres, which are public; not one document that surely took part"
)
_LIMITS = (
    "texts that are in no pool: it reads the words of those that are alone in a sum, and turns no embedding into text",
    "the words in a sum, which are more equations about each candidate",
    "all rounds together: it reads each sum, or each difference of two, by itself",
)
_CITATION = (
    "who is in a sum of known vectors: Dinur and Nissim 2003 (linear reconstruction), Homer et al. 2008; embeddings tell their "
    "texts: Morris et al. 2023 (arXiv 2310.06816)"
)

CENTRE_INVERSION = Attack(
    name="centre_inversion",
    title="Which documents of a pool stand behind the opened centres of small topics",
    citation=_CITATION,
    cost="under a second on one core for a thousand candidates",
    given=_GIVEN,
    needs=(REQUEST, TOTAL, VOCABULARY),
    models=("semantic",),
    measures={OF_FEW: "document", RIGHT: "named document", ALONE: "document alone"},
    bears_on=("singling out", "linking", "inference"),
    attack=name_few,
    judge=partial(judge, measure=OF_FEW),
    efforts=("documents",),
    pose=pose,
    limits=_LIMITS,
    remark="Half of the pool took part, so half of what is named at random is right. A secure sum hides whose a document is, "
    "and not that it took part.",
)

CENTRE_DIFFERENCE = replace(
    CENTRE_INVERSION,
    name="centre_difference",
    title="Which documents of a pool moved between topics from one round to the next",
    measures={OF_MOVED: "document", RIGHT: "named document", ALONE: "document alone"},
    attack=name_moved,
    judge=partial(judge, measure=OF_MOVED),
    efforts=("differences",),
    remark="Half of the pool took part, so half of what is named at random is right. Many documents in each topic do not help: "
    "in later rounds few of them move, and the difference of two sums is a sum of these.",
)

CENTRE_UPDATES = replace(
    CENTRE_INVERSION,
    name="centre_updates",
    title="Which documents of a pool stand behind the centres that every party is sent",
    needs=(REQUEST, VOCABULARY),
    attack=partial(name_few, read=shared),
    limits=(*_LIMITS, "the length of a sum, of which a centre shows the direction: it is guessed", "the last round"),
)
