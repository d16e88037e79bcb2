"""Kept refusals of a profile's parties, and the claims that depend on them. This module reads results and tries nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from securetm.contracts import Claim
from securetm.leakage.audit_record import STANDING
from securetm.leakage.evidence import refusals_of
from securetm.leakage.refusal_record import RefusalRecord
from securetm.leakage.staleness import stale_refusals
from securetm.leakage.verdicts import NOT_REFUTED, REFUTED, standing_of

_CHANGED = " changed since"  # the end of each sentence of leakage/staleness.py about one change
LIES = "lies told to parties"  # the attempt on a claim that parties keep by refusing
_KEPT_BY_REFUSING = ("cannot speak for a party", "cannot show parties different cohorts")


def refusal_facts(profile: str, folder: Path) -> dict[str, Any]:
    """What is kept of one profile's refusals, as plain data; empty if nothing is."""
    kept = refusals_of(profile, folder)
    if kept is None:
        return {}
    lies, below = ([one for one in kept.refusals if (one.minimum == 0) == lie] for lie in (True, False))
    return {
        "plan": kept.plan,
        "date": kept.date,
        "stale": list(stale_refusals(kept)),
        "lies": _counts(lies),
        "below_minimum": {**_counts(below), "minimum": max((one.minimum for one in below), default=0)},
        "not_held": [one.attempt for one in kept.refusals if one.broken],
        "not_claimed": [
            {"attempt": one.attempt, "reason": one.reason}
            for one in kept.refusals
            if not one.refused and not one.broken  # a party answered a lie, and the profile claims nothing against it
        ],
    }


def _counts(tried: list[RefusalRecord]) -> dict[str, int]:
    return {"tried": len(tried), "refused": sum(one.refused for one in tried)}


def rests_on_refusing(claim: Claim) -> bool:
    """Whether parties keep this claim by refusing messages of a malicious coordinator."""
    return claim.what in _KEPT_BY_REFUSING


def lies_on(claim: Claim, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The kept lies as a result on this claim; empty if none was told.

    The claim is refuted if a party answered a lie that it should have refused, or one that shows that this claim fails.
    """
    if not facts or not rests_on_refusing(claim) or not facts["lies"]["tried"]:
        return []
    shown = any(one["reason"].endswith(claim.what) for one in facts["not_claimed"])
    verdict = REFUTED if facts["not_held"] or shown else NOT_REFUTED
    rest = {name: facts[name] for name in ("plan", "date", "stale", "not_held", "not_claimed")}
    called = standing_of(verdict, claimed=True)
    return [{"attempt": LIES, "verdict": verdict, STANDING: called, **facts["lies"], **rest}]


def lies_in_words(one: Mapping[str, Any]) -> str:
    """How the lies ended, in one line."""
    answered = "; ".join(f"{lie['attempt']} ({lie['reason']})" for lie in one["not_claimed"])
    broken = f"; NOT HELD: {'; '.join(one['not_held'])}" if one["not_held"] else ""
    beside = f"; answered: {answered}" if answered else ""
    return f": {one['refused']} of {one['tried']} lies refused, {one['date']}{broken}{beside}"


def stale_in_words(reasons: Sequence[str]) -> str:
    """All that changed since a result was kept, in one sentence; empty if nothing did."""
    changed = [reason.removesuffix(_CHANGED) for reason in reasons if reason.endswith(_CHANGED)]
    rest = [reason for reason in reasons if not reason.endswith(_CHANGED)]
    said = [", ".join(changed) + _CHANGED] if changed else []
    return f"stale: {'; '.join([*said, *rest])}" if reasons else ""


def outside_claims(facts: Mapping[str, Any], lies_shown: bool) -> list[str]:
    """Results that stand in no claim's row: runs below the minimum, and lies unless a row shows them."""
    if not facts:
        return []
    sentences, below = [], facts["below_minimum"]
    stale = f"; {stale_in_words(facts['stale'])}" if facts["stale"] else ""
    if facts["lies"]["tried"] and not lies_shown:
        sentences.append(f"{LIES.capitalize()}{lies_in_words({**facts, **facts['lies']})}{stale}.")
    if below["tried"]:
        ended = f"{below['refused']} of {below['tried']} refused, {facts['date']}{stale}"
        sentences.append(f"Runs begun with too few documents for a minimum of {below['minimum']:,}: {ended}.")
    return sentences
