"""An audit's record in a file, and back again, so that it can be shown without being repeated. It runs no attack.

What is read is checked: every field for its kind, and every verdict against the figures beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from securetm.errors import CannotWrite, NotAnAudit, SecuretmError
from securetm.leakage.attack import Curve, Example
from securetm.leakage.findings import Audit, Finding, Measured, Refusal
from securetm.leakage.verdicts import NOT_REFUTED, REFUTED
from securetm.reports.findings import MEANING, record
from securetm.tables import into, require

AUDITS = "audits"  # where the folder of a run keeps what was found of it
_DERIVED = "refuted_claims"
_MEASURED = tuple(field.name for field in fields(Measured))


def write_record(audit: Audit, folder: Path, examples: int) -> Path:
    """Keeps the audit in the folder of the run that it tried; a later audit of the same plan takes its place."""
    path = folder / AUDITS / f"{audit.plan}.json"
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(record(audit, examples), ensure_ascii=False, indent=1, allow_nan=False) + "\n", "utf-8")
    except OSError as problem:
        raise CannotWrite(str(path), problem.strerror or type(problem).__name__) from problem
    return path


def read_record(path: Path) -> Audit:
    """The audit in that file, or the only one that the folder of a run keeps."""
    path = _only_one(path) if path.is_dir() else path
    try:
        plain = json.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise NotAnAudit(str(path), problem.strerror or type(problem).__name__) from problem
    except (ValueError, RecursionError) as problem:  # not UTF-8, or not JSON, or without end
        raise NotAnAudit(str(path), f"it is no JSON ({problem})") from problem
    try:
        return _audit(plain)
    except SecuretmError as problem:
        raise NotAnAudit(str(path), str(problem)) from problem


def _only_one(folder: Path) -> Path:
    kept = sorted((folder / AUDITS).glob("*.json"))
    if not kept:
        raise NotAnAudit(str(folder), "nothing was kept there of any audit")
    if len(kept) > 1:
        raise NotAnAudit(str(folder), f"it keeps several: name one of {', '.join(str(path) for path in kept)}")
    return kept[0]


def _audit(plain: Any) -> Audit:
    table = _table(plain, "the file")
    require("plan" in table and "findings" in table, "the file", "findings", "(nothing)", "is missing")
    findings = tuple(_finding(one, f"finding {n}") for n, one in enumerate(_list(table["findings"], "findings"), start=1))
    refusals = tuple(into(Refusal, _table(one, "refusals"), "refusals") for one in _list(table.get("refusals", []), "refusals"))
    rest = {name: value for name, value in table.items() if name not in ("findings", "refusals", _DERIVED)}
    audit = into(Audit, {**rest, "findings": findings, "refusals": refusals}, "the file")
    counted = len(audit.refuted_claims)
    said = table.get(_DERIVED, counted)
    require(said == counted, "the file", _DERIVED, str(said), f"does not follow from the findings, which give {counted}")
    return audit


def _finding(plain: Any, where: str) -> Finding:
    table = dict(_table(plain, where))
    own = {name: table.pop(name) for name in _MEASURED if name in table}
    table["measured"] = _measured(own, where)
    table["chance"] = None if table.get("chance") is None else _measured(table["chance"], f"{where}, chance")
    table["beside"] = tuple(_measured(one, f"{where}, beside") for one in _list(table.get("beside", []), where))
    table["examples"] = tuple(into(Example, _table(one, where), where) for one in _list(table.get("examples", []), where))
    table["curves"] = tuple(_curve(one, f"{where}, curves") for one in _list(table.get("curves", []), where))
    finding = into(Finding, table, where)
    _check_verdict(finding, where)
    return finding


def _measured(plain: Any, where: str) -> Measured:
    """JSON knows no infinity: an end that is missing is one."""
    table = dict(_table(plain, where))
    endless = [name for name in ("high", "ceiling") if name in table and table[name] is None]
    found = into(Measured, {**table, **dict.fromkeys(endless, 0.0)}, where)
    found = replace(found, high=math.inf) if "high" in endless else found
    found = replace(found, ceiling=math.inf) if "ceiling" in endless else found
    value = found.low if found.value is None else found.value
    require(found.low <= value <= found.high, where, "value", str(found.value), "does not lie within its interval")
    return found


def _curve(plain: Any, where: str) -> Curve:
    table = _table(plain, where)
    lines = {name: tuple(_number(value, where, name) for value in _list(table.get(name), where)) for name in ("across", "up")}
    require(len(lines["across"]) == len(lines["up"]), where, "up", str(len(lines["up"])), "has not as many points as across")
    rest = {name: value for name, value in table.items() if name not in lines}
    return replace(into(Curve, {**rest, "across": (), "up": ()}, where), across=lines["across"], up=lines["up"])


def _number(value: Any, where: str, name: str) -> float:
    if value is None:
        return math.inf
    require(isinstance(value, int | float) and not isinstance(value, bool), where, name, repr(value), "must be a number")
    return float(value)


def _check_verdict(finding: Finding, where: str) -> None:
    """The verdict must be one that the figures allow: nobody improves it in the file."""
    verdict, found = finding.verdict, finding.measured
    require(verdict in MEANING, where, "verdict", verdict, f"must be one of {', '.join(MEANING)}")
    reached = found.value is not None and found.low >= finding.refuted_from
    contradicted = (verdict == REFUTED and not reached) or (verdict == NOT_REFUTED and (reached or found.value is None))
    problem = f"does not follow from an interval from {found.low:.3g} on, where {finding.refuted_from:.3g} counts as refuted"
    require(not contradicted, where, "verdict", verdict, problem)


def _table(plain: Any, where: str) -> Mapping[str, Any]:
    require(isinstance(plain, dict), where, "content", type(plain).__name__, "must be a table")
    table: Mapping[str, Any] = plain
    return table


def _list(plain: Any, where: str) -> Sequence[Any]:
    require(isinstance(plain, list), where, "content", type(plain).__name__, "must be a list")
    items: Sequence[Any] = plain
    return items
