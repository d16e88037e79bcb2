"""Topics and topic shares as CSV and Parquet."""

from __future__ import annotations

import csv
import io
import shutil
import stat
from pathlib import Path

import numpy as np
from pyarrow import parquet

import securetm as package

from .conftest import Said, securetm


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_topics_with_the_weights_of_their_words(demo: Said, here: Path) -> None:
    said = securetm("topics", "runs/demo", "--words", "4", "--csv", "-")
    found = rows(said.out)
    topics = demo.json["topics"]
    assert [row["word"] for row in found] == [word for topic in topics for word in topic[:4]]
    assert [row["rank"] for row in found[:5]] == ["1", "2", "3", "4", "1"]
    weights = package.load("runs/demo").components_
    np.testing.assert_allclose(sorted(map(float, (row["weight"] for row in found))), np.sort(np.sort(weights)[:, -4:].ravel()))
    assert "top words" in said.err  # the table, which leaves standard output to the file


def test_no_label_is_a_formula_in_the_table(demo: Said, here: Path) -> None:
    run = Path(shutil.copytree("runs/demo", "runs/formulas"))
    said = securetm("topics", str(run), "--label", '1==HYPERLINK("http://x","y")', "--csv", "-")
    assert {row["label"] for row in rows(said.out) if row["topic"] == "0"} == {"""'=HYPERLINK("http://x","y")"""}


def test_topic_shares_as_csv_and_parquet(demo: Said, here: Path, tmp_path: Path) -> None:
    table, arrow = tmp_path / "shares.csv", tmp_path / "shares.parquet"
    said = securetm("transform", "runs/demo", "new.jsonl", "--json", "--csv", str(table), "--parquet", str(arrow))
    expected = np.array(said.json["documents"])
    found = parquet.read_table(arrow)
    assert found.column_names[:3] == ["document", "known_words", "topic_0"]
    np.testing.assert_allclose(np.column_stack([found[name] for name in found.column_names[2:]]), expected, atol=1e-6)
    assert found["known_words"].to_pylist() == said.json["known_words"]
    written = rows(table.read_text("utf-8"))
    assert [int(row["document"]) for row in written] == list(range(1, len(expected) + 1))
    np.testing.assert_allclose([float(row["topic_1"]) for row in written], expected[:, 1], atol=1e-6)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (table, arrow)} == {0o600}  # they speak of documents
