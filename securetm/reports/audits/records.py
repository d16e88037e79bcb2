"""Writes an audit's record to a file and reads it again, so that it can be shown without being repeated. It runs no attack.

Reading checks the kind and range of every field, spells out control characters in texts, and compares every verdict with its
figures. It detects a changed verdict and a changed figure. It cannot detect a record that was invented as a whole.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from securetm.auditing.evidence import record
from securetm.auditing.record import (
    COMPUTED,
    NOT_REFUTED,
    NOT_TESTED,
    REFUTED,
    SINGULAR,
    Audit,
    Finding,
    Measured,
    with_findings,
)
from securetm.auditing.verdicts import clopper_pearson, possible_verdicts
from securetm.errors import Mistake, SecuretmError
from securetm.federation.folder import bind, check
from securetm.foreign_text import json_text, printable
from securetm.reports.files import make_private, write_report
from securetm.settings import require
from securetm.wording import downward_figure

AUDITS = "audits"  # the folder of a run's audits, below that of the run
_COUNTED = "refuted_claims"
_DIGITS = 18  # a whole number with more digits is refused
_MOST_SAID = 400  # characters of an error message, which may quote the file
_LARGEST = 1e15  # a larger figure is refused
_SAME = 1e-4  # a kept figure has six digits


def not_an_audit(path: Path, problem: str) -> Mistake:
    """The mistake of a file that is no result of an audit."""
    hint = (
        "give what `securetm audit PLAN --json` printed, or the folder of a run that was tried with `securetm audit PLAN --run`"
    )
    return Mistake("{path} is no result of an audit: {problem}", hint=hint, path=str(path), problem=problem)


def write_record(audit: Audit, folder: Path, examples: int) -> Path:
    """Writes the audit to the folder of its run, for the owner alone. It replaces an earlier audit of the same plan."""
    path = folder / AUDITS / f"{audit.plan}.json"
    make_private(path.parent)
    text = json.dumps(record(audit, examples), ensure_ascii=False, indent=1, allow_nan=False)
    write_report(path, f"{json_text(text)}\n", private=True)
    bind(folder, [path])
    return path


def read_record(path: Path) -> Audit:
    """The audit in that file, or the only one in the folder of a run."""
    path = _only_one(path) if path.is_dir() else path
    folder = path.resolve().parent.parent
    if path.resolve().parent.name == AUDITS:  # the run's digests cover its audits
        check(folder, path.resolve())
    try:
        text = path.read_text("utf-8")
        content = json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= _DIGITS else math.inf)
    except OSError as problem:
        raise not_an_audit(path, problem.strerror or type(problem).__name__) from problem
    except (ValueError, RecursionError) as problem:  # not UTF-8, not JSON, or nested too deeply
        raise not_an_audit(path, f"it is no JSON ({problem})") from problem
    try:
        return _audit(_sound_values(content, "the file"))
    except (SecuretmError, ValueError) as problem:
        raise not_an_audit(path, printable(str(problem))[:_MOST_SAID]) from problem
    except RecursionError as problem:
        raise not_an_audit(path, "its tables are nested without end") from problem


def _only_one(folder: Path) -> Path:
    kept = sorted((folder / AUDITS).glob("*.json"))
    if not kept:
        raise not_an_audit(folder, "nothing was kept there of any audit")
    if len(kept) > 1:
        raise not_an_audit(folder, f"it keeps several: name one of {', '.join(printable(str(path)) for path in kept)}")
    return kept[0]


def _audit(content: Any) -> Audit:
    audit = with_findings(content, Audit, COMPUTED)
    empty = "must not be empty, because every plan tries something"
    require(bool(audit.findings or audit.refusals), "the file", "findings", (), empty)
    _check_verdicts(audit)
    said, counted = content.get(_COUNTED), len(audit.refuted_claims)
    problem = f"does not follow from the findings, which give {counted}"
    require(said in (None, counted), "the file", _COUNTED, said, problem)
    return audit


def _sound_values(content: Any, where: str) -> Any:
    """The same content with every text made printable. It refuses a number that is not finite or too large."""
    if isinstance(content, dict):
        told = {printable(name): value for name, value in content.items()}
        named = {name: SINGULAR.get(name, name) for name in told}
        inside = {name: said if where == "the file" else f"{where}, {said}" for name, said in named.items()}
        return {name: _sound_values(value, inside[name]) for name, value in told.items()}
    if isinstance(content, list):
        return [_sound_values(value, f"{where} {n}") for n, value in enumerate(content, start=1)]
    if isinstance(content, str):
        return printable(content)
    if isinstance(content, int | float) and not isinstance(content, bool):
        absurd = not math.isfinite(content) or abs(content) > _LARGEST
        place, _, name = where.rpartition(", ")
        require(not absurd, place or "the file", name, content, "is no number that an audit can find")
    return content


# ---- what contradicts itself ---------------------------------------------------------------------------------------


def _check_verdicts(audit: Audit) -> None:
    """Compares every share with its interval, and every verdict with its figures and its baseline."""
    broken = False
    for number, finding in enumerate(audit.findings, start=1):
        outcome, where = finding.outcome, f"finding {number}"
        places = [(where, outcome.measured), *((f"{where}, beside", one) for one in outcome.beside)]
        places += [] if outcome.chance is None else [(f"{where}, chance", outcome.chance)]
        for place, found in places:
            if found.hits is not None and found.of is not None:
                _check_share(found, found.hits, found.of, finding.attempt.confidence, place)
        broken = outcome.verdict == REFUTED if finding.attempt.baseline else broken
        _check_verdict(finding, broken, where)


def _check_share(found: Measured, hits: int, of: int, confidence: float, where: str) -> None:
    """The value must be hits of tries, and the interval no narrower than the exact one. A judge may widen it."""
    for name, end in (("low", found.low), ("high", found.high), ("ceiling", found.ceiling)):
        require(0 <= end <= 1, where, name, end, "must be from 0 to 1")
    value = hits / of if of else None
    same = found.value is None if value is None else found.value is not None and abs(found.value - value) <= _SAME
    require(same, where, "value", found.value, f"is not {hits} of {of}")
    low, high = clopper_pearson(hits, of, confidence)
    wide = found.low <= low + _SAME and found.high >= high - _SAME
    problem = f"is narrower than {hits} of {of} allow at a confidence of {confidence:g}"
    require(wide, where, "interval", f"{found.low:g} to {found.high:g}", problem)


def _check_verdict(finding: Finding, broken: bool, where: str) -> None:
    """The verdict must follow from the figures, and from whether the baseline was broken."""
    found, verdict = finding.outcome.measured, finding.outcome.verdict
    require(finding.outcome.chance is not None or bool(finding.run.kept), where, "chance", None)
    follows, depends = possible_verdicts(finding), not (broken or finding.attempt.baseline)
    if depends:  # an attack that did not break its baseline shows nothing by failing
        follows = frozenset(NOT_TESTED if one == NOT_REFUTED else one for one in follows)
    begins, counts = downward_figure(found.low), f"{finding.attempt.refuted_from:.3g}"
    problem = f"does not follow from an interval from {begins} on, where {counts} counts"
    beside = ", and from a baseline that was not broken" if depends else ""
    require(verdict in follows, where, "verdict", verdict, f"{problem} as refuted{beside}")
