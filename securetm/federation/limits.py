"""The longest messages that a role reads, by what was agreed. A message is measured before it is read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from securetm.contracts import Profile, State, Terms, TopicModel
from securetm.data_classes import dataclass, field
from securetm.federation.questions import JOINT, MOST_WORD_BYTES, TOP_WORDS, Questions
from securetm.federation.wire.wire import LONGEST_SIGNED, MOST_LINKED
from securetm.models.public_knowledge import MOST_DIMENSIONS
from securetm.models.questions.hidden_words import MOST_OPEN_A_WORD, WIDTH, cell_name
from securetm.models.questions.word_sketch import LONGEST
from securetm.models.questions.word_sums import OPEN_BYTES
from securetm.plans.profiles import BLIND, words_in_sums

ROOM = 4_096  # bytes for hashes, numbers and names in any message
_FINISHED = 4  # times a state as questions show it: a finished one holds an optimiser's moments, or noised sums, as well
_TINY = (24, 48)  # words: from two sizes follows the size of a state over any number of them


@dataclass
class RequestLimits:
    """The most bytes of each kind of body that a party reads, given the words agreed on so far."""

    members: tuple[str, ...]
    questions: Questions
    parcel: int = 0  # the longest message to a party in the exchange under way
    _state: dict[int, int] = field(default_factory=dict)  # by number of words

    def of_bodies(self) -> Mapping[str, int]:
        named = sum(len(member.encode()) + 8 for member in self.members)
        signed = len(self.members) * (LONGEST_SIGNED + 8)
        model, public = self.questions.agreement.model, 0  # bytes of the public knowledge that a finished model may hold
        if model.starts_public:
            rows = model.embedding_size * 4 if model.among_embeddings else 0  # vectors as they came
            each = model.most_shown_topics * 8 + MOST_DIMENSIONS * 4 + 8 + rows  # topics, vectors, frequencies
            public = len(self.questions.vocabulary) * each
        most = {
            "invite": named,
            "adopt": self._words,
            "ask": named + signed + 10 * len(self.members) + self._stated(),
            "prepare": 0,
            "forward": self.parcel,
            "share": 8 * (1 + WIDTH) * self.questions.agreement.plan.vocabulary.max_words,
            "witness": signed + 8 * len(self.members) + MOST_LINKED,
            "links": signed,
            "finish": _FINISHED * self._stated() + public,
        }
        return {body: size + ROOM for body, size in most.items()}

    @cached_property
    def _words(self) -> int:
        agreement = self.questions.agreement
        choice = agreement.plan.vocabulary
        listed = sum(len(word.encode()) + 1 for word in agreement.words or agreement.base_words)
        if agreement.words is not None:
            return listed
        if choice.source == BLIND:
            return listed + choice.max_words * (len(cell_name(0)) + 1)
        if choice.source == JOINT:
            return listed + min(choice.max_words, choice.most_candidates) * (LONGEST + 1)
        return MOST_WORD_BYTES

    def _stated(self) -> int:
        """Returns the bytes of the largest state that a question may be about. Sums of words are about open ones."""
        words = 0 if self.questions.candidates else len(self.questions.vocabulary)
        if not words and self.questions.agreement.plan.vocabulary.source == BLIND:
            return self.questions.buckets // 8 + 4 * MOST_OPEN_A_WORD * self.questions.agreement.plan.vocabulary.max_words + 8
        if not words and words_in_sums(self.questions.agreement.profile):
            return OPEN_BYTES
        if words and words not in self._state:
            self._state = {words: state_bytes(self.questions.agreement.model, words)}
        return self._state.get(words, 0)


def state_bytes(model: TopicModel, words: int) -> int:
    """Returns the most bytes of a state over so many words: a model in training, a whole model, or a list of top words."""
    (few, small), (more, large) = ((n, _bytes(model, n)) for n in _TINY)
    training = small + (words - few) * max(0, large - small) // (more - few)
    topics = model.most_shown_topics
    whole = topics * (words + 1) * 8 if model.party_models else 0
    return max(training, small, whole, topics * TOP_WORDS * 8)


def _bytes(model: TopicModel, words: int) -> int:
    fresh: State = model.start([f"word{number}" for number in range(words)], np.random.default_rng(0))
    return sum(np.asarray(array).nbytes for array in model.for_party(fresh, "").values())


def largest_reply(profile: Profile, parties: int, rounds: int, terms: Terms | None) -> int:
    """The most bytes of a reply in a round with these terms, or in a set-up of so many rounds."""
    up, _ = profile.aggregation.longest(parties, rounds, terms)
    return up + parties * (LONGEST_SIGNED + 8) + (MOST_LINKED if profile.budget is not None else 0) + ROOM
