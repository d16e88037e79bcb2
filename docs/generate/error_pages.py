"""A page for each error: its sentence, when it is raised, what to do, its exit code, and whether it goes over the wire.

All of it is read from the classes, from the code that raises them, and from protocols/refusals.md.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from docs.generate.folder_pages import ROOT
from docs.generate.markdown import code, listed, page, table
from securetm.errors import Misuse, Refused, SecuretmError, Unsound, error_classes

_EXITS = {1: "1, a finding", 2: "2, misuse", 3: "3, failure"}
_FIELD = re.compile(r"\{(\w+)[^{}]*\}")
_PLURAL = re.compile(r"\{(\w+):([^{}|]*)\|([^{}]*)\}")
_ROW = re.compile(r"^\| `(\w+)` \| (.*) \| ([\w, ]+) \|$", re.MULTILINE)
_MOST_PLACES = 8
_BASES = (Misuse, Unsound, Refused, SecuretmError)


@dataclass(frozen=True)
class Raised:
    """A place that raises an error: its module, and what the function there is for."""

    module: str
    purpose: str


def error_pages() -> dict[str, str]:
    """The index, and a page for each class."""
    classes = [SecuretmError, *error_classes().values()]
    pages = {f"reference/errors/{kind.__name__}.md": _page(kind) for kind in classes}
    return {"reference/errors.md": _index(classes)} | pages


def sentence(kind: type[SecuretmError]) -> str:
    """What is said, with `<field>` where a fact stands."""
    return _spelt(inspect.cleandoc(kind.__doc__ or ""))


def _spelt(text: str) -> str:
    text = _PLURAL.sub(lambda found: f"<{found[1]}> {found[3]}", text.replace("{{", "\0").replace("}}", "\1"))
    return _FIELD.sub(lambda found: f"<{found[1]}>", text).replace("\0", "{").replace("\1", "}")


def _index(classes: list[type[SecuretmError]]) -> str:
    groups: dict[str, list[type[SecuretmError]]] = defaultdict(list)
    for kind in classes:
        groups[_group(kind)].append(kind)
    parts = (page(f"## {title}", table(("error", "what it says"), map(_row, groups[title]))) for title in sorted(groups))
    return page(
        "# Errors",
        "Every failure has a name, a sentence and a hint. "
        "The command line prints `securetm: error:` with the sentence and `securetm: hint:` with what to do. "
        "In Python each is an exception, a kind of `securetm.errors.SecuretmError`. "
        "No error holds a word of a document.",
        table(
            ("exit code", "meaning"),
            (
                (0, "fine"),
                (1, "a gap in a profile, a broken claim, or a budget spent on a useless model"),
                (2, "misuse"),
                (3, "failure"),
            ),
        ),
        "A party answers the coordinator with an answer or with the *name* of a refusal, never with its reason. "
        "[What a party's replies depend on](../protocols/refusals.md) lists these names.",
        *parts,
    )


def _row(kind: type[SecuretmError]) -> tuple[str, str]:
    return _link(kind, "errors/"), _safe(sentence(kind))


def _group(kind: type[SecuretmError]) -> str:
    if kind in _BASES:
        return "Kinds of errors"
    if issubclass(kind, Refused):
        return "Refusals, which one role sends to another"
    if issubclass(kind, Unsound):
        return "Unsound combinations, refused before any document is read"
    return "Misuse, which you can correct" if issubclass(kind, Misuse) else "Failures"


def _link(kind: type[SecuretmError], folder: str = "") -> str:
    return f"[`{kind.__name__}`]({folder}{kind.__name__}.md)"


def _safe(text: str) -> str:
    return text.replace("<", "&lt;")


def _page(kind: type[SecuretmError]) -> str:
    name = kind.__name__
    return page(
        f"# {name}",
        f'<p class="sentence"><code>securetm: error:</code> {_safe(sentence(kind))}</p>',
        "## When it is raised {#when}",
        _when(kind),
        "## What to do {#what-to-do}",
        _advice(kind),
        "## How it ends {#exit}",
        f"The command ends with exit code {_EXITS[kind.exit_code]}. It is {_kinds(kind)}.",
        "## On the wire {#wire}",
        _wire(kind),
        "## Its facts {#facts}" if _facts(kind) else "",
        _facts(kind),
    )


def _when(kind: type[SecuretmError]) -> str:
    told = f"A party refuses with it: {_refusals()[kind.__name__][0]}." if kind.__name__ in _refusals() else ""
    places = list(dict.fromkeys(_places().get(kind.__name__, ())))
    never = "It is never raised by itself. Catch it to catch every error of its kind."
    return page(told, _told_places(places)).strip() or never


def _told_places(places: list[Raised]) -> str:
    if len(places) > _MOST_PLACES:
        packages = dict.fromkeys(".".join(one.module.split(".")[:2]) for one in places)
        return f"{len(places)} functions raise it, in {', '.join(map(code, packages))}."
    shown = listed(f"{one.purpose} ({code(one.module)})" for one in places)
    return f"Raised where the code does this:\n\n{shown}" if places else ""


def _advice(kind: type[SecuretmError]) -> str:
    hint = _safe(_spelt(kind.hint))
    if kind.advice is SecuretmError.advice:
        return f"{hint[:1].upper()}{hint[1:]}." if hint else "The sentence says what is wrong; there is no further hint."
    return (f"{hint[:1].upper()}{hint[1:]}. " if hint else "") + "Where it can, the hint also names what you may have meant."


def _kinds(kind: type[SecuretmError]) -> str:
    above = [base for base in kind.__mro__[1:] if issubclass(base, SecuretmError)]
    return "a " + ", which is a ".join(_link(base) for base in above) if above else "the root of all errors"


def _wire(kind: type[SecuretmError]) -> str:
    name = kind.__name__
    if kind is Refused:
        return "Every error of this kind may travel, by its name."
    if not issubclass(kind, Refused):
        return "It does not travel. Only whoever runs the command, or calls the function, is told."
    if name in _refusals():
        return (
            f"A party sends the name `{name}` to the coordinator, and nothing else. "
            f"It depends on: {_refusals()[name][1]}. It never depends on documents "
            "([what a party's replies depend on](../../protocols/refusals.md#refusals))."
        )
    return "It is a refusal of the coordinator, which has no documents. Its name is recorded, and no document decides it."


def _facts(kind: type[SecuretmError]) -> str:
    known: Mapping[str, object] = getattr(kind, "__annotations__", {})
    return ", ".join(code(name) for name in known if name not in ("hint", "exit_code"))


@cache
def _refusals() -> dict[str, tuple[str, str]]:
    text = (ROOT / "protocols" / "refusals.md").read_text("utf-8")
    return {name: (when, depends) for name, when, depends in _ROW.findall(text)}


@cache
def _places() -> dict[str, list[Raised]]:
    found: dict[str, list[Raised]] = defaultdict(list)
    for path in sorted((ROOT / "securetm").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        tree = ast.parse(path.read_text("utf-8"))
        for name, purpose in _raises(tree, _first_line(tree)):
            found[name].append(Raised(module, purpose))
    return found


def _raises(node: ast.AST, purpose: str) -> Iterator[tuple[str, str]]:
    """Each call of an error's class below this node, with the first line of the nearest docstring above it."""
    for below in ast.iter_child_nodes(node):
        if isinstance(below, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield from _raises(below, _first_line(below) or purpose)
            continue
        if isinstance(below, ast.Call) and isinstance(below.func, ast.Name | ast.Attribute):
            yield (below.func.id if isinstance(below.func, ast.Name) else below.func.attr), purpose
        yield from _raises(below, purpose)


def _first_line(node: ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) -> str:
    return _safe((ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")).removesuffix(".")
