"""The page of the public Python names: what `securetm` gives, what strangers' parts implement, and the laws that try them."""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Iterator
from typing import Any

import securetm
from docs.generate.markdown import page

_MODULES = {
    "securetm": "What `import securetm` gives. Each name is loaded when it is first used.",
    "securetm.contracts": "What a model, a mechanism, an aggregation or an attack implements, and the words they share.",
    "securetm.testing": "The laws that every part has to pass, for tests of your own.",
}


_WIDEST = 88  # letters of a signature on one line


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
    if not _own(member):
        yield f"An alias of `{member!r}`." if len(repr(member)) < _WIDEST else f"A {type(member).__name__}."
    elif getattr(member, "_is_protocol", False):  # its comments say what each part of it is for
        yield f"```python\n{inspect.getsource(member).strip()}\n```"
    elif inspect.isclass(member):
        yield f"```python\nclass {name}{_signature(member)}\n```"
        yield _doc(member)
        yield from _methods(member)
    else:
        yield f"```python\n{name}{_signature(member)}\n```"
        yield _doc(member)


def _methods(kind: type[Any]) -> Iterator[str]:
    for name, member in inspect.getmembers(kind):
        raw = inspect.getattr_static(kind, name)
        function = raw.fget if isinstance(raw, property) else member
        if name.startswith("_") or not inspect.isroutine(function) or not _own(function) or not inspect.getdoc(function):
            continue
        shown = name if isinstance(raw, property) else f"{name}{_signature(function, math.inf)}"
        yield f"`{shown}`\n:   {_indented(_doc(function))}"


def _own(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith(securetm.__name__)


def _signature(member: Any, widest: float = _WIDEST) -> str:
    """The parameters as they are written, each on a line of its own where they are many."""
    try:
        signature = inspect.signature(member)
    except (TypeError, ValueError):
        return ""
    parts, returned = list(_parameters(signature)), signature.return_annotation
    shown = f"({', '.join(parts)})"
    shown = shown if len(shown) <= widest else "(\n    " + ",\n    ".join(parts) + ",\n)"
    nothing = inspect.isclass(member) or returned in (None, "None", inspect.Signature.empty)
    return shown if nothing else f"{shown} -> {_annotation(returned)}"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    by_name = False
    for name, one in signature.parameters.items():
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not by_name:
            yield "*"
        by_name |= one.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL)
        if name == "self":
            continue
        typed = "" if one.annotation is inspect.Parameter.empty else f": {_annotation(one.annotation)}"
        default = "" if one.default is inspect.Parameter.empty else f" = {_default(one.default)}"
        yield f"{stars.get(one.kind, '')}{name}{typed}{default}"


def _annotation(given: Any) -> str:
    return given if isinstance(given, str) else inspect.formatannotation(given)


def _default(given: Any) -> str:
    shown = repr(given)
    return "…" if " object at " in shown or "<factory>" in shown or "\n" in shown else shown


def _doc(member: Any) -> str:
    said = inspect.getdoc(member) or ""
    made = said.startswith(f"{getattr(member, '__name__', '')}(")  # by a dataclass without a docstring
    return "" if made else said.replace("<", "&lt;")


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")
