"""The page of the public Python names: what `securetm` gives, what strangers' parts implement, and the laws that try them."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import securetm
from docs.generate.markdown import page

_MODULES = {
    "securetm": "What `import securetm` gives. Each name is loaded when it is first used.",
    "securetm.contracts": "What a model, a mechanism, an aggregation or an attack implements, and the words they share.",
    "securetm.testing": "The laws that every part has to pass, for tests of your own.",
}


def python_page() -> str:
    """Every public name with its signature and its docstring."""
    parts = [part for name, purpose in _MODULES.items() for part in _module(name, purpose)]
    return page("# Python reference", "This page is made from signatures and docstrings.", *parts)


def _module(name: str, purpose: str) -> Iterator[str]:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        return
    yield f"## {name} {{#{name.replace('.', '-')}}}"
    yield purpose
    for member in public_names(module):
        yield from _member(name, member, getattr(module, member))


def public_names(module: Any) -> list[str]:
    """What a module offers: its `__all__`, or what is defined in it."""
    offered = getattr(module, "__all__", None)
    if offered is None:
        own = (n for n, kind in vars(module).items() if getattr(kind, "__module__", "") == module.__name__)
        offered = [name for name in own if not name.startswith("_")]
    return sorted(name for name in offered if not name.startswith("__"))


def _member(module: str, name: str, member: Any) -> Iterator[str]:
    yield f"### {name} {{#{module.replace('.', '-')}-{name}}}"
    if inspect.isclass(member):
        yield f"```python\nclass {name}{_signature(member)}\n```"
        yield _doc(member)
        yield from _methods(member)
    elif callable(member):
        yield f"```python\n{name}{_signature(member)}\n```"
        yield _doc(member)
    else:
        yield f"`{member!r}`" if len(repr(member)) < 80 else f"A {type(member).__name__}."


def _methods(kind: type[Any]) -> Iterator[str]:
    for name, member in inspect.getmembers(kind):
        raw = inspect.getattr_static(kind, name)
        function = raw.fget if isinstance(raw, property) else member
        if name.startswith("_") or not inspect.isroutine(function) or not _own(function) or not inspect.getdoc(function):
            continue
        shown = f"{name}" if isinstance(raw, property) else f"{name}{_signature(function)}"
        yield f"`{shown}`\n:   {_indented(_doc(function))}"


def _own(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith(securetm.__name__)


def _signature(member: Any) -> str:
    try:
        shown = str(inspect.signature(member))
    except (TypeError, ValueError):
        return ""
    shown = re.sub(r"'([^']*)'", r"\1", shown) if "'" in shown and dataclasses.is_dataclass(member) else shown.replace("'", "")
    return re.sub(r"^\(self(, )?", "(", shown.replace(" -> None", "") if inspect.isclass(member) else shown)


def _doc(member: Any) -> str:
    return (inspect.getdoc(member) or "").replace("<", "&lt;")


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")
