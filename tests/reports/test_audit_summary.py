"""The audit as a short Markdown text: every section of a model card, nothing that could become markup."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from securetm.auditing.record import Example
from securetm.errors import Mistake
from securetm.reports.audit_report import summary, write_summary

from .audits import AUDIT, FULL, finding, large

HOSTILE = "| # `code` **bold** <script>alert(1)</script> [a](b) ![i](j) \\| \n\n# heading\n- item &amp; _x_ ~~y~~ $z$"


def test_every_section_is_there_in_its_order() -> None:
    text = summary(FULL, 2)
    assert re.findall(r"^(#+ .*)$", text, re.MULTILINE) == [
        "# What \\<is\\> learned?", "## Purpose and result", "## Setting", "## Verdicts", "## What leaked",
        "## What was refused",
        "## What was not tried", "## Limits", "## To have it again",
    ]  # fmt: skip
    for wanted in (
        "3 claims (3 findings) were tried and held", "no evidence of safety", "| claims of a profile | 0 | 0 | 3 | 0 |",
        "plan “quick”, run “demonstration”, securetm 0.1.0, 2026-01-31",
        "coordinator of curious\\_coordinator read request, answer",
        "◧ open", "□ held", "– not tested", "epsilon = 4.38 per document, delta = 1e-05",
        "refused by the party “south” (BelowMinimum)", "- membership \\& more", "Documents from \\<one\\> gradient: the first",
        "    securetm audit quick", "Somebody 2020", "harbour",
    ):  # fmt: skip
        assert wanted in text, wanted
    assert not re.search(r"\bsafe\b", text)


def test_tables_have_as_many_cells_in_each_row_as_in_their_head() -> None:
    widths = set()
    for block in re.findall(r"(?:^\|.*\|\n?)+", summary(large(60), 6), re.MULTILINE):
        rows = [len(re.split(r"(?<!\\)\|", line)) for line in block.strip().splitlines()]
        widths.add(tuple(set(rows)))
    assert widths == {(4,), (5,), (6,), (7,), (8,)}
    assert all(len(width) == 1 for width in widths)


def test_hostile_words_stay_words() -> None:
    nasty = finding(
        title=HOSTILE, profile=HOSTILE, claim=HOSTILE, setting=HOSTILE, limits=(HOSTILE,), citation=HOSTILE,
        examples=(Example(HOSTILE, HOSTILE, False),), sees=(HOSTILE,), effort=HOSTILE, model=HOSTILE,
    )  # fmt: skip
    audit = replace(AUDIT, findings=(nasty,), not_tried=(HOSTILE,), title=HOSTILE, run=HOSTILE, reproduce=(HOSTILE,))
    text = summary(audit, 2)
    outside = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    assert re.findall(r"^# ", outside, re.MULTILINE) == ["# "]
    assert not re.search(r"(?<!\\)[<`]", outside)
    assert not re.search(r"(?<!\\)\[|(?<!\\)!\\\[", outside)
    assert "- item" not in [line[:6] for line in text.splitlines()]


def test_documents_are_quoted_only_where_wanted() -> None:
    assert "keep it as you keep these" in summary(FULL, 1)
    silent = summary(FULL, 0)
    assert "river" not in silent
    assert "keep it as you keep these" not in silent


def test_nothing_found_is_not_called_more_than_that() -> None:
    text = summary(replace(AUDIT, findings=(), not_tried=()), 2)
    assert "nothing, to these attacks at this effort" in text
    assert "nothing is noted" in text


def test_a_place_that_cannot_be_written_to_is_said_so(tmp_path: Path) -> None:
    write_summary(AUDIT, tmp_path / "audit.md", 2)
    assert (tmp_path / "audit.md").read_text("utf-8") == summary(AUDIT, 2)
    with pytest.raises(Mistake, match="cannot be written"):
        write_summary(AUDIT, tmp_path / "absent" / "audit.md", 2)
