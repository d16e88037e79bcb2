"""`securetm topics`: its page, labels, tables, and topics by date."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import securetm as package
from securetm.corpus.corpus import Corpus
from securetm.runs.finished import FinishedRun, documents_in, topics_by_date

from .conftest import SMALL, Said, securetm


def data_of(page: Path) -> Any:
    """The data in the page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text("utf-8"), re.S)
    assert found
    return json.loads(found[1])


def test_the_page_of_a_simulation(here: Path, demo: Said) -> None:
    said = securetm("topics", "runs/demo", "--html", "topics.html")
    assert said.code == 0, said.err
    assert "Written: topics.html" in said.err
    text, data = Path("topics.html").read_text("utf-8"), data_of(Path("topics.html"))
    for wanted in (
        "Topics of demo",
        "prodlda, 3 topics",
        "5 parties with 300 documents, 6 rounds",
        "No budget",
        "--model-only",
    ):
        assert wanted in text
    assert data["parties"] == demo.json["parties"]
    assert Path("topics.html").stat().st_mode & 0o077 == 0
    assert data["by_party"] == [pytest.approx(demo.json["prevalence"][name], abs=1e-3) for name in data["parties"]]
    assert sum(data["shares"]) == pytest.approx(1, abs=0.01)
    assert data["behind"] is None
    assert all("unsure" not in topic for topic in data["topics"])  # nobody added noise


def test_documents_of_a_party_and_of_a_file(here: Path, demo: Said) -> None:
    assert securetm("topics", "runs/demo", "--html", "north.html", "--documents", "--party", "north").code == 0
    behind = data_of(Path("north.html"))["behind"]
    assert behind["whose"] == "north"
    assert behind["in_order"]
    numbers = [number for topic in behind["topics"] for number, *_ in topic]
    assert numbers
    assert set(numbers) <= set(range(1, 61))
    mapped = {number: pulls for number, _, pulls in behind["mapped"]}
    assert sorted(mapped) == list(range(1, 61))
    assert all(sum(part for _, part in pulls) == pytest.approx(1, abs=0.04) for pulls in mapped.values())
    strongest = {
        number: topic for topic, several in enumerate(behind["topics"]) for number, share, *_ in several if share > 0.5
    }
    assert all(mapped[number][0][0] == topic for number, topic in strongest.items())
    assert Path("north.html").stat().st_mode & 0o077 == 0
    said = securetm("topics", "runs/demo", "--html", "new.html", "--documents", "--corpus", "new.jsonl")
    assert said.code == 0, said.err
    assert data_of(Path("new.html"))["behind"]["whose"] == "new.jsonl"


# ---- labels ----------------------------------------------------------------------------------------------------------------


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


# ---- tables ----------------------------------------------------------------------------------------------------------------


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


# ---- by date ---------------------------------------------------------------------------------------------------------------


DATED = "runs/dated"


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
    if not Path(DATED).exists():
        options = ("--corpus", str(dated), "--date", "when", "--partition", "column", "--model", "lda", "--rounds", "3")
        lda = [part for part in SMALL if part != "model.hidden=8"]
        lda.remove("--set")
        assert securetm("run", *options, *lda, "--out", DATED, "--no-comparison", "--json").code == 0
    return FinishedRun.open(Path(DATED))


def test_shares_are_means_over_the_documents_of_a_period(run: FinishedRun) -> None:
    said = securetm("topics", DATED, "--by-date", "year", "--json").json["by_date"]
    assert said["periods"] == ["2020", "2021", "2022", "2023", "2024"]
    assert said["period"] == "year"
    held = sorted(documents_in(run).values(), key=lambda corpus: str(corpus.dates[0]))
    expected = [run.transform(corpus).mean(axis=0) for corpus in held]
    np.testing.assert_allclose(said["shares"], expected, atol=1e-5)
    assert said["documents"] == [len(corpus) for corpus in held]
    first, *lines = securetm("topics", DATED, "--by-date", "year", "--csv", "-").out.split()
    assert first == "period,documents,topic,label,share"
    assert len(lines) == 5 * len(run.components_)
    assert lines[1] == f"2020,{len(held[0])},1,,{said['shares'][0][1]:.6f}"


def test_shares_are_means_over_the_documents_of_a_label(run: FinishedRun, dated: Path) -> None:
    said = securetm("topics", DATED, "--by-label", "party", "--corpus", dated.name, "--json")
    assert said.code == 0, said.err
    found = said.json["by_label"]
    held = documents_in(run)
    assert found["labels"] == sorted(held)
    assert found["documents"] == [len(held[name]) for name in sorted(held)]
    np.testing.assert_allclose(found["shares"], [run.transform(held[name]).mean(axis=0) for name in sorted(held)], atol=1e-5)
    assert "Topics by label" in securetm("topics", DATED, "--by-label", "party", "--corpus", dated.name).out


def test_a_table_shows_bars(run: FinishedRun) -> None:
    said = securetm("topics", DATED, "--by-date", "month")
    assert "2020-01 to 2024-12" in said.out
    assert "█" in said.out
    one = securetm("topics", DATED, "--by-date", "month", "--party", next(iter(documents_in(run))))
    assert "Topics by month, 60 documents" in one.out


def test_documents_without_a_known_word_count_nowhere(run: FinishedRun, tmp_path: Path) -> None:
    corpus = package.Corpus.from_strings(["unheard words", run.vocabulary[0]], dates=["2020", "2022"])
    found = topics_by_date(run, {"new": Corpus.concat([corpus])}, "year")
    assert found.periods == ("2022",)
    assert found.documents.tolist() == [1]
    nothing = topics_by_date(run, {"new": corpus.select(np.array([0]))}, "year")
    assert nothing.table() == {"period": "year", "periods": [], "documents": [], "shares": []}


def test_the_page_of_topics_shows_them_and_says_whose_they_are(run: FinishedRun, tmp_path: Path) -> None:
    assert securetm("topics", DATED, "--by-date", "year", "--html", str(tmp_path / "all.html")).code == 0
    text = (tmp_path / "all.html").read_text("utf-8")
    assert '"periods":["2020","2021","2022","2023","2024"]' in text
    assert '"whose":"all parties"' in text
    one = securetm("topics", DATED, "--by-date", "year", "--party", "north", "--html", str(tmp_path / "north.html"))
    assert one.code == 0, one.err
    text = (tmp_path / "north.html").read_text("utf-8")
    assert '"whose":"north"' in text
    assert '"behind":null' in text  # no document is quoted


def test_documents_of_topics_and_frames_are_at_hand_without_a_page(run: FinishedRun) -> None:
    party = next(iter(documents_in(run)))
    shown = securetm("topics", DATED, "--documents", "--party", party)
    assert shown.code == 0, shown.err
    assert "topics are strongest in" in " ".join(shown.out.split())
    assert securetm("topics", DATED, "--documents").code == 2  # whose documents?
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
    said = securetm("topics", DATED, "--merge", "--words", "3", "--csv", str(tmp_path / "merged.csv"), "--json")
    assert said.code == 0, said.err
    (one,) = said.json["merged"]
    assert one["topics"] == list(range(len(run.topics())))
    rows = (tmp_path / "merged.csv").read_text("utf-8").splitlines()[1:]
    assert [row.split(",")[3] for row in rows] == one["words"]
    assert "1 topic of" in said.err


@pytest.mark.slow
def test_words_behind_noise_are_marked_and_the_spend_is_told(here: Path) -> None:
    Path("words.txt").write_text("river\nwater\ncourt\njudge\ntensor\nmatrix\ncity\npeople\n", "utf-8")
    corpus = (
        "--corpus",
        "documents.jsonl",
        "--partition",
        "column",
        "--vocabulary",
        "words.txt",
        "--public",
        "vocabulary=made up",
        "--model",
        "lda",
        "--topics",
        "3",
    )
    private = ("--profile", "dp-distributed", "--epsilon", "1", "--rounds", "2", "--no-comparison", "--out", "runs/noised")
    ran = securetm("run", *corpus, *private)
    assert ran.code in (0, 1), ran.err  # 1: a budget was spent on a model that is worse than a guess
    said = securetm("topics", "runs/noised", "--html", "noised.html", "--json")
    assert said.code == 0
    assert [len(words) for words in said.json["above_noise"]] == [len(words) for words in said.json["topics"]]
    assert "words stand above the noise" in " ".join(securetm("topics", "runs/noised").out.split())
    assert "words stand above the noise" in " ".join(ran.out.split())
    data = data_of(Path("noised.html"))
    assert all(set(topic["unsure"]) <= {"0", "1"} and len(topic["unsure"]) == len(topic["words"]) for topic in data["topics"])
    assert re.search(r"Epsilon (1|0\.99\d*) per document", Path("noised.html").read_text("utf-8"))
