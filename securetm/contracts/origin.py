"""Where something that a run starts from comes from: it is public, paid for, or holds what documents say without a bound.

Models, words, lists of stop words, vectors and embeddings have an origin. What a run writes has one too, so that a chain of
runs never forgets what its first one read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from enum import Enum
from pathlib import PurePath
from typing import Any, Self

from securetm.contracts import Unit
from securetm.data_classes import asdict, dataclass
from securetm.wording import listed, upward, upward_figure

LONGEST_REASON = 1000  # characters


class OriginKind(Enum):
    """What an origin says of documents."""

    PUBLIC = "public"  # no document of a party made it, as a person says
    PAID = "paid"  # documents made it, behind the noise of these runs
    UNBOUNDED = "unbounded"  # nothing bounds what it tells about documents


@dataclass(frozen=True)
class PaidEntry:
    """What one run spent at most of each unit of its parties' documents."""

    run: str  # as the parties' ledgers call it
    unit: Unit
    epsilon: float
    delta: float
    parties: tuple[str, ...]
    simulated: bool = False  # on one machine: then the names of the parties do not say whose documents they were

    def __post_init__(self) -> None:
        """Refuses what no run can have spent."""
        if not (self.run and 0 <= self.epsilon < math.inf and 0 <= self.delta < 1 and self.parties):
            raise ValueError("an entry needs a run, parties, a finite epsilon, and a delta below 1")


@dataclass(frozen=True)
class Origin:
    """Where one thing comes from. `public`, `paid` and `unbounded` make one."""

    kind: OriginKind
    reason: str = ""  # why it is public, as a person says, or why nothing bounds it
    entries: tuple[PaidEntry, ...] = ()  # of the runs that it was learned in
    rests_on: tuple[str, ...] = ()  # the reasons for which these runs took inputs as public

    def __post_init__(self) -> None:
        """Refuses an origin that says nothing, and reasons that cannot be printed."""
        for reason in (self.reason, *self.rests_on):
            if not (reason.isprintable() and len(reason) <= LONGEST_REASON):
                raise ValueError(f"a reason is one line of at most {LONGEST_REASON} characters that can be printed")
        if bool(self.reason.strip()) is (self.kind is OriginKind.PAID) or bool(self.entries) is not (
            self.kind is OriginKind.PAID
        ):
            raise ValueError("a paid origin has entries, and every other one has a reason")
        if len({entry.run for entry in self.entries}) < len(self.entries):
            raise ValueError("an origin names a run twice")

    @classmethod
    def public(cls, reason: str) -> Self:
        """No document of a party made it: a person says why."""
        return cls(OriginKind.PUBLIC, reason)

    @classmethod
    def unbounded(cls, reason: str) -> Self:
        """Nothing bounds what it tells about documents."""
        return cls(OriginKind.UNBOUNDED, reason)

    @classmethod
    def paid(cls, entries: Sequence[PaidEntry], rests_on: Sequence[str] = ()) -> Self:
        """Runs with a budget made it. A run that is named several times counts once, as the largest of its entries."""
        largest: dict[str, PaidEntry] = {}
        for entry in entries:
            before = largest.setdefault(entry.run, entry)
            if (entry.epsilon, entry.delta) > (before.epsilon, before.delta):
                largest[entry.run] = entry
        return cls(OriginKind.PAID, "", tuple(largest.values()), tuple(dict.fromkeys(rests_on)))

    @property
    def units(self) -> frozenset[Unit]:
        """Whom its entries protect."""
        return frozenset(entry.unit for entry in self.entries)

    def in_words(self) -> str:
        """The origin as a part of a sentence."""
        if self.kind is OriginKind.PAID:
            runs = (
                f"epsilon {upward(one.epsilon)} and delta {upward_figure(one.delta)} of each {one.unit.value} "
                f"in the run {one.run}"
                for one in self.entries
            )
            taken = f", which took as public: {'; '.join(self.rests_on)}" if self.rests_on else ""
            return f"paid for: {listed(tuple(runs))}{taken}"
        return f"{self.kind.value}: {self.reason}"

    def facts(self) -> dict[str, Any]:
        """The origin as a table for JSON."""
        entries = [{**asdict(entry), "unit": entry.unit.value, "parties": list(entry.parties)} for entry in self.entries]
        return {"kind": self.kind.value, "reason": self.reason, "entries": entries, "rests_on": list(self.rests_on)}

    @classmethod
    def of_facts(cls, facts: Any) -> Self:
        """The origin that such a table holds. Any other table is a ValueError."""
        try:
            entries = tuple(
                PaidEntry(
                    str(one["run"]),
                    Unit(one["unit"]),
                    float(one["epsilon"]),
                    float(one["delta"]),
                    tuple(map(str, one["parties"])),
                    one["simulated"] is True,
                )
                for one in facts["entries"]
            )
            return cls(OriginKind(facts["kind"]), str(facts["reason"]), entries, tuple(map(str, facts["rests_on"])))
        except (KeyError, TypeError, AttributeError) as problem:
            raise ValueError("it is no origin") from problem

    def as_text(self) -> str:
        """The origin as it stands in a file: JSON, the same for the same origin."""
        return json.dumps(self.facts(), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

    @classmethod
    def of_text(cls, text: str) -> Self:
        """The origin in such a text. Any other text is a ValueError."""
        return cls.of_facts(json.loads(text))


@dataclass(frozen=True)
class StartingInput:
    """One thing that a run starts from."""

    setting: str  # of [origins] in a plan: continue_from, vocabulary, stop_words, vectors, embeddings or module
    shown: str  # its file or its name, for people
    origin: Origin
    declared: bool = False  # public only because the plan says so
    digest: str = ""  # SHA-256 of what is read of it, where that is a file

    @property
    def name(self) -> str:
        """The name without folders: what is released says nothing of the place where the file lay."""
        return PurePath(self.shown).name


def origin_of_product(own: PaidEntry | None, inputs: Sequence[StartingInput], without_budget: str) -> Origin:
    """The origin of what a run writes: what it spent, and what everything that it started from had spent.

    `without_budget` is why nothing bounds it, where the run has no budget.
    """
    if own is None:
        return Origin.unbounded(without_budget)
    for one in inputs:
        if one.origin.kind is OriginKind.UNBOUNDED:
            return Origin.unbounded(f"it started from {one.name}, which is {one.origin.in_words()}"[:LONGEST_REASON])
    before = [entry for one in inputs for entry in one.origin.entries]
    reasons = [reason for one in inputs for reason in one.origin.rests_on]
    reasons += [f"{one.name}: {one.origin.reason}" for one in inputs if one.declared]
    return Origin.paid([*before, own], reasons)
