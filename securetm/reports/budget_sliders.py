"""The budget calculator as one page with sliders, which loads nothing and computes from tabulated figures.

The tables are in `data/budget_curves.json`, made by `lab.fits.budget_curves`. `budget_sliders.js` looks figures up: at
a setting of the tables its figure is that of the command, and between two settings the larger one.
"""

from __future__ import annotations

import json
from functools import cache
from math import ceil, log2
from pathlib import Path
from typing import Any

from securetm.accounting.calculator.option_checks import check, check_parties, refused, remaining
from securetm.accounting.calculator.persons import People
from securetm.data_classes import asdict, dataclass
from securetm.plans.profiles import cohort_of, read_profile
from securetm.reports.document import Table
from securetm.reports.files import write_report
from securetm.reports.pages import page
from securetm.wording import counted, upward

TITLE = "Plan a privacy budget"
_FEWEST, _MOST_SIZED = 2, 100  # parties: those beyond are not tabulated, and asked about by another command
_SHARES = "dp-distributed"
_SHOWN_NOISES, _SHOWN_ROUNDS = (1.0, 2.0, 4.0, 8.0, 16.0), (1, 4, 16, 64)


@dataclass(frozen=True)
class SliderStart:
    people: People
    delta: float = 1e-6
    noise: float = 4.0
    rounds: int = 4
    parties: int = 5
    missing: int = 1
    colluding: int = 2
    epsilon: float = 3.0  # that may be spent

    def __post_init__(self) -> None:
        check("--documents", self.people.documents)
        check("--noise", self.noise)
        check("--rounds", self.rounds)
        check("--epsilon", self.epsilon)
        check("--missing", self.missing)
        check("--parties", self.parties)
        if self.parties < _FEWEST:
            raise refused("--parties", self.parties, f"must be at least {_FEWEST}: one party alone has no federation")
        check_parties(self.parties, remaining(self.parties, None, self.missing), self.colluding)
        known = tables()["deltas"]
        if self.delta not in known:
            instead = (
                f"give one of {', '.join(f'{delta:g}' for delta in known)}, or ask for a single figure: securetm budget profile"
            )
            raise refused("--delta", self.delta, "is not tabulated", instead)


def sized_for(parties: int) -> tuple[int, int] | None:
    """How many of so many may be missing and help where each adds a share of noise; nothing where they are too few."""
    profile = read_profile(_SHARES)
    if parties < profile.minimum_parties:
        return None
    cohort = cohort_of(profile, parties)
    remain = max(cohort.threshold, profile.aggregation.remaining(cohort, parties))
    return parties - remain, cohort.colluding


@cache
def tables() -> dict[str, Any]:
    """The tabulated figures."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("data").joinpath("budget_curves.json").read_text("utf-8"))
    return found


def write_sliders(start: SliderStart, path: Path) -> None:
    write_report(path, sliders_page(start))


def sliders_page(start: SliderStart) -> str:
    sized = {parties: sized_for(parties) for parties in range(_FEWEST, _MOST_SIZED + 1)}
    known = {parties: both for parties, both in sized.items() if both is not None}
    people = start.people
    facts = {**asdict(start), "people": {**people.found, "each": people.each}}
    documents = people.documents or 100_000
    held = tables()["unsampled"]
    delta = tables()["deltas"].index(1e-6)

    def epsilon(noise: float, rounds: int) -> str:
        place = ceil(held["steps"] * log2(rounds**0.5 / noise) - 1e-8) - held["first"]
        found = held["epsilon"][place][delta]
        return "above 40" if found < 0 else upward(found)

    rows = tuple((f"{noise:g}", *(epsilon(noise, rounds) for rounds in _SHOWN_ROUNDS)) for noise in _SHOWN_NOISES)
    columns = ("noise", *(counted(rounds, "round") for rounds in _SHOWN_ROUNDS))
    caption = (
        "Epsilon per document, or per person where rows are of persons. For k documents with rows of their own, read the line "
        "of the noise over k."
    )
    return page(
        "sliders.html",
        TITLE,
        ("page", "budget_sliders"),
        "budget_sliders",
        data={**tables(), "sized": known, "start": facts},
        start=start,
        documents=documents,
        persons=people.persons or -(-documents // people.each),
        deltas=[(f"{delta:g}", f"{delta:g}") for delta in tables()["deltas"]],
        delta=f"{start.delta:g}",
        most_rate=len(tables()["sampled"]["rates"]) - 1,
        fixed=Table(columns, rows, caption, numeric=range(1, len(columns))),  # needs no script, and can be printed
    )
