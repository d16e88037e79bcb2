"""A page for each profile: who sees what, its parts, and what attacks found. The commands say all of it."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from docs.generate.folder_pages import ROOT, profiles
from docs.generate.markdown import code, listed, page, table

_VERDICTS = ("attack", "verdict", "found", "settings")


def said(*arguments: str) -> Any:
    """The JSON document that a command prints."""
    from securetm.cli.application import application

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        application()([*arguments, "--json"], standalone_mode=False)
    return json.loads(out.getvalue())


def profile_pages() -> dict[str, str]:
    """The index, and a page for each profile."""
    found = profiles()
    return {"profiles/index.md": _index(found)} | {f"profiles/{name}.md": _page(name, table) for name, table in found.items()}


def _index(found: Mapping[str, Mapping[str, Any]]) -> str:
    rows = (
        (
            f"[`{name}`]({name}.md)",
            one["title"],
            one["minimum_parties"],
            one["minimum_documents"],
            _budget(one.get("budget")),
            f"[{one['threat_model']}](../threat-models/{one['threat_model']}.md)",
        )
        for name, one in found.items()
    )
    return page(
        "# Profiles",
        "A profile is a named choice of mechanisms, an aggregation, a threat model and a budget. "
        "[Which profile do I need?](../which-profile.md) asks the questions in order. "
        "`securetm explain NAME` prints what these pages say, and `securetm check NAME` names every gap.",
        table(("profile", "what it is", "parties", "documents", "budget", "threat model"), rows),
        "*Parties* and *documents* are minimums. A run below them does not start.",
    )


def _budget(budget: Mapping[str, Any] | None) -> str:
    if not budget:
        return "none"
    return f"epsilon {budget['epsilon']:g} per {budget.get('unit', 'document or person')}, delta {budget['delta']:g}"


def _page(name: str, text: Mapping[str, Any]) -> str:
    told = said("explain", name)
    return page(
        f"# {name}",
        f"{told['title']}.",
        f'!!! danger "Danger"\n    {told["danger"]}' if told["danger"] else "",
        "## Who sees what",
        table(
            ("who", "sees", "what protects it"),
            ((view["role"], _joined(view["sees"]), _joined(view["protected_by"]) or "nothing") for view in told["views"]),
        ),
        f"**Spent**: {told['spent']}.",
        f"**Least**: {told['minimum_parties']} parties, {told['minimum_documents']} documents ({told['minimum_counts']}).",
        *((f"**Model to take**: {told['recommended']}.",) if told["recommended"] else ()),
        f"**Threat model**: [{told['threat_model']['name']}](../threat-models/{told['threat_model']['name']}.md): "
        f"{told['threat_model']['title']}.",
        "## What it still shows",
        listed(f"{line}." for line in told["still_shows"]),
        "## What is knowingly accepted",
        listed(f"“{one['claim']}” may fail: {one['reason']}." for one in told["accepted"]) or "Nothing is accepted.",
        "## What is out of scope",
        listed(f"{line}." for line in told["out_of_scope"]) or "Nothing is listed.",
        "## Its parts",
        f"Aggregation: `{text['aggregation']}`. Words: {', '.join(map(code, text['vocabularies']))}. The file:",
        f"```toml\n{(ROOT / 'protocols' / 'profiles' / f'{name}.toml').read_text('utf-8').strip()}\n```",
        "## What attacks found",
        "These results are kept in `audits/evidence/`. *Held* does not mean safe: "
        "[how to read a verdict](../audits/index.md#how-to-read-a-verdict).",
        *_evidence(name),
    )


def _joined(lines: list[str]) -> str:
    return "<br>".join(f"• {line}" for line in lines)


def _evidence(name: str) -> Iterator[str]:
    for model in said("threats", name)["threat_models"]:
        yield f"### {model['name']}" + (" (its own threat model)" if model["own"] else "")
        yield f"{model['title']}."
        for adversary in model["adversaries"]:
            yield from _required(adversary)
        for claim in model["accepts"]:
            failing = f"Accepted: “{claim['claim']}” may fail, since {claim['reason']}."
            yield f"Not required, and promised all the same: “{claim['claim']}”." if claim["promised"] else failing
            yield _results(claim)


def _required(adversary: Mapping[str, Any]) -> Iterator[str]:
    helped = f", helped by {adversary['colludes_with_parties']} parties" if adversary["colludes_with_parties"] else ""
    who = f"**{adversary['adversary'].capitalize()}** ({adversary['behaviour']}{helped})"
    if not adversary["required"]:
        yield f"{who}: nothing is required against it."
    for claim in adversary["required"]:
        yield f"{who}: required is “{claim['claim']}”{_gap(claim)}."
        yield _results(claim)


def _results(claim: Mapping[str, Any]) -> str:
    return table(_VERDICTS, (_result(one) for one in claim["tried_by"])) or "No kept result tries it."


def _gap(claim: Mapping[str, Any]) -> str:
    if claim["gap"]:
        return f". **Gap**: {claim['gap']}"
    return ", claimed by " + ", ".join(one["by"] for one in claim["claimed_by"])


def _result(one: Mapping[str, Any]) -> tuple[str, ...]:
    settings = ", ".join(f"{name.removeprefix('model.')} = {value}" for name, value in one["settings"].items())
    verdict = (
        one["standing"] + (", stale" if one["stale"] else "") + f"<br>{one['date']}".replace("-", "\N{NON-BREAKING HYPHEN}")
    )
    tried = f"{code(one['attack'])} on {code(one['model'])}: {one['title']}"
    return tried, verdict, f"{one.get('shown', '')}<br>{one['measure']}", settings
