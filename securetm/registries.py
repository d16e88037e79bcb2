"""Finds the parts of one kind by name: our own, and those that installed packages declare as entry points.

Listing names imports no part. A part is imported and checked against its contract when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from securetm.data_classes import dataclass, is_dataclass
from securetm.errors import Failed, Mistake, NotFound, SecuretmError
from securetm.extras import missing_extra

OURS = "securetm"


@dataclass(frozen=True, order=True)
class ListedPart:
    name: str
    package: str
    place: str

    @property
    def module(self) -> str:
        return self.place.partition(":")[0]


@dataclass(frozen=True)
class Registry:
    """All parts of one kind. `own` has the places of our own parts; `group` is the entry-point group of all others."""

    kind: str  # as error messages call it
    group: str
    contract: str  # the place of the class that a part is a subclass or an instance of
    own: Mapping[str, str]
    named: bool = False  # whether the contract has a `name`, which must then be the name that the part is declared under

    def listed(self) -> tuple[ListedPart, ...]:
        """Every declared part, sorted by name; a name that several packages declare is listed several times."""
        ours = (ListedPart(name, OURS, place) for name, place in self.own.items())
        return tuple(sorted((*ours, *(part for group, part in _declared()[0] if group == self.group))))

    def unusable(self) -> tuple[tuple[ListedPart, str], ...]:
        """The parts of other packages that cannot be used, each with the reason. All of them are imported to find out."""
        found = []
        for part in (part for part in self.listed() if part.package != OURS):
            try:
                self.load(part.name)
            except SecuretmError as refused:
                found.append((part, str(refused)))
        return tuple(found)

    def names(self) -> tuple[str, ...]:
        """Every name that can be asked for, sorted."""
        return tuple(dict.fromkeys(part.name for part in self.listed()))

    def __contains__(self, name: str) -> bool:
        return name in self.names()

    def find(self, name: str) -> ListedPart:
        """Where the part of that name is; refused if there is none, or if several packages declare it."""
        found = [part for part in self.listed() if part.name == name]
        if not found:
            raise NotFound(self.kind, name, self.names(), unread=tuple(package for package, _ in unreadable_packages()))
        if len(found) > 1:
            raise Mistake(
                "the {kind} {name!r} is declared by several installed packages",
                hint="they are {packages}: uninstall all but one, or all but securetm itself",
                kind=self.kind,
                name=name,
                packages=tuple(sorted(part.package for part in found)),
            )
        return found[0]

    def load(self, name: str) -> Any:
        """The part of that name, imported and checked."""
        part = self.find(name)
        found = self._imported(part)
        if problem := self._problem(found, name):
            raise self._broken(part, problem)
        return found

    def name_of(self, part: object) -> str:
        """The name under which the class of this part is declared."""
        module, listed = type(part).__module__, self.listed()
        place, package = f"{module}:{type(part).__qualname__}", module.partition(".")[0]
        likely = [one for one in listed if one.package != OURS and one.module.partition(".")[0] == package]
        by_place = (one.name for one in listed if one.place == place)
        return next(by_place, next((one.name for one in likely if self.load(one.name) is type(part)), type(part).__name__))

    def _imported(self, part: ListedPart) -> Any:
        module, _, path = part.place.partition(":")
        try:
            found = import_module(module)
            for attribute in path.split("."):
                found = getattr(found, attribute)
        except SecuretmError:
            raise
        except ModuleNotFoundError as problem:
            raise missing_extra(problem) or self._broken(part, _not_imported(problem)) from problem
        except (Exception, SystemExit) as problem:  # whatever a stranger's module raises when it is imported
            raise self._broken(part, _not_imported(problem)) from problem
        return found

    def _broken(self, part: ListedPart, problem: str) -> Failed:
        return Failed(
            "the {kind} {name!r} of the installed package {package} cannot be used: {place} {problem}",
            hint="update or uninstall the package {package}, or choose another {kind}",
            kind=self.kind,
            name=part.name,
            package=part.package,
            place=part.place,
            problem=problem,
        )

    def _problem(self, found: Any, name: str) -> str:
        """What is wrong with the part, or nothing."""
        module, _, attribute = self.contract.partition(":")
        contract = getattr(import_module(module), attribute)
        if isinstance(found, type):
            fits = contract in found.__mro__ and is_dataclass(found)
            problem = f"is no dataclass that derives from {self.contract}"
        else:
            fits = contract in type(found).__mro__ or (contract is Callable and callable(found))
            problem = f"is no {self.contract}"
        if fits and self.named and found.name != name:
            return f"calls itself {found.name!r}"
        return "" if fits else problem


def _not_imported(problem: BaseException) -> str:
    return f"cannot be imported ({type(problem).__name__}: {problem})"


def unreadable_packages() -> tuple[tuple[str, str], ...]:
    """The installed packages that seem to declare parts and whose list of entry points cannot be read, and why."""
    return _declared()[1]


@cache
def _declared() -> tuple[tuple[tuple[str, ListedPart], ...], tuple[tuple[str, str], ...]]:
    """The group and the part of every entry point of ours, and the packages that cannot be read. Read once in a process.

    Of two installed versions of one package, the first on the path counts, as for imports.
    """
    from importlib.metadata import distributions  # slow to import, and most commands need no part of another package

    found, unreadable, seen = set[tuple[str, ListedPart]](), dict[str, str](), set[str]()
    for package in distributions():
        if f"[{OURS}." not in (package.read_text("entry_points.txt") or "") or package.name in seen:
            continue
        seen.add(package.name)
        try:
            points = tuple(package.entry_points)
        except Exception as problem:  # noqa: BLE001 - whatever the parser makes of a stranger's file
            unreadable[package.name] = f"its list of entry points cannot be read ({type(problem).__name__}: {problem})"
            continue
        ours = (one for one in points if one.group.startswith(f"{OURS}."))
        found |= {(one.group, ListedPart(one.name, package.name, one.value.partition("[")[0].strip())) for one in ours}
    return tuple(sorted(found)), tuple(sorted(unreadable.items()))
