"""The list of faults fits the tree, and some of them are made and caught. All of them: `python -m tests.mutations`."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter

import pytest

from .faults import OUTCOME, ROOT, all_faults


def test_every_fault_fits_one_place_and_names_tests_that_are_there() -> None:
    faults = all_faults()
    twice = [name for name, count in Counter(one.id for one in faults).items() if count > 1]
    assert (len(faults) >= 200, twice) == (True, [])
    for fault in faults:
        fault.made()
        ast.parse(fault.new)
        gone = [name for name in fault.tests if not fault.files_called(name)]
        assert not gone, f"{fault.id} names files of tests that are not there: {gone}"


@pytest.mark.slow
def test_a_sample_is_caught_as_before() -> None:
    caught = [name for name, by in json.loads(OUTCOME.read_text("utf-8")).items() if by != "survived"]
    ran = subprocess.run([sys.executable, "-m", "tests.mutations", *caught[::20]], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
