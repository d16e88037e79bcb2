"""The records of a budget report: a sentence that can be quoted, figures, tables, plots. It composes nothing.

An epsilon is never written without its unit, and never rounded down.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from securetm.contracts import Unit
from securetm.wording import listed, upward, upward_figure

NEIGHBOURS = "add or remove one"
FALSE_POSITIVES = 0.01
LARGE = 10.0  # the epsilon above which odds may change by more than twenty thousand to one


@dataclass(frozen=True)
class Promise:
    """Who is protected, against whom, which change is hidden, and under which assumptions."""

    unit: str  # "document", "word occurrence"
    against: str
    change: str
    assumptions: tuple[str, ...]


@dataclass(frozen=True)
class PlotLine:
    """One line of a plot."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Plot:
    """Lines over two axes; `marked` is the point that was asked about."""

    title: str
    x: str
    y: str
    lines: tuple[PlotLine, ...]
    marked: tuple[float, float] | None = None
    mark: str = "the setting asked about"


def epsilon_against(x: str, unit: str, *lines: PlotLine) -> Plot:
    """Epsilon along x. The last point of the first line is the setting asked about."""
    return Plot(f"epsilon against {x}", x, f"epsilon per {unit}", lines, lines[0].points[-1])


@dataclass(frozen=True)
class ReportTable:
    """A table beside the figures: rows of words and numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class ByAccountant:
    """One accountant's epsilon, and the theory behind it."""

    accountant: str
    epsilon: float
    means: str


@dataclass(frozen=True)
class BudgetReport:
    """The calculator's answer to one question."""

    title: str
    epsilon: float
    delta: float
    unit: str
    sampling: str
    accountant: str
    statement: str
    by_accountant: tuple[ByAccountant, ...]
    true_positives: float
    settings: dict[str, Any]
    neighbours: str = NEIGHBOURS
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    plots: tuple[Plot, ...] = ()
    found: dict[str, Any] = field(default_factory=dict)  # what was solved for, or compared
    first: str = ""  # the figure that counts more than epsilon, in words; it is shown first

    def record(self) -> dict[str, Any]:
        """The report as plain data, for --json."""
        plain = asdict(self)
        rate = {"at": FALSE_POSITIVES, "rate": plain.pop("true_positives")}
        found = plain.pop("found")
        if self.epsilon == float("inf"):  # no number of JSON
            plain["epsilon"] = None
        if not self.first:
            del plain["first"]
        return {**plain, "true_positive_rate": rate, **found}


def unit_name(unit: Unit) -> str:
    """The name of a unit in sentences: a budget of unit word is about single occurrences of words."""
    return "word occurrence" if unit is Unit.WORD else unit.value


def some(*sentences: str | None) -> tuple[str, ...]:
    """The sentences that are not missing."""
    return tuple(filter(None, sentences))


def sentence(promise: Promise, epsilon: float, delta: float) -> str:
    """One sentence that can be quoted alone: it names the unit, the adversary, the change and every assumption."""
    budget = f"epsilon = {upward(epsilon)} per {promise.unit}"
    chance = f" with delta = {upward_figure(delta)}" if delta else " with delta = 0"
    return (
        f"Against {promise.against}, it is hidden whether {promise.change} ({NEIGHBOURS} {promise.unit}), "
        f"to {budget}{chance}, provided that {listed(promise.assumptions)}."
    )


def sentence_large(epsilon: float, unit: str) -> str | None:
    """The warning about an epsilon that excludes hardly any attack."""
    if epsilon <= LARGE:
        return None
    return (
        f"epsilon = {upward(epsilon)} per {unit} is above {LARGE:g}: so large an epsilon excludes hardly any attack. "
        "More noise, fewer epochs or more documents lower it."
    )
