"""One malicious party that reports false counts, so that words of its choice become the heaviest words of topics.

It reads no message of other parties. It follows every rule that others could check: it counts as many words as it really has,
but not the words of its documents.
"""

from __future__ import annotations

import numpy as np

from securetm.auditing.attack import Attack, Effort, GroundTruth, Proportion, Score
from securetm.auditing.record import Example
from securetm.auditing.views import MODEL, VOCABULARY, AdversaryView
from securetm.contracts import Array, Domain, Terms

COUNTS = "counts"
STEERED = "words chosen by the lying party among the ten heaviest of a topic"
OWN = "chosen words among the ten heaviest of the very topic that they were pushed into"
PUSHED, TOP = 3, 10  # words for each topic, and how many words of a topic people read


def chosen(topics: int, words: int) -> Array:
    """Which words are pushed into which topic. Any words would do; these are spread over the list."""
    places = (np.arange(topics * PUSHED) + 1) * words // (topics * PUSHED + 1)
    return np.asarray(places.reshape(topics, PUSHED))


def false_counts(vector: Array, terms: Terms) -> Array:
    """The malicious party's vector: its real number of counts, all on the chosen words."""
    if terms.layout[0].name != COUNTS:
        return vector
    topics, words = terms.layout[0].shape
    false = np.zeros_like(vector)
    table = false[: topics * words].reshape(topics, words)
    each = max(float(vector[: topics * words].sum()), 0.0) / (topics * PUSHED)
    table[np.arange(topics)[:, None], chosen(topics, words)] = round(each) if terms.domain is Domain.INTEGER else each
    false[topics * words :] = vector[topics * words :]
    return false


def attack(view: AdversaryView, effort: Effort) -> Array:
    topics = view.public.model.topics(view.model_state())
    return np.argsort(-topics, axis=1, kind="stable")[:, :TOP]


def judge(top: Array, truth: GroundTruth) -> Score:
    pushed = chosen(len(top), len(truth.vocabulary))
    own = np.array([np.isin(words, row) for words, row in zip(pushed, top, strict=True)])
    measures = {STEERED: Proportion.of_mask(np.isin(pushed, top)), OWN: Proportion.of_mask(own)}
    names = [[" ".join(truth.vocabulary[word] for word in row) for row in rows[:2]] for rows in (pushed, top)]
    return Score(measures, tuple(Example(a, b, bool(found.all())) for a, b, found in zip(*names, own[:2], strict=True)))


ATTACK = Attack(
    name="poisoning",
    title="Words that one malicious party puts at the top of topics",
    citation="model poisoning of federated learning: Bagdasaryan et al. 2020 (arXiv 1807.00459), Bhagoji et al. 2019",
    cost="nothing beside one round's answer",
    given="what every party is given, and its own documents",
    needs=(MODEL, VOCABULARY),
    models=("lda", "lda-vi", "sentence-lda"),
    measures={STEERED: "chosen word", OWN: "chosen word"},
    attack=attack,
    judge=judge,
    malicious_vector=false_counts,
    limits=(
        "false counts that are hard to see in the topics, and false counts that make the model show more of others' documents",
        "defences: only zero-knowledge proofs would bound what one party adds to a sealed sum, and no profile has them",
    ),
    remark="No other role can check a sealed vector, so no profile prevents a party from sending false counts.",
)
