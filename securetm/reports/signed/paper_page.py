"""The page to sign as one HTML file that loads nothing. It shows what report_paper.py says, and nothing else.

On a screen the parts beside the point are folded; a print unfolds them.
"""

from __future__ import annotations

from itertools import count
from urllib.parse import quote

from securetm.foreign_text import html_text as escape
from securetm.reports.audit_markup import STYLE, Html, bullets, grid, section
from securetm.reports.audit_tables import plain_table
from securetm.reports.page import framed, on_each_sheet
from securetm.reports.signed.report_paper import Block, Items, Paper, PaperSection, Paragraph, Reply, TextTable, ToFillIn
from securetm.reports.signed.sheet_marks import in_comment

_STYLE = (
    STYLE
    + """
body { max-width: 60rem; margin: .8rem auto; font-size: .95rem; line-height: 1.31 }
h1 { margin: 0 0 .2rem; overflow-wrap: anywhere }
h2 { margin: .65rem 0 .2rem } p { margin: .2rem 0 } ul { margin: .3rem 0; padding-left: 1.2rem }
.reply { border-top: 1px solid var(--rule); padding: .25rem 0; break-inside: avoid }
.reply h3 { margin: 0; display: inline } .reply p { margin: 0 } .reply ul { font-size: .85rem; margin: .1rem 0 }
.reply .short { font-weight: 600 } .mark { border: 1px solid var(--ink); border-radius: .2rem; padding: 0 .35rem;
  font: .8rem system-ui, Helvetica, Arial, sans-serif; white-space: nowrap }
.mark.broken { background: var(--ink); color: var(--paper) } .mark.open { border-width: 2px; font-weight: 700 }
.sign { display: grid; grid-template-columns: 1fr 1fr; gap: 1.6rem 2rem; margin-top: 1.6rem; break-inside: avoid }
.sign div { border-top: 1px solid var(--ink); font-size: .85rem; color: var(--soft); padding-top: .1rem }
table { font-size: .8rem } th, td { padding: .15rem .6rem .15rem 0 } summary h2 { display: inline; font-size: .95rem }
details { margin: .25rem 0 } details[open] { padding-bottom: .4rem }
@media (max-width: 44rem) { .sign { grid-template-columns: 1fr } }
@media print { @page { margin: 14mm } body { font-size: 9pt } table { font-size: 8pt } .reply ul { font-size: 8pt }
  details { border: 0; padding: 0 } section { break-inside: auto } }
"""
)
_ONE_SHEET = """
h1 { font-size: 1.2rem } ul { margin: .1rem 0 } li { margin: 0 }
@media print { @page { size: A4; margin: 10mm 13mm 12mm } body { font-size: 8pt; line-height: 1.22 } table { font-size: 7pt }
  h2 { margin: .35rem 0 .1rem; font-size: 9pt } blockquote { margin: .2rem 0; font-size: 9pt } p { margin: .1rem 0 }
  .sign { gap: 1.1rem 2rem; margin-top: 1.2rem } footer { display: none } }
"""
_ITSELF = "This page loads nothing and sends nothing. Its figures are those of the run's own record."


def in_html(paper: Paper) -> str:
    """The text of the page."""
    number = count(1)
    links = ", ".join(f'<a href="{escape(quote(name))}">{escape(name)}</a>' for name in paper.annexes)
    annex = f"<p class=note>Belongs to it: {links}</p>" if links else ""
    foot = f"<p>{escape(paper.foot)}</p>" if paper.foot else ""
    parts = (
        f"<header><h1>{escape(paper.title)}</h1>\n<p class=note>{escape(paper.subtitle)}</p>{annex}</header>",
        "<main>",
        *(_section(f"part-{next(number)}", each) for each in paper.sections),
        "</main>",
        f"<footer>{foot}<p>{_ITSELF}</p></footer>",
        in_comment(paper.marks),
    )
    return framed(paper.title, parts, _STYLE + (_ONE_SHEET if paper.one_sheet else "") + on_each_sheet(paper.foot))


def _section(anchor: str, each: PaperSection) -> Html:
    inner = [_block(block) for block in each.blocks]
    if not each.folded:
        return section(anchor, each.title, *inner)
    body = "\n".join(inner)
    return Html(f'<details id="{anchor}"><summary><h2>{escape(each.title)}</h2></summary>\n{body}</details>')


def _block(block: Block) -> Html:
    match block:
        case Paragraph(text, strong, _):
            return Html(f"<blockquote>{escape(text)}</blockquote>" if strong else f"<p>{escape(text)}</p>")
        case Items(items):
            return bullets(items)
        case TextTable(names, rows, _):
            return grid(plain_table(names, rows))
        case Reply():
            return _reply(block)
        case ToFillIn(lines):
            return Html('<div class="sign">' + "".join(f"<div>{escape(line)}</div>" for line in lines) + "</div>")


def _reply(reply: Reply) -> Html:
    first, *rest = reply.said
    mark = f'<span class="mark {escape(reply.mark.split()[0])}">{escape(reply.mark)}</span>'
    short = f'<span class="short">{escape(reply.short)}</span>'
    head = f"<h3>{escape(reply.question)}</h3> {short} {mark}"
    return Html(f'<div class="reply">{head}<p>{escape(first)}</p>{bullets(rest)}</div>')
