"""Words of documents and names of peers, in every form of output: none commands a terminal, none is markup or a formula."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Callable
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as some
from markdown_it import MarkdownIt
from msgspec.structs import replace
from rich.table import Table as RichTable

from securetm.auditing.record import Audit, Example
from securetm.cli.command import Output
from securetm.foreign_text import csv_cell, html_text, json_text, markdown_text, printable, without_commands
from securetm.reports.audits.report import audit_page, summary
from securetm.reports.document import Document, Items, Paragraph, Section, Table
from securetm.reports.federation import status_page
from securetm.reports.markdown import in_markdown
from securetm.reports.pages import in_html
from securetm.reports.terminal import Screen
from securetm.reports.topics import topics_csv
from securetm.runs.finished import FederationResult
from tests.reports.audits import AUDIT, finding
from tests.reports.standings import facts
from tests.source_trees import PACKAGE, files, tree

NASTY = "a\x1b]0;title\x07b\x9b2Jc\r\u202ed\ue000\u00a0é"
# what a terminal or a reader obeys: escape sequences in 7 and 8 bits, a bell, a turned line, an invisible tag
OBEYED = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\U000e0041")
WORD = f"{''.join(OBEYED)}<b onclick=x>&[link](x)*=1+1|"
FORMULAS = ("=1+1", "+A1", "-2+3+cmd|' /C calc'!A0", "@SUM(A1)", " =1", "\uff1d1+1", "\t=1", "\r=1", "x;=1", "x|=1", "x,=1")


def test_what_would_be_obeyed_is_spelt_out_or_left_out() -> None:
    assert printable(NASTY) == "a\\x1b]0;title\\x07b\\x9b2Jc\\r\\u202ed\ue000\u00a0é"
    assert printable("two\nlines \ud800") == "two\\nlines \\ud800"
    assert without_commands(f"{NASTY}\n") == "a]0;titleb2Jcd\ue000\u00a0é\n"


def test_a_screen_obeys_this_program_alone() -> None:
    out = StringIO()
    table = RichTable(title=NASTY)
    table.add_row(NASTY, "[bold]strong[/bold]")
    to = Screen(file=out, width=80, force_terminal=True, color_system="truecolor", highlight=False)
    to.print(table)
    to.print(NASTY)
    assert "\x1b[1mstrong" in out.getvalue()
    for command in ("\x1b]", "\x9b", "\x07", "\u202e"):
        assert command not in out.getvalue()


# ---- every writer --------------------------------------------------------------------------------------------------


def table_of_words(capsys: pytest.CaptureFixture[str]) -> str:
    topics_csv([(0, 0, WORD, 0.5)], {0: WORD}, "-", private=False)
    return capsys.readouterr().out


def json_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> str:
    Output(json=True).document({"words": [WORD], WORD: 1})
    said = capsys.readouterr().out
    assert json.loads(said) == {"words": [WORD], WORD: 1}
    return said


def paper() -> Document:
    blocks = (Paragraph(WORD), Items((WORD,)), Table((WORD, "b"), ((WORD, WORD),), shares=(0.5, 0.5)))
    return Document(WORD, WORD, (Section(WORD, blocks),), annexes=(WORD,))


def paper_on_a_screen(_: object) -> str:
    out = StringIO()
    Screen(file=out, width=80, highlight=False).print(paper())
    return out.getvalue()


def notebook(_: object) -> str:
    result = {"prevalence": {WORD: [0.5]}, "topics": [[WORD]], "quality": {WORD: 1.0}, "parties": [WORD]}
    run = FederationResult({**result, "rounds": 1, "model": WORD, "profile": WORD, "directory": WORD})
    return run._repr_html_()


def in_python(_: object) -> str:
    result = {"topics": [[WORD]], "quality": {WORD: 1.0}, "parties": [WORD]}
    return repr(FederationResult({**result, "rounds": 1, "model": "lda", "profile": "open", "directory": WORD}))


def nasty_audit() -> Audit:
    leak = finding(examples=(Example(WORD, WORD, True),), title=WORD, setting=WORD, effort=WORD, sees=(WORD,), limits=(WORD,))
    return replace(AUDIT, title=WORD, run=WORD, findings=(leak,), not_tried=(WORD,), reproduce=(WORD,))


WRITERS: dict[str, tuple[Callable[[pytest.CaptureFixture[str]], str], str]] = {
    "table": (table_of_words, "csv"),
    "JSON": (json_on_a_terminal, "json"),
    "page of an audit": (lambda _: audit_page(nasty_audit(), 2), "html"),
    "summary of an audit": (lambda _: summary(nasty_audit(), 2), "markdown"),
    "page to sign": (lambda _: in_html(paper()), "html"),
    "page to sign as text": (lambda _: in_markdown(paper()), "markdown"),
    "page to sign on a screen": (paper_on_a_screen, "terminal"),
    "page of a run": (lambda _: status_page(facts(run=WORD, model=WORD)), "html"),
    "notebook": (notebook, "html"),
    "Python": (in_python, "terminal"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_no_writer_passes_on_what_would_be_obeyed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    write, form = WRITERS[name]
    said = write(capsys)
    assert said
    assert [letter for letter in OBEYED if letter in said] == []
    if form == "html":
        assert "<b onclick" not in said
    if form == "markdown":
        assert not re.search('<b |href="x"|<em>', MarkdownIt("commonmark").enable("table").render(said))
    if form == "csv":
        assert all(not cell.startswith("=") for row in csv.reader(io.StringIO(said)) for cell in row)


def test_a_sheet_of_paper_has_them_spelt_out() -> None:
    reader = pytest.importorskip("pypdf")
    from securetm.reports.statement.pdf import in_pdf

    said = "".join(page.extract_text() for page in reader.PdfReader(io.BytesIO(in_pdf(paper()))).pages)
    assert [letter for letter in OBEYED if letter in said] == []
    assert "\\x1b" in said


# ---- each form -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_calculated_when_a_table_is_opened(text: str) -> None:
    shown = str(csv_cell(text))
    assert not re.search(r"(^|[;,|\t])\s*[=+\-@\uff1d\uff0b\uff0d\uff20]", shown)
    assert shown.replace("'", "") == printable(text).replace("'", "")  # nothing but apostrophes came in


@given(some.text())
def test_json_says_the_same(text: str) -> None:
    document = json.dumps({text: [text]}, ensure_ascii=False)
    assert json.loads(json_text(document)) == {text: [text]}
    assert json_text(document) == without_commands(json_text(document))


@given(some.text(alphabet="-+=1.)#>*_`[]()<!|&~$\\ ax\n"))
def test_markdown_shows_the_text_and_nothing_else(text: str) -> None:
    shown = MarkdownIt("commonmark").render(markdown_text(text))
    assert re.sub("</?p>", "", shown).strip() == html_text(" ".join(text.split()))


def test_nobody_else_escapes() -> None:
    """Markup is escaped, and CSV written, by these functions alone."""
    found = {}
    for path in files():
        if not re.search(r"\b(html|csv)\b", path.read_text("utf-8")):
            continue
        nodes = list(ast.walk(tree(path)))
        names = {one.module or "" for one in nodes if isinstance(one, ast.ImportFrom)} & {"html", "csv"}
        calls = {ast.unparse(one) for one in nodes if isinstance(one, ast.Attribute)} & {
            "csv.writer",
            "csv.DictWriter",
            "html.escape",
        }
        if names | calls:
            found[str(path.relative_to(PACKAGE))] = names | calls
    assert found == {"foreign_text.py": {"html", "csv.writer"}}
