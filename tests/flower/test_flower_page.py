"""The how-to runs as it is written: files, parties, SuperLink, SuperNodes and `flwr run`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..docs.blocks import DOCS, flower_blocks, run_page
from .deployed import ROOT, environment, needs_flower

PAGE = DOCS / "how-to" / "flower.md"


@needs_flower
@pytest.mark.slow
def test_the_page_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(PAGE)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "securetm").write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m securetm.cli.main "$@"\n'
    )
    (tmp_path / "bin" / "securetm").chmod(0o755)
    settings = environment(tmp_path)
    settings["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{settings['PATH']}"
    script = "\n".join(["set -e", *flower_blocks(PAGE)])
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen(["bash", "-c", script], env=settings, stdout=log, stderr=log, start_new_session=True)
        try:
            running.wait(1_500)
        finally:
            os.killpg(running.pid, signal.SIGTERM)
            running.wait()
    said = (tmp_path / "log").read_text("utf-8")
    assert "securetm: 2 rounds, kept in" in said, said[-3_000:]
    homes = sorted((tmp_path / "trial" / "parties").glob("*/home/data/*/runs/*/release/model.safetensors"))
    assert len(homes) == 5, said[-3_000:]
