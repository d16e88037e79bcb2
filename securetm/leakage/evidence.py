"""Results of audits that are kept beside the plans: their files, and what is checked when they are read. It runs no attack.

Reading imports no attack and no arithmetic. Nothing that was recovered of documents is kept, and no place on a disk.
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

from securetm.leakage.audit_record import About, Finding, Measured, decoded, finding_in, flat, plain, without_empty
from securetm.leakage.evidence_hashes import TRIAL
from securetm.leakage.leakage_errors import DamagedEvidence
from securetm.leakage.refusal_record import RefusalRecord
from securetm.leakage.verdicts import NOT_TESTED, VERDICTS, possible_verdicts
from securetm.resources import data_folder

FORMAT = 2  # of the files of results; 1 kept figures in a table of their own
FOLDER = "refusals"  # below that of the results, whose own files are read by their ending


class Evidence(Struct, frozen=True, forbid_unknown_fields=True):
    """All findings that are kept about one profile with one model."""

    profile: str
    model: str
    plan: str
    findings: tuple[Finding, ...]

    @property
    def name(self) -> str:
        """What its file is called."""
        return f"{self.profile}--{self.model}.json"


class KeptRefusals(Struct, frozen=True, forbid_unknown_fields=True):
    """All runs below one profile's minimum and all protocol violations in a run of it, and the parties' answers."""

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
        """What its file is called."""
        return f"{self.profile}.json"


def evidence_folder() -> Path:
    """Where this copy of securetm keeps what its own audits found."""
    return data_folder("audits") / "evidence"


# ---- writing -------------------------------------------------------------------------------------------------------


def today() -> str:
    """The day, as 2026-01-31."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def to_keep(finding: Finding) -> Finding:
    """A finding without what was recovered, curves, places and the attack's own texts, and with six digits of each figure."""
    about = About(
        title=finding.about.title, claimed=finding.about.claimed, accepted=finding.about.accepted, sees=finding.about.sees
    )
    shortened, attempt = finding.outcome, finding.attempt
    chance = None if shortened.chance is None else _short(shortened.chance)
    return Finding(
        replace(attempt, refuted_from=_six(attempt.refuted_from), confidence=_six(attempt.confidence)),
        replace(finding.run, name="", kept=finding.run.kept or today()),
        replace(
            shortened,
            measured=_short(shortened.measured),
            chance=chance,
            beside=tuple(map(_short, shortened.beside)),
            seconds=round(shortened.seconds, 1),
            examples=(),
            curves=(),
        ),
        about,
    )


def _short(found: Measured) -> Measured:
    return replace(found, **{name: _six(getattr(found, name)) for name in ("value", "low", "high", "ceiling", "by_chance")})


def _six(value: Any) -> Any:
    return value if value is None else float(f"{value:.6g}")


def write_evidence(evidence: Evidence, folder: Path) -> None:
    """Writes all that is kept about one profile with one model."""
    order = sorted(evidence.findings, key=lambda one: (*_who(one), one.attempt.bound.get(TRIAL, "")))
    head = {"format": FORMAT, "profile": evidence.profile, "model": evidence.model, "plan": evidence.plan}
    _write({**head, "findings": [without_empty(flat(one)) for one in order]}, folder / evidence.name)


def _who(finding: Finding) -> tuple[str, str, str]:
    return finding.attempt.attack, finding.attempt.threat_model, finding.attempt.adversary


def write_refusals(kept: KeptRefusals, folder: Path) -> None:
    """Writes what is kept of one profile's refusals, in the place of what was kept before."""
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
    results = table.pop("findings", None)
    _require(isinstance(results, list), path.name, "its findings are no list")
    try:
        findings = tuple(finding_in(dict(one), f"finding {n}") for n, one in enumerate(results or (), start=1))
        evidence = decoded({**table, "findings": ()}, Evidence, "the file")
    except (ValueError, TypeError) as problem:
        raise DamagedEvidence(path.name, str(problem)[:200]) from problem
    _require(evidence.name == path.name, path.name, f"it holds results of {evidence.profile} with {evidence.model}")
    for number, finding in enumerate(findings, start=1):
        _check(finding, evidence, f"finding {number}", path.name)
    return replace(evidence, findings=findings)


def _check(finding: Finding, evidence: Evidence, where: str, file: str) -> None:
    """A kept finding is of this profile and model, depends on something, and has a verdict that follows from its figures."""
    own = (finding.run.profile, finding.run.model) == (evidence.profile, evidence.model)
    _require(own, file, f"{where} is of {finding.run.profile} with {finding.run.model}")
    verdict = finding.outcome.verdict
    _require(verdict in VERDICTS and bool(finding.attempt.bound), file, f"{where} says {verdict[:40]!r}, or has no hashes")
    follows = verdict == NOT_TESTED or verdict in possible_verdicts(finding)
    _require(follows, file, f"{where}: the verdict of {finding.attempt.attack} does not follow from its own figures")


def read_all_refusals(folder: Path) -> tuple[KeptRefusals, ...]:
    """Everything that is kept of refusals in a folder of evidence, by profile."""
    return tuple(read_refusals(path) for path in sorted((folder / FOLDER).glob("*.json")))


def refusals_of(profile: str, folder: Path) -> KeptRefusals | None:
    """What is kept of the refusals of one profile; None where nothing is."""
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
    """What a file of kept results holds."""
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
