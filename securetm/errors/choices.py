"""What a user chose that cannot be: names, settings, files, and combinations that are not sound."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.meant import did_you_mean
from securetm.errors.tree import Misuse, SecuretmError, Unsound

_NONE_OF = "is none of "
_OPTIONS = {  # of the command line, that set what a plan calls otherwise
    "n_topics": "--topics",
    "name": "--model",
    "file": "--vocabulary",
    "source": "--corpus",
    "rounds": "--rounds",
    "stop": "--stop",
    "partition": "--partition",
    "parties": "--parties",
    "epsilon": "--epsilon",
    "seed": "--seed",
    "local_epochs": "--local-epochs",
}


@dataclass(eq=False)
class NotFound(Misuse):
    """there is no {kind} called {name!r}"""

    kind: str
    name: str
    known: tuple[str, ...] = ()
    hint = "known: {known}"

    def advice(self) -> str:
        """With the name that was meant, where one is like it."""
        return did_you_mean(self.name, self.known) + super().advice()


@dataclass(eq=False)
class BadSetting(Misuse):
    """{where}: {name} = {value} {problem}"""

    where: str
    name: str
    value: str
    problem: str
    hint = "correct {name} in {where}"

    def advice(self) -> str:
        """With the value that was meant, where the problem names those there are."""
        listed = self.problem.removeprefix(_NONE_OF).split(", ") if self.problem.startswith(_NONE_OF) else ()
        typed = f", or what you gave with {_OPTIONS[self.name]}" if self.name in _OPTIONS else ""
        return did_you_mean(self.value.strip("'"), listed) + super().advice() + typed


@dataclass(eq=False)
class UnknownSetting(Misuse):
    """{where}: there is no setting called {name!r}"""

    where: str
    name: str
    known: tuple[str, ...]
    hint = "known here: {known}"

    def advice(self) -> str:
        """With the setting that was meant, where one is like it."""
        return did_you_mean(self.name, self.known) + super().advice()


@dataclass(eq=False)
class NotASetting(Misuse):
    """--set {given} names no setting and its value"""

    given: str
    hint = "write section.name=value, such as --set training.rounds=20"


@dataclass(eq=False)
class NotAPlan(Misuse):
    """{path} is no plan: it holds documents"""

    path: str
    hint = "give documents with --corpus {path}; a plan is a file of settings that ends in .toml"


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
