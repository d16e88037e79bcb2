"""A stranger's network in a federation: with and without a budget, and only where a party's operator allows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.errors import Mistake
from securetm.federation.folder import begin
from securetm.federation.refusal_errors import NotAllowedHere
from securetm.federation.simulation.simulation import execute
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.runs.finished import FinishedRun
from securetm.stages import Unwatched
from tests.models.torch_module import networks

from ..forking import ended
from .conftest import small_plan
from .joined import PLAN as PLAN_OF_LDA
from .joined import Organisations, trained

NETWORK = f"{networks.__name__}:SmallNetwork"
PLAN = PLAN_OF_LDA.replace('name = "lda"', f'name = "torch-module"\nmodule = "{NETWORK}"\nbatch = 32')


def plan_of(**more: object) -> Plan:
    model = {"name": "torch-module", "module": NETWORK, "n_topics": 3, "batch": 24, "options": {"hidden": 6}}
    return small_plan(**{"model": model, "training__rounds": 3, **more})


@pytest.mark.slow
def test_a_run_under_a_budget(five: dict, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(sorted(five["north"].vocabulary)), "utf-8")
    words = {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": str(tmp_path / "words.txt")}
    plan = plan_of(profile="dp-distributed", privacy__rate=0.5, privacy__delta=1e-3, **words)
    result = execute(begin(tmp_path / "run", plan, five), Unwatched(), comparison=False)
    assert result["rounds"] == 3
    assert all(0 < spent["epsilon"] < np.inf for spent in result["spent"])


def test_the_source_belongs_to_the_agreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(networks.__file__).read_text("utf-8")
    (tmp_path / "changing_network.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    model = {"name": "torch-module", "module": "changing_network:SmallNetwork"}
    before = small_plan(model=model)
    (tmp_path / "changing_network.py").write_text(text + "\n# another version\n", "utf-8")
    after = small_plan(model=model)
    assert before.model.settings["source"] != after.model.settings["source"]
    with pytest.raises(Mistake):
        agree(before)


@pytest.mark.slow
def test_organisations_train_it_and_a_policy_may_forbid_it_before_it_is_imported(
    keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    organisations = Organisations.of(keys, tmp_path / "all", PLAN)
    organisations.write("numpy", policy=f'modules = ["{NETWORK}"]')
    _, joined = trained(organisations, tmp_path / "coordinator")
    assert joined.problems == {}
    assert joined.reports["numpy"]["rounds"] == 2
    assert len(FinishedRun.open(Path(joined.reports["numpy"]["directory"])).topics(5)) == 3
    (tmp_path / "forbidden_network.py").write_text(Path(networks.__file__).read_text("utf-8"), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    plan = organisations.file("numpy").parent / "plan.toml"
    elsewhere = PLAN.replace(f'module = "{NETWORK}"', "").replace(
        "[training]", '[model.settings]\nmodule = "forbidden_network:SmallNetwork"\n[training]'
    )
    for forbidden in (PLAN.replace(NETWORK, "forbidden_network:SmallNetwork"), elsewhere):
        plan.write_text(forbidden, "utf-8")
        for policy in (f'modules = ["{NETWORK}"]', 'models = ["lda"]'):
            organisations.write("numpy", policy=policy)
            with pytest.raises(NotAllowedHere, match="the module forbidden_network:SmallNetwork"):
                organisations.prepared("numpy")
    assert "forbidden_network" not in sys.modules


# ---- a folder from somebody else -----------------------------------------------------------------------------------

THEIRS = "their_package.network:SmallNetwork"
RAN = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"


def _trained_elsewhere(folder: str) -> None:
    sys.path.insert(0, folder)
    plan = small_plan(model={"name": "torch-module", "module": THEIRS, "n_topics": 2}, training__rounds=1)
    parties = {name: Corpus.from_strings(["cats sleep deep", "dogs run far"] * 60, name=name) for name in ("one", "two")}
    execute(begin(Path(folder) / "run", plan, parties), Unwatched(), comparison=False)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, and with the package whose class the run names: whoever imports it leaves a mark."""
    folder = tmp_path_factory.mktemp("elsewhere")
    package = folder / "their_package"
    package.mkdir()
    (package / "__init__.py").write_text(RAN, "utf-8")
    (package / "network.py").write_text(Path(networks.__file__).read_text("utf-8") + RAN, "utf-8")
    assert ended(_trained_elsewhere, str(folder)) == 0
    (package / "ran").unlink()
    return folder


@pytest.fixture
def theirs(elsewhere: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return shutil.copytree(elsewhere, tmp_path / "theirs")


def _asked(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([".", str(Path(networks.__file__).parents[3])])
    given = os.environ | {"PYTHONPATH": path, **variables}
    return subprocess.run([sys.executable, *command], env=given, cwd=folder, capture_output=True, text=True, check=False)


LOADS = "import securetm; print(len(securetm.load('run').topics(3)))"


BY_COMMAND = (("topics", "run"), ("run", "--resume", "run"), ("report", "run"))
BY_PYTHON = (LOADS, LOADS.replace("'run'", "'run/release/model.safetensors'"))
TO_ASK = (*(("-c", program) for program in BY_PYTHON), *(("-m", "securetm.cli.main", *words) for words in BY_COMMAND))


@pytest.mark.parametrize(
    "command",
    [pytest.param(words, marks=() if place == 0 else pytest.mark.slow) for place, words in enumerate(TO_ASK)],
    ids=lambda words: " ".join(words)[-30:],
)
def test_no_folder_makes_anybody_run_its_code(command: tuple[str, ...], theirs: Path) -> None:
    said = _asked(theirs, *command)
    assert said.returncode != 0
    assert "no file of a run or model makes securetm import code" in said.stderr
    assert not (theirs / "their_package" / "ran").exists()
