"""What a user chose that cannot be: names, settings, files, and combinations that are not sound."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.tree import Misuse, SecuretmError, Unsound


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


@dataclass(eq=False)
class VocabularyNotAllowed(Unsound):
    """a vocabulary from {source!r} is not sound under profile {profile!r}"""

    source: str
    profile: str
    allowed: tuple[str, ...]
    hint = "allowed there: {allowed}"


@dataclass(eq=False)
class BrokenPromise(SecuretmError):
    """a {what} has {found} coordinates where its terms promise {promised}"""

    what: str
    found: int
    promised: int
    hint = "this is a fault of the model or the mechanism, not of the data: please report it"


class SplitOwner(SecuretmError):
    """rows of one document, person or party were poured in at two times, so they cannot be bounded together"""

    hint = "this is a fault of the model: all rows of an owner belong into one call; please report it"


class UnsafeEntropy(Misuse):
    """seeded randomness would void every privacy claim"""

    hint = "use OperatingSystem(); for test vectors spell Seeded(key, unsafe=True)"
