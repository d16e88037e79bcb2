"""The tables of an audit as data. Terminal, page and summary show the same columns, rows and captions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from securetm.auditing.record import Audit, Finding
from securetm.auditing.verdicts import STANDINGS, standing
from securetm.reports.audit_wording import (
    MARKS,
    MEANING,
    Numbered,
    about_examples,
    compared,
    confidence,
    effort_in_words,
    figure,
    helped,
    of_whom,
    promised,
    quoted,
    refusal_in_words,
    since,
    tries,
    unit_of,
    verdict,
)

Cell = Sequence[str]  # a line, and smaller lines below it


@dataclass(frozen=True)
class AuditTable:
    """Columns by name, rows of cells, and a caption."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class FindingColumn:
    """One column of the table of findings. A terminal puts all columns that are not `upright` into one."""

    name: str
    cell: Callable[[Finding], Iterable[str]]
    upright: bool = False


def _reached(finding: Finding) -> Iterable[str]:
    found = finding.outcome.measured
    yield figure(found)
    yield "; ".join((found.measure, *([tries(found)] if found.of else []), f"unit: {unit_of(found)}"))
    yield f"confidence {confidence(finding)}"


FINDING_COLUMNS = (
    FindingColumn("verdict", lambda f: [verdict(f)], upright=True),
    FindingColumn(
        "attack and effort",
        lambda f: [f.about.title, f"{effort_in_words(f)}; {f.outcome.seconds:.1f} s", helped(f), since(f)],
    ),
    FindingColumn("reached, with its interval", _reached),
    FindingColumn("compared with", lambda f: [compared(f), promised(f)]),
    FindingColumn(
        "claim, profile and model",
        lambda f: [f"tries “{f.attempt.claim}”", of_whom(f), f"profile {f.run.profile}, model {f.run.model}"],
    ),
)


def findings_table(findings: Iterable[Numbered]) -> AuditTable:
    """A row for each finding."""
    rows = (
        ([str(number)], *(tuple(filter(None, column.cell(finding))) for column in FINDING_COLUMNS))
        for number, finding in findings
    )
    return AuditTable(("no.", *(column.name for column in FINDING_COLUMNS)), tuple(rows))


def plain_table(columns: tuple[str, ...], rows: Iterable[Sequence[str]], caption: str = "") -> AuditTable:
    """A table whose cells have one line."""
    return AuditTable(columns, tuple(tuple([cell] for cell in row) for row in rows), caption)


def counts_table(audit: Audit) -> AuditTable:
    """The number of findings by kind and verdict."""
    kinds = {
        "claims of a profile": [f for f in audit.findings if f.is_claim],
        "what no profile claims": [f for f in audit.findings if not f.about.claimed and not f.attempt.baseline],
        "baselines, which must break": [f for f in audit.findings if f.attempt.baseline],
    }
    rows = ((name, *(str(sum(standing(f) == one for f in found)) for one in STANDINGS)) for name, found in kinds.items())
    caption = (
        "A baseline, where the claim is known not to hold, is attacked first: a verdict on anything else counts only if the "
        "attack succeeds there. What no profile claims is open, and not broken, where an attack succeeds."
    )
    columns = ("number of findings", *(f"{MARKS[one]} {one}" for one in STANDINGS))
    return plain_table(columns, rows, caption)


def meaning_table() -> AuditTable:
    """What each verdict means."""
    return plain_table(("word", "means"), ((f"{MARKS[one]} {one}", meaning) for one, meaning in MEANING.items()))


def refusals_table(audit: Audit) -> AuditTable:
    """Attempts that parties must refuse, and how each ended. Broken promises come first."""
    rows = (
        (one.profile, f"{one.minimum:,}" if one.minimum else "–", one.attempt, refusal_in_words(one))
        for one in sorted(audit.refusals, key=lambda one: not one.broken)
    )
    caption = (
        "These runs were really begun, and these messages really sent in them. A refusal names its reason and no number: how "
        "many documents a party has stays with it."
    )
    return plain_table(("profile", "least number of documents", "what was attempted", "what became of it"), rows, caption)


def examples_table(finding: Finding, examples: int) -> AuditTable:
    """Recovered examples beside their originals."""
    rows = (quoted(example) for example in finding.leaked[:examples])
    return plain_table(("the original", "recovered as", "exact"), rows, about_examples(finding))
