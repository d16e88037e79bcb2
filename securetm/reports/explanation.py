"""What a profile means for each role, as plain records: who sees what, what protects it, what is spent. It decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from securetm.contracts import Claim, Profile
from securetm.leakage.plans import audit_plan_names, read_audit_plan
from securetm.profiles import claims_of, cohort_of, profile_gaps, read_profile
from securetm.threats import CHANNELS, read_threat_model

_UNION = "which party uses which words (with a union vocabulary; a public word list avoids it)"
_SENT = {"answer": "every answer of every party in the clear: word frequencies, gradients, held-out likelihood"}
_SHARED = ("the agreed list of words", "the shared model")


@dataclass(frozen=True)
class View:
    """One role, what it gets to see, and what is claimed against it."""

    role: str
    sees: tuple[str, ...]
    protected_by: tuple[str, ...]


def explain(name: str, parties: int = 5) -> dict[str, Any]:
    """A profile in the words of its parts, its threat model and the audits that try it."""
    profile = read_profile(name)
    threats = read_threat_model(profile.threat_model)
    members = tuple(f"party {n}" for n in range(parties))
    claims = claims_of(profile, cohort_of(profile, members))
    return {
        "profile": profile.name,
        "title": profile.title,
        "danger": profile.danger,
        "digest": profile.digest.hex(),
        "threat_model": {"name": threats.name, "title": threats.title},
        "views": [asdict(view) for view in _views(profile, claims)],
        "spent": _spent(profile),
        "accepted": [{"claim": what, "reason": reason} for what, reason in threats.accepts],
        "out_of_scope": list(threats.out_of_scope),
        "vocabularies": list(profile.vocabularies),
        "minimum_parties": profile.minimum_parties,
        "minimum_documents": profile.minimum_documents,
        "gaps": [asdict(gap) for gap in profile_gaps(profile, threats, parties)],
        "audits": [plan.title for plan in map(read_audit_plan, audit_plan_names()) if profile.name in plan.profiles],
    }


def _views(profile: Profile, claims: frozenset[Claim]) -> Sequence[View]:
    sent = _SENT.get(profile.aggregation.channel, CHANNELS[profile.aggregation.channel])
    words = (_UNION,) if "union" in profile.vocabularies else ()
    total = {"coordinator": (), "parties": ()} | {profile.aggregation.opened_by: (CHANNELS["total"],)}
    all_words = ("every word of every party, not whose it is",) if words else ()
    return (
        View("the coordinator", (*words, sent, *total["coordinator"], *_SHARED), _against("coordinator", claims)),
        View(
            "every other party",
            (*all_words, *total["parties"], "the shared weights, round by round", *_SHARED),
            _against("party", claims),
        ),
        View("whoever gets the model", _SHARED, _against("model reader", claims)),
    )


def _against(adversary: str, claims: frozenset[Claim]) -> tuple[str, ...]:
    made = sorted((claim for claim in claims if claim.against == adversary), key=lambda claim: claim.what)
    return tuple(_sentence(claim) for claim in made)


def _sentence(claim: Claim) -> str:
    helped = f", even if {claim.colluding} parties help it" if claim.colluding else ", if no party helps it"
    return claim.what + (f" per {claim.unit.value}" if claim.unit else "") + helped


def _spent(profile: Profile) -> str:
    if profile.budget is None:
        return "no bound: exact sums are sent, so no differential privacy is given to any document, person or party"
    budget = profile.budget
    return f"at most epsilon = {budget.epsilon:g} per {budget.unit.value} at delta = {budget.delta:g}"
