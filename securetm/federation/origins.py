"""What the runs spent that a run started from, for each party, and the origin of what the run itself writes.

A party's ledger holds the runs that its documents took part in, so what it holds is not counted again beside it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from securetm.contracts import Array, State
from securetm.contracts.origin import Origin, PaidEntry, origin_of_product
from securetm.data_classes import dataclass
from securetm.errors import BadSetting
from securetm.models.quality import top_words
from securetm.plans.agreement import Agreement
from securetm.plans.origins import entries_of
from securetm.plans.schema import MOMENTS, PLAIN, PUBLIC
from securetm.quality.measures import affinity
from securetm.settings import digest


@dataclass(frozen=True)
class SpentBefore:
    """What the runs that a run started from spent of one party's documents, and which of it the party's ledger holds."""

    entries: tuple[PaidEntry, ...] = ()
    beside_ledger: tuple[PaidEntry, ...] = ()  # those of the entries that are not in the ledger

    def added_to(self, spent: Mapping[str, Any]) -> dict[str, Any]:
        """What a run spent by itself, with what it started from: the epsilons and the deltas add up.

        Whatever was chosen after the earlier answers were seen, sums of epsilons and deltas bound all of them together.
        """
        entries = [{"run": one.run, "epsilon": one.epsilon, "delta": one.delta} for one in self.entries]
        whole = {"epsilon": spent["epsilon"] + _sum(self.entries)[0], "delta": spent["delta"] + _sum(self.entries)[1]}
        own = {"epsilon": spent["epsilon"], "delta": spent["delta"]}
        more = {}
        if spent.get("all_runs") is not None:
            epsilon, delta = _sum(self.beside_ledger)
            more = {"all_runs": spent["all_runs"] + epsilon, "all_runs_delta": spent["all_runs_delta"] + delta}
        return {**spent, **whole, **more, "own": own, "from_origins": entries}

    @property
    def epsilon(self) -> float:
        return _sum(self.entries)[0]


def _sum(entries: Sequence[PaidEntry]) -> tuple[float, float]:
    return math.fsum(one.epsilon for one in entries), math.fsum(one.delta for one in entries)


def before_in_trial(agreement: Agreement) -> SpentBefore:
    """A trial's ledgers do not say whose documents earlier runs read: every party's may have been among them."""
    entries = entries_of(agreement.inputs)
    return SpentBefore(entries, entries)


def before_in_ledger(agreement: Agreement, runs: Collection[str]) -> SpentBefore:
    """Of a party whose ledger holds these runs: its documents took part in no others."""
    return SpentBefore(tuple(entry for entry in entries_of(agreement.inputs) if entry.run in runs))


def before_by_name(agreement: Agreement, party: str) -> SpentBefore:
    """As whoever sees no ledger may think of that party; names of a simulation do not say whose documents they were."""
    entries = tuple(one for one in entries_of(agreement.inputs) if one.simulated or party in one.parties)
    return SpentBefore(entries, entries)


def check_in_ledgers(agreement: Agreement, runs: Collection[str], folder: Path) -> None:
    """Refuses to count a run in ledgers that would leave out what the runs before it spent of the same documents."""
    for entry in entries_of(agreement.inputs) if agreement.budget is not None else ():
        if entry.run not in runs:
            problem = f"holds no entry of the run {entry.run}, which the training starts from, so its totals would be too low"
            instead = (
                "train that run with --ledgers of the same folder, or leave --ledgers out: then what it spent is added here"
            )
            raise BadSetting("", "--ledgers", str(folder), problem, instead=instead)


def run_between_organisations(federation: str, agreement: Agreement) -> str:
    """What all roles of a federation call the run: the same whenever the same plan is run."""
    return f"{federation} {run_of(agreement)}"


def run_of(agreement: Agreement) -> str:
    return digest([agreement.digest.hex(), agreement.profile.digest.hex()]).hex()[:32]


def product_of(
    agreement: Agreement, run: str, parties: Collection[str], epsilon: float | None = None, *, simulated: bool = False
) -> Origin:
    """The origin of the model and the words of this run. Without an epsilon, the run's budget: no party spends more in it.

    Noise that is drawn once per corpus may have been paid for in an earlier run, so there the budget always counts.
    """
    budget, profile = agreement.budget, agreement.profile
    own = None
    if budget is not None:
        drawn_before = epsilon is None or any(mechanism.once for mechanism in profile.mechanisms)
        most = budget.epsilon if drawn_before else epsilon
        assert most is not None
        own = PaidEntry(run, budget.unit, most, budget.delta, tuple(parties), simulated)
    return origin_of_product(own, agreement.inputs, f"trained under {profile.name}, which has no budget")


def facts_of(agreement: Agreement, product: Origin) -> dict[str, Any]:
    """The origins of a run's inputs and of its product, for its result."""
    inputs = [
        {"setting": one.setting, "shown": one.shown, "declared": one.declared, **one.origin.facts()} for one in agreement.inputs
    ]
    return {"inputs": inputs, "product": product.facts()}


EARLIER = "earlier"


@dataclass(frozen=True)
class Beginning:
    start: str  # earlier, public, moments or plain
    vectors: str  # that a public start read, or a start by moments beside its sum
    words_known: int  # by these vectors
    control: State | None  # the state of a public start with these vectors
    lacking: bool  # whether it would have been public by default, and no vectors are here

    @classmethod
    def under(cls, agreement: Agreement, vocabulary: Sequence[str]) -> Self:
        public, first = agreement.begun_with(vocabulary) if vocabulary else None, agreement.plan.training.start == MOMENTS
        if public is None or agreement.vectors is None:
            start = MOMENTS if first else PLAIN if agreement.earlier is None else EARLIER
            return cls(start, "", 0, None, agreement.begins_public_by_default and agreement.vectors is None)
        known = int(public.vectors.any(axis=1).sum())
        return cls(MOMENTS if first else PUBLIC, agreement.vectors.shown, known, agreement.start(vocabulary), False)

    def facts(self, words: int) -> dict[str, Any]:
        known = {"vectors": self.vectors, "words_known": self.words_known, "words": words} if self.vectors else {}
        return {"topics": self.start, **known, "lacking": self.lacking}


_WORDS = 10  # of a topic, among which words come and go


def moved(before: Array, after: Array, vocabulary: Sequence[str]) -> list[dict[str, Any]]:
    """Returns for each topic its Hellinger distance from what it was, the words that came and went, and the topic most like it.

    Topics that were not there before have no distance.
    """
    common, closest = np.sqrt(before * after[: len(before)]).sum(axis=1), affinity(before, after).argmax(axis=1)
    distances = np.sqrt(np.clip(1.0 - common, 0.0, 1.0))
    rows: list[dict[str, Any]] = []
    for topic, (old, new) in enumerate(zip(top_words(before, _WORDS), top_words(after, _WORDS), strict=False)):
        rows.append(
            {
                "topic": topic,
                "distance": round(float(distances[topic]), 4),
                "came": [vocabulary[word] for word in new if word not in old],
                "gone": [vocabulary[word] for word in old if word not in new],
                "closest": int(closest[topic]),
            }
        )
    more = range(len(before), len(after))
    return rows + [{"topic": topic, "distance": None, "came": [], "gone": [], "closest": None} for topic in more]


def moved_since(agreement: Agreement, state: State, vocabulary: Sequence[str]) -> list[dict[str, Any]] | None:
    """Returns how far the topics moved since the model that this training went on from; None where it began anew."""
    earlier = agreement.earlier
    if earlier is None or not state:
        return None
    return moved(earlier.model.topics(earlier.state), agreement.model.topics(state), vocabulary)
