"""`securetm runs` and `securetm compare`: runs are listed, deleted and shown side by side."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from securetm.accounting.calibration import BudgetTooSmall
from securetm.federation.budget.prices import epsilon_for_runs, noise_for_runs
from securetm.plans.agreement import Agreement, agree
from securetm.plans.recommend import plan_from_tables
from securetm.reports.runs import comparison_tables, show_sweep
from securetm.reports.terminal import show
from securetm.runs.compare import side_by_side, swept
from securetm.runs.kept_runs import epsilon_told

from .conftest import securetm
from .keys.terminal import typed

LDA = ("--model", "lda", "--profile", "open", "--rounds", "3", "--corpus", "documents.jsonl", "--partition", "column")
FEW = ("--set", "vocabulary.min_documents=2", "--set", "vocabulary.max_share=1.0", "--no-comparison")


def trained(name: str, *options: str) -> None:
    said = securetm("run", *LDA, *FEW, "--out", name, *options)
    assert said.code == 0, said.err


@pytest.fixture(scope="module")
def several(workplace: Path) -> Iterator[Path]:
    """Three runs in the folder `kept`: two that differ in the seed, and one with fewer topics."""
    before = Path.cwd()
    os.chdir(workplace)
    for name, options in (("a", ("--topics", "3")), ("b", ("--topics", "3", "--seed", "1")), ("c", ("--topics", "2"))):
        trained(f"kept/{name}", *options)
    yield workplace / "kept"
    os.chdir(before)


def listed(*arguments: str) -> dict[str, Any]:
    found = securetm("runs", *arguments, "--json").json["runs"]
    return {run["name"]: run for run in found}


@pytest.fixture
def copied(several: Path, here: Path, tmp_path: Path) -> Path:
    """A folder with a copy of one run, to be deleted."""
    shutil.copytree(several / "a", tmp_path / "runs" / "a")
    return tmp_path / "runs"


def test_runs_are_listed_with_what_they_are(several: Path, here: Path) -> None:
    runs = listed("--in", "kept")
    assert list(runs) == ["a", "b", "c"]
    result = json.loads((several / "a" / "result.json").read_text())
    assert (runs["a"]["perplexity"], runs["a"]["rounds"]) == (result["quality"]["held_out"], 3)
    assert {run["model"] for run in runs.values()} == {"lda"}
    assert all(run["finished"] and run["size"] > 1000 and run["epsilon"] is None for run in runs.values())
    worst = max(runs, key=lambda name: runs[name]["perplexity"])
    assert list(listed("--in", "kept", "--sort", "perplexity"))[-1] == worst
    shown = securetm("runs", "--in", "kept").out
    assert "perplexity" in shown
    assert list(listed("b", "--in", "kept")) == ["b"]


def test_what_is_no_run_is_not_listed_and_what_is_damaged_says_so(copied: Path) -> None:
    (copied / "notes").mkdir()
    (copied / "a" / "result.json").write_text("{}")
    (run,) = securetm("runs", "--in", str(copied), "--json").json["runs"]
    assert "result.json" in run["trouble"]
    assert "cannot be read" in securetm("runs", "--in", str(copied)).out
    assert securetm("runs", "--in", str(copied / "absent")).code == 0


def test_one_command_deletes_a_run_and_nothing_else(copied: Path) -> None:
    (copied / "a" / "my-corpus.csv").write_text("text\n")
    said = securetm("runs", "a", "--in", str(copied), "--delete", "--yes", "--json")
    assert said.json["left"] == {str(copied / "a"): ["my-corpus.csv"]}
    assert [one.name for one in (copied / "a").iterdir()] == ["my-corpus.csv"]
    assert securetm("runs", "a", "--in", str(copied), "--delete", "--yes").code == 2  # it is no run any more


def test_nothing_is_deleted_unless_somebody_agrees(copied: Path) -> None:
    before = sorted(copied.rglob("*"))
    said = securetm("runs", "a", "--in", str(copied), "--delete")
    assert (said.code, sorted(copied.rglob("*"))) == (2, before)
    assert "--yes" in said.err
    assert typed(["runs", "a", "--in", str(copied), "--delete"], "n\n").code == 2
    assert sorted(copied.rglob("*")) == before
    assert typed(["runs", "a", "--in", str(copied), "--delete"], "y\n").code == 0
    assert list(copied.iterdir()) == []


@pytest.mark.parametrize("name", ["absent", "..", "/", "kept"])
def test_what_is_no_run_is_never_deleted(several: Path, here: Path, name: str) -> None:
    before = sorted(here.rglob("*"))
    said = securetm("runs", name, "--in", "kept", "--delete", "--yes")
    assert (said.code, sorted(here.rglob("*"))) == (2, before)


def test_neither_a_link_nor_what_a_link_leads_to_is_deleted(copied: Path) -> None:
    (copied / "link").symlink_to(copied / "a")
    assert securetm("runs", "link", "--in", str(copied), "--delete", "--yes").code == 2
    outside = copied.parent / "outside"
    outside.mkdir()
    (outside / "precious").write_text("kept")
    (copied / "a" / "audits").mkdir()
    (copied / "a" / "audits" / "away").symlink_to(outside)
    assert securetm("runs", "a", "--in", str(copied), "--delete", "--yes").code == 0
    assert (outside / "precious").read_text() == "kept"


def test_ledgers_of_documents_are_never_deleted(copied: Path) -> None:
    ledger = copied / "a" / "parties" / "north.ledger"
    ledger.write_bytes(b"what was spent")
    said = securetm("runs", "a", "--in", str(copied), "--delete", "--yes")
    assert (said.code, ledger.read_bytes()) == (2, b"what was spent")
    assert "north.ledger" in said.err


def test_the_cache_is_deleted_by_the_same_command(here: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "securetm" / "embeddings").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    assert securetm("runs", "--delete", "--cache", "--yes").code == 0
    assert [one.name for one in tmp_path.iterdir()] == ["other"]


# ---- side by side --------------------------------------------------------------------------------------------------


def test_runs_side_by_side_with_intervals_over_seeds(several: Path, here: Path) -> None:
    found = securetm("compare", "a", "c", "b", "--in", "kept", "--json").json
    assert [(group["runs"], group["seeds"]) for group in found["groups"]] == [(["a", "b"], [0, 1]), (["c"], [0])]
    assert found["differing"] == {"model.n_topics": [3, 2]}
    each = [json.loads((several / name / "result.json").read_text())["quality"]["held_out"] for name in "ab"]
    figure = found["groups"][0]["figures"]["perplexity"]
    assert figure["values"] == each
    reach = 12.706205 * np.std(each, ddof=1) / np.sqrt(2)  # Student's t with one degree of freedom
    np.testing.assert_allclose([figure["low"], figure["high"]], [np.mean(each) - reach, np.mean(each) + reach], rtol=1e-6)
    assert found["groups"][1]["figures"]["perplexity"]["low"] is None
    shown = securetm("compare", "a", "b", "c", "--in", "kept").out
    assert "±" in shown
    assert "model.n_topics" in shown


def test_a_run_that_is_another_one_again_counts_once_and_other_words_have_no_common_perplexity(
    several: Path, here: Path
) -> None:
    trained("kept/again", "--topics", "3")
    trained("kept/short", "--topics", "3", "--set", "vocabulary.max_words=12")
    trained("kept/labelled", "--topics", "3", "--label", "party")
    try:
        (group,) = securetm("compare", "a", "a", "again", "b", "--in", "kept", "--json").json["groups"]
        assert (group["runs"], group["seeds"], group["identical"]) == (["a", "b"], [0, 1], [["a", "again"]])
        assert "the same run again" in securetm("compare", "a", "again", "--in", "kept").out
        found = securetm("compare", "a", "short", "--in", "kept")
        said = " ".join(found.out.split())
        assert "different words" in said
        assert "perplexity over that of word frequencies" in said
        assert not re.search(r"│ perplexity +│", found.out)
        told = json.loads((several / "a" / "result.json").read_text())["baseline"]
        (run,) = listed("a", "--in", "kept").values()
        assert run["ratio"] == told["model"] / told["word_frequencies"]
        (labelled,) = securetm("compare", "labelled", "--in", "kept", "--json").json["groups"]
        assert 0 < labelled["figures"]["macro_f1"]["mean"] <= 1
        assert group["figures"]["macro_f1"]["mean"] is None
    finally:
        assert securetm("runs", "again", "short", "labelled", "--in", "kept", "--delete", "--yes").code == 0


def test_runs_are_told_apart_by_their_folders_and_not_by_their_last_names(several: Path, here: Path, tmp_path: Path) -> None:
    """A copy keeps the name that its run had; and folders of two sweeps may have the same last name."""
    again, other = shutil.copytree(several / "a", tmp_path / "copy"), shutil.copytree(several / "b", tmp_path / "a")
    said = securetm("compare", "a", str(again), str(other), "--in", "kept", "--json")
    (group,) = said.json["groups"]
    assert (group["runs"], group["seeds"]) == (["a", str(other)], [0, 1])
    assert group["identical"] == [["a", str(again)]]
    assert len(group["figures"]["perplexity"]["values"]) == 2
    third = shutil.copytree(several / "c", tmp_path / "other" / "a")
    (tested,) = securetm("compare", "a", str(third), "--in", "kept", "--json").json["paired"]
    assert (tested["runs"], tested["needs"]) == (["a", str(third)], None)
    assert tested["difference"] != 0


def test_no_settings_differ_of_a_single_run(several: Path, here: Path) -> None:
    assert "Settings that differ" in securetm("compare", "a", "c", "--in", "kept").out
    assert "Settings that differ" not in securetm("compare", "a", "--in", "kept").out


def test_the_same_documents_test_whether_a_difference_is_chance(several: Path, here: Path) -> None:
    (first,) = securetm("compare", "a", "c", "b", "--in", "kept", "--json").json["paired"]
    results = [json.loads((several / name / "result.json").read_text())["quality"]["held_out"] for name in "ac"]
    np.testing.assert_allclose(first["difference"], np.log(results[0]) - np.log(results[1]), atol=1e-3)
    assert first["low"] < first["difference"] < first["high"]
    assert (first["runs"], first["needs"]) == (["a", "c"], None)
    assert "against a, on the same" in securetm("compare", "a", "c", "--in", "kept").out
    trained("kept/d", "--topics", "2", "--seed", "5")
    (second,) = securetm("compare", "a", "d", "--in", "kept", "--json").json["paired"]
    assert second["difference"] is None
    assert "same held-out documents" in second["needs"]
    assert securetm("runs", "d", "--in", "kept", "--delete", "--yes").code == 0
    assert securetm("compare", "a", "c", "--in", "kept", "--json", "--no-paired").json["paired"] == []


def test_only_finished_runs_are_compared(copied: Path) -> None:
    (copied / "a" / "result.json").unlink()
    said = securetm("compare", "a", "--in", str(copied))
    assert said.code == 2
    assert "finished run" in said.err


SWEPT = ("sweep", "--corpus", "documents.jsonl", "--partition", "column", "--over", "topics=2,4")


def test_a_sweep_trains_once_for_each_value_and_draws_them(here: Path, tmp_path: Path) -> None:
    asked = (*SWEPT, "--model", "lda", "--profile", "open", "--rounds", "3", "--label", "party", *FEW[:-1])
    said = securetm(*asked, "--out", str(tmp_path / "swept"), "--json")
    assert said.code == 0, said.err
    found = said.json
    assert (found["over"], found["values"], found["epsilon_together"]) == ("model.n_topics", ["2", "4"], None)
    each = [json.loads((Path(run) / "result.json").read_text()) for run in found["runs"]]
    assert [len(one["topics"]) for one in each] == [2, 4]
    assert found["figures"]["diversity"] == [one["quality"]["diversity"] for one in each]
    assert all(0 < value <= 1 for value in found["figures"]["macro_f1"])
    page = (tmp_path / "swept" / "sweep.html").read_text()
    assert "<svg" in page
    assert "ratio to word frequencies" in page
    assert "no budget is spent" in " ".join(said.err.split())


@pytest.mark.slow
def test_a_sweep_under_a_budget_spends_no_more_than_one_run(here: Path, tmp_path: Path) -> None:
    """The noise of each is that of two runs on the same documents, and the words are found and paid for once."""
    asked = (*SWEPT, "--profile", "dp-distributed", "--epsilon", "20", "--rounds", "2", "--start", "plain", *FEW[:-1])
    said = securetm(*asked, "--set", "vocabulary.most_candidates=500", "--out", str(tmp_path / "swept"), "--json")
    assert said.code == 0, said.err
    assert "together they spend at most epsilon 20" in " ".join(said.err.split())
    each = [json.loads((Path(run) / "result.json").read_text()) for run in said.json["runs"]]
    first, second = (max(one["all_runs"] for one in run["spent"]) for run in each)
    assert 0 < first < second <= 20
    assert second == said.json["epsilon_together"]
    assert said.json["figures"]["epsilon_so_far"] == [first, second]
    assert all(0 < own < 20 for own in said.json["figures"]["epsilon"])
    assert [run["rounds"] for run in each] == [2, 2]
    second_plan = json.loads((Path(said.json["runs"][1]) / "run.json").read_text())["plan"]
    assert second_plan["vocabulary"]["file"].endswith("topics-2/release/model.safetensors")


def test_no_epsilon_of_a_sweep_is_above_the_budget(several: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run starts from is another run of the sweep, whose ledger is theirs: it is no second spend."""
    own, all_runs, told = (1.6645, 1.4548), (1.6645, 2.9999), {}
    for name, mine, so_far in zip("ac", own, all_runs, strict=True):
        result = json.loads((several / name / "result.json").read_text())
        spent = {"party": "north", "unit": "document", "budget": 3.0, "epsilon": so_far + 0.12, "all_runs": so_far}
        spent |= {"delta": 2e-5, "all_runs_delta": 1e-5}
        spent["from_origins"] = [{"run": "a", "epsilon": 1.6645, "delta": 1e-5}] if name == "c" else []
        told[(several / name).resolve()] = {**result, "spent": [{**spent, "own": {"epsilon": mine, "delta": 1e-5}}]}
    monkeypatch.setattr("securetm.runs.compare.result_of", told.__getitem__)
    found = {"over": "topics", "values": ["3", "2"], **swept(list(told))}
    assert (found["figures"]["epsilon"], found["epsilon_together"]) == (list(own), 2.9999)
    shown = recorded(lambda console: show_sweep(found, console))
    assert "epsilon of all so far" in " ".join(shown.split())
    assert "3.12" not in shown
    compared = side_by_side({"topics-3": several / "a", "topics-2": several / "c"})  # as `compare` shows them later
    assert [group["figures"]["epsilon"]["mean"] for group in compared["groups"]] == [1.6645 + 0.12, 2.9999]
    shown = recorded(lambda console: show(comparison_tables(compared), console))
    assert "3.12" not in shown
    served = [{"epsilon": 3.1, "delta": 2e-5, "from_origins": [{"run": "a"}]}]  # a coordinator knows no ledger of a party
    assert epsilon_told(served) == 3.1
    assert "The epsilon of topics-2 is that of what it started from, too: by itself it spent 1.455." in " ".join(shown.split())


def test_what_is_no_run_is_called_by_the_path_where_it_was_looked_for(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs" / "empty").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for name, meant in (("empty", "runs/empty"), ("runs/empty", "runs/empty"), ("else/where", "else/where"), ("b", "runs/b")):
        assert f"error: {meant} holds no run" in securetm("compare", name).err


def recorded(showing: Callable[[Console], None]) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    showing(console)
    return console.export_text()


def test_of_a_budget_beyond_what_several_runs_can_add_up_a_part_is_shared() -> None:
    def asked(epsilon: float) -> Agreement:
        public = {"vocabulary": {"source": "file", "file": "english"}, "privacy": {"epsilon": epsilon}}
        return agree(plan_from_tables({"profile": "dp-distributed", **public}, "the plan"))

    shared = epsilon_for_runs(asked(90.0), 5, 2)
    assert 25 < shared < 60
    assert noise_for_runs(asked(shared), 5, 2) < 1.0
    with pytest.raises(BudgetTooSmall):
        noise_for_runs(asked(90.0), 5, 2)
    assert epsilon_for_runs(asked(12.345), 5, 2) == 12.345


def test_a_sweep_refuses_what_would_change_the_protection_before_it_reads(tmp_path: Path) -> None:
    for over in ("topics=5", "profile=open,masked", "privacy.epsilon=1,2", "=1,2"):
        said = securetm("sweep", "--over", over, "--corpus", "absent.jsonl", "--out", str(tmp_path / "swept"))
        assert (said.code, "--over topics=10,20,50" in said.err) == (2, True), said.err
    unknown = securetm("sweep", "--over", "topcis=1,2", "--corpus", "absent.jsonl", "--out", str(tmp_path / "swept")).err
    assert "names neither an option" in " ".join(unknown.split())
    assert "did you mean topics?" in " ".join(unknown.split())
    assert not (tmp_path / "swept").exists()
