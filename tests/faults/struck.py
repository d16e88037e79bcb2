"""Ends a role in this process after so many of its calls, wherever it is then, as SIGKILL would. It tests nothing itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import securetm

COORDINATOR, CARRIER = "the coordinator", "the carrier"
_PACKAGE = securetm.__path__[0]


class Killed(BaseException):
    """The end of a process, without a word. No `except Exception` catches it."""


@dataclass
class Trap:
    """Counts the calls of one role: of functions of the package, and of what they call in C (also every statement of SQL)."""

    running: str = CARRIER  # the role whose code runs now
    victim: str = ""
    left: int = 0
    where: str = ""  # the line at which it struck last

    def arm(self, victim: str, calls: int) -> None:
        """Ends that role after so many of its calls."""
        self.victim, self.left, self.where = victim, calls, ""
        sys.setprofile(self._count)

    def disarm(self) -> bool:
        """Ends the counting; true if it had struck."""
        sys.setprofile(None)
        struck, self.victim, self.where = bool(self.where), "", ""
        return struck

    @contextmanager
    def role(self, name: str) -> Iterator[None]:
        """What runs in this block is that role's code."""
        before, self.running = self.running, name
        try:
            yield
        finally:
            self.running = before

    def _count(self, frame: FrameType, event: str, about: Any) -> None:
        del about
        if self.running != self.victim or not event.endswith("call") or not frame.f_code.co_filename.startswith(_PACKAGE):
            return
        self.left -= 1
        if self.left <= 0:
            self.where = f"{frame.f_code.co_filename.removeprefix(_PACKAGE)}:{frame.f_lineno}"
            raise Killed(self.where)
