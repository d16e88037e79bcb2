"""Files and folders that cannot be read or written. Several layers raise them."""

from __future__ import annotations

from pathlib import Path

from securetm.errors.similar_names import did_you_mean
from securetm.errors.tree import Misuse


class BadCorpus(Misuse):
    """these documents cannot be used"""


class NoSuchPath(BadCorpus):
    """{path} does not exist"""

    path: str
    hint = "check the spelling; the path is relative to the folder you are in"

    def advice(self) -> str:
        """With the file beside it that was meant, where one is called like it."""
        path = Path(self.path)
        try:
            beside = {one.name: str(path.with_name(one.name)) for one in path.parent.iterdir()}
        except OSError:  # there is no such folder either
            beside = {}
        return did_you_mean(path.name, beside) + super().advice()


class Unreadable(BadCorpus):
    """{path} cannot be opened: {problem}"""

    path: str
    problem: str
    hint = "check the permissions and the disk"


class CannotWrite(Misuse):
    """{path} cannot be written: {problem}"""

    path: str
    problem: str
    hint = "make room on the disk, check the permissions, or choose another --out; `securetm run --resume` goes on with a run"


class OpenToOthers(Misuse):
    """{path} is for its owner alone, and others on this machine may {what} it (mode {mode})"""

    path: str
    what: str
    mode: str
    hint = "close it if nobody has looked into it or changed it (chmod -R go= {path}), or take another that is not there yet"


class OwnedByAnother(Misuse):
    """{path} belongs to another account (number {owner}), which can read and change what is in it"""

    path: str
    owner: int
    hint = 'run as that account; or, if it is to be yours: chown -R "$(id -u)" {path}'


class SystemRefused(Misuse):
    """{path} {what}: {why}"""

    path: str
    what: str
    why: str
    hint = "check the path, the permissions and the room on the disk; --debug shows where it happened"
