"""A carrier that drops, doubles, swaps, cuts, damages, holds back and mixes letters, and puts foreign files among them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from securetm.federation.courier.places import LocalFolder


class Killed(BaseException):
    """A process ends here."""


@dataclass
class Carrier:
    """What happens to a folder of letters between two passes, as a seed chooses."""

    letters: Path
    elsewhere: Path  # letters that are on their way, and a copy of all that ever lay there
    rng: np.random.Generator
    often: float = 0.6
    befell: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("held", "all"):
            (self.elsewhere / name).mkdir(parents=True)

    def __call__(self) -> None:
        for file in self._files():
            shutil.copy(file, self.elsewhere / "all" / file.name)
        while self.rng.random() < self.often:
            done = self._kinds[int(self.rng.integers(len(self._kinds)))]
            self.befell.append(done.__name__)
            done()

    @property
    def _kinds(self) -> tuple[Callable[[], None], ...]:
        return (
            self.drop,
            self.double,
            self.rename,
            self.swap,
            self.cut,
            self.damage,
            self.hold,
            self.bring,
            self.merge,
            self.add,
        )

    def _files(self) -> list[Path]:
        return sorted(one for one in self.letters.iterdir() if one.is_file() and not one.is_symlink())

    def _one(self) -> Path | None:
        files = self._files()
        return files[int(self.rng.integers(len(files)))] if files else None

    def _name(self) -> str:
        return f"{self.rng.integers(1 << 62):x} copy (2).eml"

    def drop(self) -> None:
        if file := self._one():
            file.unlink()

    def double(self) -> None:
        if file := self._one():
            shutil.copy(file, self.letters / self._name())

    def rename(self) -> None:
        if file := self._one():
            file.rename(self.letters / self._name())

    def swap(self) -> None:
        one, other = self._one(), self._one()
        if one and other and one != other:
            held = one.read_bytes()
            one.write_bytes(other.read_bytes())
            other.write_bytes(held)

    def cut(self) -> None:
        if file := self._one():
            os.truncate(file, int(self.rng.integers(file.stat().st_size + 1)))

    def damage(self) -> None:
        if (file := self._one()) and (content := bytearray(file.read_bytes())):
            content[int(self.rng.integers(len(content)))] ^= 1 << int(self.rng.integers(8))
            file.write_bytes(content)

    def hold(self) -> None:
        if file := self._one():
            file.rename(self.elsewhere / "held" / file.name)

    def bring(self) -> None:
        for file in sorted((self.elsewhere / "held").iterdir()):
            file.rename(self.letters / file.name)

    def merge(self) -> None:
        """Another copy of the folder, with all that was ever in it."""
        for file in sorted((self.elsewhere / "all").iterdir())[-20:]:
            shutil.copy(file, self.letters / file.name)

    def add(self) -> None:
        """Files of others: a pipe, a link, a folder, an empty file, noise that begins like a letter."""
        name = self._name()
        path = self.letters / name
        kind = int(self.rng.integers(5))
        if kind == 0:
            os.mkfifo(path)
        elif kind == 1:
            path.symlink_to("/dev/zero")
        elif kind == 2:
            path.mkdir()
        elif kind == 3:
            path.write_bytes(b"")
        else:
            path.write_bytes(b"\x01" + self.rng.bytes(int(self.rng.integers(20_000))))


@dataclass(frozen=True)
class Struck(LocalFolder):
    """The same folder, whose member's process ends after so many uses of it."""

    left: list[int] = field(default_factory=list)

    def _counts(self) -> None:
        if self.left:
            self.left[0] -= 1
            if self.left[0] < 0:
                self.left.clear()
                raise Killed()

    def read(self, name: str, length: int, start: int = 0) -> bytes:
        self._counts()
        return super().read(name, length, start)

    def write(self, content: bytes) -> str:
        self._counts()
        name = super().write(content)
        self._counts()
        return name
