"""The plan file of a chosen profile, as text that `securetm check`, `run` and `serve` read. It writes no file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import floor, log10

from securetm.contracts import Profile, Unit
from securetm.corpus.public_words import language_code
from securetm.corpus.word_vectors import installed_vectors
from securetm.forecast import ForecastSetting
from securetm.forecast.forecast_setting import BY_MOMENTS, BY_MOMENTS_ALONE, PLAIN, PUBLIC
from securetm.plans import MODEL_UNDER_BUDGET, NO_VECTORS, hides_documents
from securetm.profile_choice import dealt_out
from securetm.protection_asked import Answers
from securetm.reports.guess_limit import limited_epsilon
from securetm.toml_settings import require
from securetm.wording import counted

_LEAST_DELTA = 1e-12
_WORDS_ONCE = "# The first run finds the words, and pays for them; the others take its list (--vocabulary), or pay again."
MOST_EPSILON = 1_000
_STARTS = {
    PLAIN: ('start = "plain"',),
    BY_MOMENTS: ('start = "moments"',),
    BY_MOMENTS_ALONE: ('start = "moments"', f'vectors = "{NO_VECTORS}"'),
}


@dataclass(frozen=True)
class PlanNotes:
    """What a plan says beside the answers: where the documents are, and the language of a public list of words."""

    corpus: str = ""
    person: str = ""  # the column of persons
    language: str = ""  # or the file of a public list
    length: float = 0.0  # words of a document, about; 0: nobody says it
    epsilon: float = 0.0  # that may be spent; 0: the profile's, or the largest below securetm's own limit on guesses
    public: str = ""  # why the list of words in a file is public
    noise: float = 0.0  # of a round, where several trainings share the budget; 0: as epsilon says

    def __post_init__(self) -> None:
        """Refuses a length that no document has, and an epsilon that no run can spend."""
        fine = 0 <= self.length <= 1e6
        require(
            fine, "securetm choose", "--document-length", self.length, "must be from 0, which does not say it, to 1,000,000"
        )
        require(0 <= self.epsilon <= MOST_EPSILON, "", "--epsilon", self.epsilon, f"must be above 0 and at most {MOST_EPSILON}")


def plan_text(answers: Answers, profile: Profile, notes: PlanNotes, best: ForecastSetting | None = None) -> str:
    """The plan in TOML, with the settings of which the forecast expects most. What it leaves out, profile and model decide."""
    hidden = hides_documents(profile.budget)
    parts = [
        f"# A plan for {counted(dealt_out(answers, profile), 'party', 'parties')}, written by `securetm choose`.",
        f"# `securetm explain {profile.name}` says what is protected; `securetm check` on this file, whether it is sound.",
        f'profile = "{profile.name}"',
        *(_training(answers, profile, notes, best) if hidden else ()),
        *(_model(best) if best else ()),
        *_privacy(answers, profile, notes, hidden),
        *_vocabulary(notes, best),
        *(("", "[origins]", f"vocabulary = {_quoted(notes.public)}") if notes.public else ()),
        *_corpus(answers, profile, notes, hidden),
    ]
    return "\n".join(parts) + "\n"


def delta_for(answers: Answers, delta: float) -> float:
    """The profile's delta, or the power of ten below 1 over twice the number of documents, where that is smaller."""
    smaller: float = 10.0 ** floor(-log10(2 * answers.documents))
    return delta if delta <= smaller else max(smaller, _LEAST_DELTA)


def epsilon_for(answers: Answers, profile: Profile, notes: PlanNotes) -> float:
    """What the plan spends: as asked, or the profile's epsilon, or the largest under securetm's own limit on guesses."""
    assert profile.budget is not None
    own = profile.budget.epsilon
    return notes.epsilon or limited_epsilon(own, delta_for(answers, profile.budget.delta)) or own


def persons_of(answers: Answers) -> int:
    """How many persons there are at least, if each has as many documents as the one who has most; 0 where none are meant."""
    return max(answers.documents // answers.per_person, 1) if answers.unit is Unit.PERSON else 0


def _training(answers: Answers, profile: Profile, notes: PlanNotes, best: ForecastSetting | None) -> list[str]:
    """Public numbers, and what the forecast makes of them."""
    persons, length = persons_of(answers), notes.length
    lines = ["", "[training]", f"documents = {answers.documents}  # of all parties, about: a public number, as the next ones"]
    lines += [f"persons = {persons}  # at least, if each has {answers.per_person} documents"] if persons else []
    lines += [f"document_length = {length:g}  # words"] if length else []
    if best is not None:
        lines += [f"rounds = {best.rounds}  # of these, and of words, topics and start, the forecast expects most"]
        lines += _start(best.start) if best.model == MODEL_UNDER_BUDGET else []
    return [*lines, "", "[federation]", f"parties = {dealt_out(answers, profile)}"]


def _start(start: str) -> list[str]:
    """How the training begins. Vectors are named with their digest, so that only the coordinator needs to have them."""
    vectors = installed_vectors() if start == PUBLIC else None
    if vectors is None:
        return list(_STARTS.get(start, ()))
    return [f'start = "{PUBLIC}"', f'vectors = "{vectors.name}"', f'vectors_digest = "{vectors.digest}"']


def _model(best: ForecastSetting) -> list[str]:
    return ["", "[model]", f'name = "{best.model}"', f"n_topics = {best.topics}"]


def _privacy(answers: Answers, profile: Profile, notes: PlanNotes, hidden: bool) -> list[str]:
    if not hidden or profile.budget is None:
        return []
    delta = delta_for(answers, profile.budget.delta)
    smaller = "  # below 1 over the number of documents" if delta != profile.budget.delta else ""
    together = f"of all {answers.trainings} trainings on these documents together"
    of = together if answers.trainings > 1 else "of all rounds together"
    spent = [f"epsilon = {epsilon_for(answers, profile, notes):g}  # {of}: the noise follows from it"]
    spent += [f"delta = {delta:g}{smaller}"]
    if answers.trainings > 1:
        spent += [f"noise = {notes.noise:g}  # of a round: a ledger for all runs (--ledgers) admits {answers.trainings}"]
        spent += ["# In a federation each PARTY.toml has the same epsilon and delta in its [privacy]: the budget of all runs."]
        spent += [_WORDS_ONCE] if not notes.language else []
    whom = "every document must name its person" if answers.unit is Unit.PERSON else "no person has two documents"
    unit = "document" if not answers.per_person else answers.unit.value
    whom = whom if answers.per_person else "the documents are of no persons"
    return ["", "[privacy]", f'unit = "{unit}"  # {whom}', *spent]


def _vocabulary(notes: PlanNotes, best: ForecastSetting | None) -> list[str]:
    whole = bool(notes.language) and language_code(notes.language) is None  # a list in a file is kept whole
    lines = [f"file = {_quoted(notes.language)}"] if notes.language else []
    lines += [f"max_words = {best.words}"] if best is not None and not whole else []
    return ["", "[vocabulary]", *lines] if lines else []


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
