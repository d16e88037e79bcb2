"""Ctrl-C at a chosen step of what is done, for tests of what must survive it. It is the real signal, and holds no tests."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any


def pressed_at(step: int, act: Callable[[], Any], where: ModuleType) -> bool:
    """Does it, pressing Ctrl-C at that step of the module's; whether it came so far."""
    press, before = PressedAt(step, where), sys.gettrace()
    with contextlib.suppress(KeyboardInterrupt):
        sys.settrace(press)
        try:
            act()
        finally:
            sys.settrace(before)
    return press.pressed


class PressedAt:
    """Presses Ctrl-C before one of the steps that Python takes in one module, and in the blocks that it opens."""

    def __init__(self, step: int, where: ModuleType) -> None:
        self.left, self.pressed, self.files = step, False, (where.__file__, contextlib.__file__)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        if frame.f_code.co_filename not in self.files:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and not self.pressed:
            self.left -= 1
            if self.left < 0:
                self.pressed = True
                signal.raise_signal(signal.SIGINT)
        return self
