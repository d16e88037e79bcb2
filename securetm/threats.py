"""Threat models: the adversaries, what each of them sees, and which required claims a profile does not make.

They are data read from TOML. Nothing here knows how a claim is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from securetm.contracts import Adversary, Claim, Requirement, Risk, ThreatModel, Unit
from securetm.data_classes import dataclass
from securetm.errors import BadSetting
from securetm.resources import named_toml, toml_names
from securetm.settings import Limit, at_least, file_bytes, from_table, one_of, parsed_toml, placed, require
from securetm.wording import colluding_parties

CHANNELS: Mapping[str, str] = {  # of the transcript: every message between two roles is on one of these
    "request": "what the coordinator asks of a party",
    "answer": "what a party sends where nothing protects it",
    "sealed": "what a party sends where it is masked or encrypted",
    "total": "the opened sum over all parties",
    "model": "the shared model",
    "vocabulary": "the list of words, and the word lists of parties where they are sent",
    "times": "how long after its request each reply comes, where a network carries it",
    "sizes": "how long each message is, from whom to whom and in which order, and nothing of what it says",
}
BEHAVIOURS = ("honest-but-curious", "active")
MANY_HELPERS = "more than two helpers of the coordinator"
RISKS = (MANY_HELPERS,)  # that have a name, since something else speaks of them, too


@dataclass(frozen=True)
class Gap:
    """A claim that the threat model requires and nobody makes, or not against enough colluding parties."""

    claim: str
    adversary: str
    reason: str
    hint: str


def threat_model_names() -> tuple[str, ...]:
    """The names of the threat models that ship with securetm."""
    return toml_names("threat_models")


def read_threat_model(name: str | Path) -> ThreatModel:
    """The threat model of that name, or in that file, with everything in it checked."""
    path = named_toml("threat_models", str(name), kind="threat model")
    with placed(path):
        return _read(file_bytes(path), path)


@lru_cache(maxsize=64)
def _read(content: bytes, path: Path) -> ThreatModel:
    """The same file is read again and again while the noise of a plan is searched for."""
    return threat_model_from(parsed_toml(content, str(path)), path)


def threat_model_from(table: Mapping[str, Any], path: Path) -> ThreatModel:
    """A threat model from the tables of its file."""
    where = path.name
    text = from_table(_ThreatModelText, table, where)
    require(text.name == path.stem, where, "name", text.name, "must be the name of its file")
    _all_different((one.name for one in text.adversary), where, "adversary")
    feared = {one.name: one.colludes_with_parties for one in text.adversary}
    for number, one in enumerate(text.requires, start=1):
        place = f"{where}, [[requires]] number {number}"
        require(one.against in feared, place, "against", one.against, "must be an adversary of this file")
    _all_different((f"{one.claim!r} against {one.against}" for one in text.requires), where, "requires")
    return ThreatModel(
        text.name,
        text.title,
        tuple(Adversary(**vars(one)) for one in text.adversary),
        tuple(
            Requirement(Claim(one.claim, one.against, feared[one.against], _UNITS.get(one.unit)), one.because)
            for one in text.requires
        ),
        tuple((one.claim, one.reason) for one in text.accepts),
        tuple(Risk(one.risk, one.name) for one in text.out_of_scope),
    )


def gaps(threat_model: ThreatModel, claims: Iterable[Claim]) -> tuple[Gap, ...]:
    """What the threat model requires and the claims do not cover, in the order of its file."""
    made = frozenset(claims)
    found = []
    for wanted in threat_model.requires:
        claim, borne = wanted.claim, max(_borne(wanted.claim, made), default=-1)
        if borne >= claim.colluding:
            continue
        if borne < 0:
            hint = "choose a profile that promises it, or a threat model that accepts its absence and says why"
            units = sorted({one.unit.value for one in _same(claim, made) if one.unit is not None})
            unit = (claim.unit or Unit.DOCUMENT).value
            said = f"it is promised per {' or '.join(units)} only, and not per {unit}" if units else "nothing promises it"
            found.append(Gap(claim.what, claim.against, f"{said}, and {wanted.because}", hint))
        else:
            reason = f"it is promised with up to {colluding_parties(borne)} where {claim.colluding} are feared"
            hint = "raise `colluding` in the profile; that may need more parties"
            found.append(Gap(claim.what, claim.against, reason, hint))
    return tuple(found)


def _same(wanted: Claim, claims: frozenset[Claim]) -> list[Claim]:
    """The claims about the same thing against the same adversary, for any unit."""
    return [made for made in claims if (made.what, made.against) == (wanted.what, wanted.against)]


def _borne(wanted: Claim, claims: frozenset[Claim]) -> list[int]:
    """How many colluding parties each such claim covers, of the claims for the wanted unit.

    Where no unit is named, it is a whole document at least, because hiding single words hardly protects a document.
    """
    units = {None, *(unit for unit in Unit if unit.whole_documents)} if wanted.unit is None else {wanted.unit}
    return [one.colluding for one in _same(wanted, claims) if one.unit in units]


# ---- the file as it stands -----------------------------------------------------------------------------------------

_UNITS = {unit.value: unit for unit in Unit}


@dataclass(frozen=True)
class _Feared:
    name: Annotated[str, Limit(bool, "must not be empty")]
    behaviour: Annotated[str, one_of(*BEHAVIOURS)]
    sees: tuple[Annotated[str, one_of(*CHANNELS)], ...]
    colludes_with_parties: Annotated[int, at_least(0)] = 0


@dataclass(frozen=True)
class _Required:
    against: str
    claim: str
    because: str
    unit: Annotated[str, one_of("", *_UNITS)] = ""


@dataclass(frozen=True)
class _Accepted:
    claim: str
    reason: str


@dataclass(frozen=True)
class _Risk:
    risk: str
    name: Annotated[str, one_of("", *RISKS)] = ""


@dataclass(frozen=True)
class _ThreatModelText:
    name: str
    title: str
    adversary: tuple[_Feared, ...]
    requires: tuple[_Required, ...] = ()
    accepts: tuple[_Accepted, ...] = ()
    out_of_scope: tuple[_Risk, ...] = ()


def _all_different(names: Iterable[str], where: str, what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadSetting(where, what, name, "is named twice")
        seen.add(name)
