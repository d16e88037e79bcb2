"""What parties were kept to refuse, beside the claims that rest on it. It tries nothing, and reads kept refusals only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from securetm.contracts import Claim
from securetm.leakage.evidence import KeptRefusals, refusals_of
from securetm.leakage.refusal_record import RefusalRecord
from securetm.leakage.staleness import stale_refusals
from securetm.leakage.verdicts import NOT_REFUTED, REFUTED

_CHANGED = " changed since"  # ends what says that one thing did (leakage/staleness.py)
LIES = "lies told to parties"  # what tries a claim that is kept by refusing
_KEPT_BY_REFUSING = ("cannot speak for a party", "cannot show parties different cohorts")


def refusal_facts(profile: str, folder: Path) -> dict[str, Any]:
    """All that is kept of one profile's refusals as plain data; nothing where nothing is."""
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
        "not_claimed": [{"attempt": one.attempt, "reason": one.reason} for one in _answered(kept)],
    }


def _counts(tried: list[RefusalRecord]) -> dict[str, int]:
    return {"tried": len(tried), "refused": sum(one.refused for one in tried)}


def _answered(kept: KeptRefusals) -> list[RefusalRecord]:
    """Lies that a party answered, where the profile claims nothing against them."""
    return [one for one in kept.refusals if not one.refused and not one.broken]


def rests_on_refusing(claim: Claim) -> bool:
    """Whether a claim is kept by parties that refuse what a lying coordinator sends."""
    return claim.what in _KEPT_BY_REFUSING


def lies_on(claim: Claim, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The kept lies as a result on this claim; nothing where none was told."""
    if not facts or not rests_on_refusing(claim) or not facts["lies"]["tried"]:
        return []
    rest = {name: facts[name] for name in ("plan", "date", "stale", "not_held", "not_claimed")}
    return [{"attempt": LIES, "verdict": _verdict(claim, facts), **facts["lies"], **rest}]


def _verdict(claim: Claim, facts: Mapping[str, Any]) -> str:
    """Refuted where a lie was answered that should not be, or that shows this very claim not to hold."""
    shown = any(one["reason"].endswith(claim.what) for one in facts["not_claimed"])
    return REFUTED if facts["not_held"] or shown else NOT_REFUTED


def lies_in_words(one: Mapping[str, Any]) -> str:
    """How the lies ended, in one line."""
    answered = "; ".join(f"{lie['attempt']} ({lie['reason']})" for lie in one["not_claimed"])
    parts = [
        f": {one['refused']} of {one['tried']} lies refused, {one['date']}",
        f"; NOT HELD: {'; '.join(one['not_held'])}" if one["not_held"] else "",
        f"; answered: {answered}" if answered else "",
    ]
    return "".join(parts)


def stale_in_words(reasons: Sequence[str]) -> str:
    """All that changed since a result was kept, said once; nothing where nothing did."""
    changed = [reason.removesuffix(_CHANGED) for reason in reasons if reason.endswith(_CHANGED)]
    rest = [reason for reason in reasons if not reason.endswith(_CHANGED)]
    said = [", ".join(changed) + _CHANGED] if changed else []
    return f"stale: {'; '.join([*said, *rest])}" if reasons else ""


def outside_claims(facts: Mapping[str, Any], lies_shown: bool) -> list[str]:
    """What no claim's row says: what became of runs below the minimum, and of lies where no row shows them."""
    if not facts:
        return []
    lies = (
        []
        if lies_shown or not facts["lies"]["tried"]
        else [f"{LIES.capitalize()}{lies_in_words({**facts, **facts['lies']})}{_then(facts['stale'])}."]
    )
    return lies + ([_below_in_words(facts)] if facts["below_minimum"]["tried"] else [])


def _below_in_words(facts: Mapping[str, Any]) -> str:
    below = facts["below_minimum"]
    return (
        f"Runs begun with too few documents for a minimum of {below['minimum']:,}: {below['refused']} of {below['tried']} "
        f"refused, {facts['date']}{_then(facts['stale'])}."
    )


def _then(reasons: Sequence[str]) -> str:
    return f"; {stale_in_words(reasons)}" if reasons else ""
