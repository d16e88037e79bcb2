"""Reads profiles, and makes their parts and models from names and settings.

It decides nothing about privacy, because the parts admit or refuse a question (`route.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Self, cast

from securetm.aggregation import AGGREGATIONS
from securetm.contracts import Aggregation, Budget, Claim, Cohort, Mechanism, NoiseBy, Profile, ThreatModel, TopicModel, Unit
from securetm.data_classes import dataclass, field
from securetm.errors import BadSetting, Misuse
from securetm.mechanisms import MECHANISMS
from securetm.models import MODELS
from securetm.plans.rules import noise_of_one_round
from securetm.resources import named_toml, toml_names
from securetm.settings import Limit, at_least, digest, from_table, one_of, placed, read_toml, require, within
from securetm.threats import Gap, gaps, read_threat_model

_BUDGETED = ("epsilon", "delta")
ALIGNED = "aligned"  # the form of a model whose answers add up, which needs no name
MATCHED = "matched"
JOINT, BLIND = "joint", "blind"
VOCABULARIES = ("union", JOINT, BLIND, "file")
_USUAL_PARTIES = 5
SUMS_ONLY, NO_WORD = "sees only sums", "sees no word"
_SOME = Limit(bool, "must name at least one vocabulary")
_EPSILON = Limit(lambda epsilon: 0 < epsilon < math.inf, "must be above 0 and finite")
_DELTA = Limit(lambda delta: 0 < delta < 1, "must lie between 0 and 1")
_UNIT = Limit(lambda unit: unit in ("", Unit.WORD.value), "must be 'word', or left out: then it is as the plan says")


class TooFewForProfile(Misuse):
    """{found:party is|parties are} fewer than the {need} that profile {profile!r} needs"""

    found: int
    need: int
    profile: str
    hint = (
        "`securetm choose` names a profile for so few organisations, and what it gives up; in a trial, documents can be dealt "
        "out to more parties"
    )


@dataclass(frozen=True)
class ProfileText:
    """A profile as it stands in its file."""

    name: str
    title: str
    threat_model: str
    aggregation: str
    vocabularies: Annotated[tuple[Annotated[str, one_of(*VOCABULARIES)], ...], _SOME]
    mechanism: tuple[dict[str, Any], ...] = ()
    aggregation_settings: dict[str, Any] = field(default_factory=dict)
    minimum_parties: Annotated[int, at_least(1)] = 2
    minimum_documents: Annotated[int, at_least(1)] = 1
    threshold: Annotated[int, at_least(1)] = 1
    threshold_share: Annotated[float, within(0, 1)] = 0.0
    colluding: Annotated[int, at_least(0)] = 0
    budget: dict[str, Any] = field(default_factory=dict)
    danger: str = ""


@dataclass(frozen=True)
class BudgetText:
    """The privacy budget of each party, as it stands in a profile's file."""

    epsilon: Annotated[float, _EPSILON]
    delta: Annotated[float, _DELTA]
    unit: Annotated[str, _UNIT] = ""  # "word", or nothing: the document or the person, as the plan says


def profile_names() -> tuple[str, ...]:
    """Returns the names of the installed profiles."""
    return toml_names("protocols", "profiles")


@dataclass(frozen=True)
class ProfileFile:
    """A profile's file, which is read once. Profiles with other privacy numbers are made without reading it again."""

    name: str  # of the file
    table: Mapping[str, Any]
    path: Path | None = None

    @classmethod
    def read(cls, name: str) -> Self:
        """Reads the installed profile of that name, or the file at that path."""
        path = named_toml("protocols", name, below="profiles", kind="profile")
        return cls(path.name, read_toml(path), path)

    def profile(self, changed: Mapping[str, float] | None = None, unit: Unit = Unit.DOCUMENT) -> Profile:
        """Makes the profile with its parts, and checks its settings.

        `changed` replaces privacy numbers by name (epsilon, delta, noise_multiplier, words, rate, radius). `unit` is whom the
        plan protects; it does not replace the unit of a profile whose budget is for word occurrences.
        """
        with placed(self.path, changed or {}):
            return self._profile(changed, unit)

    def _profile(self, changed: Mapping[str, float] | None, unit: Unit) -> Profile:
        table = _changed(self.table, changed or {}, self.name)
        text = from_table(ProfileText, table, self.name)
        _check_counted(text, self.name)
        budget, mechanisms = _budget(text, unit, self.name), tuple(_mechanism(part, self.name) for part in text.mechanism)
        noise = next((MECHANISMS.name_of(part) for part in mechanisms if part.noise_by is not NoiseBy.NOBODY), "")
        problem = f"{noise} adds noise, and without [budget] nobody counts what its answers add up to"
        require(bool(text.budget) or not noise, self.name, "budget", None, problem)
        _check_affords(budget, mechanisms, self.name)
        threats = read_threat_model(text.threat_model)
        asked = [one.claim.against for one in threats.requires if one.claim.what == SUMS_ONLY]
        kind = AGGREGATIONS.load(text.aggregation)
        taken = {name: getattr(text, name) for name in kind.from_profile}  # as the profile says, and typed nowhere twice
        settings = {**text.aggregation_settings, **taken}
        return Profile(
            text.name,
            text.title,
            threats.name,
            mechanisms,
            cast("Aggregation", from_table(kind, settings, f"{self.name} [aggregation_settings]")),
            text.vocabularies,
            digest([table, (budget.unit if budget else unit).value]),
            text.minimum_parties,
            text.minimum_documents,
            text.threshold,
            text.threshold_share,
            text.colluding,
            budget,
            any(threats.adversary(name).behaviour == "active" for name in asked),
            danger=text.danger,
        )


def read_profile(name: str, changed: Mapping[str, float] | None = None, unit: Unit = Unit.DOCUMENT) -> Profile:
    """Reads the profile of that name, or in that file (`ProfileFile.profile`)."""
    return ProfileFile.read(name).profile(changed, unit)


def make_model(name: str, settings: Mapping[str, Any]) -> TopicModel:
    """Makes the topic model of that name, in the form that the settings name, with these settings."""
    _check_form(name, settings)
    own = {setting: value for setting, value in settings.items() if (setting, value) != ("form", ALIGNED)}
    return cast("TopicModel", from_table(MODELS.load(formed(name, settings)), own, f"[model] {name}"))


def model_class(name: str, settings: Mapping[str, Any] = MappingProxyType({})) -> type[TopicModel] | None:
    """Returns the class of the model of that name, in the form that the settings name; None if there is none."""
    form = formed(name, settings)
    return cast("type[TopicModel]", MODELS.load(form)) if form in MODELS else None


def _check_form(name: str, settings: Mapping[str, Any]) -> None:
    """Refuses a form that this model does not have."""
    own = name.rpartition("-")[2] == MATCHED  # the name has a form, which the setting must not contradict
    if name in MODELS and (formed(name, settings) not in MODELS or (own and settings.get("form", MATCHED) != MATCHED)):
        two = f"{name}-{MATCHED}" in MODELS
        problem = f"must be {ALIGNED} or {MATCHED}" if two else f"cannot be chosen, because {name} has one form only"
        raise BadSetting(f"[model] {name}", "form", str(settings["form"]), problem)


def formed(name: str, settings: Mapping[str, Any]) -> str:
    """Returns the full name of a model with its form: lda in the form `matched` is lda-matched."""
    form = settings.get("form", ALIGNED)
    return name if form == ALIGNED or name.endswith(f"-{form}") else f"{name}-{form}"


def claims_of(profile: Profile, cohort: Cohort, *, hides_words: bool = False) -> frozenset[Claim]:
    """Returns the claims of all parts of a profile, and of a plan that hides its words from the coordinator.

    Where words are found in noised sums, no party names any: the sum is protected as any other total, and no further. A blind
    list hides words from a coordinator that no party helps: all parties know the key.
    """
    from securetm.mechanisms.word_selection import WORDS_PRIVATE

    parts = [profile.aggregation.claims(cohort), *(m.claims(cohort) for m in profile.mechanisms)]
    hidden = frozenset({Claim(NO_WORD, "coordinator")} if hides_words else ())
    made = hidden.union(*parts)
    return frozenset(claim for claim in made if claim.what != WORDS_PRIVATE) if words_in_sums(profile) else made


def words_in_sums(profile: Profile) -> bool:
    """Whether words are found in noised sums over all parties. Where each party adds all noise, each selects its own."""
    together = (NoiseBy.SHARES, NoiseBy.OPENER)
    return profile.budget is not None and any(part.noise_by in together for part in profile.mechanisms)


def profile_gaps(profile: Profile, threats: ThreatModel, parties: int, *, hides_words: bool = False) -> tuple[Gap, ...]:
    """Returns what the threat model requires and the profile does not claim for so many parties."""
    cohort = cohort_of(profile, max(parties, profile.minimum_parties))
    return gaps(threats, claims_of(profile, cohort, hides_words=hides_words))


def count_of_parties(profile: Profile, asked: int | None) -> int:
    """As many parties as asked about; by default five, or as many as the profile needs."""
    if asked is not None and asked < profile.minimum_parties:
        raise TooFewForProfile(asked, profile.minimum_parties, profile.name)
    return max(_USUAL_PARTIES, profile.minimum_parties) if asked is None else asked


def cohort_of(profile: Profile, members: tuple[str, ...] | int, **more: Any) -> Cohort:
    """Makes a cohort of these parties, or of so many, under this profile: how many must remain, and how many may collude."""
    if isinstance(members, int):
        members = tuple(f"party {n}" for n in range(members))
    threshold = max(profile.threshold, math.ceil(profile.threshold_share * len(members)))
    return Cohort(**{"round_id": b"", "number": 0, **more}, members=members, threshold=threshold, colluding=profile.colluding)


def noise_of_whole_budget(profile: Profile, parties: int = 0) -> float:
    """The noise in the sum of one round that spends the whole budget, with nobody missing; 0 parties: as few as may be."""
    budget = profile.budget
    assert budget is not None
    return noise_of_one_round(budget.epsilon, budget.delta) * noise_in_sum(profile, parties)


def noise_in_sum(profile: Profile, parties: int = 0) -> float:
    """How much longer the noise in a sum is under this profile than that of one curator, with nobody missing.

    Where parties add shares of the noise, each adds enough for as few honest parties as the profile allows. 0 parties: as few
    as it allows.
    """
    there = max(parties, profile.minimum_parties)
    added_by = {mechanism.noise_by for mechanism in profile.mechanisms}  # the noise on words by each party, whatever else is
    if NoiseBy.OPENER in added_by:
        return 1.0
    if NoiseBy.SHARES not in added_by:  # each party adds all of it
        return math.sqrt(there)
    cohort = cohort_of(profile, there)
    return math.sqrt(there / max(cohort.threshold - profile.colluding, 1))


def _changed(table: Mapping[str, Any], numbers: Mapping[str, float], where: str) -> dict[str, Any]:
    """Returns the table with those numbers in place of its own. A number that it does not have is refused."""
    if not numbers:
        return dict(table)
    parts = [dict(part) for part in table.get("mechanism", ())]
    budget = dict(table.get("budget", {}))
    by_word = budget.get("unit") == Unit.WORD.value  # then one draw of noise spends the whole budget
    for name, value in numbers.items():
        asked = parts if by_word or name not in _BUDGETED else []
        places = [(budget, name)] if name in budget else []
        places += [(part, own) for part in asked if (own := _plan_numbers(part).get(name, "")) in part]
        require(bool(places), where, name, value, "cannot be set, because this profile has no such number")
        for part, own in places:
            part[own] = value
    return {**table, "mechanism": parts, "budget": budget}


def _plan_numbers(part: Mapping[str, Any]) -> Mapping[str, str]:
    """Returns which numbers of a plan replace which settings of this part."""
    kind = str(part.get("kind"))
    found: Mapping[str, str] = MECHANISMS.load(kind).plan_numbers if kind in MECHANISMS else {}
    return found


def _budget(text: ProfileText, unit: Unit, where: str) -> Budget | None:
    if not text.budget:
        return None
    stated = from_table(BudgetText, text.budget, f"{where} [budget]")
    return Budget(Unit(stated.unit) if stated.unit else unit, stated.epsilon, stated.delta)


def _check_affords(budget: Budget | None, mechanisms: tuple[Mechanism, ...], where: str) -> None:
    """Refuses a budget that is smaller than the epsilon of noise that is drawn at once."""
    drawn = sum(mechanism.drawn_epsilon for mechanism in mechanisms)
    if budget is not None and budget.unit is Unit.WORD:
        named = " and ".join(MECHANISMS.name_of(mechanism) for mechanism in mechanisms if mechanism.drawn_epsilon)
        problem = f"is less than the {drawn:g} that {named} draws at once, so no answer could ever be paid"
        require(budget.epsilon >= drawn, f"{where} [budget]", "epsilon", budget.epsilon, problem)


def _mechanism(part: Mapping[str, Any], where: str) -> Mechanism:
    require("kind" in part, where, "kind", None, "every [[mechanism]] has one")
    settings = {name: value for name, value in part.items() if name != "kind"}
    kind = MECHANISMS.load(str(part["kind"]))
    return cast("Mechanism", from_table(kind, settings, f"{where} [[mechanism]] {part['kind']}"))


def _check_counted(text: ProfileText, where: str) -> None:
    """Refuses a vocabulary that the budget does not cover."""
    listed = "union" in text.vocabularies
    problem = "shows who uses which word, and no budget can pay for it; allow file, or joint with a word_selection"
    require(not (text.budget and listed), where, "vocabularies", "union", problem)
    by_word, public = text.budget.get("unit") == Unit.WORD.value, text.vocabularies == ("file",)
    problem = "must be file alone, because a list made of the parties' words is not covered by noise on their counts"
    require(not by_word or public, where, "vocabularies", ", ".join(text.vocabularies), problem)
