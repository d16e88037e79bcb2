"""A package of somebody else brings one part of each kind: it is installed here, and nothing of securetm is changed for it."""

from __future__ import annotations

import json
import lzma
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "tests" / "example_package"
PARTS = {
    "models": "unigram-mixture",
    "mechanisms": "row_cap",
    "aggregations": "exact",
    "attacks": "word_counts",
    "corpus_readers": "jsonl.xz",
    "engines": "last-first",
}


def environment(path: str) -> dict[str, str]:
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    return outside | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def ran(*command: str, cwd: Path, path: str) -> str:
    done = subprocess.run(command, cwd=cwd, env=environment(path), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a process that has the example package, installed by pip into an empty folder, and this securetm."""
    pytest.importorskip("hatchling", reason="the example package is built with hatchling (pip install .[dev])")
    source, target = tmp_path_factory.mktemp("source") / "example", tmp_path_factory.mktemp("target")
    shutil.copytree(EXAMPLE, source)
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--no-compile", "--quiet", "--disable-pip-version-check")
    ran(sys.executable, "-m", "pip", "install", *offline, "--target", str(target), str(source), cwd=source, path="")
    return os.pathsep.join((str(target), str(ROOT)))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents of three parties in the example's format, its profile and its audit plan."""
    folder = tmp_path_factory.mktemp("place")
    for name in ("capped.toml", "counted.toml"):
        shutil.copy(EXAMPLE / name, folder)
    draw, words = random.Random(0), "river lake water boat goal match team score law court judge trial".split()
    rows = [{"text": " ".join(draw.choices(words, k=9)), "party": f"party {n % 3}"} for n in range(120)]
    with lzma.open(folder / "documents.jsonl.xz", "wt", encoding="utf-8") as packed:
        packed.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


SERVING = """
import contextlib, io, json, sys
from securetm.cli.main import main
for line in sys.stdin:  # one command after another, as JSON
    sys.argv, out, code = ["securetm", *json.loads(line)], io.StringIO(), 0
    with contextlib.redirect_stdout(out):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    print(json.dumps([code, out.getvalue()]), flush=True)
"""
Securetm = Callable[..., str]


@pytest.fixture(scope="module")
def securetm(installed: str, place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Securetm]:
    """Commands in that folder, all of them in one process that has the example package; what each prints."""
    with (tmp_path_factory.mktemp("said") / "errors").open("w+", encoding="utf-8") as errors:
        command = [sys.executable, "-P", "-c", SERVING]
        with subprocess.Popen(
            command, cwd=place, env=environment(installed), stdin=PIPE, stdout=PIPE, stderr=errors, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            asking, answers = process.stdin, process.stdout

            def securetm(*arguments: str) -> str:
                asking.write(json.dumps(arguments) + "\n")
                asking.flush()
                code, out = json.loads(answers.readline() or '["the process ended", ""]')
                errors.seek(0)
                assert code == 0, out[-3000:] + errors.read()[-3000:]
                return str(out)

            yield securetm
            asking.close()


@pytest.fixture(scope="module")
def run(securetm: Securetm) -> dict[str, object]:
    """What a run says that uses the model, the mechanism, the aggregation and the reader of the example."""
    settings = (
        "vocabulary.min_documents=1",
        "vocabulary.max_share=1",
        "vocabulary.most_candidates=500",
        "corpus.partition=column",
    )
    chosen = ("--model", "unigram-mixture", "--profile", "capped.toml", "--corpus", "documents.jsonl.xz", "--rounds", "4")
    more = [part for setting in settings for part in ("--set", setting)]
    found: dict[str, object] = json.loads(securetm("run", *chosen, *more, "--record", "--out", "run", "--json"))
    return found


def test_every_part_is_listed_and_none_is_imported_for_it(securetm: Securetm, installed: str, place: Path) -> None:
    listed = json.loads(securetm("parts", "--json"))
    for kind, name in PARTS.items():
        (found,) = [one for one in listed[kind] if one["package"] == "securetm-example"]
        assert found["name"] == name
    listing = "import sys\nfrom securetm.reports.profiles import listed_parts\nlisted_parts()\n"
    code = listing + "print('securetm_example' in sys.modules)"
    assert ran(sys.executable, "-P", "-c", code, cwd=place, path=installed).strip() == "False"


def test_a_run_uses_them_from_end_to_end(run: dict[str, object], securetm: Securetm) -> None:
    assert (run["model"], run["rounds"], run["parties"]) == ("unigram-mixture", 4, ["party 0", "party 1", "party 2"])
    topics = json.loads(securetm("topics", "run", "--json"))
    assert len(topics["topics"]) == 5  # as the model declares for a federation
    named = ("transform", "run", "jsonl.xz:documents.jsonl.xz", "--json")
    assert len(securetm(*named)) > 0


@pytest.mark.slow
def test_its_attack_audits_the_run(run: dict[str, object], securetm: Securetm) -> None:
    """The baseline over the same documents is read exactly; where rows are capped, hardly a count is."""
    assert run["rounds"] == 4
    audit = json.loads(securetm("audit", "counted.toml", "--run", "run", "--json"))
    shown = json.dumps(audit)
    assert "word_counts" in shown
    shares = [one["value"] for one in _findings(audit)]
    assert max(shares) > 0.9
    assert min(shares) < 0.5


def _findings(audit: dict[str, object]) -> list[dict[str, float]]:
    found = audit["findings"]
    assert isinstance(found, list)
    return found


@pytest.mark.slow
def test_its_parts_keep_the_laws_that_ship(installed: str, tmp_path: Path) -> None:
    laws = str(EXAMPLE / "example_laws.py")
    quiet = ("-q", "-n", "0", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path))
    said = ran(sys.executable, "-P", "-m", "pytest", *quiet, laws, cwd=tmp_path, path=installed)
    assert " passed" in said
