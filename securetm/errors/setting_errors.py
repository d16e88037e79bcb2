"""Settings and parts that cannot be, and promises that a part does not keep. Several layers raise them."""

from __future__ import annotations

from securetm.errors.similar_names import did_you_mean
from securetm.errors.tree import Misuse, SecuretmError, Unsound


def _placed(at: str, sentence: str) -> str:
    return f"{{at}}: {sentence}" if at else sentence


class NotFound(Misuse, ValueError):
    """there is no {kind} called {name!r}"""

    kind: str
    name: str
    known: tuple[str, ...] = ()
    at: str = ""  # file and line, where the name stands in a file
    unread: tuple[str, ...] = ()  # packages that may have it and cannot be read
    hint = "known: {known}"

    def sentence(self) -> str:
        """With the place of the name."""
        return _placed(self.at, super().sentence())

    def advice(self) -> str:
        """With the name that was meant, where one is like it."""
        unread = "; not read: {unread} (`securetm parts` says why)" if self.unread else ""
        return did_you_mean(self.name, self.known) + self._with_facts(self.hint + unread)


class NoSuchToml(NotFound):
    """the {kind}'s file {name} does not exist"""

    hint = "check the spelling; the path is relative to the folder you are in; without .toml, a name: {known}"


class BadSetting(Misuse, ValueError):
    """the setting `{name}` in {where} is {value}; it {problem}"""

    where: str
    name: str
    value: str | None  # None where it is missing
    problem: str = ""
    known: tuple[str, ...] = ()  # all values that are allowed, where these can be listed
    instead: str = ""
    at: str = ""  # file and line, where the setting stands in a file
    hint = "correct {name}"

    def sentence(self) -> str:
        """With its place, the kind of setting it is, and what is allowed."""
        return _placed(self.at, self._unplaced())

    def _unplaced(self) -> str:
        kind = "option" if self.name.startswith("--") else "argument" if self.name.isupper() else "setting"
        subject = f"the {kind} " + ("`{name}`" if kind == "setting" else "{name}")
        if self.where:
            subject += " in {where}"
        if self.value is None:
            return f"{subject} is missing" + ("; {problem}" if self.problem else "")
        return f"{subject} is {{value}}; it " + ("must be one of {known}" if self.known else "{problem}")

    def advice(self) -> str:
        """With the value that was meant, where one of the known ones is like it."""
        meant = did_you_mean((self.value or "").strip("'"), self.known)
        return meant + (self.instead or super().advice() + (f" in {self.where}" if self.where else ""))


def check_setting(part: object, name: str, fine: bool, problem: str) -> None:
    """Refuses a setting of a part unless it is fine. `problem` is what follows "it": "must be at least 1"."""
    if not fine:
        raise BadSetting(type(part).__name__, name, str(getattr(part, name)), problem)


class SettingMistakes(Misuse):
    """several settings are wrong: {mistakes}"""

    mistakes: tuple[Misuse, ...]  # two or more
    hint = "correct each of them"

    def __str__(self) -> str:
        """All of them in one sentence; the command line prints each with its own hint."""
        return "several settings are wrong: " + "; ".join(map(str, self.mistakes))


class UnreadableToml(Misuse):
    """{path} is not valid TOML: {problem}"""

    path: str
    problem: str
    hint = "correct the file; it has to be TOML, written in UTF-8"


class BrokenPromise(SecuretmError):
    """a {what} has {found} coordinates where its terms promise {promised}"""

    what: str
    found: int
    promised: int
    hint = "this is a fault of the model or the mechanism, not of the data: please report it"


class SplitOwner(SecuretmError):
    """rows of one document, person or party were added in two calls, so they cannot be bounded together"""

    hint = "this is a fault of the model: all rows of an owner belong into one call; please report it"


class UnfitBlocks(SecuretmError):
    """sums of blocks of documents do not make the sum of {blocks} blocks: {problem}"""

    blocks: int
    problem: str
    hint = "this is a fault of the engine, which must give the result of every task once: please report it"


class CountsNotWhole(Misuse, ValueError):
    """the documents hold counts of words that are negative or not whole numbers"""

    hint = "LDA assigns a topic to each occurrence of a word: give it plain counts, not weights such as tf-idf"


class NoPersons(Misuse):
    """the unit of privacy is the person, but this corpus does not say whose documents they are"""

    hint = "name the column of persons (--person COLUMN), or choose the document as the unit (--set privacy.unit=document)"


class NeedsIntegers(Unsound):
    """{part} adds whole numbers, and the values of this question are not on a grid of them"""

    part: str
    hint = "in the profile, put the [[mechanism]] fixed_point before it, which rounds real numbers to steps of a grid"


class NeedsSum(Unsound):
    """{part} works on sums, and this question needs the vector of each party"""

    part: str
    hint = "ask a question whose answer is a sum (for a union of words: the word sketch; for a matched model: the aligned one)"


class NeedsReach(Unsound):
    """{part} has to know how large a value of one party can be, and nothing bounds the values of this question"""

    part: str
    hint = "in the profile, put a [[mechanism]] that clips, clamps or quantises before it"


class SumTooWide(Unsound):
    """a sum over {parties} parties of values up to {reach} does not fit into {part}"""

    part: str
    parties: int
    reach: str
    hint = "clip to smaller values, use a coarser grid, or split the parties into several federations"
