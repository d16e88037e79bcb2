"""Threat models: the adversaries, what each of them sees, and which required claims a profile does not make.

They are data read from TOML. Nothing here knows how a claim is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from securetm.contracts import Adversary, Claim, Requirement, ThreatModel, Unit
from securetm.errors import BadSetting
from securetm.resources import named_toml, toml_names
from securetm.settings import from_table, one_of, parsed_toml, placed, require, toml_bytes
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
        return _read(toml_bytes(path), path)


@lru_cache(maxsize=64)
def _read(content: bytes, path: Path) -> ThreatModel:
    """The same file is read again and again while the noise of a plan is searched for."""
    return threat_model_from(parsed_toml(content, str(path)), path)


def threat_model_from(table: Mapping[str, Any], path: Path) -> ThreatModel:
    """A threat model from the tables of its file."""
    where = path.name
    text = from_table(_ThreatModelText, table, where)
    require(text.name == path.stem, where, "name", text.name, "must be the name of its file")
    adversaries = tuple(_adversary(part, at) for part, at in _numbered(text.adversary, where, "adversary"))
    _all_different((a.name for a in adversaries), where, "adversary")
    feared = {a.name: a for a in adversaries}
    requires = tuple(_requirement(part, at, feared) for part, at in _numbered(text.requires, where, "requires"))
    _all_different((f"{r.claim.what!r} against {r.claim.against}" for r in requires), where, "requires")
    accepts = [from_table(_Accepted, part, at) for part, at in _numbered(text.accepts, where, "accepts")]
    risks = [from_table(_Risk, part, at).risk for part, at in _numbered(text.out_of_scope, where, "out_of_scope")]
    return ThreatModel(text.name, text.title, adversaries, requires, tuple((a.claim, a.reason) for a in accepts), tuple(risks))


def gaps(threat_model: ThreatModel, claims: Iterable[Claim]) -> tuple[Gap, ...]:
    """What the threat model requires and the claims do not cover, in the order of its file."""
    made = frozenset(claims)
    lacks = [one for one in threat_model.requires if max(_borne(one.claim, made), default=-1) < one.claim.colluding]
    return tuple(_gap(wanted, made) for wanted in lacks)


def _same(wanted: Claim, claims: frozenset[Claim]) -> list[Claim]:
    """The claims about the same thing against the same adversary, for any unit."""
    return [made for made in claims if (made.what, made.against) == (wanted.what, wanted.against)]


def _borne(wanted: Claim, claims: frozenset[Claim]) -> list[int]:
    """How many colluding parties each such claim covers, of the claims for the wanted unit.

    Where no unit is named, it is a whole document at least, because hiding single words hardly protects a document.
    """
    units = {None, *(unit for unit in Unit if unit.whole_documents)} if wanted.unit is None else {wanted.unit}
    return [one.colluding for one in _same(wanted, claims) if one.unit in units]


def _gap(wanted: Requirement, claims: frozenset[Claim]) -> Gap:
    claim = wanted.claim
    weaker = _borne(claim, claims)
    if not weaker:
        hint = "choose a profile that promises it, or a threat model that accepts its absence and says why"
        units = sorted({made.unit.value for made in _same(claim, claims) if made.unit is not None})
        unit = (claim.unit or Unit.DOCUMENT).value
        made = f"it is promised per {' or '.join(units)} only, and not per {unit}" if units else "nothing promises it"
        return Gap(claim.what, claim.against, f"{made}, and {wanted.because}", hint)
    reason = f"it is promised with up to {colluding_parties(max(weaker))} where {claim.colluding} are feared"
    return Gap(claim.what, claim.against, reason, "raise `colluding` in the profile; that may need more parties")


# ---- the file as it stands -----------------------------------------------------------------------------------------

Tables = tuple[dict[str, Any], ...]
_UNITS = {unit.value: unit for unit in Unit}


@dataclass(frozen=True)
class _ThreatModelText:
    name: str
    title: str
    adversary: Tables
    requires: Tables = ()
    accepts: Tables = ()
    out_of_scope: Tables = ()


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


def _adversary(part: Mapping[str, Any], where: str) -> Adversary:
    one = from_table(Adversary, part, where)
    require(bool(one.name), where, "name", one.name, "must not be empty")
    require(one.behaviour in BEHAVIOURS, where, "behaviour", one.behaviour, known=tuple(BEHAVIOURS))
    for channel in one.sees:
        require(channel in CHANNELS, where, "sees", channel, known=tuple(CHANNELS))
    require(one.colludes_with_parties >= 0, where, "colludes_with_parties", one.colludes_with_parties, "must be at least 0")
    return one


def _requirement(part: Mapping[str, Any], where: str, feared: Mapping[str, Adversary]) -> Requirement:
    text = from_table(_Required, part, where)
    require(text.against in feared, where, "against", text.against, "must be an adversary of this file")
    helpers = feared[text.against].colludes_with_parties
    return Requirement(Claim(text.claim, text.against, helpers, _UNITS.get(text.unit)), text.because)


def _numbered(parts: Tables, where: str, name: str) -> list[tuple[dict[str, Any], str]]:
    """Each part with its place in the file, counted as a reader counts."""
    return [(part, f"{where}, [[{name}]] number {number}") for number, part in enumerate(parts, start=1)]


def _all_different(names: Iterable[str], where: str, what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadSetting(where, what, name, "is named twice")
        seen.add(name)
