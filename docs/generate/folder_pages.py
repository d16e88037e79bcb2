"""Pages of protocols, threat models and audits, from the files in their folders. Nothing is copied by hand."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.generate.markdown import code, listed, page, table

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "docs" / "assets"  # in `narrow` there, what small screens show instead
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_NEITHER = "Nothing is listed."


def toml_files(folder: str) -> dict[str, dict[str, Any]]:
    """The tables of a folder's TOML files, by file name without its ending."""
    return {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted((ROOT / folder).glob("*.toml"))}


def profiles() -> dict[str, dict[str, Any]]:
    """Every shipped profile as it stands in its file."""
    return toml_files("protocols/profiles")


def protocol_pages() -> dict[str, str]:
    """The folder's pages, with its README as their index."""
    folder = ROOT / "protocols"
    return {f"protocols/{_name(path)}.md": _linked(path.read_text("utf-8")) for path in sorted(folder.glob("*.md"))}


def threat_model_pages() -> dict[str, str]:
    """The folder's README as the index, and a page for each threat model."""
    models = toml_files("threat_models")
    index = _linked((ROOT / "threat_models" / "README.md").read_text("utf-8"), models)
    return {"threat-models/index.md": index} | {
        f"threat-models/{name}.md": _threat_model(name, m) for name, m in models.items()
    }


def audit_pages() -> dict[str, str]:
    """How an audit is read, how evidence is kept, and each plan's trials."""
    plans = toml_files("audits/plans")
    readme, evidence = ((ROOT / "audits" / name).read_text("utf-8") for name in ("README.md", "evidence/README.md"))
    index = page(_linked(readme).strip(), "## The trials of each plan", *(_plan(name, plan) for name, plan in plans.items()))
    return {"audits/index.md": index, "audits/evidence.md": _linked(evidence)}


def _name(path: Path) -> str:
    return "index" if path.name == "README.md" else path.stem


def _linked(text: str, named: Mapping[str, Any] | None = None) -> str:
    """With links to the folder's own pages; what is named in a table's first column is linked where it has a page."""
    text = _LINK.sub(lambda found: f"]({found[1].replace('README.md', 'index.md')})", text)
    for name in named or {}:
        text = text.replace(f"| `{name}` |", f"| [`{name}`]({name}.md) |")
    return text


def _threat_model(name: str, model: Mapping[str, Any]) -> str:
    users = [found for found, profile in profiles().items() if profile["threat_model"] == name]
    return page(
        f"# {name}",
        f"{model['title']}.",
        f"File: `threat_models/{name}.toml`. " + (_used_by(users) if users else "No shipped profile is made for it."),
        "## Who is feared",
        table(
            ("adversary", "behaviour", "parties that help it", "sees"),
            (
                (one["name"], one["behaviour"], one.get("colludes_with_parties", 0), ", ".join(map(code, one["sees"])))
                for one in model.get("adversary", [])
            ),
        ),
        "[What it sees](index.md#how-to-read-one) explains each channel.",
        "## What is required",
        table(
            ("against", "claim", "unit", "because"),
            ((one["against"], one["claim"], one.get("unit", ""), one["because"]) for one in model.get("requires", [])),
        )
        or "Nothing is required, so nothing is promised.",
        "## What is knowingly accepted",
        listed(f"“{one['claim']}” may fail: {one['reason']}." for one in model.get("accepts", [])) or _NEITHER,
        "## What it does not speak about",
        listed(f"{one['risk']}." for one in model.get("out_of_scope", [])) or _NEITHER,
    )


def _used_by(users: list[str]) -> str:
    return "Profiles made for it: " + ", ".join(f"[`{user}`](../profiles/{user}.md)" for user in users) + "."


def _plan(name: str, plan: Mapping[str, Any]) -> str:
    trials = plan.get("trial", [])
    rows = (
        (
            code(one["attack"]),
            one["claim"],
            one["threat_model"],
            ", ".join(map(code, one["profiles"])),
            code(one.get("expect_fail", "open")),
        )
        for one in trials
    )
    return page(
        f"### {name}", plan["title"], table(("attack", "claim that it tries", "threat model", "profiles", "baseline"), rows)
    ).strip()
