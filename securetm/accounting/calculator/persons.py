"""Whose documents they are: the unit that a budget protects, and what a person with several documents is promised.

It reads no document. The numbers of documents and persons are public ones, or counted beforehand by whoever holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from securetm.accounting.calculator.budget_report import ReportTable
from securetm.accounting.calculator.group_privacy import grown, of_group
from securetm.accounting.calculator.option_checks import check, check_choice, refused
from securetm.accounting.spends import Spend
from securetm.wording import counted, upward, upward_figure

DOCUMENT, PERSON = "document", "person"
UNITS = (DOCUMENT, PERSON)
ONE_PARTY = "all documents of a person lie with one party"
MANY_PARTIES = "A person whose documents lie with m parties is protected as m persons are: m times epsilon, and delta grows."
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
        """Refuses batches of less than one person."""
        if self.protected == PERSON and batch < self.each:
            problem = f"is less than one person, who has {self.each:,} documents: batches are of persons here"
            raise refused("--batch", batch, problem, f"give at least {self.each:,} documents, or --unit document")

    @property
    def protected(self) -> str:
        """The unit: a document or a person."""
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
    def told(self) -> tuple[str, int | None, int | None, bool]:
        """The unit, documents per person, persons, and whether they were counted."""
        return self.unit, self.documents_per_person, self.persons, self.counted

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a promise for persons rests on beside."""
        return (ONE_PARTY,) if self.protected == PERSON else ()

    def recorded(self, bounds: dict[str, Any] | None) -> dict[str, Any]:
        """These and what a person is promised, for --json."""
        return {"people": self.found, **({"persons": bounds} if bounds else {})}

    @property
    def found(self) -> dict[str, Any]:
        """These as plain data, for --json."""
        return {**asdict(self), "unit": self.protected, "units": self.units}

    def notes(self) -> tuple[str, ...]:
        """What a reader has to know of persons."""
        return (*self._notes(), *((_COUNTED,) if self.counted else ()))

    def _notes(self) -> tuple[str, ...]:
        if self.protected == PERSON:
            guessed = self.persons and not self.documents_per_person and self.each > 1
            mean = (
                f"A person has {self.each} documents in the mean; group privacy goes by the most that any person has: give "
                "--documents-per-person."
            )
            return (MANY_PARTIES, *((mean,) if guessed else ()))
        if self.each > 1:
            return ("Rows of documents protect documents: `--unit person` says what rows of persons promise.",)
        return (
            "This counts documents: a person who wrote k of them is protected k times less, and delta grows. Say "
            "--documents-per-person K, and name persons in the corpus (`--person COLUMN`), if documents are not independent "
            "people.",
        )

    def warning(self, bounds: dict[str, Any] | None) -> str | None:
        """The warning that rows of documents are no promise for persons."""
        if self.protected == PERSON or bounds is None:
            return None
        promised = _promised(bounds["rows"][1]["epsilon"], bounds["rows"][1]["delta"])
        return f"Documents are protected one by one here. A person with {self.each} of them has {promised}."

    def bounds(
        self, spends: Sequence[Spend], epsilon: float, delta: float, *, stated: float = 0.0, moves_as_one: bool = True
    ) -> dict[str, Any] | None:
        """What a person is promised: by rows of persons, and by rows of documents; nothing where each has one document.

        `stated` is the delta of the promise where these spends may use a part of it only.
        """
        if self.each == 1:
            return None
        group, theorem = of_group(spends, self.each, delta, moves_as_one=moves_as_one), grown(epsilon, delta, self.each)
        rows = [
            {"rows": "a row for each person", "epsilon": epsilon, "delta": stated or delta, "by": "as above"},
            {
                "rows": "a row for each document",
                "epsilon": group.epsilon,
                "delta": stated or delta,
                "by": group.accountant,
            },
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
