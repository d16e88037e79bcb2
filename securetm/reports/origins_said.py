"""Sentences on where a run started from: what was taken as public and why, and what earlier runs had spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from securetm.contracts import Origin, OriginKind
from securetm.wording import listed, upward

_SETTINGS = {
    "continue_from": "the model to go on from",
    "vocabulary": "the list of words",
    "stop_words": "the list of stop words",
    "vectors": "the word vectors",
    "embeddings": "what makes the embeddings",
}


def origins_said(result: Mapping[str, Any]) -> tuple[str, ...]:
    """What a person said of the inputs, and what the runs spent that this one started from; nothing of what is built in."""
    inputs = _inputs(result)
    return (*_declared(inputs), *_paid(inputs), *counted_before(result))


def every_origin(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Every input of a run with its origin, those that are built in too, and what earlier runs took as public."""
    said = (f"{_SETTINGS[one['setting']]} ({_named(one)}): {Origin.of_facts(one).in_words()}" for one in _inputs(result))
    return (*said, *counted_before(result))


def _named(one: Mapping[str, Any]) -> str:
    """The input by its file's name or its own: the folders above a file are nobody else's affair."""
    shown = str(one["shown"])
    return PurePath(shown).name if PurePath(shown).is_absolute() else shown


def _inputs(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    inputs: Sequence[Mapping[str, Any]] = (result.get("origins") or {}).get("inputs", ())
    return inputs


def _declared(inputs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The reasons that the plan gives, word for word, and those on which earlier runs rest."""
    declared = [(f"{_SETTINGS[one['setting']]} ({one['shown']})", one["reason"]) for one in inputs if one["declared"]]
    said = [f"Taken as public: {what}, because: {reason}" for what, reason in declared]
    before = dict.fromkeys(reason for one in inputs for reason in one["rests_on"])
    return (*said, *(f"Taken as public by an earlier run: {reason}" for reason in before))


def _paid(inputs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    origins = ((one, Origin.of_facts(one)) for one in inputs)
    paid = (f"{_SETTINGS[one['setting']]} ({one['shown']})" for one, origin in origins if origin.kind is OriginKind.PAID)
    return tuple(f"It started from what earlier runs paid for: {what}." for what in paid)


def counted_before(result: Mapping[str, Any]) -> tuple[str, ...]:
    """How much of the epsilon that is shown is that of earlier runs, for the party with the most of it."""
    given = result.get("spent") or ()
    spent = [given] if isinstance(given, Mapping) else given
    before = [one for one in spent if one.get("from_origins")]
    if not before:
        return ()
    most = max(before, key=lambda one: float(one["epsilon"]))
    runs = (f"epsilon {upward(float(run['epsilon']))} of the run {run['run']}" for run in most["from_origins"])
    own = upward(float(most["own"]["epsilon"]))
    who = "" if len(before) == len(spent) else f" at {listed(tuple(str(one['party']) for one in before))}"
    return (f"The epsilon of this run{who} is its own {own} and what it started from: {listed(tuple(runs))}.",)
