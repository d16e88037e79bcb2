"""`securetm topics RUN --html`: which facts of a run stand in its page, and which options do not go together."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import Said, securetm


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
