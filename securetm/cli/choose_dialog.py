"""Asks the questions of `securetm choose` at a terminal, one after the other, until each has an answer. It decides nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from securetm.data_classes import dataclass
from securetm.errors import Mistake
from securetm.plans.profile_choice import (
    BREAKERS,
    LOOKERS,
    MOST_DOCUMENTS,
    MOST_PARTIES,
    MOST_TRAININGS,
    NOBODY,
    PURPOSES,
    SECRETS,
)

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
        """The option that answers it."""
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
