"""Shadow models: the attacker trains models of its own on parts of the candidates, by the public plan.

It trains them like the federation's model: through the steps of the profile's route, with its noise, in this process. It reads
no recorded run. Candidates are a CSR array of counts in the agreed words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from securetm.auditing.adversary_view import PublicFacts
from securetm.auditing.leakage_errors import NotTestable
from securetm.auditing.parts.memory_store import MemoryStore
from securetm.contracts import Answer, Array, Memory, RoundContext, State, Unit
from securetm.entropy import Seeded
from securetm.errors import BadSetting
from securetm.federation.questions import TRAIN, Questions
from securetm.models.given_documents import BagOfWords
from securetm.plans.profiles import cohort_of
from securetm.route import compile_route

# a round's number, its sum as the opening role sees it, and the next state
ShadowRound = tuple[int, Mapping[str, Array], State]
Statistic = Callable[[Iterator[ShadowRound]], Array]  # a number for each candidate, from one training
_SEED = 19_84
_LEAST = 1e-12  # variance: constant scores must not divide by zero


@dataclass(frozen=True)
class ShadowScores:
    """The score of each candidate by each shadow model, and which candidates the model was trained on."""

    scores: Array  # shadow models x candidates
    inside: Array

    def log_ratios(self, scores: Array) -> Array:
        """The log-likelihood ratio of each candidate's score: with the candidate in the training, against without it.

        A score is normal with one of two means. Both have one variance, because few models estimate two badly (Carlini et al.
        2022, section 6).
        """
        inside, models = self.inside, len(self.inside)
        within, without = inside.sum(axis=0), (~inside).sum(axis=0)
        if models < 3 or not (within.all() and without.all()):
            raise BadSetting("likelihood ratio", "shadows", str(models), "must be 3 or more, with each document in some only")
        member = np.where(inside, self.scores, 0.0).sum(axis=0) / within
        other = np.where(inside, 0.0, self.scores).sum(axis=0) / without
        spread = np.square(self.scores - np.where(inside, member, other)).sum(axis=0) / (models - 2)
        found: Array = (np.square(scores - other) - np.square(scores - member)) / (2 * np.maximum(spread, _LEAST))
        return found


def shadows_of(candidates: Any, words: tuple[str, ...], public: PublicFacts, number: int, statistic: Statistic) -> ShadowScores:
    """Trains so many models, each on the share of candidates that the plan trains on, and scores all candidates with each."""
    if any(mechanism.once for mechanism in public.profile.mechanisms):  # such noise needs the order of words
        more = "need more of a document than the counts of its words"
        raise NotTestable(f"shadow models of the profile {public.profile.name} {more}")
    rng = np.random.default_rng(_SEED)
    inside = parts(number, candidates.shape[0], 1 - public.plan.training.held_out, rng)
    scores = np.empty(inside.shape)
    for at, chosen in enumerate(inside):
        scores[at] = statistic(training(candidates, np.flatnonzero(chosen), words, public, rng))
    return ShadowScores(scores, inside)


def parts(number: int, documents: int, share: float, rng: np.random.Generator) -> Array:
    """Which shadow models train on which documents. Each document is in the same number of models, chosen at random."""
    taken = min(max(round(number * share), 1), number - 1)
    inside: Array = rng.random((number, documents)).argsort(axis=0) < taken
    return inside


def training(
    candidates: Any, rows: Array, words: tuple[str, ...], public: PublicFacts, rng: np.random.Generator
) -> Iterator[ShadowRound]:
    """One training on these candidates by the public plan, divided among as many parties, round by round.

    The seed is the run's public seed, so topics begin as in the run.
    """
    questions = Questions(public.agreement)
    questions.adopt(words)
    entropy = Seeded(rng.bytes(32), unsafe=True)
    shares = np.array_split(rng.permutation(rows), len(public.members))
    parties = [_documents(candidates[share], words, public, rng) for share in shares]
    memories: list[Memory] = [{} for _ in parties]
    state = public.agreement.start(words)
    for number in range(public.plan.training.rounds):
        query = questions.make(TRAIN, public.model.for_party(state, ""))
        cohort = cohort_of(public.profile, public.members, number=number, seed=public.plan.seed)
        route, context = compile_route(query.terms, public.profile, cohort), RoundContext(cohort, entropy, MemoryStore())
        vectors = [
            route.answer(query, documents, context, memory, rng).vector
            for documents, memory in zip(parties, memories, strict=True)
        ]
        total = {name: np.sum([one[name] for one in vectors], axis=0) for name in vectors[0]}
        opened = Answer(total, {}, public.members)
        seen, answer = route.seen_and_opened(opened, context)
        state = public.model.update(state, answer)
        yield number, seen.total or {}, state


def rounds_read(public: PublicFacts, rounds: int) -> tuple[int, ...]:
    """The rounds that the attack reads: so many, spread evenly from the first to the last."""
    last = public.plan.training.rounds - 1
    return tuple(int(number) for number in np.unique(np.linspace(0, last, min(rounds, last + 1)).round()))


def _documents(counts: Any, words: tuple[str, ...], public: PublicFacts, rng: np.random.Generator) -> BagOfWords:
    """One party's candidates, with keys of its own.

    The person of a candidate is unknown, so where persons are protected each candidate has a person of its own.
    """
    persons = np.arange(counts.shape[0]) if public.agreement.unit is Unit.PERSON else None
    keys = rng.integers(0, 2**64, counts.shape[0], dtype=np.uint64)
    return BagOfWords(counts, words, keys, persons=persons)
