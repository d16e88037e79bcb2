"""The parts of an audit's page: tables that fit narrow screens, sections, and the style. This module builds markup only.

On a narrow screen the rows of a table become blocks, each cell with the name of its column. Roles keep it a table for screen
readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from securetm.foreign_text import html_text
from securetm.reports.audit_tables import AuditTable, Cell

STYLE = """
body { max-width: 60rem }
h1, h2, h3, h4, nav, details, .bars { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif }
h3 { font-size: 1rem; margin: 1.8rem 0 .4rem } h4 { font-size: .9rem; margin: 1.2rem 0 .3rem }
td, li, p, summary, blockquote, code { overflow-wrap: anywhere } th { overflow-wrap: break-word }
section { break-inside: auto } h2, h3, h4, summary, caption { break-after: avoid }
th[scope=row] { border-bottom: 1px solid var(--rule); font-weight: 400 }
td small, th small, .bars small { color: var(--soft); display: block; font-weight: 400 }
.word { white-space: nowrap } summary .word { font-weight: 600 }
table.facts th { width: 11rem; color: var(--soft) }
table.matrix td, table.matrix th { border-right: 1px solid var(--rule); padding-left: .4rem; padding-right: .4rem }
table.matrix .word { display: block; white-space: normal }
table.matrix.many { font-size: .72rem } table.matrix.many th, table.matrix.many td { padding: .3rem .2rem }
a { color: var(--line) } nav ul { padding-left: 1.2rem; columns: 2 } nav li { break-inside: avoid }
details { border: 1px solid var(--rule); margin: .6rem 0; padding: 0 .9rem } details[open] { padding-bottom: .9rem }
summary { cursor: pointer; padding: .5rem 0 } summary h3 { display: inline; margin: 0; font-weight: 400 }
:target { outline: 2px solid var(--line); outline-offset: 2px }
.bars { display: grid; grid-template-columns: minmax(10rem, 20rem) 1fr; column-gap: 1.2rem; align-items: center;
          font-size: .85rem; margin-top: .5rem }
.bars > div { break-inside: avoid; padding: .2rem 0 } .bars > .bar, .bars > .axis { padding: 0 16px }
.bars svg { display: block; height: 38px; overflow: visible } .bars .axis svg { height: 20px }
.plot .from { stroke-width: 2 } .plot .bar { stroke-width: 3; stroke: var(--line) } .plot .cross { stroke-width: 2 }
.plot .hollow { fill: var(--paper) } .plot .letter { fill: var(--paper); stroke: var(--ink); stroke-width: 1.2 }
.plot .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 4px }
.plot .chance { stroke-dasharray: 1 4 } .plot .allowed { stroke-dasharray: 1 3; stroke-width: 2 }
.plot .curve { stroke-width: 1.8 } .plane { max-width: 34rem }
.sample { width: 64px; height: 20px; display: inline-block; vertical-align: middle; margin-right: .5rem }
.missed { text-decoration: underline dotted } .wrong { text-decoration: line-through } .tiles { letter-spacing: 1px }
.rest, thead.rest { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
@media screen and (max-width: 44rem) {
  body { margin-top: 1rem } nav ul { columns: 1 } .bars { grid-template-columns: 1fr } .bars > .blank { display: none }
  table, tbody, tr, td, th[scope=row] { display: block; width: auto } caption { display: block; padding: 0 0 .4rem }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
  table tr { border-bottom: 1px solid var(--ink); padding: .4rem 0 }
  table td, table th[scope=row], table.matrix td, table.matrix th[scope=row] { border: 0; padding: .1rem 0; font-size: .9rem }
  table th[scope=row] { font-weight: 600 }
  table.facts th { width: auto } td[data-column]::before { content: attr(data-column) ": "; color: var(--soft) }
}
@media print {
  body { font-size: 10pt } details { border: 0; border-top: 1px solid var(--rule); padding: 0 } summary { list-style: none }
  details::details-content { content-visibility: visible; display: block; height: auto }
  details.spare::details-content { display: none }
  a { color: inherit; text-decoration: none }
}
"""


class Html(str):
    """A text that is markup already. Any other text is escaped."""

    __slots__ = ()


def markup(value: str) -> str:
    """The text as markup."""
    return value if isinstance(value, Html) else html_text(value)


def joined(*parts: str) -> Html:
    """Several parts in one."""
    return Html("".join(markup(part) for part in parts))


def lines(cell: Cell) -> Html:
    """The first line of a cell, and the others in smaller letters below it."""
    first, *below = cell
    return joined(first, *(Html(f"<small>{markup(line)}</small>") for line in below))


def grid(table: AuditTable, kind: str = "") -> Html:
    """A table; the first cell of each row is its head."""
    named = f' class="{kind}"' if kind else ""
    under = f"<caption>{html_text(table.caption)}</caption>" if table.caption else ""
    head = "".join(f'<th role="columnheader" scope="col">{html_text(name)}</th>' for name in table.columns)
    body = "\n".join(_row(table.columns, row) for row in table.rows)
    return Html(
        f'<table role="table"{named}>{under}<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">{body}</tbody></table>'
    )


def _row(columns: Sequence[str], row: Sequence[Cell]) -> str:
    first, *rest = row
    cells = "".join(
        f'<td role="cell" data-column="{html_text(name)}">{lines(cell)}</td>'
        for name, cell in zip(columns[1:], rest, strict=True)
    )
    return f'<tr role="row"><th role="rowheader" scope="row">{lines(first)}</th>{cells}</tr>'


def facts(rows: Iterable[tuple[str, str]], caption: str) -> Html:
    """A table of names and texts without a head. Only a screen reader reads the caption."""
    body = "\n".join(
        f'<tr role="row"><th role="rowheader" scope="row">{html_text(name)}</th><td role="cell">{markup(value)}</td></tr>'
        for name, value in rows
    )
    under = f'<caption class="rest">{html_text(caption)}</caption>'
    return Html(f'<table role="table" class="facts">{under}<tbody role="rowgroup">{body}</tbody></table>')


def section(anchor: str, title: str, *parts: str) -> Html:
    """A part of the page, to which the list of contents can link."""
    inner, own = "\n".join(parts), f"{anchor}-title"
    return Html(f'<section id="{anchor}" aria-labelledby="{own}"><h2 id="{own}">{html_text(title)}</h2>\n{inner}</section>')


def bullets(sentences: Iterable[str]) -> Html:
    """A list."""
    return Html("<ul>" + "".join(f"<li>{markup(sentence)}</li>" for sentence in sentences) + "</ul>")
