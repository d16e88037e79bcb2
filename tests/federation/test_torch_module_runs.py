"""A stranger's network in a federation: with and without a budget, and only where a party's operator allows it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from securetm.agreement import agree
from securetm.errors import BadSetting
from securetm.federation.finished import FinishedRun
from securetm.federation.folder import begin
from securetm.federation.joining_errors import NotAllowedHere
from securetm.federation.simulation import execute
from securetm.models.model_errors import NoTorchModule, OtherTorchModule
from securetm.plans import Plan
from securetm.stages import Unwatched
from tests.models.torch_module import networks

from .conftest import small_plan
from .joined import Organisations, make_keys, trained

NETWORK = f"{networks.__name__}:SmallNetwork"
PLAN = f"""
profile = "masked"
[model]
name = "torch-module"
module = "{NETWORK}"
n_topics = 3
batch = 32
[vocabulary]
min_documents = 2
max_share = 1.0
most_candidates = 500
[training]
rounds = 2
held_out = 0.2
"""


def plan_of(**more: object) -> Plan:
    model = {"name": "torch-module", "module": NETWORK, "n_topics": 3, "batch": 24, "options": {"hidden": 6}}
    return small_plan(**{"model": model, "training__rounds": 3, **more})


@pytest.mark.parametrize("epochs", [0, 1])
def test_a_run_in_the_open(epochs: int, corpora: dict, tmp_path: Path) -> None:
    plan = plan_of()
    plan.model.settings["local_epochs"] = epochs  # type: ignore[index]
    folder = begin(tmp_path / "run", plan, corpora)
    result = execute(folder, Unwatched(), comparison=False)
    assert result["rounds"] == 3
    assert np.isfinite(result["quality"]["held_out"])
    run = FinishedRun.open(tmp_path / "run")
    assert run.transform(corpora["north"]).shape == (len(corpora["north"]), 3)


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
    with pytest.raises(OtherTorchModule):
        agree(before)


def test_a_plan_without_a_module() -> None:
    with pytest.raises(BadSetting, match="must name a class"):
        small_plan(model={"name": "torch-module"})
    with pytest.raises(NoTorchModule):
        small_plan(model={"name": "torch-module", "module": "nowhere_at_all:Network"})


def test_organisations_train_it_and_a_policy_may_forbid_it_before_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    organisations = Organisations.of(make_keys(tmp_path / "keys"), tmp_path / "all", PLAN)
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
