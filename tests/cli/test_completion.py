"""Shells complete commands, profiles, models and runs, and the completion is installed by an option."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from securetm.cli import options
from securetm.models import MODELS
from securetm.plans.profiles import profile_names


def asked(words: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """What bash is told when somebody presses the key behind these words."""
    place = len(words.split()) - (not words.endswith(" "))
    given = os.environ | {"_SECURETM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place), **variables}
    command = [sys.executable, "-m", "securetm.cli.main"]
    return subprocess.run(command, env=given, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for place, record in (("runs/demo", "run.json"), ("runs/other", "run.json"), ("homes/ours", "report.json")):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / record).touch()
    (tmp_path / "runs" / "empty").mkdir()
    return tmp_path


def test_a_shell_completes_what_is_typed(folder: Path) -> None:
    for words, offered in (
        ("securetm ch", ["choose", "check"]),
        ("securetm compare d", ["demo"]),
    ):
        said = asked(words, folder)
        assert (said.returncode, said.stdout.split(), said.stderr) == (0, offered, ""), words


def test_names_and_folders_that_are_offered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert options.profiles("") == list(profile_names())
    assert options.models("") == list(MODELS.names())
    assert options.threat_models("curious") == ["curious_coordinator"]
    assert options.run_folders("homes/") == ["homes/ours"]
    assert options.run_folders(str(folder / "runs" / "d")) == [str(folder / "runs" / "demo")]
    assert options.run_folders("nowhere/") == []


def test_it_is_installed_by_an_option(folder: Path) -> None:
    given = os.environ | {"HOME": str(folder)}
    typed = f"{shlex.quote(sys.executable)} -m securetm.cli.main --install-completion; exit $?"
    command = ["bash", "-c", typed]  # the shell above it is the one that is completed
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "_SECURETM_COMPLETE=complete_bash" in (folder / ".bash_completions" / "securetm.sh").read_text("utf-8")
    assert "securetm.sh" in (folder / ".bashrc").read_text("utf-8")


def test_every_profile_model_and_run_is_completed() -> None:
    """Whoever adds such an option says what is offered."""
    from securetm.cli.application import commands

    missing, known = [], {"profile", "profiles", "model", "threat_model", "resume", "continue_", "against", "run"}

    def look(command: object, path: str) -> None:
        named = (one for one in getattr(command, "params", ()) if one.name in known)
        missing.extend(f"{path} {one.name}" for one in named if one._custom_shell_complete is None)
        for name, inner in getattr(command, "commands", {}).items():
            look(inner, f"{path} {name}")

    look(commands(), "securetm")
    assert sorted(missing) == sorted(NOT_NAMED)


# A file of topics, whose name the shell completes itself, and a switch.
NOT_NAMED = ["securetm audit model", "securetm init run"]
