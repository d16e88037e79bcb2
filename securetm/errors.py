"""Every way to fail, as one tree. Not a place for logic: a docstring is the sentence, `hint` the advice, fields the facts.

A field never holds the words of a document, because an error may be shown to somebody who may not read them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

MISUSE = 2
FAILURE = 3


class SecuretmError(Exception):
    """something went wrong"""

    hint: ClassVar[str] = ""
    exit_code: ClassVar[int] = FAILURE

    def facts(self) -> dict[str, Any]:
        """The public facts of this failure, by field name."""
        return {f.name: getattr(self, f.name) for f in fields(self)} if is_dataclass(self) else {}

    def __str__(self) -> str:
        return (type(self).__doc__ or "").format(**self.facts())

    def advice(self) -> str:
        """What to do about it."""
        return self.hint.format(**self.facts())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self.facts().values())


# ---- the user's choices -------------------------------------------------------------------------------------------


class Misuse(SecuretmError):
    """this cannot be done"""

    exit_code = MISUSE


@dataclass(eq=False)
class NotFound(Misuse):
    """there is no {kind} called {name!r}"""

    kind: str
    name: str
    known: tuple[str, ...] = ()
    hint = "known: {known}"


@dataclass(eq=False)
class BadSetting(Misuse):
    """{where}: {name} = {value} {problem}"""

    where: str
    name: str
    value: str
    problem: str
    hint = "correct {name} in {where}"


@dataclass(eq=False)
class UnknownSetting(Misuse):
    """{where}: there is no setting called {name!r}"""

    where: str
    name: str
    known: tuple[str, ...]
    hint = "known here: {known}"


@dataclass(eq=False)
class UnreadableToml(Misuse):
    """{path} is not valid TOML: {problem}"""

    path: str
    problem: str
    hint = "correct the file at that line"


# ---- the parts' promises ------------------------------------------------------------------------------------------


class Unsound(Misuse):
    """this combination is not sound"""


@dataclass(eq=False)
class BrokenPromise(SecuretmError):
    """a {what} has {found} coordinates where its terms promise {promised}"""

    what: str
    found: int
    promised: int
    hint = "this is a fault of the model or the mechanism, not of the data: please report it"


class UnsafeEntropy(Misuse):
    """seeded randomness would void every privacy claim"""

    hint = "use OperatingSystem(); for test vectors spell Seeded(key, unsafe=True)"
