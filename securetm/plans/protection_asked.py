"""What somebody asks a profile for: answers to plain questions, and the requirements that follow from them.

The requirements and their reasons are those of the threat models that ship with securetm. No profile is chosen here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from securetm.contracts import Adversary, Requirement, ThreatModel, Unit
from securetm.mechanisms.noising import PRIVATE
from securetm.settings import require, require_at_least
from securetm.threats import read_threat_model

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

    looks: tuple[str, ...]  # who might look: coordinator, party, reader; or nobody
    parties: int
    documents: int  # of all parties, about
    purpose: str  # explore, sort or publish
    per_person: int  # most documents of one person; 0: they are not of persons
    hide: tuple[str, ...] = ()  # what these must not find out: organisation, document, total
    breaks: tuple[str, ...] = (NOBODY,)  # who may break the rules: coordinator, party; or nobody
    colluding: int = 0  # parties that may share what they know, a looking party among them
    trainings: int = 1  # over the same documents, in all: a budget has to last for them

    def __post_init__(self) -> None:
        """Refuses answers that contradict each other."""
        known = {"looks": LOOKERS, "hide": SECRETS, "breaks": BREAKERS}
        for name, values in known.items():
            for value in getattr(self, name):
                require(value in values, _WHERE, name, value, known=tuple(values))
        for name in ("looks", "breaks"):
            given = getattr(self, name)
            require(bool(given), _WHERE, name, "empty", "must name somebody, or nobody")
            require(NOBODY not in given or len(set(given)) == 1, _WHERE, name, given, "names nobody, and somebody beside it")
        require(self.purpose in PURPOSES, _WHERE, "purpose", self.purpose, known=tuple(PURPOSES))
        self._check_numbers()
        self._check_nobody()

    def _check_numbers(self) -> None:
        require_at_least(self, _WHERE, parties=1, documents=1, per_person=0, colluding=0, trainings=1)
        most_of = {
            "parties": MOST_PARTIES,
            "documents": MOST_DOCUMENTS,
            "per_person": MOST_DOCUMENTS,
            "trainings": MOST_TRAININGS,
        }
        for name, most in most_of.items():
            require(getattr(self, name) <= most, _WHERE, name, getattr(self, name), f"must be at most {most:,}")
        problem = f"must be at most {self.documents:,}, the number of documents"
        require(self.per_person <= self.documents, _WHERE, "per_person", self.per_person, problem)
        problem = f"must be below the {self.parties} parties: no profile protects a party from itself"
        require(self.colluding < self.parties or not self.colluding, _WHERE, "colluding", self.colluding, problem)

    def _check_nobody(self) -> None:
        """Refuses secrets that nobody looks for, and somebody who looks for nothing."""
        alone = NOBODY in self.looks
        problem = "must name what is to be hidden from those who look"
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
