"""The toy model passes the laws, and each law catches the fault it is there for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from securetm.contracts import Answer, Array, ClippedSum, Memory, Query, State, TopicModel
from securetm.testing.few_documents import WORDS, some_documents
from securetm.testing.model_laws import ModelLaws
from tests.laws import toys
from tests.laws.toys import Mixture


class TestMixture(ModelLaws):
    @pytest.fixture
    def model(self) -> TopicModel:
        return Mixture()


# ---- mutants -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BatchNormalisedMemberships(toys.Memberships):
    """Centres the counts over the party's documents before it shares them out, as batch normalisation would."""

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        counts = documents.counts.toarray().astype(float)
        shares = toys.explained(counts - counts.mean(axis=0), self.topics)
        rows = (shares[:, :, None] * counts[:, None, :]).reshape(len(counts), self.topics.size)
        clipped_sum.add(np.column_stack([rows, np.ones(len(rows))]), np.arange(len(rows)))


class BatchNormalised(Mixture):
    def query(self, state: State) -> Query:
        return BatchNormalisedMemberships(state["topics"])


class CountsParties(Mixture):
    """Divides by the number of parties, so that who holds what changes the result."""

    def update(self, state: State, answer: Answer) -> State:
        total = {name: block / len(answer.survivors) for name, block in (answer.total or {}).items()}
        return super().update(state, replace(answer, total=total))


class Unnormalised(Mixture):
    def topics(self, state: State) -> Array:
        return state["topics"] * 2


class JudgesTogether(Mixture):
    def infer(self, state: State, documents: Any) -> Array:
        counts = documents.counts.toarray()
        return toys.explained(counts - counts.mean(axis=0), state["topics"])


class Dice(Mixture):
    def update(self, state: State, answer: Answer) -> State:
        return {"topics": np.random.default_rng().dirichlet(np.ones(WORDS), self.topic_count)}


class InPlace(Mixture):
    def update(self, state: State, answer: Answer) -> State:
        state["topics"][:] = super().update(state, answer)["topics"]
        return state


class SeedIgnored(Mixture):
    def start(self, vocabulary: Any, rng: np.random.Generator) -> State:
        return super().start(vocabulary, np.random.default_rng(0))


class Deaf(Mixture):
    def update(self, state: State, answer: Answer) -> State:
        return dict(state)


class Gloomy(Mixture):
    """Finds even documents unlikely of which no word is left to predict."""

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        return super().log_likelihood(state, seen, unseen) - 1


class Forgetful(Mixture):
    """Begins anew where it should go on."""

    def going_on(self, earlier: State, vocabulary: Any, rng: np.random.Generator) -> State:
        return self.start(vocabulary, rng)


LAWS = ModelLaws()


@pytest.mark.parametrize(
    ("law", "mutant"),
    [
        (LAWS.test_federated_is_concatenated, BatchNormalised()),
        (LAWS.test_federated_is_concatenated, CountsParties()),
        (LAWS.test_topics_and_mixtures_are_distributions, Unnormalised()),
        (LAWS.test_a_document_is_judged_alone, JudgesTogether()),
        (LAWS.test_deterministic, Dice()),
        (LAWS.test_update_leaves_the_old_state_alone, InPlace()),
        (LAWS.test_training_moves_the_topics, Deaf()),
        (LAWS.test_likelihoods_are_of_each_document, Gloomy()),
        (LAWS.test_a_training_goes_on_from_a_state, Forgetful()),
    ],
)
def test_the_law_catches_the_mutant(law: Any, mutant: TopicModel) -> None:
    with pytest.raises(AssertionError):
        law(mutant, some_documents(14, seed=5))


def test_a_seed_that_is_ignored_is_caught() -> None:
    with pytest.raises(AssertionError):
        LAWS.test_the_seed_matters(SeedIgnored())
