"""What parties refused, as it is kept beside the results of attacks, and whether it still speaks of what is there.

It tries nothing by itself, and reading imports none of what does.
"""

from __future__ import annotations

import datetime
import json
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from securetm.errors import NotFound, SecuretmError
from securetm.leakage.audit_plans import AuditPlan, read_audit_plan
from securetm.leakage.evidence import table_in
from securetm.leakage.evidence_hashes import (
    ACCOUNTING,
    AGGREGATION,
    FEDERATION,
    MECHANISMS,
    PROFILE,
    TRYING,
    refusals_bound_to,
)
from securetm.leakage.findings import Refusal
from securetm.leakage.leakage_errors import DamagedEvidence
from securetm.toml_settings import from_table

if TYPE_CHECKING:
    from securetm.federation.folder import Stages

FOLDER = "refusals"  # below that of the results, whose own files are read by their ending
BELOW, LIES = "refusals", "moves"  # as the lists of a plan are called


@dataclass(frozen=True)
class DatedRefusal(Refusal):
    """One that was kept, and not tried again."""

    kept: str = ""  # the day


@dataclass(frozen=True)
class KeptRefusals:
    """All that was begun below one profile's minimum and all lies that were told in a run of it, and what became of them."""

    profile: str
    plan: str
    tried: tuple[str, ...]  # the lists of the plan that name this profile
    refusals: tuple[Refusal, ...]
    seconds: float
    date: str
    python: str
    bound: Mapping[str, str]  # what this speaks about, by name: a hash of each

    @property
    def name(self) -> str:
        """What its file is called."""
        return f"{self.profile}.json"


# ---- keeping and reading -------------------------------------------------------------------------------------------


def write_refusals(kept: KeptRefusals, folder: Path) -> None:
    """Keeps it in a folder of evidence, in the place of what was kept of that profile before."""
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    (place / kept.name).write_text(json.dumps(asdict(kept), indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def read_refusals(folder: Path) -> tuple[KeptRefusals, ...]:
    """Everything that is kept of refusals in a folder of evidence, by profile."""
    return tuple(read_refusals_in(path) for path in sorted((folder / FOLDER).glob("*.json")))


def refusals_of(profile: str, folder: Path) -> KeptRefusals | None:
    """What is kept of the refusals of one profile; None where nothing is."""
    path = folder / FOLDER / f"{profile}.json"
    return read_refusals_in(path) if path.is_file() else None


def read_refusals_in(path: Path) -> KeptRefusals:
    """One file of refusals, with everything in it checked."""
    where = f"{FOLDER}/{path.name}"
    plain = table_in(path, where)
    try:
        refusals = tuple(from_table(Refusal, one, where) for one in plain.pop("refusals"))
        kept = from_table(KeptRefusals, {**plain, "refusals": ()}, where)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, SecuretmError) as problem:
        raise DamagedEvidence(where, f"{type(problem).__name__}: {problem}"[:200]) from problem
    if kept.name != path.name or any(one.profile != kept.profile for one in refusals):
        raise DamagedEvidence(where, f"it speaks of {kept.profile}, or of several profiles")
    if any(one.refused and not (one.by and one.reason) for one in refusals):
        raise DamagedEvidence(where, "nobody refused what is said to be refused, or for no reason")
    return KeptRefusals(**{**vars(kept), "refusals": refusals})


# ---- whether it still holds ----------------------------------------------------------------------------------------


def lists_with(profile: str, plan: AuditPlan) -> tuple[str, ...]:
    """The lists of a plan that name this profile."""
    return tuple(name for name, listed in ((BELOW, plan.refusals), (LIES, plan.moves)) if profile in listed)


def stale_refusals(kept: KeptRefusals) -> tuple[str, ...]:
    """Why what was kept no longer speaks of what is there: nothing where it does."""
    try:
        listed = lists_with(kept.profile, read_audit_plan(kept.plan))
    except NotFound:
        listed = ()
    if not listed:
        return (f"the plan {kept.plan} no longer tries what the parties of {kept.profile} refuse",)
    other = f"the plan {kept.plan} tries {' and '.join(listed)} of {kept.profile} now"
    return (*([] if listed == kept.tried else [other]), *_changed(kept))


def _changed(kept: KeptRefusals) -> tuple[str, ...]:
    names = {
        PROFILE: f"the profile {kept.profile}",
        MECHANISMS: f"a mechanism of the profile {kept.profile}",
        AGGREGATION: f"the aggregation of the profile {kept.profile}",
        ACCOUNTING: f"the accounting of the epsilon of {kept.profile}",
        TRYING: "what tries the parties' refusals",
        FEDERATION: "what parties and the coordinator do",
    }
    now = refusals_bound_to(kept.profile)
    return tuple(f"{names[what]} changed since" for what in now if kept.bound.get(what) != now[what])


def due(plan: AuditPlan, folder: Path) -> tuple[str, ...]:
    """The profiles of a plan of which no refusals are kept in that folder, or stale ones."""
    named = tuple(dict.fromkeys((*plan.refusals, *plan.moves)))
    return tuple(profile for profile in named if not _fresh(refusals_of(profile, folder), lists_with(profile, plan), plan.name))


def _fresh(kept: KeptRefusals | None, listed: tuple[str, ...], plan: str) -> bool:
    """What another plan tried beside does no harm."""
    if kept is None or kept.bound != refusals_bound_to(kept.profile):
        return False
    return kept.tried == listed if kept.plan == plan else set(listed) <= set(kept.tried)


# ---- making --------------------------------------------------------------------------------------------------------


def renew_refusals(plan: AuditPlan, folder: Path, place: Path, stages: Stages) -> tuple[str, ...]:
    """Tries what is missing or stale, and keeps each profile's before the next begins; which profiles these were.

    Runs are made in `place`. What the plan kept of profiles that it no longer names is thrown away.
    """
    for old in read_refusals(folder):
        if old.plan == plan.name and not lists_with(old.profile, plan):
            (folder / FOLDER / old.name).unlink()
    again = due(plan, folder)
    if again:
        stages.stage("what parties refuse", len(again))
    for done, profile in enumerate(again, start=1):
        write_refusals(_tried(profile, plan, place / profile), folder)
        stages.step(done)
    return again


def _tried(profile: str, plan: AuditPlan, place: Path) -> KeptRefusals:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it

    from securetm.federation.folder import Unwatched
    from securetm.leakage.below_minimum import tried_below_minimum
    from securetm.leakage.demonstration import Demonstrations
    from securetm.leakage.protocol_violations import tried_violations

    bound, begun, listed = refusals_bound_to(profile), time.perf_counter(), lists_with(profile, plan)
    quiet = Unwatched()  # runs have stages of their own, which would hide how far this one is
    with threadpool_limits(1):
        below = tried_below_minimum(profile, {}, place, quiet) if BELOW in listed else ()
        lies = tried_violations(profile, Demonstrations(place, quiet)) if LIES in listed else ()
    seconds, today = round(time.perf_counter() - begun, 1), datetime.datetime.now(datetime.UTC).date().isoformat()
    return KeptRefusals(profile, plan.name, listed, (*below, *lies), seconds, today, platform.python_version(), bound)
