"""What a terminal is shown of foreign words, and bars that fit beside long names."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from securetm.reports.printable import printable, without_commands
from securetm.reports.progress import Bars
from securetm.reports.terminal import Screen

NASTY = "a\x1b]0;title\x07b\x9b2Jc\r\u202ed\ue000\u00a0é"


def test_what_would_be_obeyed_is_spelt_out_or_left_out() -> None:
    assert printable(NASTY) == "a\\x1b]0;title\\x07b\\x9b2Jc\\r\\u202ed\ue000\u00a0é"
    assert printable("two\nlines \ud800") == "two\\nlines \\ud800"
    assert without_commands(f"{NASTY}\n") == "a]0;titleb2Jcd\ue000\u00a0é\n"


def test_a_screen_obeys_this_program_alone() -> None:
    out = StringIO()
    table = Table(title=NASTY)
    table.add_row(NASTY, "[bold]strong[/bold]")
    to = Screen(file=out, width=80, force_terminal=True, color_system="truecolor", highlight=False)
    to.print(table)
    to.print(NASTY)
    assert "\x1b[1mstrong" in out.getvalue()
    for command in ("\x1b]", "\x9b", "\x07", "\u202e"):
        assert command not in out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_bar_and_time_left_stay_to_be_seen_beside_long_names(width: int) -> None:
    out = StringIO()
    with Bars(Console(file=out, width=width, force_terminal=True, color_system=None)) as bars:
        bars.stage("whether a document was in the training, from the word counts in the finished model", 1000)
        bars.step(500)
    last = re.sub(r"\x1b\[[?\d]*[A-Za-z]", "", next(line for line in reversed(out.getvalue().splitlines()) if "left" in line))
    assert "━━━━━" in last
    assert "500/1000" in last
    assert re.search(r"left [-\d]:[-\d]{2}:[-\d]{2}$", last.rstrip())
    assert len(last) <= width
