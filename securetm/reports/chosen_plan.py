"""The plan file of a chosen profile, as text that `securetm check`, `run` and `serve` read. It writes no file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import floor, log10

from securetm.contracts import Profile, Unit
from securetm.plans import hides_documents
from securetm.profile_choice import dealt_out
from securetm.protection_asked import Answers
from securetm.wording import counted

_LEAST_DELTA = 1e-12


@dataclass(frozen=True)
class PlanNotes:
    """What a plan says beside the answers: where the documents are, and the language of a public list of words."""

    corpus: str = ""
    person: str = ""  # the column of persons
    language: str = ""


def plan_text(answers: Answers, profile: Profile, notes: PlanNotes) -> str:
    """The plan in TOML. What it leaves out follows from the profile and the model."""
    hidden = hides_documents(profile.budget)
    parts = [
        f"# A plan for {counted(dealt_out(answers, profile), 'party', 'parties')}, written by `securetm choose`.",
        f"# `securetm explain {profile.name}` says what is protected; `securetm check` on this file, whether it is sound.",
        f'profile = "{profile.name}"',
        *_training(answers, hidden),
        *_privacy(answers, profile, hidden),
        *_vocabulary(notes),
        *_corpus(answers, profile, notes, hidden),
    ]
    return "\n".join(parts) + "\n"


def delta_for(answers: Answers, delta: float) -> float:
    """The profile's delta, or the power of ten below 1 over twice the number of documents, where that is smaller."""
    smaller: float = 10.0 ** floor(-log10(2 * answers.documents))
    return delta if delta <= smaller else max(smaller, _LEAST_DELTA)


def _training(answers: Answers, hidden: bool) -> list[str]:
    about = f"documents = {answers.documents}  # of all parties, about, and public: the number of rounds follows from it"
    return ["", "[training]", about] if hidden else []


def _privacy(answers: Answers, profile: Profile, hidden: bool) -> list[str]:
    if not hidden or profile.budget is None:
        return []
    delta = delta_for(answers, profile.budget.delta)
    smaller = [f"delta = {delta:g}  # below 1 over the number of documents"] if delta != profile.budget.delta else []
    whom = "every document must name its person" if answers.unit is Unit.PERSON else "no person has two documents"
    unit = "document" if not answers.per_person else answers.unit.value
    whom = whom if answers.per_person else "the documents are of no persons"
    return ["", "[privacy]", f'unit = "{unit}"  # {whom}', *smaller]


def _vocabulary(notes: PlanNotes) -> list[str]:
    return ["", "[vocabulary]", f"file = {_quoted(notes.language)}"] if notes.language else []


def _corpus(answers: Answers, profile: Profile, notes: PlanNotes, hidden: bool) -> list[str]:
    """Only for a simulation: in a federation every party brings its own documents by its PARTY.toml."""
    if not notes.corpus:
        return []
    person = [f"person = {_quoted(notes.person)}"] if notes.person and hidden else []
    dealt = ['partition = "equal"', f"parties = {dealt_out(answers, profile)}"]
    return ["", "[corpus]  # of a simulation on one machine", f"source = {_quoted(notes.corpus)}", *dealt, *person]


def _quoted(text: str) -> str:
    """A TOML string: those of JSON are TOML's too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
