"""`securetm audit`: the contract of its JSON, its page, its exit codes and its letters."""

from __future__ import annotations

import json
import shlex
import stat
from pathlib import Path

import pytest

from securetm.aggregation.masked import round as masked_round
from securetm.auditing import runs
from securetm.auditing.attacks import attack_called

from ..auditing.conftest import texts, write_plan
from .conftest import Said, securetm
from .test_cli import example_of, told


def advised(said: Said, code: int, sentence: str, hint: str) -> None:
    """A letter whose advice is as much to the point as its complaint."""
    told(said, code, sentence)
    assert f"securetm: hint: {hint}" in said.err


CONTRACT = {
    "attack", "adversary", "threat_model", "profile", "model", "claim", "measure", "value", "low", "high", "ceiling", "unit",
    "verdict", "baseline", "seconds", "helpers", "liars", "canaries", "without", "effort", "spent", "kept",
}  # fmt: skip


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents and a plan over them."""
    place = tmp_path_factory.mktemp("bench")
    names = ("centre", "east", "north", "south", "west")
    rows = [{"text": text, "party": name} for seed, name in enumerate(names) for text in texts(70, seed)]
    (place / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    write_plan(place / "small.toml", place / "documents.jsonl", batch=25)
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
    assert "One claim (1 finding) was tried and held" in " ".join(said.err.split())
    assert "no evidence of safety" in " ".join(said.err.split())


def test_a_refuted_claim_exits_1_also_when_it_is_shown_again(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masked_round, "apply_masks", lambda vector, masks: None)
    said = securetm("audit", str(bench / "small.toml"), "--json")
    assert said.code == 1, said.err
    assert [finding["verdict"] for finding in said.json["findings"]] == ["refuted", "refuted"]
    assert said.json["refuted_claims"] == 1
    assert "Broken: “sees only sums” of profile masked" in " ".join(said.err.split())
    (tmp_path / "audit.json").write_text(said.out, "utf-8")
    again = securetm("report", str(tmp_path / "audit.json"), "--json")
    assert again.code == 1
    assert again.json == said.json


@pytest.mark.slow
def test_a_kept_refutation_exits_1_when_the_rest_is_carried_out(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The masks are left out of the first audit, and its second half is never made: what it refuted stays refuted."""
    plan, folder = tmp_path / "two.toml", tmp_path / "evidence"
    write_plan(plan, bench / "documents.jsonl", batch=25)
    trial = plan.read_text("utf-8").partition("[[trial]]")[2]
    plan.write_text(f"{plan.read_text('utf-8')}\n[[trial]]{trial.replace('rounds = 2', 'rounds = 1')}", "utf-8")
    with monkeypatch.context() as broken:
        broken.setattr(masked_round, "apply_masks", lambda vector, masks: None)
        assert securetm("audit", str(plan), "--evidence", str(folder)).code == 1
    kept = json.loads((folder / "masked--prodlda.json").read_text("utf-8"))
    kept["findings"] = [one for one in kept["findings"] if one["effort"].startswith("2 rounds")]
    (folder / "masked--prodlda.json").write_text(json.dumps(kept), "utf-8")
    said = securetm("audit", str(plan), "--evidence", str(folder), "--json")
    assert said.code == 1
    assert [(one["profile"], one["verdict"], bool(one["kept"])) for one in said.json["findings"]] == [
        ("open", "refuted", True),
        ("masked", "refuted", True),
        ("open", "refuted", False),
        ("masked", "not refuted", False),
    ]
    assert said.json["refuted_claims"] == 1
    assert "2 results were made now, and 2 results of the same plan kept in" in " ".join(said.err.split())


def test_an_interrupted_audit_says_what_is_left_and_how_to_go_on(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "train", ended)
    plan = str(bench / "small.toml")
    advised(
        securetm("audit", plan), 3, "the audit was interrupted; no result was kept", "begin it again; with --evidence FOLDER"
    )
    kept = securetm("audit", plan, "--evidence", str(tmp_path / "e"))
    advised(kept, 3, f"every part of it that was over is kept in {tmp_path / 'e'}", "repeat the command")
    advised(securetm("audit", plan, "--keep", str(tmp_path / "k")), 3, "interrupted", "begin it again; empty the folder of --k")


def test_the_runs_of_two_audits_are_not_kept_in_one_folder(bench: Path, tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path / "open.toml", bench / "documents.jsonl", profiles=["open"], batch=2))
    folder = tmp_path / "deep" / "kept"
    assert securetm("audit", plan, "--keep", str(folder)).code == 0
    assert stat.filemode(folder.stat().st_mode) == "drwx------"
    (run,) = folder.glob("open-*")
    assert (run / "run.json").is_file()
    advised(securetm("audit", plan, "--keep", str(folder)), 2, "holds files already", "name a folder that is empty")
    advised(securetm("audit", plan, "--keep", plan), 2, "cannot be written", "name another place")


def test_what_was_spent_and_who_helped_is_told(bench: Path, tmp_path: Path) -> None:
    """Of nine rounds and 500 documents, where the run has three rounds with two documents of each of five parties."""
    more = {"profiles": ["open"], "batch": 2, "effort": {"rounds": 9, "documents": 500}, "helpers": 2}
    plan, page = write_plan(tmp_path / "open.toml", bench / "documents.jsonl", **more), tmp_path / "a.html"
    said = securetm("audit", str(plan), "--json", "--html", str(page))
    (found,) = said.json["findings"]
    assert (found["helpers"], found["effort"]) == (2, "9 rounds, 500 documents")
    assert found["spent"] == f"3 rounds, {found['of']} documents"
    assert found["of"] <= 30
    assert f"9 rounds, 500 documents asked for; spent: 3 rounds, {found['of']} documents" in page.read_text("utf-8")
    assert "helped by 2 parties" in page.read_text("utf-8")
    assert "helped by 2 parties" in said.err


def test_what_a_plan_asks_of_its_runs_is_checked_before_any_is_made(bench: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "bad.toml", bench / "documents.jsonl", batch=25)
    good = plan.read_text("utf-8")
    place = "bad.toml, [[trial]] number 1, run"
    for new, said in (
        ("nan", f"`model.batch` in {place} is nan; it must be a number, a text"),
        (
            '"many"',
            f"{place} under open: the runs that it asks for cannot be made: the setting `batch` in [model] prodlda is 'many'",
        ),
        ("{ all = 1 }", f"`model.batch` in {place} is {{'all': 1}}; it must be a number"),
        (
            '20\n"model.size" = 3',
            f"{place} under open: the runs that it asks for cannot be made: there is no setting of [model] prodlda called",
        ),
    ):
        plan.write_text(good.replace('"model.batch" = 25', f'"model.batch" = {new}'), "utf-8")
        begun = securetm("audit", str(plan), "--evidence", str(tmp_path / "e"))
        told(begun, 2, said)
        assert "training" not in begun.err


@pytest.mark.slow
def test_the_example_of_the_contract_breaks_every_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = securetm(*shlex.split(example_of("audit"))[1:], "--json")
    assert said.code == 0, said.err
    assert all(finding["verdict"] == "refuted" for finding in said.json["findings"] if finding["baseline"])
    assert Path("audit.html").is_file()


# ---- an audit of a run of one's own, and what is shown of it again ---------------------------------------------------


@pytest.fixture(scope="module")
def tried(bench: Path) -> Path:
    """A run that was recorded and then tried: the audit is kept in its folder."""
    run = bench / "run"
    settings = (
        "model.name=prodlda",
        "model.hidden=64",
        "model.batch=25",
        "vocabulary.min_documents=1",
        "vocabulary.max_share=1.0",
    )
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
    kept = json.loads((tried / "audits" / "small.json").read_text("utf-8"))
    assert {name: said.json[name] for name in kept} == kept
    assert [finding["profile"] for finding in said.json["findings"]] == ["open", "masked"]
    assert "Can the coordinator read my documents?" in (tmp_path / "a.annex.html").read_text("utf-8")
    annex = (tmp_path / "a.annex-small.html").read_text("utf-8")
    assert "Adversary: coordinator of curious_coordinator" in annex
    assert "What was recovered" not in annex  # a page that may be handed on quotes nothing
    assert (tmp_path / "a.annex.md").read_text("utf-8").startswith("# Annex: What was done with the documents: run")
    assert securetm("report", "--verify", str(tmp_path / "a.html")).code == 0
    (tmp_path / "a.annex-small.html").write_text(annex.replace("Adversary", "adversary"), "utf-8")
    assert securetm("report", "--verify", str(tmp_path / "a.html")).code == 1
    silent = securetm("report", str(tried), "--examples", "0", "--json")
    assert all(finding["examples"] == [] for finding in silent.json["findings"])


@pytest.mark.slow
def test_what_was_not_tried_on_a_run_is_true_of_that_run(tried: Path, bench: Path) -> None:
    """The plan's author speaks of the plan's own runs; of attacks that need another kind of run it is said why."""
    untried = json.loads((tried / "audits" / "small.json").read_text("utf-8"))["not_tried"]
    assert "what a test leaves out" not in untried
    assert (
        "profiles other than masked, but for the baselines over the same documents; models other than prodlda; settings "
        "other than this run's" in untried
    )
    trial = (bench / "small.toml").read_text("utf-8").partition("[[trial]]")[2]
    for attack, more, why in (("rare_documents", "", ": not made for the model prodlda"), ("differencing", "without = 1", WHY)):
        wanted = {"attack": attack, "measure": next(iter(attack_called(attack).measures))}
        lines = [
            f"{n} = {json.dumps(wanted[n])}" if n in wanted else line
            for line in trial.splitlines()
            for n in [line.split(" ")[0]]
        ]
        hard = ", ".join(f"{name} = 1" for name in ("rounds", *attack_called(attack).efforts))
        lines = [f"effort = {{ {hard} }}\n{more}" if line.startswith("effort") else line for line in lines]
        both = bench / f"{attack}.toml"
        both.write_text(
            (bench / "small.toml").read_text("utf-8").replace('"small"', f'"{attack}"') + "\n[[trial]]" + "\n".join(lines),
            "utf-8",
        )
        said = securetm("audit", str(both), "--run", str(tried), "--json")
        assert said.code == 0, said.err
        assert f"({attack}){why}" in " ".join(said.json["not_tried"])
        (tried / "audits" / f"{attack}.json").unlink()


WHY = ": needs a second run, made documents or lying parties, which this run has not"


def test_what_cannot_be_shown_again_ends_in_a_letter(tried: Path, tmp_path: Path) -> None:
    told(securetm("report", str(tmp_path)), 2, "holds no finished run")
    told(securetm("report", str(tmp_path / "absent.json")), 2, "absent.json")
    told(securetm("report"), 2, "it is not said of what to report")
    kept = json.loads((tried / "audits" / "small.json").read_text("utf-8"))
    kept["findings"][0]["verdict"] = "not refuted"
    (tmp_path / "improved.json").write_text(json.dumps(kept), "utf-8")
    told(securetm("report", str(tmp_path / "improved.json")), 2, "does not follow from an interval")
    (tmp_path / "empty.json").write_text(json.dumps({**kept, "findings": []}), "utf-8")
    told(securetm("report", str(tmp_path / "empty.json")), 2, "must not be empty, because every plan tries something")
    nowhere = securetm("report", str(tried), "--html", str(tmp_path / "no" / "a.html"))
    advised(nowhere, 2, "cannot be written", "name another place")
    kept["findings"][0]["verdict"] = "\x1b[2Jsafe"
    (tmp_path / "foreign.json").write_text(json.dumps(kept), "utf-8")
    foreign = securetm("report", str(tmp_path / "foreign.json"))
    advised(foreign, 2, "`verdict` in finding 1", "give what `securetm audit PLAN --json` printed")
    assert "\x1b" not in foreign.err
