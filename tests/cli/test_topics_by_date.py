"""Topics by date: of the documents in a simulation's folder, or of a file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import securetm as package
from securetm.corpus.corpus import Corpus
from securetm.runs.finished import FinishedRun, documents_in, topics_by_date

from .conftest import SMALL, securetm

RUN = "runs/dated"


@pytest.fixture(scope="module")
def dated(workplace: Path) -> Path:
    """A finished run over documents with dates: those of each party are of one year."""
    rows = [json.loads(line) for line in (workplace / "documents.jsonl").read_text("utf-8").splitlines()]
    years = {name: 2020 + place for place, name in enumerate(dict.fromkeys(row["party"] for row in rows))}
    dates = [f"{years[row['party']]}-{1 + place % 12:02}-15" for place, row in enumerate(rows)]
    lines = [json.dumps({**row, "when": date}) for row, date in zip(rows, dates, strict=True)]
    (workplace / "dated.jsonl").write_text("\n".join(lines), "utf-8")
    return workplace / "dated.jsonl"


@pytest.fixture
def run(dated: Path, here: Path) -> FinishedRun:
    """The run over them, trained once."""
    if not Path(RUN).exists():
        options = ("--corpus", str(dated), "--date", "when", "--partition", "column", "--model", "lda", "--rounds", "3")
        lda = [part for part in SMALL if part != "model.hidden=8"]
        lda.remove("--set")
        assert securetm("run", *options, *lda, "--out", RUN, "--no-comparison", "--json").code == 0
    return FinishedRun.open(Path(RUN))


def test_shares_are_means_over_the_documents_of_a_period(run: FinishedRun) -> None:
    said = securetm("topics", RUN, "--by-date", "year", "--json").json["by_date"]
    assert said["periods"] == ["2020", "2021", "2022", "2023", "2024"]
    assert said["period"] == "year"
    held = sorted(documents_in(run).values(), key=lambda corpus: str(corpus.dates[0]))
    expected = [run.transform(corpus).mean(axis=0) for corpus in held]
    np.testing.assert_allclose(said["shares"], expected, atol=1e-5)
    assert said["documents"] == [len(corpus) for corpus in held]
    first, *lines = securetm("topics", RUN, "--by-date", "year", "--csv", "-").out.split()
    assert first == "period,documents,topic,label,share"
    assert len(lines) == 5 * len(run.components_)
    assert lines[1] == f"2020,{len(held[0])},1,,{said['shares'][0][1]:.6f}"


def test_shares_are_means_over_the_documents_of_a_label(run: FinishedRun, dated: Path) -> None:
    said = securetm("topics", RUN, "--by-label", "party", "--corpus", dated.name, "--json")
    assert said.code == 0, said.err
    found = said.json["by_label"]
    held = documents_in(run)
    assert found["labels"] == sorted(held)
    assert found["documents"] == [len(held[name]) for name in sorted(held)]
    np.testing.assert_allclose(found["shares"], [run.transform(held[name]).mean(axis=0) for name in sorted(held)], atol=1e-5)
    assert "Topics by label" in securetm("topics", RUN, "--by-label", "party", "--corpus", dated.name).out


def test_a_table_shows_bars(run: FinishedRun) -> None:
    said = securetm("topics", RUN, "--by-date", "month")
    assert "2020-01 to 2024-12" in said.out
    assert "█" in said.out
    one = securetm("topics", RUN, "--by-date", "month", "--party", next(iter(documents_in(run))))
    assert "Topics by month, 60 documents" in one.out


def test_documents_without_a_known_word_count_nowhere(run: FinishedRun, tmp_path: Path) -> None:
    corpus = package.Corpus.from_strings(["unheard words", run.vocabulary[0]], dates=["2020", "2022"])
    found = topics_by_date(run, {"new": Corpus.concat([corpus])}, "year")
    assert found.periods == ("2022",)
    assert found.documents.tolist() == [1]
    nothing = topics_by_date(run, {"new": corpus.select(np.array([0]))}, "year")
    assert nothing.table() == {"period": "year", "periods": [], "documents": [], "shares": []}


def test_the_page_of_topics_shows_them_and_says_whose_they_are(run: FinishedRun, tmp_path: Path) -> None:
    assert securetm("topics", RUN, "--by-date", "year", "--html", str(tmp_path / "all.html")).code == 0
    text = (tmp_path / "all.html").read_text("utf-8")
    assert '"periods":["2020","2021","2022","2023","2024"]' in text
    assert '"whose":"all parties"' in text
    one = securetm("topics", RUN, "--by-date", "year", "--party", "north", "--html", str(tmp_path / "north.html"))
    assert one.code == 0, one.err
    text = (tmp_path / "north.html").read_text("utf-8")
    assert '"whose":"north"' in text
    assert '"behind":null' in text  # no document is quoted


def test_documents_of_topics_and_frames_are_at_hand_without_a_page(run: FinishedRun) -> None:
    party = next(iter(documents_in(run)))
    shown = securetm("topics", RUN, "--documents", "--party", party)
    assert shown.code == 0, shown.err
    assert "topics are strongest in" in " ".join(shown.out.split())
    assert securetm("topics", RUN, "--documents").code == 2  # whose documents?
    assert list(run.prevalence_frame().index) == list(documents_in(run))
    assert run.quality_frame().loc[0, "held_out"] > 0
    drawn = run._repr_html_()
    assert drawn.count("<svg") == len(run.topics())
    assert all(word in drawn for word in run.topics(7)[0])
    longest = max(float(width) for width in re.findall(r"<rect width='([\d.]+)'", drawn))
    assert longest == 80


def test_topics_that_say_the_same_are_named(run: FinishedRun) -> None:
    class Same(FinishedRun):
        """Its second topic is the first one again."""

        components_ = np.array([[0.5, 0.3, 0.2], [0.5, 0.25, 0.25], [0.0, 0.1, 0.9]])

    same = Same(**{name: getattr(run, name) for name in ("name", "model", "state", "vocabulary", "plan", "folder")})
    assert [(one, other, round(common, 2)) for one, other, common in same.alike()] == [(0, 1, 0.95)]
    merged = same.merged(np.array([3.0, 1.0, 1.0]))
    assert merged.groups == ((0, 1), (2,))
    np.testing.assert_allclose(merged.topics, [[0.5, 0.2875, 0.2125], [0.0, 0.1, 0.9]])
    np.testing.assert_allclose(merged.shares(np.array([[0.2, 0.3, 0.5]])), [[0.5, 0.5]])


def test_topics_are_merged_in_every_form_of_output(run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("securetm.runs.finished._ALIKE", 0.0)  # any two topics are then nearly the same
    said = securetm("topics", RUN, "--merge", "--words", "3", "--csv", str(tmp_path / "merged.csv"), "--json")
    assert said.code == 0, said.err
    (one,) = said.json["merged"]
    assert one["topics"] == list(range(len(run.topics())))
    rows = (tmp_path / "merged.csv").read_text("utf-8").splitlines()[1:]
    assert [row.split(",")[3] for row in rows] == one["words"]
    assert "1 topic of" in said.err
