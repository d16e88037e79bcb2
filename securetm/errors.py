"""The roots of all errors, and errors that several packages raise. Other errors stand beside what raises them.

The docstring of a class is its sentence, `hint` its advice, and its fields are the facts. Every class is a dataclass without
a decorator: the root sees to it. No field holds words of a document, because an error may be shown to somebody who may
not read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from string import Formatter
from typing import Any, ClassVar, dataclass_transform

from securetm.data_classes import dataclass, fields
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
        if "__annotations__" in cls.__dict__:  # one without facts of its own is made as its base
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


class Mismatch(_Said, Unsound):
    """parts of a profile, or a part and a question, that do not go together"""


class Failed(_Said):
    """something that was asked for in the right way and could not be done"""


class Refused(SecuretmError):
    """refused"""

    hint = "the other side runs another version, another plan, or lies: compare `securetm explain` on both sides"


# ---- settings, and promises that a part does not keep ----------------------------------------------------------------


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


_GIVEN = ("True", "given", "'given'")  # how the value of an option is told that has none, or that is of no interest


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
        if kind == "option" and self.value in _GIVEN and not self.known:
            return f"{subject} {{problem}}"
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


# ---- files and folders -----------------------------------------------------------------------------------------------


class NoSuchPath(Misuse):
    """{path} does not exist"""

    path: str
    named_in: str = ""  # the file that names it, where one does
    hint = "check the spelling; the path is relative to the folder you are in"

    def advice(self) -> str:
        """With the file beside it that was meant, where one is called like it: files of one ending are not alike for that."""
        path = Path(self.path)
        try:
            beside = sorted(one for one in path.parent.iterdir() if one.exists())
        except OSError:  # there is no such folder either
            beside = []
        alike = [one.name for one in beside if did_you_mean(path.stem, [one.stem])]
        return did_you_mean(path.name, alike) + self._whence()

    def _whence(self) -> str:
        relative = "check the spelling in {named_in}, which names it; a path there is relative to the folder of that file"
        return self._with_facts(relative) if self.named_in else super().advice()


@contextmanager
def named_in(file: Path, path: Path) -> Iterator[None]:
    """Where the block finds that this path does not exist, it says which file names it."""
    try:
        yield
    except NoSuchPath as problem:
        if Path(problem.path) != path:
            raise
        raise NoSuchPath(problem.path, str(file)) from problem


def system_refused(path: str, what: str, problem: OSError) -> Mistake:
    """What the operating system would not do, for an error that no lower layer has named."""
    hint = "check the path, the permissions and the room on the disk; --debug shows where it happened"
    return Mistake("{path} {what}: {why}", hint, path=path, what=what, why=problem.strerror or type(problem).__name__)


@contextmanager
def refused_as(kind: Callable[[str, str], Exception], path: Path | str) -> Iterator[None]:
    """Turns what the operating system would not do into an error of this kind, of the path and of the reason."""
    try:
        yield
    except OSError as problem:
        raise kind(str(path), problem.strerror or type(problem).__name__) from problem


class Unreadable(Misuse):
    """{path} cannot be opened: {problem}"""

    path: str
    problem: str
    hint = "check the permissions and the disk"


class CannotWrite(Misuse):
    """{path} cannot be written: {problem}"""

    path: str
    problem: str
    hint = "make room on the disk, check the permissions, or choose another --out; `securetm run --resume` goes on with a run"


class FileNotWritten(CannotWrite):
    """{path} cannot be written: {problem}"""

    hint = "make room on the disk, check the permissions and that its folder is there, or choose another path"


class OpenToOthers(Misuse):
    """{path} must be its owner's alone, and others on this machine may {what} it (mode {mode})"""

    path: str
    what: str
    mode: str
    hint = "close it if nobody has looked into it or changed it (chmod -R go= {path}), or take another that is not there yet"


class OwnedByAnother(Misuse):
    """{path} belongs to another account (number {owner}), which can read and change what is in it"""

    path: str
    owner: int
    hint = 'run as that account; or, if it is to be yours: chown -R "$(id -u)" {path}'


# ---- messages that a role of any protocol refuses: the name of the class travels, the facts do not -------------------


class Malformed(Refused):
    """a message from {sender} is malformed: {problem}"""

    sender: str
    problem: str


class WrongSession(Refused):
    """a message belongs to another session"""


class NotInCohort(Refused):
    """{name} is not in the cohort"""

    name: str


class CohortTooSmall(Refused):
    """a cohort of {found:party|parties} is below this party's minimum of {need}"""

    found: int
    need: int


class UnknownRound(Refused):
    """there is no open round {round_id}"""

    round_id: str


class BadVector(Refused):
    """the vector of {sender} {problem}"""

    sender: str
    problem: str


class Duplicate(Refused):
    """{sender} answered twice"""

    sender: str


class TooFewParties(SecuretmError):
    """too many parties left ({left} of {of} remain, need {need})"""

    left: int
    of: int
    need: int
    hint = "wait for more parties, or agree on a profile with a lower threshold"


# ---- names -----------------------------------------------------------------------------------------------------------

_ALIKE = 0.6  # of all letters, from which on a name counts as mistyped
_LONGEST_NAME = 200  # characters; a longer one is compared with none


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The beginning of a hint with the most similar name; empty where no name is similar."""
    if len(name) > _LONGEST_NAME:
        return ""
    by_letters = {one.lower().replace("-", "_"): one for one in known}
    found = get_close_matches(name.lower().replace("-", "_"), by_letters, 1, _ALIKE)
    return f"did you mean {by_letters[found[0]]}? " if found else ""


_PACKAGE = Path(__file__).resolve().parent
_CLASS = re.compile(r"^class (\w+)\((\w+)", re.MULTILINE)  # a class, and the first of its bases


def _below(kind: type[SecuretmError]) -> Iterator[type[SecuretmError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


@cache
def _modules_of_errors() -> dict[str, str]:
    """By the name of each class below the root of all errors, the module whose text defines it. None of them is imported."""
    classes = {path: _CLASS.findall(path.read_text("utf-8")) for path in sorted(_PACKAGE.rglob("*.py"))}
    known, before = {SecuretmError.__name__}, 0
    while len(known) > before:
        before = len(known)
        known |= {name for defined in classes.values() for name, base in defined if base in known}
    module = {path: ".".join(("securetm", *path.relative_to(_PACKAGE).with_suffix("").parts)) for path in classes}
    return {name: module[path] for path, defined in classes.items() for name, base in defined if base in known}


def error_class(name: str) -> type[SecuretmError] | None:
    """The class of that name, as it came over the wire; None where securetm defines none. It imports one module."""
    module = _modules_of_errors().get(name)
    return getattr(import_module(module), name) if module else None


def error_classes() -> dict[str, type[SecuretmError]]:
    """Every error class that securetm defines, by name. A module whose extra is not installed is left out."""
    for module in dict.fromkeys(_modules_of_errors().values()):
        with suppress(ImportError):
            import_module(module)
    ours = {kind.__name__: kind for kind in _below(SecuretmError) if kind.__module__.startswith("securetm.")}
    return dict(sorted(ours.items()))
