"""What the page of topics holds: all words that any relevance shows, a map that tells alike topics, and nothing it may not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from securetm.reports.topic_page import (
    SHOWN,
    STEPS,
    candidates,
    distances,
    logarithms,
    overall,
    places,
    ranked,
    topic_page,
)

from .topics_shown import HOSTILE, made_up, shown


@pytest.mark.parametrize("words", [1, 21, 800])
def test_every_word_that_any_step_shows_is_a_candidate_and_no_other(words: int) -> None:
    topics = made_up(6, words)
    logs, everywhere = logarithms(topics), logarithms(overall(topics, None))
    for topic in logs:
        relevance = [STEPS * topic - (STEPS - step) * everywhere for step in range(STEPS + 1)]
        first = [sorted(range(words), key=lambda word: (-row[word], word))[:SHOWN] for row in relevance]
        assert candidates(topic, everywhere).tolist() == sorted({word for row in first for word in row})
        assert [ranked(topic, everywhere, step).tolist() for step in range(STEPS + 1)] == first


def test_all_documents_words_weigh_topics_by_their_shares() -> None:
    topics = np.array([[0.9, 0.1], [0.1, 0.9]])
    assert overall(topics, np.array([0.75, 0.25])) == pytest.approx([0.7, 0.3])
    assert overall(topics, None) == pytest.approx([0.5, 0.5])


def test_the_map_tells_alike_topics_and_is_the_same_each_time() -> None:
    alike = np.array([[0.5, 0.5, 0, 0], [0.4, 0.6, 0, 0], [0, 0, 0.5, 0.5]])
    away = distances(alike)
    assert away[0, 2] == pytest.approx(1)
    assert np.diag(away) == pytest.approx(0, abs=1e-7)
    assert away[0, 1] < 0.2
    at = places(alike)
    assert np.array_equal(at, places(alike))
    assert np.linalg.norm(at[0] - at[1]) < np.linalg.norm(at[0] - at[2]) / 3
    assert np.abs(at).max() == pytest.approx(1)


def test_nothing_in_the_page_ends_its_script() -> None:
    text = topic_page(shown())
    assert text.count("</script>") == 2
    assert text.count("<script") == 2
    assert "<img" not in text
    assert HOSTILE in json.loads(_data(text))["words"]


def test_marks_that_turn_a_line_around_are_spelt_out() -> None:
    words = ("tur\u202en", "nul\x00", *(f"word{number}" for number in range(2, 400)))
    text = topic_page(shown(vocabulary=words))
    assert "\u202e" not in text
    assert "\x00" not in text
    assert r"tur\u202en" in text


def test_a_page_of_the_model_alone_has_no_figure_of_a_party() -> None:
    text = topic_page(shown(shares=None, shares_of="", by_party={}, judged=""))
    assert "Topics by party" not in text
    assert "follows from the model alone" in text
    assert json.loads(_data(text))["shares"] is None


def test_a_policy_names_the_one_script_and_the_one_style() -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', topic_page(shown()))
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert policy[1].count("'sha256-") == 2


def test_words_that_do_not_stand_above_the_noise_are_marked_and_the_marks_explained() -> None:
    above = made_up() > np.quantile(made_up(), 0.99)
    text = topic_page(shown(above_noise=above, noised=True))
    lists = text[text.index('<table id="topics">') : text.index("</table>", text.index('<table id="topics">'))]
    listed = lists.count('class="unsure" role="img" aria-label="not above the noise"')
    assert 0 < listed < 8 * len(above)
    assert f"{above.sum()} of all {above.size:,} pairs" in text
    data = json.loads(_data(text))
    for topic, row in zip(data["topics"], above, strict=True):
        places = [0 if data["words"][word] == HOSTILE else int(data["words"][word][4:]) for word in topic["words"]]
        assert topic["unsure"] == "".join("0" if row[place] else "1" for place in places)


def test_a_page_says_where_nothing_was_tested_and_nothing_where_there_is_no_noise() -> None:
    assert "is not tested here" in topic_page(shown(noised=True))
    assert "the noise" not in re.sub(r"<script.*?</script>", "", topic_page(shown()), flags=re.S).replace("without noise", "")


def test_the_script_writes_no_markup() -> None:
    script = Path(__file__).parents[2] / "securetm" / "reports" / "static" / "topic_page.js"
    text = script.read_text("utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|XMLHttpRequest|import\(", text)
    assert text.count("\n") < 400


def _data(text: str) -> str:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found
    return found[1]
