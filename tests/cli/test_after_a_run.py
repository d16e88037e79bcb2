"""What is done with a finished run: adapted, gone on from, evaluated, and refused where it was changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.federation.folder import reopen
from securetm.federation.origins import moved
from securetm.models.lda.counting import EARLIER
from securetm.plans.agreement import agree
from securetm.plans.recommend import plan_from_tables
from securetm.runs.finished import FinishedRun

from .conftest import SETTINGS, Said, securetm


@pytest.fixture
def adapted(demo: Said, here: Path, tmp_path: Path) -> Said:
    """A model that was adapted to the documents of one party."""
    securetm("topics", "runs/demo", "--label", "1=the first")
    said = securetm("adapt", "runs/demo", "--corpus", "documents.jsonl", "--out", str(tmp_path / "mine"), "--json")
    securetm("topics", "runs/demo", "--label", "1=")
    return said


def test_what_was_adapted_is_used_like_any_model(adapted: Said, tmp_path: Path) -> None:
    assert adapted.code == 0, adapted.err
    told, mine = adapted.json, tmp_path / "mine"
    assert told["topics"] == FinishedRun.open(mine).topics()
    assert told["adapted"]["documents"]["held_out"] > 0
    assert {"shared", "adapted"} == set(told["adapted"]["held_out"])
    assert [row["topic"] for row in told["moved"]] == list(range(len(told["topics"])))
    shown = securetm("topics", str(mine))
    assert shown.code == 0, shown.err
    assert "the first" in shown.out
    assert securetm("topics", str(mine), "--html", str(tmp_path / "mine.html")).code == 0
    assert "No budget: the model may tell who is in it" in (tmp_path / "mine.html").read_text("utf-8")
    assert securetm("topics", str(mine), "--csv", str(tmp_path / "mine.csv")).code == 0
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("mine.html", "mine.csv")} == {0o600}
    (listed,) = securetm("runs", str(mine), "--json").json["runs"]
    assert (listed["trouble"], listed["kind"]) == ("", "party")
    rows = securetm("transform", str(mine), "new.jsonl", "--json").json["documents"]
    assert {len(row) for row in rows} == {len(told["topics"])}


@pytest.mark.slow
def test_a_party_of_a_simulation_gets_topics_of_its_own(here: Path, tmp_path: Path, workplace: Path) -> None:
    run = "runs/to adapt"
    if not Path(run).exists():
        settings = "--topics 3 --corpus documents.jsonl --partition column --model lda --rounds 5 --no-comparison --json"
        few = "--set vocabulary.min_documents=2 --set vocabulary.max_share=1.0 --set vocabulary.most_candidates=500"
        assert securetm("run", *settings.split(), *few.split(), "--out", run).code == 0
    party = json.loads((workplace / run / "run.json").read_text("utf-8"))["members"][0]
    said = securetm("adapt", run, "--party", party, "--own-topics", "2", "--out", str(tmp_path / "mine"), "--json")
    assert said.code == 0, said.err
    own = said.json["adapted"]["own_topics"]
    assert own == (2 if said.json["adapted"]["stages"] else 0)  # where the shared model is best, it stays as it is
    assert len(FinishedRun.open(tmp_path / "mine").topics()) == 3 + own


# ---- going on --------------------------------------------------------------------------------------------------------------


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


# ---- evaluated -------------------------------------------------------------------------------------------------------------


RUN = "runs/demo"


def rows(said: Said) -> dict[str, dict[str, Any]]:
    assert said.code == 0, said.err
    return {row["figure"]: row for row in said.json["rows"]}


def test_a_run_is_judged_by_the_documents_in_its_folder(demo: Said, here: Path) -> None:
    said = securetm("evaluate", RUN, "--json")
    found = rows(said)
    assert found["npmi_documents"]["value"] == pytest.approx(demo.json["quality"]["npmi"], abs=1e-6)
    assert found["held_out"]["value"] == pytest.approx(demo.json["baseline"]["model"], rel=1e-6)
    assert found["held_out"]["low"] < found["held_out"]["value"] < found["held_out"]["high"]
    assert len(found["c_v"]["by_topic"]) == said.json["topics"] == 3
    assert said.json["documents"] == 300
    assert 0 < said.json["held_out_documents"] < 100
    assert "random topics" in found["diversity"]["controls"]
    assert "train with --label COLUMN" in found["accuracy"]["needs"]
    assert "NPMI by documents" in said.err


def test_labels_and_vectors_make_figures_of_their_own(demo: Said, here: Path) -> None:
    found = rows(securetm("evaluate", RUN, "--corpus", "documents.jsonl", "--label", "party", "--vectors", "glove", "--json"))
    assert 0 < found["macro_f1"]["value"] <= 1
    assert found["embedding_coherence"]["controls"].keys() == {"random topics", "vectors alone"}


def test_topics_from_anywhere(here: Path) -> None:
    Path("topics.json").write_text(json.dumps({"topics": [["river", "lake"], ["judge", "court"]]}), "utf-8")
    found = rows(securetm("evaluate", "--topics", "topics.json", "--corpus", "documents.jsonl", "--json"))
    assert found["npmi_windows"]["value"] is not None
    assert "weights of words" in found["held_out"]["needs"]
    Path("topics.json").write_text(json.dumps([["river", "lake"], ["judge", "zyx"]]), "utf-8")
    said = securetm("evaluate", "--topics", "topics.json", "--corpus", "documents.jsonl")
    assert "Of 4 words of the topics" in " ".join(said.out.split())
    assert (
        "zyx"
        in securetm("evaluate", "--topics", "topics.json", "--corpus", "documents.jsonl", "--json").json["words_in_no_document"]
    )
    said = securetm("evaluate", "--topics", "topics.json")
    assert "c_v by windows of 110: needs documents: --corpus FILE" in " ".join(said.out.split())
    assert "without documents" in " ".join(said.out.split())


def test_topics_are_judged_by_documents_in_their_language(here: Path) -> None:
    texts = [
        "Hiša stoji ob morju, ki je v bližini &amp; tam so tudi otroci, ker jih ima rada.",
        "Zdravnik pravi, da se kašelj še ne bo končal.",
    ]
    Path("posts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts * 20))
    Path("topics.json").write_text(json.dumps([["morje", "hiša", "tudi"], ["kašelj", "zdravnik", "amp"]]))
    said = securetm("evaluate", "--topics", "topics.json", "--corpus", "posts.jsonl", "--json")
    assert said.code == 0, said.err
    assert "The documents read as Slovenian, so its stop words are not counted." in " ".join(said.err.split())
    assert said.json["words_in_no_document"] == ["amp", "morje", "tudi"]
    made = securetm("corpus", "words", "posts.jsonl", "--out", "listed.txt", "--max-share", "1", "--min-documents", "1")
    assert "read as Slovenian, so its stop words are left out" in " ".join(made.err.split())
    assert {"kašelj", "zdravnik"} <= set(Path("listed.txt").read_text().split())
    assert not {"tudi", "ker", "amp"} & set(Path("listed.txt").read_text().split())
    built = securetm("corpus", "build", "posts.jsonl", "--out", "posts")
    assert "Stop words of Slovenian: --set tokeniser.stop_words=sl, here and in each run." in " ".join(built.err.split())


def test_topics_from_a_file_are_spelled_as_the_tokeniser_spells(here: Path) -> None:
    Path("topics.json").write_text(json.dumps([["River", "LAKE", "the"], ["the judge", "court"]]), "utf-8")
    said = securetm("evaluate", "--topics", "topics.json", "--corpus", "documents.jsonl")
    shown = " ".join(said.out.split())
    not_counted = "Of 5 words of the topics 2 are not among the words that the documents' tokeniser counts"
    assert f"{not_counted}: the, the judge." in shown
    assert "held-out perplexity, held-out perplexity with topics folded in, accuracy" in shown


def test_a_folder_without_documents_says_so(demo: Said, here: Path) -> None:
    shutil.copytree(RUN, "runs/bare")
    for file in Path("runs/bare").rglob("corpus.npz"):
        file.unlink()
    found = rows(securetm("evaluate", "runs/bare", "--json"))
    assert "the folder of this run holds none: --corpus FILE" in found["npmi_documents"]["needs"]
    assert "--corpus FILE" in found["held_out"]["needs"]


# ---- changed ---------------------------------------------------------------------------------------------------------------


READING = (
    ("topics", "runs/changed"),
    ("transform", "runs/changed", "new.jsonl"),
    ("run", "--resume", "runs/changed"),
)


@pytest.fixture
def changed(demo: Said, here: Path) -> Path:
    """A copy of a finished run, to be changed."""
    path = Path("runs/changed")
    shutil.rmtree(path, ignore_errors=True)
    return Path(shutil.copytree("runs/demo", path))


def swapped(words: list[str]) -> list[str]:
    return words[::-1]


def cut(words: list[str]) -> list[str]:
    return words[:-5]


@pytest.mark.parametrize("harm", [swapped, cut])
def test_topics_are_never_named_by_other_words(harm: Callable[[list[str]], list[str]], changed: Path) -> None:
    path = changed / "coordinator/vocabulary.txt"
    path.write_text("\n".join(harm(path.read_text("utf-8").split("\n"))), "utf-8")
    for command in READING:
        said = securetm(*command)
        assert said.code == 3, command
        told = " ".join(said.err.split())
        assert "vocabulary.txt is not as its run wrote it" in told, command
        assert "securetm: hint: restore it" in told
