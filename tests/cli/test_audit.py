"""`securetm audit`: the contract of its JSON, its page, its exit codes and its letters."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from securetm.aggregation import masked_opening, masked_round
from securetm.leakage import plans

from ..leakage.conftest import texts, write_plan
from .conftest import securetm
from .test_cli import example_of, told

CONTRACT = {
    "attack", "adversary", "threat_model", "profile", "model", "claim", "measure", "value", "low", "high", "ceiling", "unit",
    "verdict", "baseline", "seconds",
}  # fmt: skip


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents and a plan over them."""
    place = tmp_path_factory.mktemp("bench")
    names = ("centre", "east", "north", "south", "west")
    rows = [{"text": text, "party": name} for seed, name in enumerate(names) for text in texts(70, seed)]
    (place / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    write_plan(place / "small.toml", place / "documents.jsonl")
    return place


def test_audit_says_what_the_contract_promises(bench: Path, tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    said = securetm("audit", str(bench / "small.toml"), "--html", str(page), "--json")
    assert said.code == 0, said.err
    result = said.json
    assert (result["plan"], result["run"]) == ("small", "demonstration")
    assert [finding["verdict"] for finding in result["findings"]] == ["refuted", "not refuted"]
    for finding in result["findings"]:
        assert finding.keys() >= CONTRACT
        assert finding["low"] <= finding["value"] <= finding["high"]
        assert 0.9 < finding["ceiling"] <= 1
    assert [finding["baseline"] for finding in result["findings"]] == [True, False]
    assert result["not_tried"]
    assert "<!doctype html>" in page.read_text("utf-8")
    assert "One claim was tried and not refuted" in " ".join(said.err.split())
    assert "no evidence of safety" in " ".join(said.err.split())


def test_a_refuted_claim_exits_1_also_when_it_is_shown_again(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in (masked_round, masked_opening):
        monkeypatch.setattr(room, "apply_masks", lambda vector, masks: None)
    said = securetm("audit", str(bench / "small.toml"), "--json")
    assert said.code == 1, said.err
    assert [finding["verdict"] for finding in said.json["findings"]] == ["refuted", "refuted"]
    assert said.json["refuted_claims"] == 1
    assert "Refuted: “sees only sums” of profile masked" in " ".join(said.err.split())
    (tmp_path / "audit.json").write_text(said.out, "utf-8")
    again = securetm("report", str(tmp_path / "audit.json"), "--json")
    assert again.code == 1
    assert again.json == said.json


def test_evidence_is_kept_and_only_what_is_missing_is_carried_out(bench: Path, tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    first = securetm("audit", str(bench / "small.toml"), "--evidence", str(folder), "--json")
    assert first.code == 0, first.err
    assert sorted(path.name for path in folder.iterdir()) == ["masked--prodlda.json", "open--prodlda.json"]
    (folder / "masked--prodlda.json").unlink()
    second = securetm("audit", str(bench / "small.toml"), "--evidence", str(folder), "--json")
    assert [finding["profile"] for finding in second.json["findings"]] == ["open", "masked"]  # never without its baseline
    third = securetm("audit", str(bench / "small.toml"), "--evidence", str(folder))
    assert third.code == 0
    assert "is missing or stale" in " ".join(third.err.split())
    told(securetm("audit", str(bench / "small.toml"), "--evidence", str(folder), "--run", "x"), 2, "leave one of --run")


def test_examples_are_quoted_only_where_wanted(bench: Path, tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path / "open.toml", bench / "documents.jsonl", profiles=["open"], batch=2))
    quoting, silent = (securetm("audit", plan, "--examples", n, "--json") for n in ("1", "0"))
    (quoted,), (unquoted,) = (said.json["findings"] for said in (quoting, silent))
    assert len(quoted["examples"]) == 1
    assert unquoted["examples"] == []
    word = quoted["examples"][0]["original"].split(",")[0].split(" ")[0]
    assert word in quoting.err
    assert word not in silent.err


def test_the_example_of_audit_does_what_it_says(bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a plan of that name that is over in seconds; the real one runs in the slow suite."""
    monkeypatch.chdir(tmp_path)
    small = write_plan(tmp_path / "quick.toml", bench / "documents.jsonl", profiles=["open"], batch=2)
    monkeypatch.setattr(plans, "toml_on", lambda *_, **__: small)
    said = securetm(*shlex.split(example_of("audit"))[1:])
    assert said.code == 0, said.err
    assert Path("audit.html").is_file()


@pytest.mark.slow
def test_the_quick_audit_ends_within_two_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = securetm(*shlex.split(example_of("audit"))[1:], "--json")
    assert said.code == 0, said.err
    assert said.json["seconds"] < 120
    assert all(finding["verdict"] == "refuted" for finding in said.json["findings"] if finding["baseline"])
    assert Path("audit.html").is_file()


# ---- an audit of a run of one's own, and what is shown of it again ---------------------------------------------------


@pytest.fixture(scope="module")
def tried(bench: Path) -> Path:
    """A run that was recorded and then tried: the audit is kept in its folder."""
    run = bench / "run"
    settings = ("model.hidden=64", "model.batch=20", "vocabulary.min_documents=1", "vocabulary.max_share=1.0")
    settings += ("vocabulary.most_candidates=1000", "training.held_out=0.1")
    corpus = ("corpus.partition=column", "corpus.party=party", f"corpus.source={bench / 'documents.jsonl'}")
    chosen = [word for setting in (*settings, *corpus) for word in ("--set", setting)]
    made = securetm("run", *chosen, "--topics", "5", "--rounds", "2", "--record", "--out", str(run))
    assert made.code == 0, made.err
    said = securetm("audit", str(bench / "small.toml"), "--run", str(run))
    assert said.code == 0, said.err
    assert "securetm report" in said.err
    return run


def test_an_audit_of_a_run_is_kept_in_its_folder_and_shown_again(tried: Path, tmp_path: Path) -> None:
    said = securetm("report", str(tried), "--html", str(tmp_path / "a.html"), "--markdown", str(tmp_path / "a.md"), "--json")
    assert said.code == 0, said.err
    assert said.json == json.loads((tried / "audits" / "small.json").read_text("utf-8"))
    assert [finding["profile"] for finding in said.json["findings"]] == ["open", "masked"]
    assert "Adversary: coordinator of curious_coordinator" in (tmp_path / "a.html").read_text("utf-8")
    assert (tmp_path / "a.md").read_text("utf-8").startswith("# A plan of a test")
    silent = securetm("report", str(tried), "--examples", "0", "--json")
    assert all(finding["examples"] == [] for finding in silent.json["findings"])


def test_the_example_of_report_does_what_it_says(tried: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    Path("runs/demo").symlink_to(tried)
    said = securetm(*shlex.split(example_of("report"))[1:])
    assert said.code == 0, said.err
    assert Path("audit.html").is_file()


def test_what_cannot_be_shown_again_ends_in_a_letter(tried: Path, tmp_path: Path) -> None:
    told(securetm("report", str(tmp_path)), 2, "nothing was kept there")
    told(securetm("report", str(tmp_path / "absent.json")), 2, "No such file")
    told(securetm("report"), 2, "Missing argument")
    kept = json.loads((tried / "audits" / "small.json").read_text("utf-8"))
    kept["findings"][0]["verdict"] = "not refuted"
    (tmp_path / "improved.json").write_text(json.dumps(kept), "utf-8")
    told(securetm("report", str(tmp_path / "improved.json")), 2, "does not follow from an interval")
    told(securetm("report", str(tried), "--html", str(tmp_path / "no" / "a.html")), 2, "cannot be written")


def test_misuses_end_in_a_letter(bench: Path, tmp_path: Path) -> None:
    told(securetm("audit", "magic"), 2, "no audit plan called 'magic'")
    told(securetm("audit"), 2, "Missing argument")
    told(securetm("audit", str(bench / "small.toml"), "--run", str(tmp_path / "absent")), 2, "holds no run")
    told(securetm("audit", str(bench / "small.toml"), "--examples", "99"), 2, "--examples")
