"""The data of the page of topics, as JSON inside of it: only the words that a topic can show, and the numbers of their bars."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.federation.topic_labels import LONGEST
from securetm.federation.topics_by_date import TopicsByDate
from securetm.foreign_text import printable
from securetm.reports.noise_marks import UNSURE
from securetm.reports.topic_page.relevance import SHOWN, START, STEPS, candidates, logarithms, overall
from securetm.reports.topic_page.shown_topics import DocumentsBehind, ShownTopics
from securetm.reports.topic_page.topic_map import places


def page_data(shown: ShownTopics) -> dict[str, Any]:
    """What the script of the page reads."""
    all_words = logarithms(overall(shown.topics, shown.shares))
    logs = logarithms(shown.topics)
    wanted = [candidates(topic, all_words) for topic in logs]
    kept = np.unique(np.concatenate(wanted))
    at = places(shown.topics)
    weights = np.full(len(logs), 1 / len(logs)) if shown.shares is None else shown.shares
    return {
        "steps": STEPS,
        "start": START,
        "unsure": UNSURE,
        "shown": min(SHOWN, len(shown.vocabulary)),
        "first": int(np.argmax(weights)),
        "longest_label": LONGEST,
        "words": [printable(shown.vocabulary[word]) for word in kept],
        "overall": all_words[kept].tolist(),
        "topics": [
            {
                "words": np.searchsorted(kept, words).tolist(),
                "logs": row[words].tolist(),
                "at": at[topic].round(4).tolist(),
                **_unsure(shown, topic, words),
            }
            for topic, (row, words) in enumerate(zip(logs, wanted, strict=True))
        ],
        "weights": _rounded(weights),
        "shares": None if shown.shares is None else _rounded(shown.shares),
        "shares_of": printable(shown.shares_of),
        "parties": [printable(name) for name in shown.by_party],
        "by_party": [_rounded(shares) for shares in shown.by_party.values()],
        "labels": {str(topic): printable(label) for topic, label in shown.labels.items()},
        "over_time": _over_time(shown.over_time, shown.over_time_of),
        "behind": _behind(shown.behind),
    }


def in_script(data: Mapping[str, Any]) -> str:
    """JSON that can stand in a script element: nothing in it ends the element, opens another or begins a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _rounded(shares: Array) -> list[float]:
    return [float(f"{share:.4g}") for share in shares]


def _unsure(shown: ShownTopics, topic: int, words: Array) -> dict[str, str]:
    """A 1 for each word that does not stand above the noise; nothing where that is not tested."""
    above = shown.above_noise
    return {} if above is None else {"unsure": "".join("0" if stands else "1" for stands in above[topic, words])}


def _over_time(time: TopicsByDate | None, whose: str) -> dict[str, Any] | None:
    return {**time.table(), "whose": printable(whose)} if time is not None and time.periods else None


def _behind(behind: DocumentsBehind | None) -> dict[str, Any] | None:
    if behind is None:
        return None
    topics = [
        [(one.number, float(f"{one.share:.3g}"), *map(printable, (one.label, one.date, one.words))) for one in several]
        for several in behind.topics
    ]
    return {"whose": printable(behind.whose), "in_order": behind.in_order, "topics": topics}
