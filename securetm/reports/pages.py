"""HTML pages by the templates beside this file: each is one file that loads nothing.

Every text that a template shows has its control characters spelt out, and is escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from securetm.foreign_text import printable, visible
from securetm.reports.document import Document, in_comment, lines_of, words_of

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
_ALONE = "default-src 'none'; base-uri 'none'; form-action 'none'"


def in_html(document: Document) -> str:
    marks = _trusted(in_comment(document.marks))
    facts = {"kind": document.kind, "document": document, "marks": marks}
    return page("document.html", document.title, ("page", "document"), foot=document.foot, **facts)


def page(template: str, title: str, styles: Sequence[str], script: str = "", *, foot: str = "", **facts: Any) -> str:
    """A page with these styles, and a foot on every printed sheet. A page with a script runs that script and no other."""
    style = "\n".join(_static(f"{name}.css") for name in styles)
    if foot:
        safe = "".join(letter if letter.isalnum() or letter in " .,:;-" else f"\\{ord(letter):x} " for letter in foot)
        style += f'@media print {{ @page {{ @bottom-left {{ content: "{safe}"; font: 7pt sans-serif }} }} }}'
    ran = _static(f"{script}.js") if script else ""
    alone = f"script-src {_only(ran)}; style-src {_only(style)}; require-trusted-types-for 'script'"
    policy = f"{_ALONE}; {alone}" if script else f"{_ALONE}; style-src 'unsafe-inline'"
    frame = {"policy": _trusted(policy), "style": _trusted(style), "script": _trusted(ran)}
    return _environment().get_template(template).render(title=title, **frame, **facts)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from securetm.reports.charts import in_svg

    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.globals |= {
        "words_of": words_of,
        "lines_of": lines_of,
        "kind_of": lambda block: type(block).__name__,
        "plot": lambda figure: _trusted(in_svg(figure)),
        "again": 0,
        "kind": "",
    }
    made.filters |= {"percent": lambda share: f"{100 * share:.2f}%", "printable": printable}
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return made


def _trusted(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  # no text of others comes here


def _static(name: str) -> str:
    return (HERE / "static" / name).read_text("utf-8")


def _only(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
