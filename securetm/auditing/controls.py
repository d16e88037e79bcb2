"""The control of an attack: the same view of the same run, with random numbers in place of every vector.

What an attack finds in these is chance. A result that is no better is no evidence against a claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from securetm.aggregation.vectors import wire_type
from securetm.auditing.adversary_view import SIZES, TIMES, AdversaryView, ColludingParty, Message
from securetm.auditing.reading import BY_PARTIES, REQUEST, SEALED, TOTAL, first_part, opened_type, questions_in, vector_at
from securetm.contracts import Array, Terms
from securetm.federation.wire import wire


def of_chance(view: AdversaryView, seed: int) -> AdversaryView:
    """The view with random vectors, sums and model. Sealed numbers are uniform over their range, others of the same size."""
    known = questions_in(view) if REQUEST in view.seen and view.words is not None else {}
    rng = np.random.default_rng(seed)
    changes: dict[str, Callable[[Message, Terms, np.random.Generator], bytes]] = dict.fromkeys(BY_PARTIES, _random_vector)
    changes[TOTAL] = _random_total
    if view.weights is None and not set(changes) & set(view.seen):  # then the attack reads how the shared model changes
        changes[REQUEST] = _permuted_state
    seen = {
        channel: tuple(
            replace(m, content=changes[channel](m, known[m.serial].terms, rng))
            if channel in changes and m.serial in known
            else m
            for m in messages
        )
        for channel, messages in view.seen.items()
    }
    for beside in {SIZES, TIMES} & set(seen):
        seen[beside] = _permuted_contents(seen[beside], rng)
    weights = {name: _permuted(values, rng) for name, values in view.weights.items()} if view.weights is not None else None
    again = of_chance(view.again, seed + 1) if view.again is not None else None
    question = view.redrawn(rng) if view.redrawn is not None else view.question
    return replace(view, seen=seen, weights=weights, again=again, question=question, insiders=_without_keys(view))


def _without_keys(view: AdversaryView) -> tuple[ColludingParty, ...]:
    """Ciphertexts stay, since random bytes are no ciphertexts. Instead the control removes the key that would open them."""
    encrypted = view.public.profile.aggregation.opened_by == "parties"
    return tuple(replace(insider, secrets={}) for insider in view.insiders) if encrypted else view.insiders


def _permuted(values: Array, rng: np.random.Generator) -> Array:
    """The same numbers in a random order."""
    return rng.permutation(values.ravel()).reshape(values.shape)


def _permuted_contents(messages: tuple[Message, ...], rng: np.random.Generator) -> tuple[Message, ...]:
    """The messages' lengths, or times, in a random order."""
    places = rng.permutation(len(messages))
    return tuple(replace(m, content=messages[place].content) for m, place in zip(messages, places, strict=True))


def _random_vector(message: Message, terms: Terms, rng: np.random.Generator) -> bytes:
    session, outcome = wire.unpack_reply(message.content, message.sender)
    begins = vector_at(first_part(message), terms)
    if not isinstance(outcome, wire.Accepted) or begins is None:
        return message.content
    first = bytes(outcome.parcels[0])
    whole = np.frombuffer(first, wire_type(terms), offset=begins)
    drawn = first[:begins] + (_uniform_like(whole, rng) if message.channel == SEALED else _random_like(whole, rng)).tobytes()
    return bytes(wire.pack_reply(session, replace(outcome, parcels=(drawn, *outcome.parcels[1:]))))


def _permuted_state(message: Message, terms: Terms, rng: np.random.Generator) -> bytes:  # noqa: ARG001 - as the others
    session, body = wire.unpack_request(message.content)
    if not isinstance(body, wire.Ask):
        return message.content
    state = {name: _permuted(values, rng) if values.size > 1 else values for name, values in body.state.items()}
    return wire.pack_request(session, replace(body, state=state))


def _random_total(message: Message, terms: Terms, rng: np.random.Generator) -> bytes:
    return _random_like(np.frombuffer(message.content, opened_type(message, terms)), rng).tobytes()


def _random_like(vector: Array, rng: np.random.Generator) -> Array:
    """A random vector of the same length and size. Counts change their places, so they stay counts."""
    kind: np.dtype[Any] = vector.dtype
    if kind.kind == "i":
        return rng.permutation(vector)
    size = float(np.sqrt(np.mean(np.square(vector, dtype=np.float64)))) or 1.0
    return (rng.standard_normal(len(vector)) * size).astype(kind)


def _uniform_like(vector: Array, rng: np.random.Generator) -> Array:
    """Uniform numbers of the ring, as masked ones are."""
    if vector.dtype.kind != "i":
        return _random_like(vector, rng)
    edges = np.iinfo(vector.dtype)
    return rng.integers(edges.min, edges.max, len(vector), dtype=vector.dtype, endpoint=True)
