"""Answers to plain questions, what they require, and the profile that promises all of it at the least cost.

The requirements and their reasons are those of the threat models that ship with securetm. What a profile protects against is
read from its claims; what it costs is given. Where no profile fits, it says what would have to change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from typing import Annotated, Any

from securetm.contracts import Adversary, Claim, Profile, Requirement, ThreatModel, Unit
from securetm.data_classes import dataclass, replace
from securetm.mechanisms.noising import PRIVATE
from securetm.plans.profiles import TooFewForProfile, claims_of, cohort_of, profile_names, read_profile
from securetm.settings import Limit, at_least, one_of, require, within
from securetm.threats import Gap, gaps, read_threat_model
from securetm.wording import counted

COORDINATOR, PARTY, READER, NOBODY = "coordinator", "party", "reader", "nobody"
ORGANISATION, DOCUMENT, TOTAL = "organisation", "document", "total"
EXPLORE, SORT, PUBLISH = "explore", "sort", "publish"
LOOKERS: Mapping[str, str] = {
    COORDINATOR: "whoever runs the coordinator",
    PARTY: "another party of the federation",
    READER: "whoever gets the finished model",
    NOBODY: "nobody: all documents could lie in one place",
}
SECRETS: Mapping[str, str] = {
    ORGANISATION: "what one organisation's documents are about, taken together",
    DOCUMENT: "what a single document says, or that it (or its person) is there at all",
    TOTAL: "what all documents have in common: the coordinator gets neither totals nor the model",
}
BREAKERS: Mapping[str, str] = {
    NOBODY: "all follow the protocol, and may keep and study what they get",
    COORDINATOR: "the coordinator may lie to the parties",
    PARTY: "a party may lie, to learn about the others' documents",
}
PURPOSES: Mapping[str, str] = {
    EXPLORE: "the parties look at the topics",
    SORT: "the parties sort or search their documents by topics",
    PUBLISH: "the model goes to others: it is published, sold or handed on",
}
MOST_PARTIES, MOST_DOCUMENTS, MOST_TRAININGS = 100_000, 10**9, 600
_WHERE = "the answers"
_SOMEBODY = Limit(
    lambda names: bool(names) and (NOBODY not in names or len(set(names)) == 1), "must name somebody, or nobody, and not both"
)
_ADVERSARY = {COORDINATOR: "coordinator", PARTY: "party", READER: "model reader"}  # names in threat models

# Whoever looks, for what, breaking the rules or not: the shipped threat model that says what is required, and why.
_REQUIRED_BY: Mapping[tuple[str, str, bool], str] = {
    (COORDINATOR, ORGANISATION, False): "curious_coordinator",
    (COORDINATOR, ORGANISATION, True): "active_coordinator",
    (COORDINATOR, DOCUMENT, False): "private_answers",
    (COORDINATOR, DOCUMENT, True): "hostile_coordinator",
    (COORDINATOR, TOTAL, False): "lone_coordinator",
    (COORDINATOR, TOTAL, True): "active_coordinator",
    (PARTY, ORGANISATION, True): "lying_party",
    (PARTY, DOCUMENT, False): "private_answers",
    (PARTY, DOCUMENT, True): "lying_party",
    (READER, DOCUMENT, False): "model_reader",
}
_model = cache(read_threat_model)


@dataclass(frozen=True)
class Answers:
    """The answers to the questions of `securetm choose`, as a file or flags hold them."""

    looks: Annotated[tuple[Annotated[str, one_of(*LOOKERS)], ...], _SOMEBODY]  # coordinator, party, reader; or nobody
    parties: Annotated[int, within(1, MOST_PARTIES)]
    documents: Annotated[int, within(1, MOST_DOCUMENTS)]  # of all parties, about
    purpose: Annotated[str, one_of(*PURPOSES)]
    per_person: Annotated[int, within(0, MOST_DOCUMENTS)]  # most documents of one person; 0: they are not of persons
    hide: tuple[Annotated[str, one_of(*SECRETS)], ...] = ()  # what these must not find out
    breaks: Annotated[tuple[Annotated[str, one_of(*BREAKERS)], ...], _SOMEBODY] = (NOBODY,)  # who may break the rules
    colluding: Annotated[int, at_least(0)] = 0  # parties that may share what they know, a looking party among them
    trainings: Annotated[int, within(1, MOST_TRAININGS)] = 1  # over the same documents, in all: a budget lasts for them

    def __post_init__(self) -> None:
        """Refuses answers that contradict each other."""
        problem = f"must be at most {self.documents:,}, the number of documents"
        require(self.per_person <= self.documents, _WHERE, "per_person", self.per_person, problem)
        problem = f"must be below the {self.parties} parties: no profile protects a party from itself"
        require(self.colluding < self.parties or not self.colluding, _WHERE, "colluding", self.colluding, problem)
        alone, problem = NOBODY in self.looks, "must name what is to be hidden from those who look"
        require(alone or bool(self.hide), _WHERE, "hide", "empty", problem)
        for name, usual in (("hide", ()), ("breaks", (NOBODY,)), ("colluding", 0)):
            given = getattr(self, name)
            require(not alone or given == usual, _WHERE, name, given, "means nothing where looks is nobody")

    @property
    def lookers(self) -> tuple[str, ...]:
        """Who looks: also whoever breaks the rules, readers of a published model, a coordinator that may not have totals."""
        if NOBODY in self.looks:
            return ()
        also = {*self.breaks, *((READER,) if self.purpose == PUBLISH else ()), *((COORDINATOR,) if TOTAL in self.hide else ())}
        return tuple(one for one in (COORDINATOR, PARTY, READER) if one in {*self.looks, *also})

    @property
    def unit(self) -> Unit:
        """Whom noise has to hide: the person, if a person may have several documents."""
        return Unit.PERSON if self.per_person > 1 else Unit.DOCUMENT

    def helpers(self, looker: str) -> int:
        """How many parties help this one. A party that looks is one of the colluding ones itself."""
        return max(self.colluding - 1, 0) if looker == PARTY else self.colluding


def threats_asked(answers: Answers) -> ThreatModel:
    """The threat model of these answers: every adversary that they name, and all that is required against it."""
    adversaries, required = dict[str, Adversary](), dict[tuple[str, str], Requirement]()
    for looker, source in _sources(answers):
        name, helpers = _ADVERSARY[looker], answers.helpers(looker)
        found = replace(source.adversary(name), colludes_with_parties=helpers)
        adversaries[name] = max(adversaries.get(name, found), found, key=lambda one: one.behaviour == "active")
        for one in source.requires:
            if one.claim.against == name:
                unit = answers.unit if one.claim.what == PRIVATE else one.claim.unit
                claim = replace(one.claim, colluding=helpers, unit=unit)
                required.setdefault((name, claim.what), replace(one, claim=claim))
    return ThreatModel("asked", "What these answers ask for", tuple(adversaries.values()), tuple(required.values()))


def _sources(answers: Answers) -> Iterator[tuple[str, ThreatModel]]:
    """Each adversary with the shipped threat models that say what is required against it; the stricter ones come first."""
    for looker in answers.lookers:
        for secret in (DOCUMENT, ORGANISATION, TOTAL):
            name = _REQUIRED_BY.get((looker, secret, looker in answers.breaks)) if secret in answers.hide else None
            if name is not None:
                yield looker, _model(name)


# ---- the profile that meets it ----------------------------------------------------------------------------------------

Order = Callable[[str], Any]  # of profiles by name: what costs less comes first
_TRIED_PARTIES = 32  # up to which more parties are tried as a change
_ALONE = "what one organisation's documents are about is hidden"
_TOTALS = "totals and the model are hidden"
_ROUND, _DOCUMENTS = "a round can take place", "a sum holds enough documents"


@dataclass(frozen=True)
class Judged:
    """A profile, and what it lacks of what was asked."""

    profile: Profile
    gaps: tuple[Gap, ...]


@dataclass(frozen=True)
class Change:
    """Other answers under which a profile fits, and how they differ."""

    instead: str
    profile: str
    answers: Answers


@dataclass(frozen=True)
class Choice:
    """The chosen profile, or none, the next best with what they lack, and what would have to change where none fits.

    Where none fits and no next best can run with so many parties and documents, the nearest that can run is among them, too.
    """

    answers: Answers
    chosen: Profile | None
    next_best: tuple[Judged, ...]
    failing: tuple[Judged, ...]  # all that lack something, the cheapest first
    changes: tuple[Change, ...]


def choose(answers: Answers, order: Order) -> Choice:
    """The cheapest profile without a gap; beside it the next that fit, then those that lack least."""
    threats = threats_asked(answers)
    judged = [Judged(_read(name), gaps_asked(name, answers, threats)) for name in sorted(_names(), key=order)]
    fit, failing = [one for one in judged if not one.gaps], [one for one in judged if one.gaps]
    nearest = sorted(failing, key=lambda one: len(one.gaps))
    others = (*fit[1:], *nearest)[:2]
    if not fit and all(_cannot_run(one) for one in others):
        others += tuple(sorted((one for one in nearest if not _cannot_run(one)), key=_without_noise))[:1]
    changed = () if fit else tuple(changes(answers, order))
    return Choice(answers, fit[0].profile if fit else None, others, tuple(failing), changed)


def _without_noise(judged: Judged) -> int:
    """How many promises it lacks that only noise can keep: without them all else hides hardly anything of a document."""
    return sum(one.claim == PRIVATE for one in judged.gaps)


def _cannot_run(judged: Judged) -> bool:
    """Whether there are too few parties or documents, or too many parties, for this profile."""
    return any(one.claim in (_ROUND, _DOCUMENTS) for one in judged.gaps)


def fitting(answers: Answers, order: Order) -> str | None:
    """The name of the chosen profile; None where none fits."""
    threats = threats_asked(answers)
    return next((name for name in sorted(_names(), key=order) if not gaps_asked(name, answers, threats)), None)


# ---- one profile -----------------------------------------------------------------------------------------------------


def gaps_asked(name: str, answers: Answers, threats: ThreatModel) -> tuple[Gap, ...]:
    """What was asked and this profile does not give: claims, who opens the totals, and enough parties and documents."""
    profile = _read(name)
    lacking = gaps(threats, _claims(name, max(answers.parties, profile.minimum_parties)))
    return (*_sizes(profile, answers), *lacking, *_structure(profile, answers))


def documents_needed(profile: Profile, parties: int) -> int:
    """How many documents each party must bring, so that the smallest sum holds enough."""
    members = tuple(f"party {n}" for n in range(parties))
    fewest = profile.aggregation.remaining(cohort_of(profile, members[: profile.minimum_parties]), parties)
    return -(-profile.minimum_documents // fewest)


def dealt_out(answers: Answers, profile: Profile) -> int:
    """The number of parties: one organisation from which nobody has to be kept plays as many as the profile needs."""
    alone = answers.parties == 1 and not answers.lookers
    return profile.minimum_parties if alone else answers.parties


_read = cache(read_profile)
_names = cache(profile_names)


@cache
def _claims(name: str, parties: int) -> frozenset[Claim]:
    profile = _read(name)
    return claims_of(profile, cohort_of(profile, parties))


@cache
def _needed(name: str, parties: int) -> int:
    return documents_needed(_read(name), parties)


def _sizes(profile: Profile, answers: Answers) -> Iterator[Gap]:
    """Too few parties, too many, or too few documents. The documents are taken as dealt out equally."""
    parties, most = dealt_out(answers, profile), profile.aggregation.most_parties
    if parties < profile.minimum_parties:
        few = TooFewForProfile(parties, profile.minimum_parties, profile.name)
        yield Gap(_ROUND, "", str(few), few.advice())
    elif parties > most:
        problem = f"{profile.name} takes at most {counted(most, 'party', 'parties')}"
        yield Gap(_ROUND, "", problem, "split the federation")
    elif answers.documents // parties < (need := _needed(profile.name, parties)):
        each = f"each of {parties} parties must bring {counted(need, 'document')} at least, {need * parties:,} in all"
        yield Gap(_DOCUMENTS, "", each, "wait for more documents")


def _structure(profile: Profile, answers: Answers) -> Iterator[Gap]:
    """What no claim says: who opens the totals, and whether a single organisation is left over."""
    if TOTAL in answers.hide and profile.aggregation.opened_by != "parties":
        yield Gap(_TOTALS, COORDINATOR, "the coordinator opens the totals", "take a profile whose parties open them")
    if TOTAL in answers.hide and answers.purpose == PUBLISH:
        yield Gap(_TOTALS, READER, "a model that goes to others shows what all documents have in common", "keep the model")
    group = max(answers.colluding, int(PARTY in answers.lookers))
    if ORGANISATION in answers.hide and {PARTY, READER} & {*answers.lookers} and answers.parties - group < 2:
        together = f"{counted(group, 'party knows its', 'parties know their')} own documents"
        yield Gap(_ALONE, PARTY, f"{together}, and of {answers.parties} one organisation's are left", "more parties")


# ---- where nothing fits ----------------------------------------------------------------------------------------------


def changes(answers: Answers, order: Order) -> Iterator[Change]:
    """The smallest changes with which a profile fits: single ones, or else pairs, or else three at once."""
    single = _single_changes(answers)
    for together in (1, 2, 3):
        found = [made for kinds in combinations(single, together) if (made := _changed(answers, kinds, order)) is not None]
        if found:
            yield from found
            return


Kind = Sequence[tuple[str, dict[str, Any]]]  # of a change: each form of it, the smallest first


def _changed(answers: Answers, kinds: Sequence[Kind], order: Order) -> Change | None:
    """The first forms of these changes with which a profile fits."""
    for forms in product(*kinds):
        other = _replaced(answers, {name: value for _, form in forms for name, value in form.items()})
        name = fitting(other, order) if other is not None else None
        if other is not None and name is not None:
            return Change("; ".join(said for said, _ in forms), name, other)
    return None


def _replaced(answers: Answers, other: dict[str, Any]) -> Answers | None:
    """The answers with these in place of their own; nothing where they would contradict each other."""
    colluding = min(other.get("colluding", answers.colluding), other.get("parties", answers.parties) - 1)
    return replace(answers, **{**other, "colluding": colluding})


def _single_changes(answers: Answers) -> list[Kind]:
    """Each answer that could change, with its forms from the smallest change on."""
    found: list[Kind] = [*_larger(answers)]
    fewer = range(answers.colluding - 1, -1, -1)
    found.append(
        [
            (f"{f'at most {n}' if n else 'no'} {'party' if n < 2 else 'parties'} that may collude", {"colluding": n})
            for n in fewer
        ]
    )
    for one in answers.breaks if NOBODY not in answers.breaks else ():
        left = tuple(other for other in answers.breaks if other != one) or (NOBODY,)
        found.append([(f"a {one} that is sure to follow the protocol", {"breaks": left})])
    if len(answers.hide) > 1:
        for one in answers.hide:
            left = tuple(other for other in answers.hide if other != one)
            found.append([(f"no need to hide {_short(one)}", {"hide": left})])
    if answers.purpose == PUBLISH:
        found.append([("the model stays with the parties", {"purpose": EXPLORE})])
    return [kind for kind in found if kind]


def _larger(answers: Answers) -> Iterator[Kind]:
    """More parties, and more documents."""
    parties, documents = answers.parties, answers.documents
    more = range(parties + 1, max(_TRIED_PARTIES, parties + 1))
    yield [(f"{n} parties instead of {parties}", {"parties": n}) for n in more]
    least = {parties, *(_read(name).minimum_parties for name in _names())}
    needed = {_needed(name, n) * n for name in _names() for n in least if n >= _read(name).minimum_parties}
    enough = sorted(n for n in needed if n > documents)
    yield [(f"{n:,} documents instead of {documents:,}", {"documents": n}) for n in enough]


def _short(secret: str) -> str:
    return SECRETS[secret].partition(":")[0]
