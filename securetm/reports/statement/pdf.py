"""A paper as a PDF of A4 sheets, by the template beside this file. It shows what the paper says, and nothing else.

The sheets are tagged as PDF/UA-1 asks, so that a screen reader knows headings, lists and tables, and every letter is embedded,
whatever its script. The same paper makes the same bytes. typst writes the file; it and the fonts come with `securetm[report]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from securetm.errors import Mistake
from securetm.foreign_text import printable
from securetm.reports.document import Block, Document, Items, Paragraph, Reply, Table, ToFillIn, lines_of, plain

_FONTS = ("manimgx_fonts", "manimgx_fonts_cjk")  # packages of the Noto fonts: all scripts of names, and the Chinese letters
_FAMILIES = ("Noto Sans", "Noto Sans CJK SC")  # letters that neither has are found in the others
_TEMPLATE = Path(__file__).parent.parent / "templates/paper.typ"
_SIZES = (9.4, 9.0, 8.6, 8.2, 7.8, 7.4, 7.0)  # points; a paper that is to be one sheet takes the largest that fits
_UNSHOWN = re.compile(r'the text `"(?P<letters>.+?)"` could not be displayed')
_MOST_UNSHOWN = 200  # texts in letters that no font has, each spelt as its number
_USUAL = 8.6  # points of an annex, which takes as many sheets as it needs
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_LONG = re.compile(r"(?<!\S)(?![0-9a-f]{64}(?!\S))\S{30,}")
_PAGES = re.compile(rb"/Type\s*/Page\b(?!s)")


def has_library() -> bool:
    """Whether a PDF can be written here."""
    try:
        import_module("typst")
    except ImportError:
        return False
    return all(find_spec(name) is not None for name in _FONTS)


def check_library() -> None:
    """Refuses where typst or its fonts are not installed, before anything is carried out."""
    if not has_library():
        hint = "pip install 'securetm[report]'; or write the page with --html and print it in a browser"
        raise Mistake("a PDF is asked for, and what writes it, typst and its fonts, is not installed", hint=hint)


def in_pdf(paper: Document) -> bytes:
    check_library()
    if paper.kind != "sheet":
        return _written(paper, _USUAL)
    for size in _SIZES:
        made = _written(paper, size)
        if sheets_of(made) == 1:
            break
    return made


def sheets_of(pdf: bytes) -> int:
    """How many sheets a PDF of ours has."""
    return len(_PAGES.findall(pdf))


def _written(paper: Document, size: float) -> bytes:
    """The file with letters of this size. A letter that no font has is spelt as its number."""
    import typst

    shown = _of_texts(_facts(paper, size), printable)
    for _ in range(_MOST_UNSHOWN):
        try:
            made = typst.compile(
                str(_TEMPLATE),
                format="pdf",
                font_paths=[_folder_of(name) for name in _FONTS],
                ignore_system_fonts=True,
                sys_inputs={"paper": json.dumps(shown)},
                pdf_standards="ua-1",
            )
        except typst.TypstError as problem:
            unshown = _UNSHOWN.search(str(problem))
            if unshown is None:
                raise
            letters = unshown["letters"]
            numbers = "".join(f"[U+{ord(letter):04X}]" for letter in letters)
            shown = _of_texts(shown, lambda text: text.replace(letters, numbers))  # noqa: B023 - it is called at once
        else:
            return made
    raise ValueError(f"the paper has more than {_MOST_UNSHOWN} texts in letters that no font has")


@cache
def _folder_of(package: str) -> str:
    found = find_spec(package)
    assert found is not None, "check_library was called"
    assert found.origin is not None, "a package of fonts has a file of its own"
    return str(Path(found.origin).parent)


def _of_texts(shown: Any, said: Callable[[str], str]) -> Any:
    """The tables with another text in the place of each."""
    if isinstance(shown, str):
        return said(shown)
    if isinstance(shown, list | tuple):
        return [_of_texts(one, said) for one in shown]
    return {name: _of_texts(one, said) for name, one in shown.items()} if isinstance(shown, dict) else shown


# ---- what the template reads ----------------------------------------------------------------------------------------


def _facts(paper: Document, size: float) -> dict[str, Any]:
    sections = [{"title": one.title, "blocks": [_block(block) for block in one.blocks]} for one in paper.sections]
    day = [int(part) for part in paper.day.split("-")] if _DAY.fullmatch(paper.day) else []
    said = {"title": paper.title, "subtitle": paper.subtitle, "foot": paper.foot, "keywords": list(paper.marks)}
    return {**said, "day": day, "size": size, "fonts": list(_FAMILIES), "sections": sections}


def _block(block: Block) -> dict[str, Any]:
    match block:
        case Paragraph(text, kind, kept):
            return {"kind": "paragraph", "text": plain(text), "strong": kind == "strong", "kept": kept}
        case Items(items):
            return {"kind": "items", "items": list(map(plain, items))}
        case Table(columns, rows):
            texts = [["\n".join(map(plain, lines_of(cell))) for cell in row] for row in rows]
            # a line may break inside of a word that is longer than a cell is wide
            cells = [[_LONG.sub(lambda found: "\u200b".join(found[0]), text) for text in row] for row in texts]
            return {"kind": "table", "names": columns, "rows": cells, "shares": block.shares or [1] * len(columns)}
        case Reply():
            return {"kind": "reply", **asdict(block)}
        case ToFillIn(lines):
            return {"kind": "fill in", "lines": lines}
    raise TypeError(f"a sheet has no {type(block).__name__}")
