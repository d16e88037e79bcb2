"""Tables at 80, 120 and 200 columns: no word is broken, and with many parties no column stands empty."""

from __future__ import annotations

import io
from typing import Any

import pytest

from securetm.reports.runs import own_topics, quality, shared_topics
from securetm.reports.terminal import Screen
from securetm.reports.texts import sentence

FIVE = ("standard library", "numpy", "scipy", "torch", "scikit-learn")
MANY = tuple(f"party-{number:03d}" for number in range(1, 101))
WORDS = ["implementation", "context", "callable", "calling", "thread", "func", "backend"]


def result(parties: tuple[str, ...]) -> dict[str, Any]:
    """A run of twenty topics, each strong at one party or at three."""
    shares = {name: [0.02] * 20 for name in parties}
    for topic in range(20):
        for place in range(3 if topic % 2 else 1):
            shares[parties[(topic + place) % len(parties)]][topic] = 0.5
    figures = {"npmi": 0.123, "held_out": 1234.5, "held_out_everywhere": 12345.6}
    return {
        "parties": list(parties),
        "topics": [[*WORDS[topic % 5 :], *WORDS[: topic % 5]] for topic in range(20)],
        "prevalence": shares,
        "topics_alone": {name: [WORDS] * 5 for name in parties},
        "alone": dict.fromkeys(parties, figures),
        "shared_at_party": dict.fromkeys(parties, figures),
        "quality": {"npmi": 0.1, "held_out": 999.9},
    }


def shown(table: Any, width: int) -> str:
    out = io.StringIO()
    Screen(file=out, width=width).print(table)
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("parties", [FIVE, MANY, MANY[:12]], ids=["5", "100", "12"])
def test_words_stay_whole_and_every_line_fits(width: int, parties: tuple[str, ...]) -> None:
    run = result(parties)
    for table, wanted in ((shared_topics(run, width), WORDS), (own_topics(run), WORDS), (quality(run), ["everybody's:"])):
        text = shown(table, width)
        assert max(map(len, text.splitlines())) <= width
        assert set(wanted) <= set(text.split())
    for name in parties if len(parties) < 20 else ():
        assert name in shown(quality(run), width)


def test_with_many_parties_a_topic_names_those_where_it_is_strong() -> None:
    text = shown(shared_topics(result(MANY), 80), 80)
    assert "party-001" in text
    assert "▁" not in text
    assert "party-050" not in text  # nothing is strong there
    assert len(text.splitlines()) < 90


def test_with_few_parties_there_is_a_column_for_each() -> None:
    text = shown(shared_topics(result(FIVE), 80), 80)
    assert "█" in text
    assert "1 standard library" in " ".join(text.split())


@pytest.mark.parametrize(
    ("found", "merged", "says"),
    [
        (49, "n_topics", ("49 different topics, since", "the 10 asked for, merged", "--set model.merged=all keeps all 49")),
        (49, "all", ("49 different topics", "keeps them all", "10 were asked for")),
        (1, "n_topics", ("1 different topic; the model has the 10 asked for",)),
    ],
)
def test_a_run_of_the_matched_form_says_how_many_topics_there_are_and_why(
    found: int, merged: str, says: tuple[str, ...]
) -> None:
    said = sentence("run.matched", {"found": found, "asked": 10, "merged": merged})
    assert all(part in said for part in says), said
