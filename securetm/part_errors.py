"""Parts and libraries of installed packages that cannot be used, or are not installed. It finds none."""

from __future__ import annotations

from securetm.errors import Misuse, SecuretmError


class ClaimedTwice(Misuse):
    """the {kind} {name!r} is declared by several installed packages"""

    kind: str
    name: str
    packages: tuple[str, ...]
    hint = "they are {packages}: uninstall all but one, or all but securetm itself"


class BrokenPart(SecuretmError):
    """the {kind} {name!r} of the installed package {package} cannot be used: {place} {problem}"""

    kind: str
    name: str
    package: str
    place: str
    problem: str
    hint = "update or uninstall the package {package}, or choose another {kind}"


class PytestMissing(Misuse):
    """securetm.testing needs pytest, which is not installed"""

    hint = "pip install pytest"


class LibraryMissing(Misuse):
    """data frames of {library} are asked for, and {library} is not installed"""

    library: str
    hint = "pip install {library}"
