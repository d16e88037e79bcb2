"""What all runs over a party's documents told together, by its ledgers: a bound with its unit, or the run that has none.

Everybody who prints a total reads it here. A party has two ledgers: one of documents or persons, and beside it one of single
words, for profiles that protect nothing larger. It reads both files and changes none.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from securetm.accounting.ledger.ledger import Ledger
from securetm.contracts import Unit
from securetm.data_classes import dataclass
from securetm.wording import upward, upward_figure

WHOLE, WORDS = ".ledger", ".words.ledger"  # ends of the names of both ledgers
NO_BUDGET = "profile {profile!r} has no bound"
BY_WORD = "profile {profile!r} bounds single words, and no whole {unit}"


@dataclass(frozen=True)
class AllRuns:
    """All runs together are (epsilon, delta)-differentially private for each unit; without a bound, epsilon is infinite."""

    unit: Unit
    epsilon: float
    delta: float
    accountant: str  # of the runs with a bound
    of_bounded: float  # epsilon of the runs that have a bound
    because: tuple[tuple[str, str], ...] = ()  # each run without a bound, and why it has none
    runs: int = 0  # with a bound or without

    @property
    def bounded(self) -> bool:
        return not self.because and math.isfinite(self.epsilon)

    @property
    def unbounded_because(self) -> str | None:
        """What keeps the total from having a bound: `run X (profile 'masked' has no bound)`; None where it has one."""
        if self.because:
            (run, why), others = self.because[0], len(self.because) - 1
            more = f", and {others} more {'run' if others == 1 else 'runs'}" if others else ""
            return f"run {run} ({why}){more}"
        return None if math.isfinite(self.epsilon) else "what the runs spent together has no finite bound at this delta"

    def said(self) -> str:
        """The total in words. The shown epsilon is rounded up."""
        if (why := self.unbounded_because) is not None:
            return f"unbounded, because of {why}"
        return f"epsilon = {upward(self.epsilon)} per {self.unit.value} at delta = {upward_figure(self.delta)}"

    def fields(self) -> dict[str, Any]:
        """The total as fields of a JSON document: no number where there is no bound."""
        bound = (self.epsilon, self.delta) if self.bounded else (None, None)
        return {"all_runs": bound[0], "all_runs_delta": bound[1], "unbounded_because": self.unbounded_because}


def all_runs(path: Path) -> AllRuns | None:
    """What all runs in that ledger and in the one beside it told together, by unit; None without a file."""
    if not path.is_file():
        return None
    of_words = path.name.endswith(WORDS)
    stem = path.name.removesuffix(WORDS if of_words else WHOLE)
    beside = path.with_name(stem + (WHOLE if of_words else WORDS))
    with Ledger.read(path) as ledger:
        if not beside.is_file():
            return total_of(ledger)
        with Ledger.read(beside) as other:
            return total_of(ledger, other)


def total_of(ledger: Ledger, beside: Ledger | None = None) -> AllRuns:
    """The same of ledgers that are open.

    A run that bounds single words bounds no whole document, however long. A bound for each document, or person, bounds a word
    in it twice over: without the word it is another document, which is one removed and one added.
    """
    unit, spent, runs = ledger.budget.unit, ledger.spent(), ledger.runs()
    because = [(run.run, run.unbounded) for run in runs if run.unbounded]
    epsilon, delta, others = spent.epsilon, spent.delta, beside.runs() if beside is not None else ()
    if unit is Unit.WORD and beside is not None:
        because += [(run.run, run.unbounded) for run in others if run.unbounded]
        if beside.has_budget and any(run.answers for run in others):
            more, lost = twice(beside.spent().epsilon, beside.spent().delta)
            epsilon, delta = epsilon + more, min(1.0, delta + lost)
    elif others:
        because += [(run.run, BY_WORD.format(profile=run.profile, unit=unit.value)) for run in others]
    total = math.inf if because else epsilon
    return AllRuns(unit, total, delta, spent.accountant, epsilon, tuple(because), len(runs) + len(others))


def twice(epsilon: float, delta: float) -> tuple[float, float]:
    """The bound for two neighbouring steps in a row."""
    return 2 * epsilon, delta * (1 + math.exp(epsilon)) if epsilon < 700 else 1.0
