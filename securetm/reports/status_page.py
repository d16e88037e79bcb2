"""How a served run stands, as a page that loads nothing and asks for itself again. It shows public facts only."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from securetm.federation.serving.standing import FINISHED, STOPPED
from securetm.foreign_text import html_text
from securetm.reports.federation_facts import COLUMNS, figures, headline, rows
from securetm.reports.page import framed

_AGAIN = 3  # seconds
# A narrow screen leaves out what else is seen elsewhere on the page.
_MORE = ' class="number more"'
_CLASSES = {"last round": " class=number", "sent": _MORE, "received": _MORE, "last refusal": " class=more"}
_STYLE = """
body { max-width: 60rem } .wide { overflow-x: auto }
.bar { height: .8rem; border: 1px solid var(--rule); border-radius: .4rem; overflow: hidden; margin: .8rem 0 }
.bar div { height: 100%; background: var(--line) }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: .8rem; margin: 1.5rem 0;
     font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif }
dt { color: var(--soft); font-size: .85rem } dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums }
td:first-child, dd, h1 { overflow-wrap: anywhere } td { font-variant-numeric: tabular-nums } footer { margin-top: 1rem }
@media (max-width: 40rem) { .more { display: none } dl { grid-template-columns: 1fr 1fr } dd { font-size: 1rem } }
a { color: var(--line) } td:nth-child(2) { white-space: nowrap }
"""


def status_page(facts: Mapping[str, Any]) -> str:
    """The text of the page."""
    again = "" if facts["phase"] in (FINISHED, STOPPED) else f'<meta http-equiv="refresh" content="{_AGAIN}">'
    share = 100 * facts["done"] / max(facts["of"], 1)
    said = f"{facts['model']} under {facts['profile']}, at {facts['address']}"
    values = "".join(f"<div><dt>{html_text(name)}</dt><dd>{html_text(value)}</dd></div>" for name, value in figures(facts))
    parts = (
        f"<h1>{html_text(facts['run'])}: {html_text(headline(facts))}</h1>",
        f'<p class="note">{html_text(said)}</p>',
        f'<div class="bar" role="progressbar" aria-label="rounds" aria-valuenow="{facts["done"]}" '
        f'aria-valuemin="0" aria-valuemax="{facts["of"]}"><div style="width:{share:.1f}%"></div></div>',
        f"<dl>{values}</dl>",
        f'<div class="wide">{_parties(facts)}</div>',
        '<footer>Public facts only. The same as JSON: <a href="/status.json">/status.json</a>.</footer>',
    )
    return framed(f"{facts['run']}: {headline(facts)}", parts, _STYLE).replace("<style>", f"{again}<style>", 1)


def status_pages(facts: Callable[[], Mapping[str, Any]]) -> Mapping[str, Callable[[], tuple[str, bytes]]]:
    """The page and the same facts as JSON, by their paths."""
    return {
        "/": lambda: ("text/html; charset=utf-8", status_page(facts()).encode()),
        "/status.json": lambda: ("application/json", json.dumps(facts(), indent=2).encode()),
    }


def _parties(facts: Mapping[str, Any]) -> str:
    numbers = [_CLASSES.get(name, "") for name in COLUMNS]
    head = "".join(f"<th{kind}>{html_text(name)}</th>" for name, kind in zip(COLUMNS, numbers, strict=True))
    body = "\n".join(
        "<tr>" + "".join(f"<td{kind}>{html_text(cell)}</td>" for cell, kind in zip(cells, numbers, strict=True)) + "</tr>"
        for cells in rows(facts)
    )
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
