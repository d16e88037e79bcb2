"""One report for every question to the calculator: what is spent by every accountant, and a sentence that can be quoted.

An epsilon is never written without its unit, and never rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from securetm.accounting.bounds import by_renyi
from securetm.accounting.calculator.persons import People, persons_table
from securetm.accounting.composition import Total, by_accountant, failure_cost, largest, total
from securetm.accounting.delta_limits import sentence_delta
from securetm.accounting.spends import Spend, failure_probability_of, leaves_of
from securetm.accounting.tradeoff import best_true_positive_rate
from securetm.data_classes import asdict, dataclass, field
from securetm.errors import Mistake
from securetm.figures import Curve, Figure, ReportTable
from securetm.stages import Stages
from securetm.wording import listed, upward, upward_figure

NEIGHBOURS = "add or remove one"
FALSE_POSITIVES = 0.01
LARGE = 10.0  # the epsilon above which odds may change by more than twenty thousand to one
POINTS = 8  # of a curve: each is a composition of its own
MEANS = {
    "PLD": "privacy loss distribution, rounded upwards: the tightest sound figure",
    "RDP": "Renyi divergences: sound for every event, looser than loss distributions",
    "PLD + RDP": "some answers by their loss distribution, the others by Renyi divergences",
    "pure": "the sum of pure epsilons: holds at delta = 0",
}

Spends = tuple[Spend, ...]


@dataclass(frozen=True)
class Promise:
    """Who is protected, against whom, which change is hidden, and under which assumptions."""

    unit: str  # "document", "word occurrence"
    against: str
    change: str
    assumptions: tuple[str, ...]


@dataclass(frozen=True)
class Course:
    """A curve to be computed: what is spent at some places up to `most`."""

    name: str
    spends: Callable[[float], Spends]
    most: float
    whole: bool = False  # whether only whole numbers are places


@dataclass(frozen=True)
class Question:
    """A mechanism as data: the events of its answers, the unit that they protect, and what is said beside the figures."""

    title: str
    promise: Promise
    spends: Spends
    delta: float
    sampling: str
    settings: dict[str, Any]
    share: float = 1.0  # of delta, that these spends may use
    people: People | None = None  # whose documents they are, where a person may have several
    moves_as_one: bool = True  # whether the events bound any number of documents of a person
    along: str = ""  # what the curves run over
    courses: tuple[Course, ...] = ()  # the last point of the first one is the setting asked about
    beside: tuple[Curve, ...] = ()  # drawn with them
    warnings: Sequence[str | None] = ()
    notes: Sequence[str] = ()
    tables: tuple[ReportTable, ...] = ()
    plots: tuple[Figure, ...] = ()
    found: dict[str, Any] = field(default_factory=dict)  # what was solved for, or compared
    first: str = ""  # the figure that counts more than epsilon, in words
    replacing: str = ""  # what is said of replacing one unit, where more holds than follows from epsilon and delta


@dataclass(frozen=True)
class ByAccountant:
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
    plots: tuple[Figure, ...] = ()
    found: dict[str, Any] = field(default_factory=dict)
    first: str = ""

    def record(self) -> dict[str, Any]:
        plain = asdict(self)
        rate = {"at": FALSE_POSITIVES, "rate": plain.pop("true_positives")}
        found = plain.pop("found")
        plain["plots"] = [
            {
                "title": one.title,
                "x": one.x,
                "y": one.y,
                "lines": [asdict(line) for line in one.curves],
                "marked": one.marked,
                "mark": one.mark,
            }
            for one in self.plots
        ]
        if self.epsilon == math.inf:  # no number of JSON
            plain["epsilon"] = None
        if not self.first:
            del plain["first"]
        return {**plain, "true_positive_rate": rate, **found}


def report(asked: Question, progress: Stages) -> BudgetReport:
    """Every accountant, the least sound epsilon, what an attacker can reach, what a person is promised, and the sentence."""
    unit, delta = asked.promise.unit, asked.share * asked.delta
    proved = accountants(by_accountant(asked.spends, delta))
    if not proved:
        raise Mistake(
            "no epsilon per {unit} holds at delta = {delta}: an answer exceeds its bound with probability {lost}",
            "delta must exceed that probability times e^epsilon: take a larger delta, fewer rounds, or a profile with a "
            "smaller `miss`",
            unit=unit,
            delta=upward_figure(asked.delta),
            lost=upward_figure(failure_probability_of(asked.spends)),
        )
    best, people = proved[0], asked.people
    curves = tuple(_curve(course, delta, progress) for course in asked.courses)
    axis = f"epsilon per {unit}"
    along = (
        [Figure(f"epsilon against {asked.along}", asked.along, axis, curves + asked.beside, curves[0].points[-1])]
        if curves
        else []
    )
    bounds = persons = None
    if people is not None:
        bounds = people.bounds(asked.spends, best.epsilon, delta, stated=asked.delta, moves_as_one=asked.moves_as_one)
        persons = sentence_delta(asked.delta, people.units, people.protected), people.warning(bounds)
    return BudgetReport(
        title=asked.title,
        epsilon=best.epsilon,
        delta=asked.delta,
        unit=unit,
        sampling=asked.sampling,
        accountant=best.accountant,
        statement=sentence(asked.promise, best.epsilon, asked.delta),
        by_accountant=proved,
        true_positives=best_true_positive_rate(asked.spends, FALSE_POSITIVES),
        settings=asked.settings,
        warnings=some(*(persons or ()), *asked.warnings, sentence_large(best.epsilon, unit)),
        notes=(asked.replacing or replacing(best.epsilon, asked.delta, unit), *asked.notes),
        tables=(*persons_table(bounds), *asked.tables),
        plots=(*along, *asked.plots),
        found=asked.found | (people.recorded(bounds) if people is not None else {}),
        first=asked.first,
    )


def accountants(proved: Sequence[Total]) -> tuple[ByAccountant, ...]:
    """What each accountant proves, with the theory behind it; one that proves no finite epsilon is left out."""
    return tuple(ByAccountant(row.accountant, row.epsilon, MEANS[row.accountant]) for row in proved if row.epsilon < math.inf)


def _curve(course: Course, delta: float, progress: Stages) -> Curve:
    along = places(course.most, course.whole)
    progress.stage(f"epsilon, {course.name}", len(along))
    points = []
    for done, place in enumerate(along, start=1):
        points.append((float(place), total(course.spends(place), delta).epsilon))
        progress.step(done)
    return Curve(course.name, tuple(points))


def places(most: float, whole: bool = False) -> tuple[float, ...]:
    """Where a curve up to `most` is computed: denser at the beginning, where it bends."""
    shares = [((n + 1) / POINTS) ** 1.5 for n in range(POINTS)]
    return tuple(sorted({max(1.0, round(most * s)) if whole else round(most * s, 6) for s in shares[:-1]} | {most}))


# ---- sentences -----------------------------------------------------------------------------------------------------


def some(*sentences: str | None) -> tuple[str, ...]:
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
    if epsilon <= LARGE:
        return None
    return (
        f"epsilon = {upward(epsilon)} per {unit} is above {LARGE:g}: so large an epsilon excludes hardly any attack. "
        "More noise, fewer epochs or more documents lower it."
    )


def replacing(epsilon: float, delta: float, unit: str) -> str:
    """The sentence about replacing one unit, which is removing one and adding one: group privacy of two."""
    two = failure_cost(delta, epsilon)  # (2 epsilon, delta (1 + e^epsilon)) for two units
    change = f"Replacing one {unit} by another is removing one and adding one"
    if two >= 1:
        return f"{change}; at this epsilon group privacy promises nothing for it."
    chance = f" with delta = {two:.2g}" if delta else ""
    return f"{change}: at most epsilon = {upward(2 * epsilon)} per {unit}{chance}, by group privacy."


def surely_within(spends: Spends, epsilon: float, delta: float) -> bool:
    """Whether Renyi divergences, which are quick, prove that the spends fit. Where they do not, another accountant may."""
    return by_renyi(leaves_of(spends)).delta(epsilon) + failure_cost(failure_probability_of(spends), epsilon) <= delta


def largest_by(quick: Callable[[int], bool], fits: Callable[[int], bool], most: int) -> int:
    """The largest number that fits, found by the quick check, then in growing strides, then by halving."""
    low = largest(quick, most)
    stride = max(1, low // 8)
    while low + stride <= most and fits(low + stride):
        low, stride = low + stride, 2 * stride
    return low + largest(lambda more: fits(low + more), min(stride - 1, most - low))
