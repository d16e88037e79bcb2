"""A whole plan as a file: every setting on a line of its own, with why it was chosen where the request left it open."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from securetm.plans.checks import idle_in
from securetm.plans.recommend import Recommendation
from securetm.plans.schema import Plan

_COMMENTS = 32  # the column in which they begin
_FIRST = ("model", "vocabulary", "tokeniser", "embeddings", "training", "privacy", "federation", "origins")


def plan_text(found: Recommendation, said: Mapping[str, str], head: Sequence[str] = ()) -> str:
    """The plan in TOML. `said` has further comments, by the names of settings and sections.

    What is 0 or nothing says nothing, and is left out; so are the documents of a simulation and how a coordinator is operated,
    where a plan says neither.
    """
    plan, comments = found.plan, {**found.why, **said}
    lines = [*(f"# {line}" for line in head), ""] if head else []
    lines += [_line("seed", plan.seed, comments.get("seed", "")), _line("profile", plan.profile, comments.get("profile", ""))]
    beside = [name for name in ("corpus", "coordinator") if getattr(plan, name) != getattr(Plan(), name)]
    for section in (*_FIRST, *beside):
        told = [_line(name, value, comments.get(f"{section}.{name}", "")) for name, value in _settings(plan, section)]
        if told:
            lines += ["", f"[{section}]" + (f"  # {comments[section]}" if section in comments else ""), *told]
    return "\n".join(lines) + "\n"


def _settings(plan: Plan, section: str) -> Iterator[tuple[str, Any]]:
    """The settings of a section that say something."""
    if section == "embeddings" and "embedding_size" not in plan.model.settings:
        return
    if section == "model":
        yield "name", plan.model.name
        yield from ((name, value) for name, value in plan.model.settings.items() if value is not None)
        return
    chosen = getattr(plan, section)
    idle = idle_in(vars(chosen)) if section == "corpus" else {}
    for one in fields(chosen):
        value = getattr(chosen, one.name)
        if one.name not in idle and (isinstance(value, bool) or value or value != one.default):
            yield one.name, value


def _line(name: str, value: Any, comment: str) -> str:
    setting = f"{name} = {_shown(value)}"
    return f"{setting:<{_COMMENTS - 2}}  # {comment}" if comment else setting


def _shown(value: Any) -> str:
    """A value as TOML writes it; texts of JSON are TOML's too."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {_shown(one)}" for name, one in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)
