"""Whose documents they are, and what a person with several documents is promised: group privacy, with its delta.

The numbers of documents and persons are public ones, or counted beforehand by whoever holds them. Where events are Gaussian,
loss distributions of the group itself are tighter than k times epsilon: k documents move an unsampled sum k times as far. Of
sampled ones a binomial number is in each sum; the mixture of Gaussians of that number dominates (Choquette-Choo et al. 2023;
Ganesh 2024, Tight group-level DP guarantees for DP-SGD).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from securetm.accounting.bounds import PLD, bounds_of
from securetm.accounting.calculator.option_checks import check, check_choice, refused
from securetm.accounting.composition import Total, total, with_failures
from securetm.accounting.losses import FINEST, rounding_of
from securetm.accounting.spends import Leaves, Spend, failure_probability_of, leaves_of
from securetm.data_classes import asdict, dataclass
from securetm.extras import later
from securetm.figures import ReportTable
from securetm.wording import counted, upward, upward_figure

events, stats = later("dp_accounting.dp_event"), later("scipy.stats")
distributions = later("dp_accounting.pld.privacy_loss_distribution")

DOCUMENT, PERSON = "document", "person"
UNITS = (DOCUMENT, PERSON)
ONE_PARTY = "all documents of a person lie with one party"
MANY_PARTIES = "A person whose documents lie with m parties is protected as m persons are: m times epsilon, and delta grows."
_ROWS_OF_DOCUMENTS = "Rows of documents protect documents: `--unit person` says what rows of persons promise."
_DOCUMENTS_ONLY = (
    "This counts documents: a person who wrote k of them is protected k times less, and delta grows. Say "
    "--documents-per-person K, and name persons in the corpus (`--person COLUMN`), if documents are not independent people."
)
_COUNTED = (
    "The numbers of documents and persons were counted in your corpus. No budget pays for showing them: before you pass this "
    "page on, ask again with round numbers (--documents, --persons, --documents-per-person)."
)


@dataclass(frozen=True)
class People:
    """Who is protected, and how many documents a person has. Where persons are named at all, the person is protected."""

    unit: str = ""  # as asked; nothing: the person where somebody says how many documents or persons there are
    documents: int | None = None
    documents_per_person: int | None = None  # at most
    persons: int | None = None
    counted: bool = False  # in documents, so that the numbers are as secret as these

    def __post_init__(self) -> None:
        check_choice("--unit", self.unit, ("", *UNITS))
        check("--documents-per-person", self.documents_per_person)
        check("--persons", self.persons)
        documents, most, persons = self.documents, self.documents_per_person, self.persons
        if documents and most and most > documents:
            problem = f"must be at most {documents:,}, the number of documents"
            raise refused("--documents-per-person", most, problem, "give the most documents that any one person has")
        if documents and persons and persons > documents:
            problem = f"must be at most {documents:,}, the number of documents"
            raise refused("--persons", persons, problem, "give how many persons the documents are of")
        if documents and most and persons and most * persons < documents:
            problem = f"is too few: {persons:,} persons with at most that many cannot have {documents:,} documents"
            raise refused("--documents-per-person", most, problem, f"give at least {-(-documents // persons):,}")

    def check_batch(self, batch: int) -> None:
        if self.protected == PERSON and batch < self.each:
            problem = f"is less than one person, who has {self.each:,} documents: batches are of persons here"
            raise refused("--batch", batch, problem, f"give at least {self.each:,} documents, or --unit document")

    @property
    def protected(self) -> str:
        return self.unit or (PERSON if self.documents_per_person or self.persons else DOCUMENT)

    @property
    def each(self) -> int:
        """Documents of one person: the most, or their mean where only the number of persons is known."""
        if self.documents_per_person:
            return self.documents_per_person
        return -(-self.documents // self.persons) if self.documents and self.persons else 1

    @property
    def units(self) -> int | None:
        """How many documents or persons there are, at least; nothing where nobody says it."""
        if self.protected == DOCUMENT or self.documents is None:
            return self.documents if self.protected == DOCUMENT else self.persons
        return self.persons or -(-self.documents // self.each)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a promise for persons rests on beside."""
        return (ONE_PARTY,) if self.protected == PERSON else ()

    def recorded(self, bounds: dict[str, Any] | None) -> dict[str, Any]:
        """These and what a person is promised, for --json."""
        return {"people": self.found, **({"persons": bounds} if bounds else {})}

    @property
    def found(self) -> dict[str, Any]:
        return {**asdict(self), "unit": self.protected, "units": self.units}

    def notes(self) -> tuple[str, ...]:
        """What a reader has to know of persons."""
        guessed = self.persons and not self.documents_per_person and self.each > 1
        mean = (
            f"A person has {self.each} documents in the mean; group privacy goes by the most that any person has: give "
            "--documents-per-person."
        )
        counted_here = (_COUNTED,) if self.counted else ()
        if self.protected == PERSON:
            return (MANY_PARTIES, *((mean,) if guessed else ()), *counted_here)
        return (_ROWS_OF_DOCUMENTS if self.each > 1 else _DOCUMENTS_ONLY, *counted_here)

    def warning(self, bounds: dict[str, Any] | None) -> str | None:
        """The warning that rows of documents are no promise for persons."""
        if self.protected == PERSON or bounds is None:
            return None
        promised = _promised(bounds["rows"][1]["epsilon"], bounds["rows"][1]["delta"])
        return f"Documents are protected one by one here. A person with {self.each} of them has {promised}."

    def bounds(
        self, spends: Sequence[Spend], epsilon: float, delta: float, *, stated: float, moves_as_one: bool = True
    ) -> dict[str, Any] | None:
        """What a person is promised: by rows of persons, and by rows of documents; nothing where each has one document.

        `stated` is the delta of the promise, of which these spends may use a part only.
        """
        if self.each == 1:
            return None
        group, theorem = of_group(spends, self.each, delta, moves_as_one=moves_as_one), grown(epsilon, delta, self.each)
        rows = [
            {"rows": "a row for each person", "epsilon": epsilon, "delta": stated, "by": "as above"},
            {"rows": "a row for each document", "epsilon": group.epsilon, "delta": stated, "by": group.accountant},
            {"rows": "the same, by k x epsilon", "epsilon": theorem.epsilon, "delta": theorem.delta, "by": theorem.accountant},
        ]
        return {"documents_per_person": self.each, "rows": rows}


SEPARATE = People()  # documents of which nobody says whose they are


def persons_table(bounds: dict[str, Any] | None) -> tuple[ReportTable, ...]:
    """What a person is promised, at the same noise over the bound on a row; no table where each has one document."""
    if bounds is None:
        return ()
    rows = tuple((row["rows"], *_cells(row)) for row in bounds["rows"])
    caption = (
        "The same noise over the bound on one row (--unit person, --unit document). A row of a person holds all documents of "
        "that person, and has the length of one row, so that a sum has as many rows as persons."
    )
    title = f"What a person with {counted(bounds['documents_per_person'], 'document')} is promised"
    return (ReportTable(title, ("there is", "epsilon per person", "delta", "by"), rows, caption),)


def _cells(row: dict[str, Any]) -> tuple[str, str, str]:
    if row["delta"] >= 1 or row["epsilon"] == float("inf"):
        return ("no promise", upward_figure(row["delta"]), "–")
    return (upward(row["epsilon"]), upward_figure(row["delta"]), row["by"])


def _promised(epsilon: float, delta: float) -> str:
    if delta >= 1 or epsilon == float("inf"):
        return "no promise at all at this delta"
    return f"epsilon = {upward(epsilon)} per person with delta = {upward_figure(delta)}"


# ---- group privacy -------------------------------------------------------------------------------------------------

GROUP = "group privacy"
_MOST_MIXED = 64  # documents of one person for which the mixture is computed; beyond, nothing of use can be promised
_TAIL = 1e-15


def of_group(spends: Sequence[Spend], documents: int, delta: float, *, moves_as_one: bool = True) -> Total:
    """The least epsilon that is proved at this delta for somebody with so many documents; infinity if none is.

    `moves_as_one` says that the events bound any number of documents: their rows add up, and each has the same bound. It is
    false where a failure probability speaks of a single document, such as that of a rare word that gets through.
    """
    if documents == 1:
        return total(spends, delta)
    by_events = _by_events(spends, documents, delta) if moves_as_one else []
    if by_events:
        return min(by_events, key=lambda bound: bound.epsilon)
    return Total(_at(spends, documents, delta), delta, GROUP)


def grown(epsilon: float, delta: float, documents: int) -> Total:
    """The theorem of group privacy: k times epsilon, and delta x (1 + e^epsilon + ... + e^((k - 1) epsilon)), at most 1."""
    return Total(documents * epsilon, min(1.0, delta * growth(epsilon, documents)), GROUP)


def growth(epsilon: float, documents: int) -> float:
    """By how much the delta of a group exceeds that of one document."""
    if documents * epsilon > 700:
        return math.inf
    return math.expm1(documents * epsilon) / math.expm1(epsilon) if epsilon > 0 else float(documents)


def _at(spends: Sequence[Spend], documents: int, delta: float) -> float:
    """The theorem at a given delta: a document's delta is taken so small that it grows to no more than this one."""

    def fits(power: float) -> float:
        """The document's epsilon at that power of e below delta, or infinity where its delta grows too large."""
        epsilon = total(spends, delta * math.exp(-power)).epsilon
        return epsilon if epsilon < math.inf and math.exp(-power) * growth(epsilon, documents) <= 1 else math.inf

    least, most = 0.0, 1.0
    while most < 600 and fits(most) == math.inf:
        least, most = most, 2 * most
    if fits(most) == math.inf:
        return math.inf
    for _ in range(16):
        middle = (least + most) / 2
        least, most = (least, middle) if fits(middle) < math.inf else (middle, most)
    return documents * fits(most)


def _by_events(spends: Sequence[Spend], documents: int, delta: float) -> list[Total]:
    """Bounds by the events themselves, where each of them says how far several documents move an answer."""
    leaves, lost = leaves_of(spends), failure_probability_of(spends)
    moved = tuple((_moved(event, documents), count) for event, count in leaves)
    if any(event is None for event, _ in moved):
        return []
    if not any(isinstance(event, events.PoissonSampledDpEvent) for event, _ in leaves):
        known = [(bound.epsilon, bound.accountant) for bound in bounds_of(moved)]
    else:
        known = [(_mixed(leaves, documents), PLD)] if documents <= _MOST_MIXED else []
    return [Total(with_failures(epsilon, delta, lost), delta, accountant) for epsilon, accountant in known]


def _moved(event: Any, documents: int) -> Any:
    """The event of an unsampled answer that so many documents move; a sampled one as it is; None where none is known."""
    if isinstance(event, events.PoissonSampledDpEvent):
        return event if isinstance(event.event, events.GaussianDpEvent) else None
    if isinstance(event, events.GaussianDpEvent | events.LaplaceDpEvent):
        return type(event)(event.noise_multiplier / documents)
    return None


def _mixed(leaves: Leaves, documents: int) -> Callable[[float], float]:
    """Epsilon by delta of all answers, each by the loss distribution of the group."""
    interval = max(FINEST, max(_reach(event, documents) for event, _ in leaves) / 20_000)  # cells of one answer
    together, rounding = distributions.identity(value_discretization_interval=interval), rounding_of(leaves)
    for event, count in leaves:
        one = _loss(event, documents, interval)
        together = together.compose(one if count == 1 else one.self_compose(count, _TAIL), _TAIL)

    def epsilon(delta: float) -> float:
        with np.errstate(over="ignore"):
            return float(together.get_epsilon_for_delta(delta - rounding)) if delta > rounding else math.inf

    return epsilon


def _loss(event: Any, documents: int, interval: float) -> Any:
    if isinstance(event, events.GaussianDpEvent):
        return distributions.from_gaussian_mechanism(event.noise_multiplier / documents, value_discretization_interval=interval)
    if isinstance(event, events.LaplaceDpEvent):
        return distributions.from_laplace_mechanism(event.noise_multiplier / documents, value_discretization_interval=interval)
    many = stats.binom(documents, event.sampling_probability)
    kept = [number for number in range(documents) if many.sf(number) > _TAIL]
    chances = [float(many.pmf(number)) for number in range(len(kept) + 1)]
    numbers, rest = list(range(len(chances))), float(many.sf(len(kept)))
    if rest > 0:  # what is left of the tail counts as if all documents were there
        numbers, chances = [*numbers, documents], [*chances, rest]
    return distributions.from_mixture_gaussian_mechanism(
        event.event.noise_multiplier,
        [float(number) for number in numbers],
        [chance / math.fsum(chances) for chance in chances],
        value_discretization_interval=interval,
    )


def _reach(event: Any, documents: int) -> float:
    """About the largest loss of one answer."""
    noise = event.event.noise_multiplier if isinstance(event, events.PoissonSampledDpEvent) else event.noise_multiplier
    return float(12 * documents / noise + (documents / noise) ** 2)
