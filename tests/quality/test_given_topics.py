"""Topics from anywhere: every form that is read, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.errors import Mistake, NoSuchPath
from securetm.quality.judged_topics import read_topics

LISTS = [["rain", "storm", "wind"], ["bread", "butter"]]


def written(place: Path, content: Any, name: str = "topics.json") -> Path:
    file = place / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return file


@pytest.mark.parametrize("content", [LISTS, {"topics": LISTS, "run": "x"}, [{"words": one} for one in LISTS]])
def test_lists_of_words(content: Any, tmp_path: Path) -> None:
    found = read_topics(written(tmp_path, content))
    assert [list(one) for one in found.lists] == LISTS
    assert found.weights is None
    assert [len(one) for one in found.first(10)] == [2, 2]  # the same number of words of each


@pytest.mark.parametrize(
    "content",
    [
        [{"storm": 1, "rain": 3}, {"bread": 0.5, "rain": 0.5}],
        [[["storm", 1], ["rain", 3]], [["bread", 2], ["rain", 2]]],
        {"topics": [{"storm": 1, "rain": 3}, {"bread": 0.5, "rain": 0.5}]},
    ],
)
def test_words_with_weights(content: Any, tmp_path: Path) -> None:
    found = read_topics(written(tmp_path, content))
    assert found.vocabulary == ("bread", "rain", "storm")
    np.testing.assert_allclose(found.weights, [[0, 0.75, 0.25], [0.5, 0.5, 0]])
    assert found.lists[0][:2] == ("rain", "storm")


def test_words_are_spelled_as_documents_have_them(tmp_path: Path) -> None:
    documents = Corpus.from_strings(["rain and storm", "bread with wind"])
    listed = read_topics(written(tmp_path, [["Rain", "STORM", "rain"], ["Bread", "the Sea"]])).as_counted_in(documents)
    assert listed.lists == (("rain", "storm"), ("bread", "the Sea"))
    weighted = read_topics(written(tmp_path, [{"Storm": 1, "storm": 2, "rain": 1}, {"bread": 1, "Rain": 1}]))
    found = weighted.as_counted_in(documents)
    assert found.vocabulary == ("bread", "rain", "storm")
    np.testing.assert_allclose(found.weights, [[0, 0.25, 0.75], [0.5, 0.5, 0]])
    assert weighted.as_counted_in(None) is weighted


def test_a_table_of_weights_and_one_of_words(tmp_path: Path) -> None:
    weighted = read_topics(written(tmp_path, "topic,word,weight\n1,storm,1\n1,rain,3\n2,bread,1\n2,rain,1\n", "topics.csv"))
    np.testing.assert_allclose(weighted.weights, [[0, 0.75, 0.25], [0.5, 0.5, 0]])
    listed = read_topics(written(tmp_path, "rain,storm,wind\nbread,butter\n", "words.csv"))
    assert [list(one) for one in listed.lists] == LISTS
    unweighted = read_topics(written(tmp_path, "topic,word\n1,rain\n1,storm\n1,wind\n2,bread\n2,butter\n", "plain.csv"))
    assert [list(one) for one in unweighted.lists] == LISTS


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"words": 3}', "neither a list nor an object with"),
        ([], "0 topics"),
        ([3], "neither a list nor an object"),
        ([["rain"]], "fewer than two words"),
        ([["rain", "rain"]], "fewer than two words, or a word twice"),
        ([["rain", 3]], "neither a list of words nor"),
        ([{"rain": -1, "storm": 2}], "neither a list of words nor"),
        ([{"rain": 0, "storm": 0}], "all zero"),
        ('[{"rain": NaN, "storm": 1}]', "neither a list of words nor"),
        ([{"rain": 10**400, "storm": 1}], "neither a list of words nor"),
        ([{"rain": 1e308, "storm": 1e308}], "neither a list of words nor"),
        ([{f"{t} {w}": 1 for w in range(15)} for t in range(4000)], "too many to weigh"),
    ],
)
def test_what_holds_no_topics_is_refused(content: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=said):
        read_topics(written(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("topic,word,weight\n1,rain\n", "row 2 has 2 cells"),
        ("topic,word,weight\n1,rain,much\n", "row 2 is not a number"),
        ("topic,word\n1," + "r" * 200_000, "cannot be read as a table"),
    ],
)
def test_a_table_that_holds_none_is_refused(content: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=said):
        read_topics(written(tmp_path, content, "topics.csv"))


def test_no_file_and_no_text(tmp_path: Path) -> None:
    with pytest.raises(NoSuchPath):
        read_topics(tmp_path / "nothing.json")
    (tmp_path / "odd.json").write_bytes(b"\xff\xfe")
    with pytest.raises(Mistake, match="not UTF-8"):
        read_topics(tmp_path / "odd.json")
