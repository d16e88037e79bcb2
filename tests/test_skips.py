"""A skip whose reason is on no list fails a run that must be whole, in one process or several, and elsewhere is only told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import ALLOWED, OPTION, unlisted


def ran(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "tests.skips", "-p", "no:cacheprovider", "-q", *options, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600)


ROOT = Path(__file__).resolve().parent.parent


def test_only_reasons_on_the_list_are_allowed() -> None:
    assert unlisted(["needs a GPU", "root may write everywhere"]) == []
    assert unlisted(["needs a GPU", "no browser is installed", "no browser is installed"]) == ["no browser is installed"]
    assert len(ALLOWED) < 10  # a short list


def test_each_reason_on_the_list_is_one_that_a_test_gives() -> None:
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path.name not in {"skips.py", "test_skips.py"}]
    given = "\n".join(path.read_text("utf-8") for path in tests)
    assert [reason for allowed in ALLOWED for reason in allowed.split("|") if reason not in given] == []


@pytest.mark.parametrize("where", [["-n", "0"], pytest.param(["-n", "1"], marks=pytest.mark.slow)])
def test_a_run_that_must_be_whole_fails_for_an_unlisted_skip_and_names_it(where: list[str], tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    (tmp_path / "test_left_out.py").write_text(
        "import pytest\n@pytest.mark.skipif(True, reason='no such thing here')\ndef test_one(): pass\ndef test_two(): pass\n"
    )
    assert ran(tmp_path, *where).returncode == 0
    whole = ran(tmp_path, OPTION, *where)
    assert whole.returncode == 1
    assert "not listed in tests/skips.py: no such thing here" in whole.stdout
    assert "1 passed, 1 skipped" in whole.stdout
