"""From names to parts: profiles, mechanisms, aggregations and models. The only file in which a string becomes a part.

It decides nothing about privacy: the parts themselves admit or refuse, and `admitted` asks them in order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any, cast

from securetm.aggregation.bfv import BfvSum
from securetm.aggregation.ckks import CkksSum
from securetm.aggregation.masked import MaskedSum
from securetm.aggregation.plain import PlainSum
from securetm.contracts import Aggregation, Claim, Cohort, Mechanism, Profile, Terms, ThreatModel, TopicModel
from securetm.errors import NotFound
from securetm.mechanisms.quantising import Clamped, FixedPoint
from securetm.mechanisms.sampling import ShuffledBatches
from securetm.shelf import titles, toml_on
from securetm.tables import digest, into, read_toml, require
from securetm.threats import Gap, gaps, read_threat_model

AGGREGATIONS: Mapping[str, type[Any]] = {"plain": PlainSum, "masked": MaskedSum, "bfv": BfvSum, "ckks": CkksSum}
MECHANISMS: Mapping[str, type[Any]] = {"shuffled_batches": ShuffledBatches, "clamped": Clamped, "fixed_point": FixedPoint}
MODELS: Mapping[str, str] = {"prodlda": "securetm.models.prodlda:ProdLDA"}  # named, so that torch is imported when needed
VOCABULARIES = ("union", "joint", "file")


@dataclass(frozen=True)
class ProfileText:
    """A profile as it stands in its file."""

    name: str
    title: str
    threat_model: str
    aggregation: str
    vocabularies: tuple[str, ...]
    mechanism: tuple[dict[str, Any], ...] = ()
    aggregation_settings: dict[str, Any] = field(default_factory=dict)
    minimum_parties: int = 2
    minimum_documents: int = 1
    threshold: int = 1
    threshold_share: float = 0.0
    colluding: int = 0
    danger: str = ""


def profile_names() -> tuple[str, ...]:
    """The profiles on the shelf."""
    return titles("protocols", "profiles")


def read_profile(name: str) -> Profile:
    """The profile of that name, or in that file, with its parts made and its settings checked."""
    path = toml_on("protocols", name, below="profiles", kind="profile")
    table = read_toml(path)
    text = into(ProfileText, table, str(path.name))
    _check(text, path.name)
    return Profile(
        text.name,
        text.title,
        read_threat_model(text.threat_model).name,
        tuple(_mechanism(part, path.name) for part in text.mechanism),
        _aggregation(text, path.name),
        text.vocabularies,
        digest(table),
        text.minimum_parties,
        text.minimum_documents,
        text.threshold,
        text.threshold_share,
        text.colluding,
        danger=text.danger,
    )


def make_model(name: str, settings: Mapping[str, Any]) -> TopicModel:
    """The topic model of that name with these settings."""
    module, kind = _chosen("model", MODELS, name).split(":")
    return cast(TopicModel, into(getattr(import_module(module), kind), settings, f"[model] {name}"))


def model_settings(name: str) -> tuple[str, ...]:
    """What can be set of a model."""
    module, kind = _chosen("model", MODELS, name).split(":")
    return tuple(field.name for field in fields(getattr(import_module(module), kind)))


def admitted(terms: Terms, profile: Profile, cohort: Cohort) -> Terms:
    """The terms of a question after every part of the profile agreed to it, or the first part's refusal."""
    for mechanism in profile.mechanisms:
        terms = mechanism.admit(terms, cohort)
    return profile.aggregation.admit(terms, cohort)


def claims_of(profile: Profile, cohort: Cohort) -> frozenset[Claim]:
    """Everything that the parts of a profile promise together."""
    parts = [profile.aggregation.claims(cohort), *(m.claims(cohort) for m in profile.mechanisms)]
    return frozenset().union(*parts)


def profile_gaps(profile: Profile, threats: ThreatModel, parties: int) -> tuple[Gap, ...]:
    """What the threat model requires and the profile does not claim, for a cohort of that many parties."""
    members = tuple(f"party {n}" for n in range(max(parties, profile.minimum_parties)))
    return gaps(threats, claims_of(profile, cohort_of(profile, members)))


def cohort_of(profile: Profile, members: tuple[str, ...], **more: Any) -> Cohort:
    """A cohort under this profile: how many must remain, and how many may help an adversary."""
    threshold = max(profile.threshold, math.ceil(profile.threshold_share * len(members)))
    return Cohort(**{"round_id": b"", "number": 0, **more}, members=members, threshold=threshold, colluding=profile.colluding)


def _aggregation(text: ProfileText, where: str) -> Aggregation:
    """What the profile says of all its parts (how many may collude) reaches the aggregation from there, not typed twice."""
    kind = _chosen("aggregation", AGGREGATIONS, text.aggregation)
    shared = {"colluding": text.colluding} if "colluding" in {part.name for part in fields(kind)} else {}
    return cast(Aggregation, into(kind, {**text.aggregation_settings, **shared}, f"{where} [aggregation_settings]"))


def _mechanism(part: Mapping[str, Any], where: str) -> Mechanism:
    require("kind" in part, where, "kind", "(nothing)", "is missing in a [[mechanism]]")
    settings = {name: value for name, value in part.items() if name != "kind"}
    kind = _chosen("mechanism", MECHANISMS, str(part["kind"]))
    return cast(Mechanism, into(kind, settings, f"{where} [[mechanism]] {part['kind']}"))


def _chosen(kind: str, parts: Mapping[str, Any], name: str) -> Any:
    if name not in parts:
        raise NotFound(kind, name, tuple(sorted(parts)))
    return parts[name]


def _check(text: ProfileText, where: str) -> None:
    require(bool(text.vocabularies), where, "vocabularies", "[]", "allows no vocabulary at all")
    for source in text.vocabularies:
        require(source in VOCABULARIES, where, "vocabularies", source, f"is none of {', '.join(VOCABULARIES)}")
    require(text.minimum_parties >= 1, where, "minimum_parties", text.minimum_parties, "must be at least 1")
    require(text.minimum_documents >= 1, where, "minimum_documents", text.minimum_documents, "must be at least 1")
    require(text.threshold >= 1, where, "threshold", text.threshold, "must be at least 1")
    require(0 <= text.threshold_share <= 1, where, "threshold_share", text.threshold_share, "must lie between 0 and 1")
    require(text.colluding >= 0, where, "colluding", text.colluding, "cannot be negative")
