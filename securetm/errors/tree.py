"""The root of every way to fail. Not a place for logic: a docstring is the sentence, `hint` the advice, fields the facts.

A field never holds the words of a document, because an error may be shown to somebody who may not read them.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from string import Formatter
from typing import Any, ClassVar

MISUSE = 2
FAILURE = 3


class _Sentence(Formatter):
    """As any format, and `{found:party is|parties are}` is `1 party is` or `2 parties are`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        one, bar, several = format_spec.partition("|")
        return f"{value} {one if value == 1 else several}" if bar else str(super().format_field(value, format_spec))


_SENTENCE = _Sentence()
_LONGEST = 400  # characters of a fact that is told whole


def _short(fact: Any) -> Any:
    """A path or a value of a megabyte is told by its two ends."""
    if not isinstance(fact, str) or len(fact) <= _LONGEST:
        return fact
    return f"{fact[: _LONGEST // 2]}…{fact[-_LONGEST // 2 :]} ({len(fact):,} characters)"


class SecuretmError(Exception):
    """something went wrong"""

    hint: ClassVar[str] = ""
    exit_code: ClassVar[int] = FAILURE

    def facts(self) -> dict[str, Any]:
        """The public facts of this failure, by field name."""
        return {f.name: getattr(self, f.name) for f in fields(self)} if is_dataclass(self) else {}

    def __str__(self) -> str:
        return _SENTENCE.format(type(self).__doc__ or "", **{name: _short(fact) for name, fact in self.facts().items()})

    def advice(self) -> str:
        """What to do about it."""
        listed = {name: ", ".join(map(str, v)) if isinstance(v, tuple) else _short(v) for name, v in self.facts().items()}
        return self.hint.format(**listed)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self.facts().values())


class Misuse(SecuretmError):
    """this cannot be done"""

    exit_code = MISUSE


class Unsound(Misuse):
    """this combination is not sound"""


class Refused(SecuretmError):
    """refused"""

    hint = "the other side runs another version, another plan, or lies: compare `securetm explain` on both sides"
