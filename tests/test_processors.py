"""The same results, to the last bit, with other instructions and other numbers of threads than this processor would choose.

Libraries choose their loops by what a processor can do. Told to do without, they show on one machine what another would make of
the same inputs; what a processor that lacks the instructions does beyond that is seen there only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from .printed_results import RESULTS

ROOT = Path(__file__).resolve().parent.parent
AS_IT_IS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
TWO_THREADS = dict.fromkeys(AS_IT_IS, "2")
NARROW = {  # the oldest instructions that each library has loops for
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "OPENBLAS_CORETYPE": "Nehalem",
}
GENERIC = {"NUMBA_CPU_NAME": "generic"}  # everything is compiled anew: for the slow suite
OTHERWISE = ("prodlda",)  # compiled for another processor, its sums of words are added in other groups: the last bits differ
LAWS = "tests/models/neural/test_prodlda_rows.py"


def without_dispatch() -> dict[str, str]:
    """Numpy without any of the loops that it chooses by processor."""
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]  # type: ignore[index]
    return {"NPY_DISABLE_CPU_FEATURES": " ".join(found)} if found else {}


def run(changed: Mapping[str, str], *command: str) -> str:
    environment = {**os.environ, **AS_IT_IS, **changed, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def results(changed: Mapping[str, str]) -> dict[str, str]:
    """Digests of noise and of trained models."""
    found: dict[str, str] = json.loads(run(changed, "tests.printed_results"))
    return found


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """As this process makes them, with the threads that it has."""
    return {name: make() for name, make in RESULTS.items()}


@pytest.mark.slow
def test_results_are_the_same_with_old_instructions_and_two_threads(expected: dict[str, str]) -> None:
    assert len(set(expected.values())) == len(expected) >= 7
    assert results({**TWO_THREADS, **NARROW, **without_dispatch()}) == expected


@pytest.mark.slow
def test_results_are_the_same_compiled_for_any_processor(expected: dict[str, str], tmp_path: Path) -> None:
    found = results({**GENERIC, "NUMBA_CACHE_DIR": str(tmp_path)})
    assert {name for name in expected if found[name] != expected[name]} <= set(OTHERWISE)


@pytest.mark.slow
@pytest.mark.parametrize("changed", [{**TWO_THREADS, **NARROW}, GENERIC], ids=["old instructions", "any processor"])
def test_rows_are_the_same_wherever_they_stand_there_too(changed: Mapping[str, str], tmp_path: Path) -> None:
    run({**changed, **without_dispatch(), "NUMBA_CACHE_DIR": str(tmp_path)}, "pytest", "-n", "0", "-q", LAWS)
