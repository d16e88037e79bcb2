"""Kept results of audits: their files, and the checks on reading. This module runs no attack.

Reading imports no attack and no arithmetic. A kept result holds no recovered words and no path.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from securetm.auditing.audit_record import (
    About,
    Finding,
    Measured,
    decoded,
    flat,
    plain,
    with_findings,
    without_empty,
)
from securetm.auditing.evidence_hashes import TRIAL
from securetm.auditing.leakage_errors import DamagedEvidence
from securetm.auditing.refusal_record import RefusalRecord
from securetm.auditing.verdicts import NOT_TESTED, VERDICTS, possible_verdicts
from securetm.resources import data_folder

FORMAT = 2  # of the files of results; format 1 kept figures in a table of their own
FOLDER = "refusals"  # below the folder of the results


class Evidence(Struct, frozen=True, forbid_unknown_fields=True):
    """All kept findings about one profile with one model."""

    profile: str
    model: str
    plan: str
    findings: tuple[Finding, ...]

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.profile}--{self.model}.json"


class KeptRefusals(Struct, frozen=True, forbid_unknown_fields=True):
    """All attempts below one profile's minimum, all protocol violations in a run of it, and the parties' answers."""

    profile: str
    plan: str
    tried: tuple[str, ...]  # the lists of the plan that name this profile
    refusals: tuple[RefusalRecord, ...]
    seconds: float
    date: str
    python: str
    bound: Mapping[str, str]  # hashes of all that these results depend on, by name

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.profile}.json"


def evidence_folder() -> Path:
    """The folder in which this copy of securetm keeps the results of its own audits."""
    return data_folder("audits") / "evidence"


# ---- writing -------------------------------------------------------------------------------------------------------


def today() -> str:
    """The day, as 2026-01-31."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def to_keep(finding: Finding) -> Finding:
    """A finding without examples, curves, paths and the attack's own texts, and with six digits of each figure."""
    attempt, outcome, about = finding.attempt, finding.outcome, finding.about
    return Finding(
        replace(attempt, refuted_from=_six(attempt.refuted_from), confidence=_six(attempt.confidence)),
        replace(finding.run, name="", kept=finding.run.kept or today()),
        replace(
            outcome,
            measured=_short(outcome.measured),
            chance=None if outcome.chance is None else _short(outcome.chance),
            beside=tuple(map(_short, outcome.beside)),
            seconds=round(outcome.seconds, 1),
            examples=(),
            curves=(),
        ),
        About(title=about.title, claimed=about.claimed, accepted=about.accepted, sees=about.sees),
    )


def _short(found: Measured) -> Measured:
    return replace(found, **{name: _six(getattr(found, name)) for name in ("value", "low", "high", "ceiling", "by_chance")})


def _six(value: Any) -> Any:
    return value if value is None else float(f"{value:.6g}")


def write_evidence(evidence: Evidence, folder: Path) -> None:
    """Writes all that is kept about one profile with one model."""
    order = sorted(
        evidence.findings,
        key=lambda one: (
            *(one.attempt.attack, one.attempt.threat_model, one.attempt.adversary),
            one.attempt.bound.get(TRIAL, ""),
        ),
    )
    head = {"format": FORMAT, "profile": evidence.profile, "model": evidence.model, "plan": evidence.plan}
    _write({**head, "findings": [without_empty(flat(one)) for one in order]}, folder / evidence.name)


def write_refusals(kept: KeptRefusals, folder: Path) -> None:
    """Writes what is kept of one profile's refusals. It replaces what was kept before."""
    _write(plain(kept), folder / FOLDER / kept.name)


def _write(content: Mapping[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


# ---- reading -------------------------------------------------------------------------------------------------------


def read_all_evidence(folder: Path) -> tuple[Evidence, ...]:
    """Everything kept in a folder, by profile and model."""
    return tuple(read_evidence(path) for path in sorted(folder.glob("*.json")))


def read_evidence(path: Path) -> Evidence:
    """One file of evidence, with everything in it checked."""
    table = _table_in(path, path.name)
    found = table.pop("format", 1)
    _require(found == FORMAT, path.name, f"it is of format {str(found)[:9]}, and this version reads format {FORMAT}")
    try:
        evidence = with_findings(table, Evidence)
    except ValueError as problem:
        raise DamagedEvidence(path.name, str(problem)[:200]) from problem
    _require(evidence.name == path.name, path.name, f"it holds results of {evidence.profile} with {evidence.model}")
    for number, finding in enumerate(evidence.findings, start=1):
        _check(finding, evidence, f"finding {number}", path.name)
    return evidence


def _check(finding: Finding, evidence: Evidence, where: str, file: str) -> None:
    """Refuses a finding of another profile or model, one without hashes, and a verdict that contradicts its figures."""
    own = (finding.run.profile, finding.run.model) == (evidence.profile, evidence.model)
    _require(own, file, f"{where} is of {finding.run.profile} with {finding.run.model}")
    verdict = finding.outcome.verdict
    _require(verdict in VERDICTS and bool(finding.attempt.bound), file, f"{where} says {verdict[:40]!r}, or has no hashes")
    follows = verdict == NOT_TESTED or verdict in possible_verdicts(finding)
    _require(follows, file, f"{where}: the verdict of {finding.attempt.attack} does not follow from its own figures")


def read_all_refusals(folder: Path) -> tuple[KeptRefusals, ...]:
    """All kept refusals in a folder of evidence, by profile."""
    return tuple(read_refusals(path) for path in sorted((folder / FOLDER).glob("*.json")))


def refusals_of(profile: str, folder: Path) -> KeptRefusals | None:
    """The kept refusals of one profile; None if there are none."""
    path = folder / FOLDER / f"{profile}.json"
    return read_refusals(path) if path.is_file() else None


def read_refusals(path: Path) -> KeptRefusals:
    """One file of refusals, with everything in it checked."""
    where = f"{FOLDER}/{path.name}"
    try:
        kept = decoded(_table_in(path, where), KeptRefusals, "the file")
    except ValueError as problem:
        raise DamagedEvidence(where, str(problem)[:200]) from problem
    own = kept.name == path.name and all(one.profile == kept.profile for one in kept.refusals)
    _require(own, where, f"it holds refusals of {kept.profile}, or of several profiles")
    named = all(one.by and one.reason for one in kept.refusals if one.refused)
    _require(named, where, "a refusal has no reason, or nobody who refused")
    return kept


def _table_in(path: Path, where: str) -> dict[str, Any]:
    """The table in a file of kept results."""
    try:
        content = msgspec.json.decode(path.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        raise DamagedEvidence(where, f"{type(problem).__name__}: {problem}"[:200]) from problem
    _require(isinstance(content, dict), where, "it holds no table of results")
    table: dict[str, Any] = content
    return table


def _require(condition: bool, file: str, problem: str) -> None:
    if not condition:
        raise DamagedEvidence(file, problem)
