"""From the score of an attack to a figure with its interval; and its control, the same view with random numbers in it.

What an attack finds in the control is chance. A result that is no better is no evidence against a claim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from securetm.aggregation.vectors import wire_type
from securetm.auditing.attack import Estimate, Proportion, Score, broken_attack
from securetm.auditing.record import DOCUMENT, AttackOutcome, Measured
from securetm.auditing.verdicts import clopper_pearson, judged_alone
from securetm.auditing.views import (
    BY_PARTIES,
    REQUEST,
    SEALED,
    SIZES,
    TIMES,
    TOTAL,
    AdversaryView,
    Message,
    first_part,
    opened_type,
    questions_in,
    vector_at,
)
from securetm.contracts import Array, Terms
from securetm.federation.wire import wire


def measured(name: str, unit: str, worth: Proportion | Estimate, confidence: float, reachable: float = 1.0) -> Measured:
    """A measure with its exact interval. An ideal attacker recovers only documents that took part."""
    if isinstance(worth, Estimate):
        value = None if math.isnan(worth.value) else worth.value
        return Measured(name, unit, value, worth.low, worth.high, worth.ceiling)
    confidence = 1.0 - (1.0 - confidence) * worth.doubt
    low, high = clopper_pearson(worth.hits, worth.of, confidence)
    most = round(worth.of * reachable) if unit == DOCUMENT else worth.of
    ceiling = clopper_pearson(most, worth.of, confidence)[0]
    share = worth.hits / worth.of if worth.of else None
    return Measured(name, unit, share, low, high, ceiling, worth.hits, worth.of)


def is_sound(worth: Proportion | Estimate) -> bool:
    """Whether it can be judged: no verdict may depend on NaN, or on an interval with its ends in the wrong order.

    An `Estimate` about which nothing is known has no value (NaN), but it has ends.
    """
    if isinstance(worth, Proportion):
        return 0 <= worth.hits <= worth.of and 0 < worth.doubt <= 1
    value = worth.low if math.isnan(worth.value) else worth.value
    return math.isfinite(worth.low) and not math.isnan(worth.ceiling) and worth.low <= value <= worth.high


def outcome_of(
    attack: str,
    measures: Mapping[str, str],
    measure: str,
    scores: tuple[Score, Score],
    refuted_from: float,
    confidence: float,
    reachable: float = 1.0,
) -> AttackOutcome:
    """The figures of an attack and of its control, and the verdict, before the baseline is looked at.

    An attack must give exactly the measures that it declares.
    """
    figures = list[dict[str, Measured]]()
    for score in scores:
        for name in {**measures, **score.measures}:
            worth = score.measures.get(name) if name in measures else None
            if not isinstance(worth, Proportion | Estimate) or not is_sound(worth):
                raise broken_attack(attack, f"the measure {name!r}")
        figures.append({n: measured(n, unit, score.measures[n], confidence, reachable) for n, unit in measures.items()})
    found, chance = figures
    found = {name: msgspec.structs.replace(one, by_chance=chance[name].value) for name, one in found.items()}
    verdict, why = judged_alone(found[measure], chance[measure], refuted_from)
    return AttackOutcome(
        measured=found[measure],
        verdict=verdict,
        why=why,
        seconds=0.0,
        chance=chance[measure],
        beside=tuple(one for name, one in found.items() if name != measure),
        examples=scores[0].examples,
        curves=scores[0].curves,
    )


# ---- the control ----------------------------------------------------------------------------------------------------


def of_chance(view: AdversaryView, seed: int) -> AdversaryView:
    """The view with random vectors, sums and model. Sealed numbers are uniform over their range, others of the same size."""
    known = questions_in(view) if REQUEST in view.seen and view.words is not None else {}
    rng = np.random.default_rng(seed)
    # else the attack reads how the shared model changes
    has_vectors = view.weights is not None or not {*BY_PARTIES, TOTAL}.isdisjoint(view.seen)

    def changed(message: Message) -> Message:
        if message.serial not in known:
            return message
        terms = known[message.serial].terms
        if message.channel in BY_PARTIES:
            return _with_random_vector(message, terms, rng)
        if message.channel == TOTAL:
            numbers = np.frombuffer(message.content, opened_type(message, terms))
            return replace(message, content=_random_like(numbers, rng).tobytes())
        if message.channel == REQUEST and not has_vectors:
            session, body = wire.unpack_request(message.content)
            if isinstance(body, wire.Ask):
                state = {name: _permuted(values, rng) if values.size > 1 else values for name, values in body.state.items()}
                return replace(message, content=wire.pack_request(session, replace(body, state=state)))
        return message

    seen = {channel: tuple(map(changed, messages)) for channel, messages in view.seen.items()}
    for beside in {SIZES, TIMES} & set(seen):  # the messages' lengths, or times, in a random order
        messages = seen[beside]
        places = rng.permutation(len(messages))
        seen[beside] = tuple(replace(m, content=messages[at].content) for m, at in zip(messages, places, strict=True))
    weights = {name: _permuted(values, rng) for name, values in view.weights.items()} if view.weights is not None else None
    again = of_chance(view.again, seed + 1) if view.again is not None else None
    question, insiders = view.redrawn(rng) if view.redrawn is not None else view.question, view.insiders
    if insiders and view.public.profile.aggregation.opened_by == "parties":
        # ciphertexts stay, since random bytes are no ciphertexts; instead the control removes the key that would open them
        insiders = tuple(replace(insider, secrets={}) for insider in insiders)
    return replace(view, seen=seen, weights=weights, again=again, question=question, insiders=insiders)


def _permuted(values: Array, rng: np.random.Generator) -> Array:
    return rng.permutation(values.ravel()).reshape(values.shape)


def _with_random_vector(message: Message, terms: Terms, rng: np.random.Generator) -> Message:
    session, outcome = wire.unpack_reply(message.content, message.sender)
    begins = vector_at(first_part(message), terms)
    if not isinstance(outcome, wire.Accepted) or begins is None:
        return message
    first = bytes(outcome.parcels[0])
    whole = np.frombuffer(first, wire_type(terms), offset=begins)
    if message.channel == SEALED and whole.dtype.kind == "i":  # uniform numbers of the ring, as masked ones are
        edges = np.iinfo(whole.dtype)
        drawn = rng.integers(edges.min, edges.max, len(whole), dtype=whole.dtype, endpoint=True)
    else:
        drawn = _random_like(whole, rng)
    parcels = first[:begins] + drawn.tobytes(), *outcome.parcels[1:]
    return replace(message, content=bytes(wire.pack_reply(session, replace(outcome, parcels=parcels))))


def _random_like(vector: Array, rng: np.random.Generator) -> Array:
    """A random vector of the same length and size. Counts change their places, so they stay counts."""
    kind: np.dtype[Any] = vector.dtype
    if kind.kind == "i":
        return rng.permutation(vector)
    size = float(np.sqrt(np.mean(np.square(vector, dtype=np.float64)))) or 1.0
    return (rng.standard_normal(len(vector)) * size).astype(kind)
