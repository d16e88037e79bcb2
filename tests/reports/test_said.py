"""What reports say is what people read last: `python -m tests.reports.said` writes it again."""

from __future__ import annotations

import pytest

from .said import PLACE, written


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return written()


@pytest.mark.parametrize("name", [path.stem for path in sorted(PLACE.glob("*.md"))])
def test_a_report_says_what_was_read(name: str, texts: dict[str, str]) -> None:
    assert texts[name] == (PLACE / f"{name}.md").read_text("utf-8")
