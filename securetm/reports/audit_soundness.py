"""Whether what was read of an audit could be the record of one: its numbers, its texts, and verdicts that follow from figures.

Who writes a whole record of his own is not found out; who changes a verdict, or a figure alone, is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from securetm.leakage.findings import Audit, Finding, Measured, Refusal, judged_alone
from securetm.leakage.illustrations import Curve
from securetm.leakage.intervals import clopper_pearson
from securetm.leakage.kept_refusals import DatedRefusal
from securetm.leakage.verdicts import NOT_REFUTED, NOT_TESTED, REFUTED
from securetm.reports.findings import MEANING
from securetm.reports.printable import printable
from securetm.toml_settings import require

_LARGEST = 1e15  # no figure of an audit is larger
_SAME = 1e-4  # of kept results six digits are kept
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)?")
_SINGULAR = {"findings": "finding", "refusals": "refusal", "curves": "curve", "examples": "example"}


def sound_values(plain: Any, where: str) -> Any:
    """The same content with every text made printable; a number that is none, or larger than any figure, is refused."""
    if isinstance(plain, dict):
        return {printable(name): sound_values(value, _inside(where, printable(name))) for name, value in plain.items()}
    if isinstance(plain, list):
        return [sound_values(value, f"{where} {n}") for n, value in enumerate(plain, start=1)]
    if isinstance(plain, str):
        return printable(plain)
    if isinstance(plain, int | float) and not isinstance(plain, bool):
        absurd = not math.isfinite(plain) or abs(plain) > _LARGEST
        place, _, name = where.rpartition(", ")
        require(not absurd, place or "the file", name, plain, "is no number that an audit can find")
    return plain


def _inside(where: str, name: str) -> str:
    named = _SINGULAR.get(name, name)
    return named if where == "the file" else f"{where}, {named}"


# ---- figures -------------------------------------------------------------------------------------------------------


def check_measured(found: Measured, where: str) -> None:
    """A value lies in its interval, and so many of so many are what is said to be their share."""
    require(found.low <= found.high, where, "low", found.low, f"lies above the other end, {found.high:g}")
    value = found.low if found.value is None else found.value
    require(found.low <= value <= found.high, where, "value", value, "does not lie within its interval")
    require(
        (found.hits is None) == (found.of is None),
        where,
        "of",
        str(found.of),
        "must be given with `hits`, or without it left out",
    )
    if found.hits is not None and found.of is not None:
        _check_share(found, found.hits, found.of, where)


def _check_share(found: Measured, hits: int, of: int, where: str) -> None:
    require(0 <= hits <= of, where, "hits", hits, f"must be from 0 to {of}")
    for name in ("low", "high", "ceiling"):
        require(0 <= getattr(found, name) <= 1, where, name, getattr(found, name), "must be from 0 to 1")
    value = hits / of if of else None
    same = found.value is None if value is None else found.value is not None and abs(found.value - value) <= _SAME
    require(same, where, "value", found.value, f"is not {hits} of {of}")


def _check_width(found: Measured, confidence: float, where: str) -> None:
    """An interval of tries that were counted is as wide as the exact one, or wider where its judge had doubts of its own."""
    if found.hits is None or found.of is None:
        return
    low, high = clopper_pearson(found.hits, found.of, confidence)
    wide = found.low <= low + _SAME and found.high >= high - _SAME
    problem = f"is narrower than {found.hits} of {found.of} allow at a confidence of {confidence:g}"
    require(wide, where, "interval", f"{found.low:g} to {found.high:g}", problem)


def check_curve(curve: Curve, where: str) -> None:
    """Rates are shares, and an epsilon is not negative."""
    most = 1.0 if curve.kind == "roc" else math.inf
    for name, line in (("across", curve.across), ("up", curve.up)):
        wrong = next((value for value in line if not 0 <= value <= most), None)
        require(wrong is None, where, name, wrong, "cannot lie on this curve")


def check_refusal(refusal: Refusal, where: str) -> None:
    """Who refused has a name, and gave a reason."""
    for name in ("documents", "minimum"):
        require(getattr(refusal, name) >= 0, where, name, getattr(refusal, name), "must not be negative")
    require(
        not refusal.refused or bool(refusal.by and refusal.reason), where, "by", None, "a refusal names who refused and why"
    )
    kept = refusal.kept if isinstance(refusal, DatedRefusal) else ""
    require(_DAY.fullmatch(kept) is not None, where, "kept", kept, "must be a day such as 2026-01-31")


# ---- findings and verdicts -----------------------------------------------------------------------------------------


def check_audit(audit: Audit) -> None:
    """All that is said beside the findings, each finding, and each verdict beside that of its baseline."""
    require(audit.seconds >= 0, "the file", "seconds", audit.seconds, "must not be negative")
    require(_DAY.fullmatch(audit.made) is not None, "the file", "made", audit.made, "must be a day such as 2026-01-31")
    for number, finding in enumerate(audit.findings, start=1):
        _check_finding(finding, f"finding {number}")
    for number, finding, broken in _beside_baselines(audit.findings):
        _check_verdict(finding, broken, f"finding {number}")


def _check_finding(finding: Finding, where: str) -> None:
    require(finding.verdict in MEANING, where, "verdict", finding.verdict, known=tuple(MEANING))
    bounds = (("confidence", 0.5, 1.0), ("refuted_from", 0.0, math.inf), ("seconds", 0.0, math.inf), ("epsilon", 0.0, math.inf))
    more = (("delta", 0.0, 1.0), ("tests", 1, math.inf), *((name, 0, math.inf) for name in _COUNTS))
    for name, least, most in (*bounds, *more):
        value = getattr(finding, name)
        require(value is None or least <= value <= most, where, name, value, f"must be at least {least:g}" + _at_most(most))
    require(finding.confidence < 1, where, "confidence", finding.confidence, "must be below 1")
    require(_DAY.fullmatch(finding.kept) is not None, where, "kept", finding.kept, "must be a day such as 2026-01-31")
    figures = [finding.measured, *finding.beside, *([finding.chance] if finding.chance is not None else [])]
    for found in figures:
        _check_width(found, finding.confidence, where)


_COUNTS = ("helpers", "liars", "canaries", "without")


def _at_most(most: float) -> str:
    return "" if math.isinf(most) else f", and {most:g} at most"


def _beside_baselines(findings: Sequence[Finding]) -> Iterator[tuple[int, Finding, bool]]:
    """Each finding with its number, and whether the baseline of its trial, which stands before it, was broken."""
    broken = False
    for number, finding in enumerate(findings, start=1):
        broken = finding.verdict == REFUTED if finding.baseline else broken
        yield number, finding, broken


def _check_verdict(finding: Finding, broken: bool, where: str) -> None:
    """The verdict is the one that the figures give: nobody improves it in the file."""
    found, verdict = finding.measured, finding.verdict
    require(finding.chance is not None or bool(finding.kept), where, "chance", None)
    follows = _allowed(finding) if broken or finding.baseline else {_unbroken(one) for one in _allowed(finding)}
    problem = f"does not follow from an interval from {found.low:.3g} on, where {finding.refuted_from:.3g} counts as refuted"
    beside = "" if broken or finding.baseline else ", and from a baseline that was not broken"
    require(verdict in follows, where, "verdict", verdict, problem + beside)


def _unbroken(verdict: str) -> str:
    """What the failure of an attack says that did not break its baseline either."""
    return NOT_TESTED if verdict == NOT_REFUTED else verdict


def _allowed(finding: Finding) -> set[str]:
    """The verdicts that the figures allow: one, or two where of the control no interval was kept."""
    found, least = finding.measured, finding.refuted_from
    if finding.chance is not None:
        return {judged_alone(found, finding.chance, least)[0]}
    if found.value is not None and found.low >= least and found.by_chance is not None:
        return {REFUTED, NOT_TESTED} if found.by_chance < found.low else {NOT_TESTED}
    return {judged_alone(found, found, least)[0]}
