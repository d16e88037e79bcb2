"""Settings and parts that cannot be, and promises that a part does not keep. Several layers raise them."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.similar_names import did_you_mean
from securetm.errors.tree import Misuse, SecuretmError

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
class UnreadableToml(Misuse):
    """{path} is not valid TOML: {problem}"""

    path: str
    problem: str
    hint = "correct the file at that line"


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


@dataclass(eq=False)
class CountsNotWhole(Misuse):
    """the documents hold counts of words that are negative or not whole numbers"""

    hint = "LDA assigns a topic to each occurrence of a word: give it plain counts, not weights such as tf-idf"


class NoPersons(Misuse):
    """the unit of privacy is the person, but this corpus does not say whose documents they are"""

    hint = "name the column of persons (--person COLUMN), or choose the document as the unit (--set privacy.unit=document)"
