"""What reports say is what people read last: `python -m tests.reports.said` writes it again."""

from __future__ import annotations

import pytest

from securetm.reports.texts import sentence

from .said import PLACE, written


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return written()


@pytest.mark.parametrize("name", [path.stem for path in sorted(PLACE.glob("*.md"))])
def test_a_report_says_what_was_read(name: str, texts: dict[str, str]) -> None:
    assert texts[name] == (PLACE / f"{name}.md").read_text("utf-8")


def test_a_run_that_costs_more_than_is_left_says_when_it_ends() -> None:
    cost = {"unit": "document", "epsilon": 13.0, "delta": 1e-5, "spent_before": 0.0, "budget": 8.0, "left_before": 8.0}
    cost |= {"answers_that_fit": None, "unbounded_because": None}
    assert "That is more than is left: the run ends when" in sentence("federation.cost", cost)
    assert "more than is left" not in sentence("federation.cost", {**cost, "epsilon": 8.0})
