"""The budget calculator as one page with sliders, which loads nothing and computes from tabulated figures. It composes nothing.

The tables are in `budget_curves.json`, made by `lab.fits.budget_curves`. `budget_sliders.js` looks figures up: at
a setting of the tables its figure is that of the command, and between two settings the larger one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from math import ceil, log2
from pathlib import Path
from typing import Any

from securetm.accounting.calculator.budget_report import ReportTable
from securetm.accounting.calculator.option_checks import check, check_parties, refused, remaining
from securetm.accounting.calculator.persons import People
from securetm.foreign_text import html_text
from securetm.plans.profiles import cohort_of, read_profile
from securetm.reports.files import write_report
from securetm.reports.pages import framed, static, table_section
from securetm.reports.topic_page import in_script
from securetm.wording import upward

TITLE = "Plan a privacy budget"
_FEWEST, _MOST_SIZED = 2, 100  # parties: those beyond are not tabulated, and asked about by another command
_SHARES = "dp-distributed"
_SHOWN_NOISES, _SHOWN_ROUNDS = (1.0, 2.0, 4.0, 8.0, 16.0), (1, 4, 16, 64)
_UNITS = {"document": "each document", "person": "each person: one row for all documents of a person"}
_GROUP = "each person, though each document has a row of its own"
_ASKED = {"all": "all documents, in every round (lda-vi, the usual model under a budget)", "some": "random batches (prodlda)"}
_ADDS = {
    "shares": "every party adds a share (dp-distributed, fortress)",
    "opener": "the coordinator (dp-central)",
    "party": "each party all of it (dp-local)",
}
_NOTE = (
    "This page asks no server for anything and reads no document. Its figures are those of securetm budget at tabulated "
    "settings; between two of them it shows the larger one, so that it never says too little."
)


@dataclass(frozen=True)
class SliderStart:
    """Where the sliders stand when the page is opened."""

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
    cohort = cohort_of(profile, tuple(f"party {n}" for n in range(parties)))
    remain = max(cohort.threshold, profile.aggregation.remaining(cohort, parties))
    return parties - remain, cohort.colluding


@cache
def tables() -> dict[str, Any]:
    """The tabulated figures."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("budget_curves.json").read_text("utf-8"))
    return found


def write_sliders(start: SliderStart, path: Path) -> None:
    """Writes the page."""
    write_report(path, sliders_page(start))


def sliders_page(start: SliderStart) -> str:
    """The text of the page."""
    sized = {parties: sized_for(parties) for parties in range(_FEWEST, _MOST_SIZED + 1)}
    known = {parties: both for parties, both in sized.items() if both is not None}
    data = {**tables(), "sized": known, "start": {**asdict(start), "people": {**start.people.found, "each": start.people.each}}}
    parts = (
        f"<header><h1>{TITLE}</h1><p class=note>{_NOTE}</p></header>",
        "<main>",
        _answer(),
        _controls(start),
        _beside(),
        _fixed(),
        "</main>",
        f'<script type="application/json" id="data">{in_script(data)}</script>',
    )
    style, script = (static(f"static/budget_sliders.{kind}") for kind in ("css", "js"))
    return framed(TITLE, parts, style, script)


def _answer() -> str:
    """The figures, which a screen reader says anew when they change."""
    return (
        '<section class="answer" aria-labelledby="said"><h2 id="said">What is promised</h2>'
        '<output id="figure" class="figures" aria-live="polite"></output>'
        '<p id="meaning"></p><ul id="warnings" aria-live="polite"></ul></section>'
    )


def _controls(start: SliderStart) -> str:
    people = start.people
    each, documents = people.each, people.documents or 100_000
    deltas = {f"{delta:g}": f"{delta:g}" for delta in tables()["deltas"]}
    groups = (
        _group(
            "Who is protected",
            _choice("unit", "The promise is for", {**_UNITS, "group": _GROUP}, people.protected),
            _pair("each", "Documents of one person, at most", 1, 50, 1, each, 10**6),
            _number("documents", "Documents of all parties, about", documents, 10**12),
            _number("persons", "Persons, about", people.persons or -(-documents // each), 10**12),
            _choice("delta", "Delta", deltas, f"{start.delta:g}"),
        ),
        _group(
            "What is asked, and behind which noise",
            _choice("asked", "A round asks", _ASKED, "all"),
            _pair("rounds", "Rounds", 1, 64, 1, start.rounds, 10_000),
            _pair("noise", "Noise, over the bound on a row", 0, 80, 1, start.noise, 10**6),
            _pair("rate", "Share of the documents in a batch", 0, len(tables()["sampled"]["rates"]) - 1, 1, 0.01, 1),
            _pair("epsilon", "Epsilon that may be spent: sets the noise", 1, 200, 1, start.epsilon, 40),
        ),
        _group(
            "Who adds the noise",
            _choice("adds", "Added by", _ADDS, "shares"),
            _pair("parties", "Parties", 2, 50, 1, start.parties, 100_000),
            _pair("missing", "of which so many may be missing", 0, 20, 1, start.missing, 100_000),
            _pair("colluding", "and so many may help an adversary", 0, 20, 1, start.colluding, 100_000),
        ),
    )
    return f'<form class="controls" id="controls">{"".join(groups)}</form>'


def _group(title: str, *controls: str) -> str:
    return f"<fieldset><legend>{html_text(title)}</legend>{''.join(controls)}</fieldset>"


def _choice(name: str, label: str, known: dict[str, str], chosen: str) -> str:
    made = "".join(
        f'<option value="{html_text(value)}"{" selected" if value == chosen else ""}>{html_text(text)}</option>'
        for value, text in known.items()
    )
    select = f'<label for="{name}">{html_text(label)}</label><select id="{name}">{made}</select>'
    return f'<div class="control" id="of-{name}">{select}</div>'


def _pair(name: str, label: str, least: int, most: int, step: int, value: float, largest: float) -> str:
    """A slider, and a box in which the same number can be typed; what the slider's places mean is the script's to know."""
    slider = f'<input type="range" id="{name}" min="{least}" max="{most}" step="{step}" value="{least}">'
    label, bounds = html_text(label), f'min="0" max="{largest:g}" step="any"'
    typed = f'<input type="number" id="{name}-typed" aria-label="{label}, as a number" {bounds} value="{value:g}">'
    return f'<div class="control pair" id="of-{name}"><label for="{name}">{label}</label>{slider}{typed}</div>'


def _number(name: str, label: str, value: float, largest: float) -> str:
    typed = f'<input type="number" id="{name}-typed" min="1" max="{largest:g}" step="1" value="{value:g}">'
    return f'<div class="control" id="of-{name}"><label for="{name}-typed">{html_text(label)}</label>{typed}</div>'


def _beside() -> str:
    """The curve, the same as numbers, and the command that says the same."""
    return (
        '<section aria-labelledby="curve-title"><h2 id="curve-title">Epsilon over the rounds</h2>'
        '<figure><svg id="curve" class="plot" viewBox="0 0 640 300" role="img" aria-label=""></svg></figure>'
        '<table id="numbers"><caption>The same as numbers, and how much noise other epsilons need for as many rounds.</caption>'
        '<thead><tr><th class="number">rounds</th><th class="number">epsilon</th><th class="number">for epsilon</th>'
        '<th class="number">noise</th></tr></thead><tbody></tbody></table></section>'
        '<section aria-labelledby="rows-title"><h2 id="rows-title">What the noise drowns</h2><p id="rows"></p>'
        '<p id="parts"></p></section>'
        '<section aria-labelledby="ask-title"><h2 id="ask-title">The same from the command</h2>'
        '<pre><code id="command"></code></pre></section>'
    )


def _fixed() -> str:
    """A small table that needs no script, and can be printed."""
    held = tables()["unsampled"]
    delta = tables()["deltas"].index(1e-6)

    def epsilon(noise: float, rounds: int) -> str:
        place = ceil(held["steps"] * log2(rounds**0.5 / noise) - 1e-8) - held["first"]
        found = held["epsilon"][place][delta]
        return "above 40" if found < 0 else upward(found)

    rows = tuple((f"{noise:g}", *(epsilon(noise, rounds) for rounds in _SHOWN_ROUNDS)) for noise in _SHOWN_NOISES)
    columns = ("noise", *(f"{rounds} round{'s' * (rounds > 1)}" for rounds in _SHOWN_ROUNDS))
    caption = (
        "Epsilon per document, or per person where rows are of persons. For k documents with rows of their own, read the line "
        "of the noise over k."
    )
    return table_section(ReportTable("Without sliders: all documents asked, delta 1e-6", columns, rows, caption))
