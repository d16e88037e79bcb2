"""Makes a fault in functions that are loaded already: everybody who holds such a function has the fault then."""

from __future__ import annotations

import importlib
from types import CodeType, FunctionType
from typing import Any

from .faults import Fault


def make(fault: Fault) -> None:
    """Replaces the code of the function where the fault is."""
    path, text = fault.made()
    module = importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
    held: Any = module
    for name in fault.place.split("."):
        held = vars(held)[name]
    function = _plain(held)
    function.__code__ = _code(compile(text, str(path), "exec"), fault.place)
    if function is not held and hasattr(held, "py_func"):
        _compile_anew(module)


def _plain(held: Any) -> FunctionType:
    """The function under its decorators."""
    while not isinstance(held, FunctionType) or hasattr(held, "__wrapped__"):
        names = ("py_func", "fget", "func", "__func__", "__wrapped__")
        held = next(getattr(held, name) for name in names if getattr(held, name, None) is not None)
    return held


def _code(whole: CodeType, name: str) -> CodeType:
    """The code of that name, inside of a module's or a class's."""
    inner = [one for one in whole.co_consts if isinstance(one, CodeType)]
    outer = [one for one in inner if name.startswith(f"{one.co_qualname}.")]
    found = [one for one in inner if one.co_qualname == name] or [_code(one, name) for one in outer]
    return found[0]


def _compile_anew(module: Any) -> None:
    """What is compiled for this module is not taken from the disk, where it has no fault."""
    from numba.core.caching import NullCache
    from numba.core.dispatcher import Dispatcher

    from securetm.compiled import Kernel

    for kernel in list(vars(module).values()):
        held = kernel.compiled() if isinstance(kernel, Kernel) else kernel
        if isinstance(held, Dispatcher) and held.__module__ == module.__name__:
            held._cache = NullCache()
