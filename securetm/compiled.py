"""Loops that numba compiles. numba is imported when the first of them runs: a party that waits has no 60 MB to spare for it.

A compiled function can call only compiled ones, so before one is compiled, the names that it uses are bound to the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import update_wrapper
from types import CodeType
from typing import Any, TypeVar, cast

_ONE_AT_A_TIME = threading.RLock()
F = TypeVar("F", bound=Callable[..., Any])


class Kernel:
    """A function, and what numba makes of it when it is first called or used by another one."""

    def __init__(self, function: Callable[..., Any], make: Callable[[Callable[..., Any]], Any]) -> None:
        self.py_func, self._make, self._made = function, make, None
        update_wrapper(self, function)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Compiles it first where nobody has."""
        return self.compiled()(*given, **named)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    def compiled(self) -> Any:
        """What numba made, which stands in the module from now on."""
        if self._made is None:
            with _ONE_AT_A_TIME:
                names = self.py_func.__globals__
                for name in set(_names(self.py_func.__code__)):
                    used = names.get(name)
                    if isinstance(used, Kernel) and used is not self:
                        names[name] = used.compiled()
                self._made = self._make(self.py_func)
                if names.get(self.py_func.__name__) is self:
                    names[self.py_func.__name__] = self._made
        return self._made


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def njit(**options: Any) -> Callable[[F], F]:
    """numba's decorator of the same name, later."""

    def make(function: Callable[..., Any]) -> Any:
        import numba

        return numba.njit(**options)(function)

    return cast(Callable[[F], F], lambda function: Kernel(function, make))


def intrinsic(function: F) -> F:
    """numba's decorator of the same name, later."""

    def make(function: Callable[..., Any]) -> Any:
        from numba import extending

        return extending.intrinsic(function)

    return cast(F, Kernel(function, make))


def overload(chosen: Callable[..., Any], **options: Any) -> Callable[[F], F]:
    """numba's decorator, the other way round: compiled code that calls the function gets what `chosen` gives for its types."""

    def make(function: Callable[..., Any]) -> Any:
        from numba import extending

        extending.overload(function, **options)(chosen)
        return function

    return cast(Callable[[F], F], lambda function: Kernel(function, make))
