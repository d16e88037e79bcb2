"""`securetm report RUN`: the page to sign of a real run, its signature, and what is refused by name."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from securetm.reports.statement import sources as report_sources

from .conftest import Said, securetm


@pytest.fixture(autouse=True)
def no_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept results have tests of their own; here they would take seconds."""
    monkeypatch.setattr(report_sources, "evidence_folder", lambda: tmp_path / "no evidence")


@pytest.fixture
def copy(demo: Said, here: Path) -> Path:
    """A copy of a finished run, to be changed."""
    shutil.rmtree("runs/changed", ignore_errors=True)
    return Path(shutil.copytree("runs/demo", "runs/changed"))


def refused(said: Said, sentence: str, code: int = 2) -> None:
    assert said.code == code, said.err
    assert sentence in " ".join(said.err.split())
    assert "securetm: hint: " in said.err


def test_the_page_to_sign_of_a_run_in_three_forms_signed_and_checked(
    demo: Said, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert securetm("keys", "new", "hospital-a", "--request", str(tmp_path / "a.request")).code == 0
    home, files = tmp_path / "data/securetm/hospital-a", [tmp_path / f"page.{form}" for form in ("html", "pdf", "md")]
    html, pdf, text = map(str, files)
    said = securetm("report", "runs/demo", "--html", html, "--pdf", pdf, "--markdown", text, "--sign", str(home), "--json")
    assert said.code == 0, said.err
    facts = said.json["report"]
    assert [one["question"][:7] for one in facts["answers"]] == ["Can the", "Can ano", "Can who", "What if", "What if"]
    assert facts["software"] == "0.1.0"
    assert facts["digests"].keys() == {"run", "model", "plan", "profile"}
    assert [one["name"] for one in facts["parties"]] == demo.json["parties"]
    assert "Nothing was tried on this run" in facts["headline"]
    for file in files:
        told = securetm("report", "--verify", str(file), f"{file}.sig", str(tmp_path / "a.request"), "--json")
        assert told.code == 0, told.err
        assert (told.json["signed_by"], told.json["role"], told.json["run"]) == ("hospital-a", "party", "demo")
        assert told.json["run_digest"] == facts["digests"]["run"]
    refused(
        securetm("report", "--verify", html, f"{pdf}.sig", str(tmp_path / "a.request")), "is not the file that was signed", 1
    )
    first = files[1].read_bytes()
    assert securetm("report", "runs/demo", "--pdf", pdf).code == 0
    assert files[1].read_bytes() == first


def test_a_run_states_what_leaves_and_whatever_changes_beside_it_is_found(copy: Path, tmp_path: Path) -> None:
    release = copy / "release"
    assert {one.name for one in release.iterdir()} == {
        "model.safetensors",
        "topics.csv",
        "statement.json",
        "statement.html",
        "statement.md",
        "statement.pdf",
    }
    assert securetm("report", "--verify", str(copy)).code == 0
    for name in sorted(one.name for one in release.iterdir()):
        whole = (release / name).read_bytes()
        for content in (whole + b" ", whole[:-1], None):
            (release / name).unlink() if content is None else (release / name).write_bytes(content)
            said = securetm("report", "--verify", str(release), "--json")
            if content is None and name == "statement.pdf":
                continue  # not everybody can write one
            assert said.code == 1, (name, said.out)
            assert any(name in one for one in said.json["changed"])
        (release / name).write_bytes(whole)
    (release / "result.json").write_bytes(b"{}")
    assert "result.json is none of the files" in securetm("report", "--verify", str(release)).out
    refused(securetm("report", "--verify", str(tmp_path)), "is no statement on a run")


def test_no_figure_of_a_single_party_is_in_what_may_leave(demo: Said, here: Path) -> None:
    result = json.loads(Path("runs/demo/result.json").read_text("utf-8"))
    figures = [value for name in ("shared_at_party", "alone") for one in result[name].values() for value in one.values()]
    figures += [*result["quality"].values(), *(share for shares in result["prevalence"].values() for share in shares)]
    wanted = {f"{value:.4g}" for value in figures if isinstance(value, float) and value == value and value > 1.5}
    wanted |= {str(value) for value in figures if isinstance(value, float)}
    assert len(wanted) > 10
    for name in ("statement.json", "statement.html", "statement.md"):
        text = Path("runs/demo/release", name).read_text("utf-8")
        numbers = set(re.findall(r"(?<![0-9a-f.])\d+(?:\.\d+)?(?![0-9a-f])", text))
        assert not (wanted - {"0.0", "1.0"}) & numbers, name


def test_a_statement_that_somebody_signed_is_not_written_again(copy: Path) -> None:
    sheet = copy / "release" / "statement.html"
    before = sheet.read_bytes()
    sheet.write_bytes(before + b"<!-- noted -->")
    assert securetm("run", "--resume", str(copy)).code == 0
    assert sheet.read_bytes() != before
    assert securetm("report", "--verify", str(copy)).code == 1


def test_a_run_that_ended_without_a_statement_gets_it_with_its_report(copy: Path) -> None:
    for one in (copy / "release").glob("statement.*"):
        one.unlink()
    refused(securetm("report", "--verify", str(copy)), "it holds no statement")
    assert securetm("report", str(copy)).code == 0
    assert securetm("report", "--verify", str(copy)).code == 0


def test_a_damaged_run_is_refused_with_the_name_of_the_file(copy: Path, tmp_path: Path) -> None:
    (copy / "result.json").write_text((copy / "result.json").read_text("utf-8").replace('"rounds": 6', '"rounds": 7'), "utf-8")
    refused(securetm("report", str(copy), "--pdf", str(tmp_path / "page.pdf")), "result.json is not as its run wrote it", 3)
    assert not (tmp_path / "page.pdf").exists()


def test_a_report_of_a_party_is_read_and_a_damaged_one_refused(demo: Said, here: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    plan = json.loads(Path("runs/demo/run.json").read_text("utf-8"))["plan"]
    facts = {"federation": "trial", "party": "north", "run": "trial 1", "agreement": "ab" * 32, "roster": "cd" * 32}
    told = {"answered": {"train": 6}, "ended": "2026-11-22T10:00:00+00:00", "model": "prodlda", "rounds": 6, "spent": None}
    (home / "report.json").touch(mode=0o600)
    (home / "report.json").write_text(json.dumps({"version": 1, **facts, **told, "plan": plan}), "utf-8")
    said = securetm("report", str(home), "--json")
    assert said.code == 0, said.err
    assert said.json["report"]["recorded"] == ["answers to the question “train”: 6"]
    assert said.json["report"]["digests"]["roster"] == "cd" * 32
    exact = {"version": 1, **facts, **told, "plan": plan, "quality": {"held_out": 123.456789}}
    (home / "report.json").write_text(json.dumps(exact), "utf-8")
    digests = [one.json["report"]["digests"]["run"] for one in (said, securetm("report", str(home), "--json"))]
    assert digests[0] == digests[1]  # a digest of exact figures would tell which documents they are of
    (home / "report.json").write_text(json.dumps({"version": 1, **facts}), "utf-8")
    refused(securetm("report", str(home)), "it is not a party's report of a run", 3)


def test_places_libraries_and_keys_are_looked_at_before_a_file_is_written(
    demo: Said, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    refused(securetm("report", "runs/demo", "--pdf", str(tmp_path / "no" / "page.pdf")), "cannot be written")
    (tmp_path / "audit.json").write_text("{}", "utf-8")
    refused(securetm("report", str(tmp_path / "audit.json"), "--sign", str(tmp_path)), "none is written")
    refused(securetm("report", "runs/demo", "--html", str(page), "--sign", str(tmp_path)), "there are no keys in")
    monkeypatch.setitem(sys.modules, "typst", None)
    refused(securetm("report", "runs/demo", "--html", str(page), "--pdf", str(tmp_path / "page.pdf")), "typst")
    assert not page.exists()
