"""The roots of all errors. The docstring of a class is its sentence, `hint` its advice, and its fields are the facts.

Every class of an error is a dataclass without a decorator: the root sees to it.
No field holds words of a document, because an error may be shown to somebody who may not read them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from string import Formatter
from typing import Any, ClassVar, dataclass_transform

from securetm.wording import downward, upward

MISUSE = 2
FAILURE = 3


class _Sentence(Formatter):
    """As any format; `{found:party is|parties are}` is `1 party is` or `2 parties are`, `{spent:upward}` a bound."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec in _BOUNDS:
            return _BOUNDS[format_spec](value)
        one, bar, several = format_spec.partition("|")
        return f"{value} {one if value == 1 else several}" if bar else str(super().format_field(value, format_spec))


_BOUNDS = {"upward": upward, "downward": downward}
_SENTENCE = _Sentence()
_LONGEST = 400  # characters of a fact that is shown whole


def _short(fact: Any) -> Any:
    """The items of a tuple with commas; only the two ends of a very long text."""
    if isinstance(fact, tuple):
        return ", ".join(map(str, fact))
    if not isinstance(fact, str) or len(fact) <= _LONGEST:
        return fact
    return f"{fact[: _LONGEST // 2]}…{fact[-_LONGEST // 2 :]} ({len(fact):,} characters)"


@dataclass_transform(eq_default=False)
@dataclass(eq=False)
class SecuretmError(Exception):
    """something went wrong"""

    hint: ClassVar[str] = ""
    exit_code: ClassVar[int] = FAILURE

    def __init_subclass__(cls) -> None:
        dataclass(eq=False)(cls)

    def facts(self) -> dict[str, Any]:
        """The public facts of this failure, by field name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def sentence(self) -> str:
        """What went wrong, with the names of the facts in braces."""
        return type(self).__doc__ or ""

    def __str__(self) -> str:
        return self._with_facts(self.sentence())

    def advice(self) -> str:
        """What to do about it."""
        return self._with_facts(self.hint)

    def _with_facts(self, text: str) -> str:
        return _SENTENCE.format(text, **{name: _short(fact) for name, fact in self.facts().items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self.facts().values())


class Misuse(SecuretmError):
    """this cannot be done"""

    exit_code = MISUSE


class Unsound(Misuse):
    """this combination is not sound"""


class _Said(SecuretmError):
    """An error whose sentence and hint stand where it is raised, because nobody acts on its type."""

    def __init_subclass__(cls) -> None:  # no dataclass: its facts are given where it is raised
        return

    def __init__(self, sentence: str, hint: str = "", **facts: Any) -> None:
        super().__init__()
        self._sentence, self._hint, self._facts = sentence, hint, facts

    def facts(self) -> dict[str, Any]:
        """As they were given."""
        return self._facts

    def sentence(self) -> str:
        """As it was given, with the names of the facts in braces."""
        return self._sentence

    def advice(self) -> str:
        """The hint that was given."""
        return self._with_facts(self._hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return _said_again, (type(self), self._sentence, self._hint, self._facts)


def _said_again(kind: type[_Said], sentence: str, hint: str, facts: dict[str, Any]) -> _Said:
    return kind(sentence, hint, **facts)


class Mistake(_Said, Misuse):
    """something that a person can correct"""


class Failed(_Said):
    """something that was asked for in the right way and could not be done"""


class Refused(SecuretmError):
    """refused"""

    hint = "the other side runs another version, another plan, or lies: compare `securetm explain` on both sides"
