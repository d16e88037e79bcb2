"""A run goes on from a finished one: words, topics and labels stay, and it is shown how far each topic moved."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from securetm.federation.folder import reopen
from securetm.federation.origins import moved
from securetm.models.lda.counting import EARLIER
from securetm.plans.agreement import agree
from securetm.plans.recommend import plan_from_tables
from securetm.runs.finished import FinishedRun

from .conftest import SETTINGS, Said, securetm

OPTIONS = [part for setting in SETTINGS if "hidden" not in setting for part in ("--set", setting)]
LDA = (
    *"--topics 3 --corpus documents.jsonl --partition column --model lda --rounds 5 --no-comparison --json".split(),
    *OPTIONS,
)


@pytest.fixture(scope="module")
def first(workplace: Path) -> str:
    """The folder of the first run, trained once."""
    return str(workplace / "runs/gone on from")


@pytest.fixture
def ran(first: str, here: Path) -> FinishedRun:
    """The first run, with a label."""
    if not Path(first).exists():
        assert securetm("run", *LDA, "--out", first).code == 0
        assert securetm("topics", first, "--label", "2=the second").code == 0
    return FinishedRun.open(Path(first))


def again(first: str, out: str, *options: str) -> Said:
    shutil.rmtree(out, ignore_errors=True)
    return securetm("run", "--continue", first, "--no-comparison", "--json", "--out", out, *options)


def test_a_run_goes_on_with_new_documents(ran: FinishedRun, first: str, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in Path("documents.jsonl").read_text("utf-8").splitlines()][::2]
    new = [{**row, "text": row["text"] + " unheard"} for row in rows]
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, new)), "utf-8")
    options = ("--corpus", str(tmp_path / "new.jsonl"), "--partition", "column", "--rounds", "4")
    said = again(first, str(tmp_path / "second"), *options)
    assert said.code == 0, said.err
    told = said.json["moved"]
    assert [row["topic"] for row in told] == [0, 1, 2]
    assert all(0 <= row["distance"] < 0.5 and row["closest"] == row["topic"] for row in told)
    second = FinishedRun.open(tmp_path / "second")
    assert second.vocabulary == ran.vocabulary
    assert second.labels().texts == {1: "the second"}
    assert second.moved() == told
    shown = securetm("topics", str(tmp_path / "second"))
    assert "moved" in shown.out
    assert "the second" in shown.out
    assert securetm("topics", str(tmp_path / "second"), "--json").json["moved"] == told


@pytest.mark.slow
def test_the_run_keeps_the_earlier_model_and_needs_the_other_run_no_more(ran: FinishedRun, first: str, tmp_path: Path) -> None:
    shutil.copytree(first, tmp_path / "first")
    assert again(str(tmp_path / "first"), str(tmp_path / "second")).code == 0
    shutil.rmtree(tmp_path / "first")
    shutil.move(tmp_path / "second", tmp_path / "moved")
    folder = reopen(tmp_path / "moved")
    assert folder.agreement.earlier is not None
    assert securetm("topics", str(tmp_path / "moved")).code == 0
    assert again(str(tmp_path / "moved"), str(tmp_path / "third")).code == 0


@pytest.mark.slow
def test_topics_can_be_added(ran: FinishedRun, first: str, tmp_path: Path) -> None:
    said = again(first, str(tmp_path / "more"), "--topics", "5")
    assert [row["distance"] is None for row in said.json["moved"]] == [False, False, False, True, True]
    assert len(said.json["topics"]) == 5
    assert "new" in securetm("topics", str(tmp_path / "more")).out


def test_all_parties_agree_on_what_the_earlier_model_learned(ran: FinishedRun, first: str, tmp_path: Path) -> None:
    assert again(first, str(tmp_path / "second")).code == 0
    folder = reopen(tmp_path / "second")
    plan, earlier = folder.agreement.plan, folder.agreement.earlier
    assert earlier is not None
    assert EARLIER not in folder.agreement.model.for_party(folder.agreement.start(earlier.vocabulary), "north")
    ran.save(tmp_path / "copy.safetensors")
    copied = json.loads(json.dumps(plan.tables()).replace(plan.training.continue_from, str(tmp_path / "copy.safetensors")))
    assert agree(plan_from_tables(copied, "a copy")).digest == folder.agreement.digest  # wherever the file lies
    other = {**ran.state, "counts": ran.state["counts"] + np.eye(*ran.state["counts"].shape)}
    FinishedRun(**{**vars(ran), "state": other}).save(tmp_path / "copy.safetensors")
    assert agree(plan_from_tables(copied, "a copy")).digest != folder.agreement.digest


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--topics", "2"), "has 3 topics, and the plan's model 2"),
        (("--model", "prodlda", "--set", "model.hidden=8"), "cannot go on from"),
        (("--vocabulary", "words.txt"), "the words are those of the earlier model"),
        (("--set", "training.earlier_weight=-1"), "must be from 0 to 1,000,000"),
    ],
)
def test_what_cannot_go_on_is_refused(
    ran: FinishedRun, first: str, options: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    Path("words.txt").write_text("alpha\nbeta\n", "utf-8")
    said = again(first, str(tmp_path / "none"), *options)
    assert said.code == 2, said.err
    assert told in " ".join(said.err.split())
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_a_neural_model_goes_on_from_its_weights(demo: Said, here: Path, tmp_path: Path) -> None:
    said = again("runs/demo", str(tmp_path / "second"), "--rounds", "3")
    assert said.code == 0, said.err
    assert all(row["distance"] < 0.3 for row in said.json["moved"])


def test_distances_and_words() -> None:
    before = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    after = np.array([[0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.5, 0.5], [0.25, 0.25, 0.25, 0.25]])
    rows = moved(before, after, ("a", "b", "c", "d"))
    assert [row["distance"] for row in rows] == [1.0, 0.0, None]
    assert [row["closest"] for row in rows] == [2, 0, None]
