"""How numbers, lists and texts of others are written, whatever the output."""

from __future__ import annotations

import ast
import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as some
from markdown_it import MarkdownIt
from msgspec.structs import replace
from rich.table import Table as RichTable

from securetm.accounting.ledger.ledger import BudgetExhausted
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
from securetm.wording import downward, downward_figure, downward_share, downward_whole, upward, upward_figure, upward_share

from .reports.audits import AUDIT, finding
from .reports.standings import facts
from .source_trees import PACKAGE, ROOT, files, tree

EXACT = 1e-12  # relative: what a floating-point sum adds by itself is no bound's
BUDGETS = some.floats(0, 1e12)
FIGURES = some.floats(1e-300, 1e300)


def number(said: str) -> float:
    return float(said.replace(",", "").removesuffix("%").strip())


@given(BUDGETS)
@example(100.5)
def test_a_budget_is_shown_between_what_is_left_and_what_is_spent_at_most(value: float) -> None:
    assert number(downward(value)) <= value * (1 + EXACT)
    assert number(upward(value)) >= value * (1 - EXACT)
    assert number(upward(value)) - number(downward(value)) <= max(value / 100, 0.001) * (1 + 1e-9)


@given(FIGURES)
def test_a_bound_of_any_size_keeps_its_side(value: float) -> None:
    assert number(downward_figure(value)) <= value * (1 + EXACT)
    assert number(upward_figure(value)) >= value * (1 - EXACT)
    assert number(upward_figure(value)) <= value * 1.011


@given(some.floats(0, 1))
def test_a_share_keeps_its_side_and_only_all_are_100_per_cent(share: float) -> None:
    assert number(downward_share(share)) <= 100 * share * (1 + EXACT)
    assert number(upward_share(share)) >= 100 * share * (1 - EXACT)
    assert (number(downward_share(share)) == 100) == (share > 1 - EXACT)


@pytest.mark.parametrize(
    ("share", "most", "least"),
    [
        (0.04632, "4.7", "4.6"),
        (0.05, "5", "5"),
        (0.07, "7", "7"),  # 100 * 0.07 is 7.000000000000001
        (0.9996, "99.96", "99.9"),
        (0.0001234, "0.013", "0.012"),
        (1.0, "100", "100"),
        (0.0, "0", "0"),
    ],
)
def test_shares_as_people_read_them(share: float, most: str, least: str) -> None:
    assert (upward_share(share), downward_share(share)) == (f"{most}\N{NO-BREAK SPACE}%", f"{least}\N{NO-BREAK SPACE}%")


def test_what_is_left_of_a_large_budget_is_not_rounded_up() -> None:
    assert downward(99.999) == "99.99"
    assert downward(1704.9) == "1,704"
    assert upward(-0.0) == "0"
    assert upward(math.inf) == "infinity"


def test_deltas_keep_their_usual_form() -> None:
    assert upward_figure(1e-6) == "1e-06"
    assert upward_figure(5.3134e-5) == "5.32e-05"
    assert downward_figure(5.3199e-5) == "5.31e-05"
    assert upward_figure(0.0, 3) == "0"


def test_an_error_rounds_what_is_spent_upwards() -> None:
    said = str(BudgetExhausted("runs/a", 1, "document", 1.00001, 1.50001, 1.00001, 1e-6))
    assert "epsilon 1.001 per document, 1.001 is spent" in said
    assert said.endswith("would make 1.501")


# ---- nobody rounds a bound by hand ---------------------------------------------------------------------------------

BOUND = re.compile(
    r"\b(epsilon|delta|most_epsilon|spent|all_runs|left_before|spent_before|low|high|ceiling|at_least|true_positives)\b"
)
# What is no bound that is shown: it is typed into a command or a file, or read by nobody but the program.
TYPED = {
    "securetm/cli/budget_runs.py": "what a party types into its file: it is what is allowed",
    "securetm/cli/choose.py": "quotes what was typed",
    "securetm/auditing/foreign.py": "a command line",
    "securetm/reports/choosing.py": "quotes what was typed, and writes a plan: what it says is what is allowed",
    "securetm/reports/budget_sliders.py": "names of choices in a page",
    "securetm/reports/audits/records.py": "quotes a file that contradicts itself",
}
ESTIMATES = {
    "securetm/reports/committed_costs.py": "the epsilon that a committed figure was measured at",
    "securetm/plans/rules.py": "a number that it counts with: it shows nothing",
    "securetm/reports/evaluation.py": "an interval of quality, which bounds nothing",
    "securetm/reports/runs.py": "an interval of quality",
    "securetm/reports/forecast.py": "a forecast of quality, at a budget that was typed",
}
AS_WRITTEN = {*TYPED, *ESTIMATES}


def rounded_by_hand(module: ast.Module) -> Iterator[str]:
    """Values in texts whose name says that they bound something, with a format that rounds to the nearest."""
    for node in ast.walk(module):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            spec, name = ast.unparse(node.format_spec), ast.unparse(node.value)
            if re.search(r"[gf%]['\"]$", spec) and BOUND.search(name):
                yield name


def test_every_bound_that_is_shown_goes_through_the_functions_of_wording() -> None:
    shown = [path for path in files() if _place(path) not in AS_WRITTEN]
    assert {_place(path): list(rounded_by_hand(tree(path))) for path in shown if any(rounded_by_hand(tree(path)))} == {}
    assert all(any(rounded_by_hand(tree(ROOT / place))) for place in AS_WRITTEN)


def test_a_bound_rounded_by_hand_is_found() -> None:
    assert list(rounded_by_hand(ast.parse("""said = f"at most {spent['epsilon']:.3g}" """)))
    assert not list(rounded_by_hand(ast.parse("""said = f"at most {upward(epsilon)} of {parties:,}" """)))


def _place(path: Path) -> str:
    return f"securetm/{path.relative_to(PACKAGE)}"


def test_a_whole_number_of_chances_is_none_too_many() -> None:
    assert [downward_whole(value) for value in (0.9, 99_999.7, 0.1 + 0.2 + 2.7)] == ["0", "99,999", "3"]


# ---- texts of others -------------------------------------------------------------------------------------------------------


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
