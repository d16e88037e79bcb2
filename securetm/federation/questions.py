"""The questions that a plan allows, by name. Both roles make them from the same plan, so a name is all that travels.

What a question is about (weights, word numbers) comes from the other side and is checked here against the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from securetm.contracts import Array, Query, State, TopicModel
from securetm.errors import BadState, UnknownQuestion
from securetm.models.questions import CooccurrenceCounts, DocumentFrequencies, HeldOut, WordList
from securetm.models.word_sketch import WordSketch
from securetm.plans import Plan

WORDS, JOINT, FREQUENCIES, TRAIN, HELD_OUT, COHERENCE = "words", "joint", "frequencies", "train", "held_out", "coherence"
MOST_WORD_BYTES = 1 << 26
TOP_WORDS = 10
MOST_TOPICS = 1000  # where a model does not say how many it has
_UNION_ONLY = (WORDS, FREQUENCIES)


@dataclass
class Questions:
    """What may be asked under one plan, given the vocabulary agreed on so far."""

    plan: Plan
    model: TopicModel
    vocabulary: tuple[str, ...] = ()
    _template: State = field(default_factory=dict)

    def adopt(self, vocabulary: tuple[str, ...]) -> None:
        """From now on questions are about these words."""
        self.vocabulary, self._template = vocabulary, {}

    def make(self, name: str, state: State) -> Query:
        """The question of that name about that state, or a refusal."""
        if name not in (WORDS, JOINT, FREQUENCIES, TRAIN, HELD_OUT, COHERENCE):
            raise UnknownQuestion(name)
        if name in _UNION_ONLY and self.plan.vocabulary.source != "union":
            raise UnknownQuestion(name)
        if name == JOINT and self.plan.vocabulary.source == JOINT:
            return WordSketch(self.plan.vocabulary.most_candidates)
        if name == WORDS:
            return WordList(MOST_WORD_BYTES)
        if not self.vocabulary:
            raise BadState("no vocabulary has been agreed on")
        if name == FREQUENCIES:
            return DocumentFrequencies(len(self.vocabulary))
        if name == COHERENCE:
            topics = int(self.plan.model.settings.get("n_topics", MOST_TOPICS))
            return CooccurrenceCounts(_checked_top(state, len(self.vocabulary), topics))
        weights = self._checked_weights(state)
        return self.model.query(weights) if name == TRAIN else HeldOut(self.model, weights)

    def _checked_weights(self, state: State) -> State:
        """The state, if it has the names, shapes and types that the plan's model has, and finite values."""
        if not self._template:
            fresh = self.model.start(self.vocabulary, np.random.default_rng(0))
            self._template = self.model.for_party(fresh, "")
        _check_shapes(state, self._template)
        return state


def _check_shapes(state: State, template: Mapping[str, Array]) -> None:
    if set(state) != set(template):
        raise BadState("its arrays are not those of the model")
    for name, like in template.items():
        if state[name].shape != like.shape or state[name].dtype != like.dtype:
            raise BadState(f"array {name!r} has another shape or type than the model's")
        if like.dtype.kind == "f" and not np.isfinite(state[name]).all():
            raise BadState(f"array {name!r} holds values that are not finite")


def _checked_top(state: State, words: int, topics: int) -> Array:
    top = state.get("top", np.zeros(0))
    if set(state) != {"top"} or top.dtype != np.int64 or top.ndim != 2 or not 2 <= top.shape[1] <= TOP_WORDS:
        raise BadState("the list of top words has no such form")
    if top.shape[0] > topics or top.min(initial=0) < 0 or top.max(initial=0) >= words:
        raise BadState("the list of top words names words that are not in the vocabulary")
    return top
