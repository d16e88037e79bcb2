"""The pages of settings, of a plan and of a party: each with its type, its default and the comment beside it in the code."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from docs.generate.markdown import code, page, table
from securetm.engines import ENGINES, IN_PROCESS
from securetm.models import MODELS
from securetm.plans import schema
from securetm.plans.party_file import QUESTIONS, DataChoice, LedgerChoice, PartyFile, PolicyChoice
from securetm.settings import Limit

_HEADS = ("setting", "type", "default", "meaning")


def settings_page() -> str:
    """The tables of a plan, then the settings of each model."""
    return page(
        "# Settings of a plan",
        "`securetm run plan.toml` reads these tables. `--set section.name=value` overrides one setting. "
        "A wrong value ends in [`BadSetting`](errors/BadSetting.md), "
        "an unknown name in [`NotFound`](errors/NotFound.md).",
        *_section("Top level", schema.Plan, ("seed", "profile")),
        *(part for field in dataclasses.fields(schema.Plan) for part in _table_of(field)),
        "## [model], by model",
        "`name` chooses the model. The other settings of `[model]` are those of the model. "
        "Where a federation trains with another default than one machine, the table shows the model's own default.",
        *(part for name in MODELS.own for part in _model(name)),
    )


def party_page() -> str:
    """The tables of a PARTY.toml."""
    sections = {"data": DataChoice, "policy": PolicyChoice, "privacy": LedgerChoice}
    return page(
        "# Settings of a party",
        "`securetm join PARTY.toml` reads these tables; [Join a federation](../how-to/join-a-federation.md) says what for. "
        "A wrong value ends in [`BadSetting`](errors/BadSetting.md), an unknown name in [`NotFound`](errors/NotFound.md).",
        *_section("Top level", PartyFile, ("name", "roster", "plan", "home")),
        inspect.getdoc(PartyFile) or "",
        *(part for name, kind in sections.items() for part in _section(f"[{name}]", kind)),
        "Questions that `questions` can name: " + ", ".join(map(code, QUESTIONS)) + ".",
        "## [engine]",
        f"What computes this party's answers. `kind` names it: {', '.join(map(code, ENGINES.own))}. Without the table it is "
        f"{code(IN_PROCESS)}. The other settings are those of the engine. No message tells others which one "
        "you chose; how long an answer takes may.",
        *(part for name in ENGINES.own for part in _engine(name)),
    )


def _table_of(field: dataclasses.Field[Any]) -> Iterator[str]:
    kind = type(field.default)
    if dataclasses.is_dataclass(kind) and field.name != "model":
        yield from _section(f"[{field.name}]", kind)


def _section(title: str, kind: type[Any], only: tuple[str, ...] = ()) -> Iterator[str]:
    yield f"## {title}"
    yield "" if only else inspect.getdoc(kind) or ""
    yield table(_HEADS, _rows(kind, only))


def _model(name: str) -> Iterator[str]:
    kind = MODELS.load(name)
    yield f"### {name}"
    yield (inspect.getdoc(kind) or "").split("\n\n")[0]
    yield table(_HEADS, _rows(kind)) or "It has no settings."


def _engine(name: str) -> Iterator[str]:
    kind = ENGINES.load(name)
    yield f"### {name}"
    yield (inspect.getdoc(kind) or "").split("\n\n")[0]
    yield table(_HEADS, _rows(kind)) or "It has no settings."


def _rows(kind: Any, only: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    said = _comments(kind)
    for field in dataclasses.fields(kind):
        if field.init and not field.name.startswith("_") and (not only or field.name in only):
            yield code(field.name), _type(kind, field), _default(field), said.get(field.name, "")


def _type(kind: Any, field: dataclasses.Field[Any]) -> str:
    """The type, and within which limits."""
    hint = get_type_hints(kind, include_extras=True).get(field.name)
    bare = re.sub(r"Annotated\[((?:[^,\[\]]|\[[^\]]*\])+), .*?\](?=$|, \.\.\.|\])", r"\1", str(field.type))
    if get_origin(hint) is Annotated and "[" not in bare:  # a limit with a name of its own
        bare = getattr(get_args(hint)[0], "__name__", str(get_args(hint)[0]))
    limits = [one for one in get_args(hint)[1:] if isinstance(one, Limit)] if get_origin(hint) is Annotated else []
    said = [", ".join(one.known) if one.known else one.said.removeprefix("must be ") for one in limits]
    return ": ".join([bare, *said])


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is dataclasses.MISSING:
        return ""
    return code(repr(field.default)) if field.default != "" else "(nothing)"


def _comments(kind: Any) -> dict[str, str]:
    """The comment beside each field, in this class and those above it."""
    found: dict[str, str] = {}
    for base in kind.__mro__:
        if base.__module__.startswith("securetm"):
            found = {**_comments_in(inspect.getsource(base)), **found}
    return found


def _comments_in(source: str) -> dict[str, str]:
    lines, (tree,) = source.splitlines(), ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    fields = [node for node in tree.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    named = {cast("ast.Name", node.target).id: lines[(node.end_lineno or node.lineno) - 1] for node in fields}
    return {name: line.partition("  # ")[2] for name, line in named.items() if "  # " in line}
