"""An installed securetm is whole: built as a source archive, from that as a wheel, and tried far from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TRIAL = """
import securetm
from securetm.leakage.audit_plans import audit_plan_names
from securetm.profiles import profile_names
from securetm.resources import FOLDERS, data_folder
from securetm.threats import threat_model_names
print(securetm.__file__)
print(*(data_folder(folder) for folder in FOLDERS), sep=";")
print(*profile_names(), *threat_model_names(), *audit_plan_names(), sep=";")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds nothing but the wheel, unpacked."""
    pytest.importorskip("build", reason="the package is built with `build` (pip install .[dev])")
    pytest.importorskip("hatchling", reason="the package is built with hatchling (pip install .[dev])")
    made, target = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("installed")
    ran(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(made), str(ROOT), cwd=made)
    (wheel,) = made.glob("*.whl")
    assert list(made.glob("*.tar.gz"))
    offline = ("--no-deps", "--no-index", "--no-compile", "--quiet", "--disable-pip-version-check")
    ran(sys.executable, "-m", "pip", "install", *offline, "--target", str(target), str(wheel), cwd=made)
    return target


def ran(*command: str, cwd: Path, **environment: str) -> str:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=outside | environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_wheel_finds_its_data_folders(installed: Path, tmp_path: Path) -> None:
    where, shelves, names = ran(sys.executable, "-P", "-c", TRIAL, cwd=tmp_path, PYTHONPATH=str(installed)).splitlines()
    assert Path(where).is_relative_to(installed)
    assert [Path(folder).is_relative_to(installed / "securetm" / "_data") for folder in shelves.split(";")] == [True] * 3
    assert {"open", "trusted_coordinator", "curious_coordinator", "gradient_inversion"} <= set(names.split(";"))


def test_the_installed_command_explains_a_profile(installed: Path, tmp_path: Path) -> None:
    command = (sys.executable, "-P", "-m", "securetm.cli.main", "explain", "open", "--json")
    facts = json.loads(ran(*command, cwd=tmp_path, PYTHONPATH=str(installed)))
    assert facts["profile"] == "open"
    assert facts["gaps"] == []


def test_the_wheel_holds_every_data_file_and_no_test(installed: Path) -> None:
    for folder in ("protocols", "threat_models", "audits"):
        ours = {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*") if path.is_file()}
        theirs = {
            str(p.relative_to(installed / "securetm/_data")) for p in (installed / "securetm/_data" / folder).rglob("*.*")
        }
        assert ours <= theirs
    assert not (installed / "tests").exists()
    assert (installed / "securetm" / "py.typed").is_file()
