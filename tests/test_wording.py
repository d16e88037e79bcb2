"""Bounds that people read are implied by what was computed: "at most" is rounded up and "at least" down, everywhere."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from securetm.accounting.ledger.ledger import BudgetExhausted
from securetm.wording import downward, downward_figure, downward_share, downward_whole, upward, upward_figure, upward_share
from tests.source_trees import PACKAGE, ROOT, files, tree

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
