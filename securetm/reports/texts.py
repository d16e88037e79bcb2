"""Sentences and blocks by the templates in `texts/` (Jinja2): these say it, and code gives the facts.

In a template each line is a sentence, an item or a paragraph of its own, and a line that begins with two spaces goes on with
the one before. In blocks, `- ` begins an item below `{list} its title`, and `| a | b |` is a row of a table, the first of which
names the columns, below `|: kind=lines; numeric=1,2; title=…; caption=…`. `## ` begins a section, and `{strong}` says of which
kind a paragraph is. Within a line, `**a**` stands out and `[a](kind)` is of a kind. No fact can be a mark: it stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from securetm import wording
from securetm.contracts import Unit, unit_name
from securetm.reports.document import Block, Cell, Heading, Items, Line, Paragraph, Section, Table, Words

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).with_name("texts")
_OF_FACTS = 0xE000  # marks of a fact are moved up here until the marks of the template are read
_MARKS = {code: _OF_FACTS + code for code in range(128) if not chr(code).isalnum() and chr(code) != " "}
_MOVED: dict[int, int | str] = {**_MARKS, **{_OF_FACTS + code: f"\\u{_OF_FACTS + code:x}" for code in range(128)}}
_BACK = {moved: code for code, moved in _MARKS.items()}
_KIND = re.compile(r"\{(?P<kind>[\w ]*)\} ?(?P<text>.*)")
_SECTION = re.compile(r"## (?P<title>.*?)(?: \{(?P<how>[\w ]+)\})?")
_INLINE = re.compile(r"\*\*(?P<strong>.+?)\*\*|\[(?P<text>[^\]]*)\]\((?P<kind>[^)]*)\)")
_PLACES = ("numeric", "whole")  # options of a table that name columns


def said(name: str, *facts: Any, **more: Any) -> tuple[str, ...]:
    """The sentences of a macro: `run.origins` is `origins` in `texts/run.txt`."""
    return tuple(line.translate(_BACK) for line in _lines(name, *facts, **more))


def sentence(name: str, *facts: Any, **more: Any) -> str:
    """All that a macro says, on one line."""
    return " ".join(said(name, *facts, **more))


def blocks(name: str, *facts: Any, **more: Any) -> tuple[Block, ...]:
    """The blocks of a macro that has no sections."""
    return tuple(_blocks(_lines(name, *facts, **more)))


def table(name: str, *facts: Any, **more: Any) -> Table:
    """The table that a macro is."""
    (found,) = blocks(name, *facts, **more)
    assert isinstance(found, Table), f"{name} is one table"
    return found


def sections(name: str, *facts: Any, **more: Any) -> Iterator[Section]:
    """The sections of a macro."""
    title, lines = "", list[str]()
    for line in (*_lines(name, *facts, **more), "## "):
        if not line.startswith("## "):
            lines.append(line)
            continue
        if title:
            found = _SECTION.fullmatch(title)
            assert found is not None, "each line that begins a section is one"
            how = (found["how"] or "").split()
            name_of = found["title"].translate(_BACK)
            yield Section(name_of, tuple(_blocks(lines)), folded="folded" in how, aside="aside" in how)
        title, lines = line, []


def _lines(name: str, *facts: Any, **more: Any) -> list[str]:
    file, _, macro = name.partition(".")
    found: list[str] = []
    for line in getattr(_environment().get_template(f"{file}.txt").module, macro)(*facts, **more).split("\n"):
        if line.startswith("  ") and line.strip() and found:
            found[-1] = f"{found[-1].rstrip()} {line.strip()}"
        elif line.strip(" "):
            found.append(line.strip(" "))
    return [str(line) for line in found]


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader
    from jinja2.compiler import CodeGenerator
    from jinja2.nodes import Impossible, TemplateData

    class Generator(CodeGenerator):
        """What a template writes in an expression is text as well, and not escaped for a page when it is compiled."""

        def _output_child_to_const(self, node: Any, frame: Any, finalize: Any) -> str:
            if not isinstance(node, TemplateData):
                raise Impossible
            return super()._output_child_to_const(node, frame, finalize)

    made = Environment(  # of text, where `_as_text` does what escaping does in a page
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        finalize=_as_text,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.code_generator_class = Generator
    made.globals |= {name: getattr(wording, name) for name in vars(wording) if not name.startswith("_")}
    made.globals |= {
        "unit_name": lambda unit: unit_name(Unit(unit)),
        "max": max,
        "min": min,
        "len": len,
        "zip": zip,
        "form": format,
        "exp": exp,
    }
    made.globals["quoted"] = lambda parts: listed(f"“{one}”" for one in parts)
    made.filters |= {"capital": capital, "small": lambda text: text[:1].lower() + text[1:], "all": listed}
    made.filters |= {"lines": in_lines, "without": str.removeprefix}
    return made


def capital(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def listed(parts: Any) -> str:
    return wording.listed(tuple(parts))


def in_lines(texts: Any) -> Any:
    """Each text as a line of its own."""
    from markupsafe import Markup

    return Markup("\n").join(map(_as_text, texts))


def _as_text(value: Any) -> Any:
    """A fact, in which nothing is a mark. What a macro gave stays as it is, and what is not there is refused."""
    from jinja2 import Undefined
    from markupsafe import Markup

    if isinstance(value, Undefined):
        value._fail_with_undefined_error()
    if isinstance(value, Markup):
        return value
    return Markup(str(value).translate(_MOVED))  # noqa: S704  # as text is read again, nothing of it is a mark


def _blocks(lines: list[str]) -> Iterator[Block]:
    readers: dict[str, Callable[[str, list[str]], Iterator[Block]]] = {"{list}": _items, "- ": _items, "|": _table}
    at = 0
    while at < len(lines):
        begins = next((mark for mark in readers if lines[at].startswith(mark)), "")
        end = at + 1
        if begins:
            follows = "|" if begins == "|" else "- "
            while end < len(lines) and lines[end].startswith(follows) and not lines[end].startswith("|:"):
                end += 1
            yield from readers[begins](lines[at], lines[at:end])
        else:
            line = lines[at]
            if line.startswith("### "):
                yield Heading(line.removeprefix("### ").translate(_BACK))
            else:
                found = _KIND.fullmatch(line)
                yield Paragraph(_line(found["text"]), found["kind"]) if found else Paragraph(_line(line))
        at = end


def _items(first: str, lines: list[str]) -> Iterator[Block]:
    title = first.removeprefix("{list} ").translate(_BACK) if first.startswith("{list}") else ""
    found = tuple(_line(one.removeprefix("- ")) for one in lines if one.startswith("- "))
    if found:
        yield Items(found, title)


def _table(first: str, lines: list[str]) -> Iterator[Block]:
    said = dict(part.strip().split("=", 1) for part in first.removeprefix("|:").split(";")) if first.startswith("|:") else {}
    options: dict[str, Any] = {name: value.translate(_BACK) for name, value in said.items()}
    options |= {name: tuple(map(int, options[name].split(","))) for name in _PLACES if name in options}
    if "shares" in options:
        options["shares"] = tuple(map(float, options["shares"].split(",")))
    heads, *rows = [_cells(one) for one in lines if not one.startswith("|:")]
    columns = tuple(one if isinstance(one, str) else "" for one in heads)
    yield Table(columns, tuple(rows), **options)


def _cells(line: str) -> tuple[Cell, ...]:
    found = (_line(one.strip(" ")) for one in line.strip(" ")[1:-1].split("|"))
    return tuple(one if isinstance(one, str) else (one,) for one in found)


def _line(text: str) -> Line:
    parts: list[str | Words] = []
    at = 0
    for found in _INLINE.finditer(text):
        parts += [text[at : found.start()].translate(_BACK)] if at < found.start() else []
        strong = found["strong"]
        shown, kind = (strong, "strong") if strong is not None else (found["text"], found["kind"])
        parts.append(Words(shown.translate(_BACK), kind.translate(_BACK)))
        at = found.end()
    if not parts:
        return text.translate(_BACK)
    return (*parts, text[at:].translate(_BACK)) if at < len(text) else tuple(parts)
