"""What an audit of a recorded run has found so far, in a file beside its records: a killed audit loses one trial at most.

The file holds results and no state of an attack. It is written whole after each trial, and removed once the record is there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from securetm.auditing.audit_plans import AuditPlan, Trial
from securetm.auditing.audit_record import Finding, flat, with_findings
from securetm.auditing.evidence import today
from securetm.auditing.evidence_hashes import bound_to
from securetm.federation.file_digests import ADDED, is_bound, read_digests
from securetm.federation.folder import RunFolder
from securetm.federation.running_errors import DamagedStore
from securetm.federation.store import read_json, write_bytes
from securetm.settings import digest
from securetm.version import __version__

FOLDER, ENDING = "audits", ".unfinished"


class _Kept(Struct, frozen=True, forbid_unknown_fields=True):
    """The findings of one trial."""

    findings: tuple[Finding, ...]


class Unfinished:
    """The findings of an audit that has not ended. Results of another run, plan, version or day are not used."""

    def __init__(self, plan: AuditPlan, given: RunFolder, minutes: float | None, examples: int) -> None:
        self.path = given.path / FOLDER / f"{plan.name}{ENDING}"
        self._given, self._examples = given, examples
        self._about = digest([plan.name, str(minutes), __version__, today(), *_files_of(given)]).hex()
        self._trials: dict[str, list[dict[str, Any]]] = {}
        if self.path.is_file() and (there := read_json(self.path)).get("about") == self._about:
            self._trials = dict(there["trials"])

    def __len__(self) -> int:
        """How many trials it holds."""
        return len(self._trials)

    def of(self, trial: Trial, tests: int, rounds: int) -> tuple[Finding, ...]:
        """The findings of this trial; empty if it was not made."""
        rows = self._trials.get(self._key(trial, tests, rounds))
        if rows is None:
            return ()
        try:
            return with_findings({"findings": rows}, _Kept).findings
        except ValueError as problem:
            raise DamagedStore(str(self.path), str(problem)) from problem

    def keep(self, trial: Trial, tests: int, rounds: int, found: tuple[Finding, ...]) -> None:
        """Writes the findings of this trial beside the others."""
        shown = (replace(one, outcome=replace(one.outcome, examples=one.leaked[: self._examples])) for one in found)
        self._trials[self._key(trial, tests, rounds)] = [flat(one) for one in shown]
        content: Mapping[str, Any] = {"about": self._about, "trials": self._trials}
        write_bytes(self.path, json.dumps(content, ensure_ascii=False, allow_nan=False).encode())

    def remove(self) -> None:
        """Removes the file: the record of the whole audit is in its place."""
        self.path.unlink(missing_ok=True)

    def _key(self, trial: Trial, tests: int, rounds: int) -> str:
        """The trial, with all the code that its result depends on."""
        bound = bound_to(trial, self._given.agreement.plan.profile)  # its name, or the path of its file
        return digest([sorted(bound.items()), tests, rounds]).hex()


def _files_of(given: RunFolder) -> list[Any]:
    """The run's own files, as their digests tell them; of a run without digests its path alone."""
    if not is_bound(given.path):
        return [str(given.path.resolve())]
    kept = read_digests(given.path)
    files = {place: one for place, one in kept.files.items() if not place.startswith(ADDED)}
    return [sorted(files.items()), sorted(kept.rows.items())]
