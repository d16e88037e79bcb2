"""`securetm choose`: six questions lead to a profile, its reason and cost, and a plan."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from securetm.cli.command import OptionsOf, Output, command
from securetm.cli.options import COLUMN, FILE
from securetm.cli.run import declared
from securetm.corpus.languages import ENGLISH_CODE, language_code, language_name
from securetm.corpus.readers import Glance, glance, records_of
from securetm.corpus.records import Columns
from securetm.corpus.store import is_stored
from securetm.data_classes import dataclass
from securetm.errors import BadSetting, Mistake, Misuse, NoSuchPath
from securetm.federation.courier.passes import passes_of
from securetm.plans.agreement import agree
from securetm.plans.profile_choice import (
    BREAKERS,
    COORDINATOR,
    EXPLORE,
    LOOKERS,
    MOST_DOCUMENTS,
    MOST_PARTIES,
    MOST_TRAININGS,
    NOBODY,
    ORGANISATION,
    PURPOSES,
    SECRETS,
    Answers,
)
from securetm.plans.recommend import plan_from_tables
from securetm.plans.schema import CorpusChoice
from securetm.reports.choosing import PlanNotes, chosen, show_choice
from securetm.reports.files import check_writable, write_report
from securetm.reports.texts import sentence
from securetm.settings import from_table, parsed_toml, placed, read_toml


@dataclass(frozen=True)
class AnswerOptions:
    """The answers that options give in advance."""

    parties: Annotated[int, "Organisations that take part."]
    documents: Annotated[int, "Documents of all parties, about."]
    per_person: Annotated[int, "Most documents of one person; 0: they are not of persons."]
    purpose: Annotated[str, "explore, sort or publish."]
    trainings: Annotated[int, "Trainings on the same documents, in all; 1, where nobody can be asked."]
    looks: Annotated[list[str], "Who might look: coordinator, party, reader; or nobody."]
    hide: Annotated[list[str], "What to hide from them: organisation, document, total."]
    breaks: Annotated[list[str], "Who may break the rules: coordinator, party; or nobody."]
    colluding: Annotated[int, "Parties that may share what they know with whoever looks."]


@command("--per-person 0 --looks nobody --parties 5 --documents 900 --purpose explore")
def choose(
    to: Output,
    told: Annotated[dict[str, Any], OptionsOf(AnswerOptions)],
    answers: Annotated[str | None, "A TOML file with these answers, `-` for standard input.", FILE] = None,
    out: Annotated[Path | None, "Write the plan to this file."] = None,
    replace: Annotated[bool, "--replace", "Replace the file if it is there."] = False,
    corpus: Annotated[str, "Documents for a simulation, which the plan then names."] = "",
    person: Annotated[str, "Their column of whose document it is.", COLUMN] = "",
    language: Annotated[str, "Language of a public list of words, such as english."] = "",
    public: Annotated[
        list[str] | None,
        "Why a list of words in a file is public: vocabulary=WHY. A budget asks for it.",
        {"metavar": "INPUT=WHY"},
    ] = None,
    document_length: Annotated[float, "Words of a document but stop words, about; 0: not said."] = 0.0,
    epsilon: Annotated[
        float | None,
        "Budget of all trainings; if not given, the profile's, or the largest below securetm's own limit on guesses.",
    ] = None,
) -> dict[str, Any]:
    """Asks six questions and answers with a profile, its reason, its cost and a plan.

    Options, or a file of answers, answer in advance; what is left is asked at the terminal. The profile promises all
    that was asked. Where none does, it says what would have to change, and exits 1.
    """
    if out is not None:
        if out.exists() and not replace:
            problem = "{path} is there already, and choosing again would replace it"
            raise Mistake(problem, hint="name another file after --out, or add --replace", path=str(out))
        check_writable(out)
    told = {  # names are given several times, or with commas between them
        name: tuple(one for each in value for one in each.split(",")) if isinstance(value, list) else value
        for name, value in told.items()
        if value != []
    }
    of_file: Mapping[str, Any] = {}
    if answers is not None:
        of_file = parsed_toml(sys.stdin.buffer.read(), "standard input") if answers == "-" else read_toml(Path(answers))
    given = {**of_file, **told}
    notes = _notes(corpus, person, language, document_length, epsilon, public or [])
    if notes.spoken:
        unless = f", under a budget only if you do, as they are not all alike: --language {notes.spoken}"
        taken = f": everybody who gets it learns that{', and it counts as public' if notes.surely else unless}"
        to.note(f"The documents read as {language_name(notes.spoken)}, and the plan says so{taken}.")
    with placed(Path(answers) if answers and answers != "-" else None, told), _named_as_options(told):
        _check_so_far(given)
        whole = _complete(given, to)
        facts = _chosen(whole, notes)
    if notes.seen_length and facts["forecast"] and not notes.length:
        to.note(sentence("choosing.seen_length", corpus, notes.seen_length))
    if differing := _other_numbers(corpus, person, from_table(Answers, whole, "the answers")):
        to.note(differing)
    return _answered(facts, out, to)


@contextmanager
def _named_as_options(told: Mapping[str, Any]) -> Iterator[None]:
    """Names the option of an answer that is refused, where an option gave it."""
    try:
        yield
    except BadSetting as mistake:
        if mistake.name not in told:
            raise
        option = f"--{mistake.name.replace('_', '-')}"
        raise BadSetting("", option, mistake.value, mistake.problem, mistake.known, mistake.instead) from mistake


def _answered(facts: dict[str, Any], out: Path | None, shown: Output) -> dict[str, Any]:
    to = shown.results
    show_choice(facts, to)
    facts = {**facts, "passes": None}
    if facts["profile"]:
        plan = plan_from_tables(parsed_toml(facts["plan"].encode(), "the plan"), "the plan")
        facts["passes"] = passes_of(agree(plan))
    if facts["passes"]:
        to.print(f"By courier (securetm post) it takes {facts['passes']} passes of each party at most.", markup=False)
    if facts["profile"] is None:
        out = None
    elif out is not None:
        write_report(out, facts["plan"])
        to.print(f"The plan is in {out}; next: securetm check {out}", markup=False, soft_wrap=True)
        to.print(f"To try it on one machine: {_trial(facts, out)}", markup=False, soft_wrap=True)
        if "[corpus]" not in facts["plan"]:
            own = (
                "or, with a column `party` of who holds a document: --partition column in place of --partition equal --parties"
            )
            to.print(f"  ({own} {facts['parties']})", markup=False, soft_wrap=True)
    else:
        to.print("The plan (--out FILE writes it):\n")
        to.print(facts["plan"], markup=False, soft_wrap=True, end="")
    shown.exit_code = 1 if facts["profile"] is None else 0
    return {**facts, "out": str(out) if out else None}


def _trial(facts: dict[str, Any], out: Path) -> str:
    """The command of a simulation; what the plan names is left out."""
    command = f"securetm run {out}"
    by_person = (facts["spent"] or {}).get("unit") == "person"
    named = "" if "[corpus]" in facts["plan"] else f" --corpus notes.jsonl --partition equal --parties {facts['parties']}"
    named += " --ledgers LEDGERS" if facts["answers"]["trainings"] > 1 and facts["spent"] else ""
    return command + named + (" --person COLUMN" if by_person and "person =" not in facts["plan"] else "")


def _complete(given: dict[str, Any], to: Output) -> dict[str, Any]:
    """The answers with nothing missing: asked for at a terminal, refused by name elsewhere."""
    left = missing(given)
    if sys.stdin.isatty():
        return asked(given, to.screen) if left else given
    if needed := [one for one in left if one.usual is None]:
        raise unanswered(needed)
    return given


def _check_so_far(given: Mapping[str, Any]) -> None:
    """Refuses an answer that is wrong whatever the others are, before these are asked for."""
    fitting = {
        "parties": MOST_PARTIES,
        "documents": MOST_DOCUMENTS,
        "per_person": 0,
        "purpose": EXPLORE,
        "colluding": 0,
        "trainings": 1,
    }
    fitting |= {"looks": (COORDINATOR,), "hide": (ORGANISATION,), "breaks": (NOBODY,)}
    from_table(Answers, {**{one.name: fitting[one.name] for one in missing(dict(given))}, **given}, "the answers")


def _notes(
    corpus: str, person: str, language: str, document_length: float, epsilon: float | None, public: list[str]
) -> PlanNotes:
    """What the plan says beside the answers. What is not there is refused now, and not by the run that takes the plan."""
    usual = CorpusChoice().source
    if corpus and corpus != usual and not Path(corpus).exists():
        raise NoSuchPath(corpus)
    if person and not corpus:
        instead = "name the documents with --corpus; in a federation each party names its column in PARTY.toml"
        raise BadSetting("", "--person", person, "is a column of a corpus, and none is named", instead=instead)
    if language and language_code(language) is None and not Path(language).is_file():
        problem = "is neither a language of which there is a list nor a file"
        raise BadSetting("", "--language", language, problem, instead="give english, german, or a file with one word a line")
    if epsilon is not None and not epsilon > 0:
        raise BadSetting("", "--epsilon", f"{epsilon:g}", "must be above 0")
    seen = glance(corpus, Columns(person=person or None)) if corpus and corpus != usual else Glance(None, False)
    spoken = "" if seen.language in (None, ENGLISH_CODE) or language else seen.language or ""
    why = _why_public(public, language)
    own = corpus, person, language, document_length, epsilon or 0.0, why
    return PlanNotes(*own, spoken=spoken, surely=seen.surely, has_parties=seen.has_parties, seen_length=seen.length)


_NEAR = 0.1  # the share of the documents by which an answer that says "about" may be off
_MOST_READ = 64 << 20  # bytes of a file that is read for this: nobody waits minutes for a note


def _other_numbers(corpus: str, person: str, answers: Answers) -> str:
    """What the file of a simulation has otherwise than the answers say; shown on this screen, and in no plan or result."""
    source = Path(corpus)
    if not corpus or corpus == CorpusChoice().source or is_stored(source):
        return ""
    if source.is_file() and source.stat().st_size > _MOST_READ:
        return ""
    documents, parties = 0, set[str]()
    try:
        for one in records_of(corpus, Columns(person=person or None))[1]:
            documents += 1
            parties |= {one.party} if one.party else set()
    except Misuse:  # the run says it, and how to mend it
        return ""
    off = abs(documents - answers.documents) > _NEAR * documents
    other = bool(parties) and len(parties) != answers.parties
    if not (off or other):
        return ""
    return sentence("choosing.other_numbers", corpus, documents if off else 0, len(parties) if other else 0, answers)


def _why_public(public: list[str], language: str) -> str:
    """Why the list of words in a file is public. Nothing else that a plan of `choose` starts from needs a reason."""
    given = declared(public)
    for name in given:
        problem = "is about nothing that this plan starts from: only a list of words in a file needs a reason"
        fine = name == "origins.vocabulary" and bool(language) and language_code(language) is None
        if not fine:
            raise BadSetting("", "--public", name.removeprefix("origins."), problem, instead="leave it out")
    return given.get("origins.vocabulary", "")


def _chosen(given: Mapping[str, Any], notes: PlanNotes) -> dict[str, Any]:
    asked = from_table(Answers, given, "the answers")
    if asked.parties == 1 and asked.lookers:
        instead = "a federation needs two or more; one organisation that only tries takes --looks nobody"
        raise BadSetting("the answers", "parties", "1", "is nobody to be hidden from in a federation", instead=instead)
    return chosen(asked, notes)


# ---- the questions, at a terminal -----------------------------------------------------------------------------------------

Given = dict[str, Any]


@dataclass(frozen=True)
class ChoiceQuestion:
    """One of the questions: the answer that it gives, how it is asked, and how what is typed is read."""

    name: str  # of the answer
    number: int  # of the question, of which some have two parts
    text: str
    options: Mapping[str, str]  # empty: a number is asked for
    several: bool = False
    least: int = 0
    most: int = MOST_DOCUMENTS
    if_looked_for: bool = False  # whether it means nothing where nobody looks
    usual: int | None = None  # the answer of an option that was not given, where nobody can be asked

    def asked(self, given: Given) -> bool:
        """Whether it means anything after the answers so far."""
        return not self.if_looked_for or NOBODY not in given.get("looks", ())

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    def read(self, typed: str, given: Given) -> Any:
        """The answer, or a `ValueError` whose text says what is wrong."""
        words = typed.replace(",", " " if self.options else "").split()
        if not words:
            raise ValueError("Please type an answer.")
        return self._options(words) if self.options else self._number("".join(words), given)

    def _options(self, words: Sequence[str]) -> Any:
        names = tuple(self.options)
        by_typing = {**{str(n): name for n, name in enumerate(names, 1)}, **{name: name for name in names}}
        unknown = next((word for word in words if word.lower() not in by_typing), None)
        if unknown is not None:
            raise ValueError(f"{unknown!r} is none of the answers: type a number from 1 to {len(names)}.")
        chosen = tuple(dict.fromkeys(by_typing[word.lower()] for word in words))
        if len(chosen) > 1 and (NOBODY in chosen or not self.several):
            raise ValueError("Only one answer, please." if not self.several else "Nobody, or somebody: not both.")
        return chosen if self.several else chosen[0]

    def _number(self, typed: str, given: Given) -> int:
        bounds = {"colluding": given.get("parties", 1) - 1, "per_person": given.get("documents", self.most)}
        most = bounds.get(self.name, self.most)
        if not typed.isdecimal() or not self.least <= int(typed[:12]) <= most:
            raise ValueError(f"Please type a whole number from {self.least} to {most:,}.")
        return int(typed)


QUESTIONS = (
    ChoiceQuestion("parties", 1, "How many parties (organisations) take part?", {}, least=1, most=MOST_PARTIES),
    ChoiceQuestion("documents", 1, "About how many documents have they in all?", {}, least=1),
    ChoiceQuestion("per_person", 2, "At most how many documents are of one person? 0: they are not of persons.", {}),
    ChoiceQuestion("purpose", 3, "What is the model for?", PURPOSES),
    ChoiceQuestion(
        "trainings",
        3,
        "How often will you train on the same documents, in all? What each training tells adds up. 1: once.",
        {},
        least=1,
        most=MOST_TRAININGS,
        usual=1,
    ),
    ChoiceQuestion("looks", 4, "Who might look for what is not theirs? Several are possible: 1 3", LOOKERS, several=True),
    ChoiceQuestion("hide", 5, "What must they not find out? Several are possible.", SECRETS, several=True, if_looked_for=True),
    ChoiceQuestion(
        "breaks", 6, "Does anyone break the rules? Several are possible.", BREAKERS, several=True, if_looked_for=True
    ),
    ChoiceQuestion(
        "colluding",
        6,
        "At most how many parties might work together against the others, or with the coordinator? 0: none.",
        {},
        if_looked_for=True,
    ),
)


def missing(given: Given) -> tuple[ChoiceQuestion, ...]:
    """The questions that still need an answer; what means nothing after a known answer is left out."""
    return tuple(one for one in QUESTIONS if one.name not in given and one.asked(given))


def unanswered(left: Sequence[ChoiceQuestion]) -> Mistake:
    """The refusal of questions that nobody can be asked."""
    return Mistake(
        "{count:question has|questions have} no answer, and there is no terminal to ask at: {flags}",
        hint="give these options, or --answers FILE with a TOML file of answers (`-` for standard input)",
        count=len(left),
        flags=" ".join(one.flag for one in left),
    )


def asked(given: Given, to: Console) -> Given:
    """The answers, with those that are missing asked for at the terminal. `back` returns to the question before."""
    answers, typed = dict(given), list[str]()
    to.print("Type the number of an answer; `back` returns to the question before.")
    while left := missing(answers):
        answer = _answer(left[0], answers, to)
        if answer is not None:
            answers[left[0].name] = answer
            typed.append(left[0].name)
        elif typed:
            del answers[typed.pop()]
    return answers


def _answer(question: ChoiceQuestion, given: Given, to: Console) -> Any:
    """The answer to one question; None where somebody wants to go back."""
    to.print(f"\n[bold]{question.number} of {QUESTIONS[-1].number}[/bold]  {escape(question.text)}")
    options = Table.grid(Column(no_wrap=True), Column(style="bold", no_wrap=True), Column(), padding=(0, 2, 0, 0))
    for number, (name, meaning) in enumerate(question.options.items(), 1):
        options.add_row(f"  {number}", name, escape(meaning))
    to.print(options, end="")
    while True:
        to.print("> ", end="")
        typed = sys.stdin.readline()
        if not typed:
            to.print()
            raise unanswered(missing(given))
        if typed.strip().lower() == "back":
            return None
        try:
            return question.read(typed, given)
        except ValueError as wrong:
            to.print(f"[yellow]{escape(str(wrong))}[/yellow]")
