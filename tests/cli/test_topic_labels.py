"""Labels of topics: given one by one or in a file, kept in the run's folder, shown wherever topics are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from .conftest import Said, securetm

RUN = "runs/labelled"


@pytest.fixture
def labelled(demo: Said, here: Path) -> Path:
    """A copy of a finished run, to be labelled."""
    shutil.rmtree(RUN, ignore_errors=True)
    return Path(shutil.copytree("runs/demo", RUN))


def test_labels_are_kept_shown_and_taken_away(labelled: Path) -> None:
    first = securetm("topics", RUN, "--label", "3=the sea", "--label", "1= Küche ", "--json")
    assert first.json["labels"] == {"0": "Küche", "2": "the sea"}
    assert json.loads((labelled / "labels.json").read_text("utf-8")) == {"labels": {"0": "Küche", "2": "the sea"}}
    assert "the sea" in securetm("topics", RUN).out
    shares = securetm("transform", RUN, "new.jsonl", "--json")
    assert shares.json["labels"] == first.json["labels"]
    assert "Küche" in securetm("transform", RUN, "new.jsonl").out
    assert securetm("topics", RUN, "--label", "1=", "--label", "3=", "--json").json["labels"] == {}
    assert not (labelled / "labels.json").exists()
    assert securetm("run", "--resume", RUN).code == 0  # labels are none of the files that the run froze


def test_a_file_takes_the_place_of_all_labels_and_json_is_such_a_file(labelled: Path, tmp_path: Path) -> None:
    said = securetm("topics", RUN, "--label", "2=[b]bold", "--json")
    (tmp_path / "saved.json").write_text(said.out, "utf-8")
    securetm("topics", RUN, "--label", "1=another")
    again = securetm("topics", RUN, "--labels", str(tmp_path / "saved.json"))
    assert "[b]bold" in again.out
    assert "another" not in again.out


@pytest.mark.parametrize("given", ["4=x", "0=x", "x=1", "1", "1=two\nlines", "1=" + "x" * 101, "1=\x1b[31mred", "²=x"])
def test_a_wrong_label_changes_nothing(given: str, labelled: Path) -> None:
    securetm("topics", RUN, "--label", "1=before")
    said = securetm("topics", RUN, "--label", "2=fine", "--label", given)
    assert said.code == 2
    assert "--label" in said.err
    assert securetm("topics", RUN, "--json").json["labels"] == {"0": "before"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "it is no JSON"),
        ('{"labels": {"3": "x"}}', "label for topic '3', and the topics are 0 to 2"),
        (json.dumps({"labels": {"1": "a\u202eb"}}), "the label of topic '1' must be one line of printable text"),
        (json.dumps({"labels": {"1": "x" * 101}}), "the label of topic '1' must have at most 100 characters"),
        (" " * (1 << 23), "it is larger than 4 MB"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(content: str, told: str, labelled: Path, tmp_path: Path) -> None:
    file = tmp_path / "labels.json"
    file.write_text(content, "utf-8")
    said = securetm("topics", RUN, "--labels", str(file))
    assert said.code == 2
    assert told in " ".join(said.err.split())
    assert "labels.json" in said.err
    assert not (labelled / "labels.json").exists()
