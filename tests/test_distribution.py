"""Files whose tests are handed out first, or one by one, are there, and all other tests stay with their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distribution import APART, LONG, group_of

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", LONG)
def test_a_long_file_is_there(name: str) -> None:
    assert (ROOT / name).is_file()


def test_only_tests_that_share_nothing_leave_their_file() -> None:
    assert group_of(f"{APART[0]}::test_one[a]") == f"{APART[0]}::test_one[a]"
    assert (
        group_of("tests/test_errors.py::test_one") == group_of("tests/test_errors.py::Two::test_two") == "tests/test_errors.py"
    )
