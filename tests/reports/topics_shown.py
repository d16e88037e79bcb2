"""Topics made up for pages. No test of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from securetm.reports.topic_page import ShownTopics

HOSTILE = "</script><img src=x onerror=window.hurt=1>"


def made_up(topics: int = 8, words: int = 400) -> Any:
    """Random topics over words of which a few are common."""
    rng = np.random.default_rng(7)
    found = rng.gamma(0.05, size=(topics, words)) * (1 / np.arange(1, words + 1)) + 1e-9
    return found / found.sum(axis=1, keepdims=True)


def shown(topics: int = 8, words: int = 400, **changed: Any) -> ShownTopics:
    """A page's content, with a word that would be markup."""
    rng = np.random.default_rng(8)
    by_party = {name: rng.dirichlet(np.ones(topics)) for name in ("north", f"<b>{HOSTILE}")}
    facts: dict[str, Any] = {
        "title": HOSTILE,
        "facts": (("Model", "lda"), ("Profile", HOSTILE)),
        "topics": made_up(topics, words),
        "vocabulary": (HOSTILE, *(f"word{number}" for number in range(1, words))),
        "judged": "The model is of use.",
        "shares": sum(by_party.values()) / 2,
        "shares_of": "all documents",
        "by_party": by_party,
        "labels": {1: HOSTILE},
    }
    return ShownTopics(**(facts | changed))
