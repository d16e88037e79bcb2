"""An audit's record in a file, and back again, so that it can be shown without being repeated. It runs no attack.

What is read is checked: every field for its kind, every text for what a terminal would obey, every verdict against its figures.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from securetm.errors import SecuretmError
from securetm.federation.folder import is_bound
from securetm.federation.kept_files import bind, check
from securetm.leakage.findings import Audit, Finding, Measured, Refusal
from securetm.leakage.illustrations import Curve, Example
from securetm.leakage.kept_refusals import DatedRefusal
from securetm.reports.audit_soundness import check_audit, check_curve, check_measured, check_refusal, sound_values
from securetm.reports.findings import record
from securetm.reports.printable import printable
from securetm.reports.report_errors import NotAnAudit
from securetm.reports.writing import make_private, write_report
from securetm.toml_settings import from_table, require

AUDITS = "audits"  # where the folder of a run keeps what was found of it
_DERIVED = "refuted_claims"
_MEASURED = tuple(field.name for field in fields(Measured))
_DIGITS = 18  # a whole number with more is none of an audit's
_MOST_SAID = 400  # letters of a complaint: it may quote what is wrong


def write_record(audit: Audit, folder: Path, examples: int) -> Path:
    """Keeps the audit in the folder of the run that it tried, for its owner; a later audit of the same plan takes its place."""
    path = folder / AUDITS / f"{audit.plan}.json"
    make_private(path.parent)
    write_report(path, json.dumps(record(audit, examples), ensure_ascii=False, indent=1, allow_nan=False) + "\n", private=True)
    if is_bound(folder):
        bind(folder, [path])
    return path


def read_record(path: Path) -> Audit:
    """The audit in that file, or the only one that the folder of a run keeps."""
    path = _only_one(path) if path.is_dir() else path
    _check_unchanged(path)
    try:
        plain = json.loads(path.read_text("utf-8"), parse_int=_whole)
    except OSError as problem:
        raise NotAnAudit(str(path), problem.strerror or type(problem).__name__) from problem
    except (ValueError, RecursionError) as problem:  # not UTF-8, or not JSON, or without end
        raise NotAnAudit(str(path), f"it is no JSON ({problem})") from problem
    try:
        return _audit(sound_values(plain, "the file"))
    except SecuretmError as problem:
        raise NotAnAudit(str(path), printable(str(problem))[:_MOST_SAID]) from problem
    except RecursionError as problem:
        raise NotAnAudit(str(path), "its tables stand in each other without end") from problem


def _check_unchanged(path: Path) -> None:
    """An audit that lies in the folder of a run is bound there, like all that the run keeps."""
    folder = path.resolve().parent.parent
    if path.resolve().parent.name == AUDITS and is_bound(folder):
        check(folder, path.resolve())


def _whole(digits: str) -> float:
    return int(digits) if len(digits) <= _DIGITS else math.inf


def _only_one(folder: Path) -> Path:
    kept = sorted((folder / AUDITS).glob("*.json"))
    if not kept:
        raise NotAnAudit(str(folder), "nothing was kept there of any audit")
    if len(kept) > 1:
        raise NotAnAudit(str(folder), f"it keeps several: name one of {', '.join(printable(str(path)) for path in kept)}")
    return kept[0]


def _audit(plain: Any) -> Audit:
    table = _table(plain, "the file")
    require("plan" in table and "findings" in table, "the file", "findings", None)
    findings = tuple(_finding(one, f"finding {n}") for n, one in enumerate(_list(table["findings"], "findings"), start=1))
    refusals = tuple(_refusal(one, f"refusal {n}") for n, one in enumerate(_list(table.get("refusals", []), "refusals"), 1))
    require(bool(findings or refusals), "the file", "findings", (), "must not be empty, because every plan tries something")
    rest = {name: value for name, value in table.items() if name not in ("findings", "refusals", _DERIVED)}
    audit = from_table(Audit, {**rest, "findings": findings, "refusals": refusals}, "the file")
    check_audit(audit)
    counted = len(audit.refuted_claims)
    said = table.get(_DERIVED, counted)
    require(said == counted, "the file", _DERIVED, said, f"does not follow from the findings, which give {counted}")
    return audit


def _refusal(plain: Any, where: str) -> Refusal:
    table = _table(plain, where)
    refusal = from_table(DatedRefusal if "kept" in table else Refusal, table, where)
    check_refusal(refusal, where)
    return refusal


def _finding(plain: Any, where: str) -> Finding:
    table = dict(_table(plain, where))
    own = {name: table.pop(name) for name in _MEASURED if name in table}
    table["measured"] = _measured(own, where)
    table["chance"] = None if table.get("chance") is None else _measured(table["chance"], f"{where}, chance")
    table["beside"] = tuple(_measured(one, f"{where}, beside") for one in _list(table.get("beside", []), where))
    table["examples"] = tuple(from_table(Example, _table(one, where), where) for one in _list(table.get("examples", []), where))
    table["curves"] = tuple(_curve(one, f"{where}, curves") for one in _list(table.get("curves", []), where))
    return from_table(Finding, table, where)


def _measured(plain: Any, where: str) -> Measured:
    """JSON knows no infinity: an end that is missing is one."""
    table = dict(_table(plain, where))
    endless = [name for name in ("high", "ceiling") if name in table and table[name] is None]
    found = from_table(Measured, {**table, **dict.fromkeys(endless, 0.0)}, where)
    found = replace(found, high=math.inf) if "high" in endless else found
    found = replace(found, ceiling=math.inf) if "ceiling" in endless else found
    check_measured(found, where)
    return found


def _curve(plain: Any, where: str) -> Curve:
    table = _table(plain, where)
    lines = {name: tuple(_number(value, where, name) for value in _list(table.get(name), where)) for name in ("across", "up")}
    require(len(lines["across"]) == len(lines["up"]), where, "up", len(lines["up"]), "must be the number of points of `across`")
    rest = {name: value for name, value in table.items() if name not in lines}
    curve = replace(from_table(Curve, {**rest, "across": (), "up": ()}, where), across=lines["across"], up=lines["up"])
    check_curve(curve, where)
    return curve


def _number(value: Any, where: str, name: str) -> float:
    if value is None:
        return math.inf
    require(isinstance(value, int | float) and not isinstance(value, bool), where, name, value, "must be a number")
    return float(value)


def _table(plain: Any, where: str) -> Mapping[str, Any]:
    require(isinstance(plain, dict), where, "content", type(plain).__name__, "must be a table")
    table: Mapping[str, Any] = plain
    return table


def _list(plain: Any, where: str) -> Sequence[Any]:
    require(isinstance(plain, list), where, "content", type(plain).__name__, "must be a list")
    items: Sequence[Any] = plain
    return items
