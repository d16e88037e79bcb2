"""A run of the matched form says how many topics were found, why there are so many, and what the model shows of them."""

from __future__ import annotations

import pytest

from securetm.reports.runs import matched_topics


@pytest.mark.parametrize(
    ("found", "merged", "says"),
    [
        (49, "n_topics", ("49 different topics, since", "the 10 asked for, merged", "--set model.merged=all keeps all 49")),
        (49, "all", ("49 different topics", "keeps them all", "10 were asked for")),
        (10, "n_topics", ("10 different topics; the model has the 10 asked for",)),
        (1, "n_topics", ("1 different topic; the model has the 10 asked for",)),
    ],
)
def test_it_says_how_many_and_why(found: int, merged: str, says: tuple[str, ...]) -> None:
    said = matched_topics({"found": found, "asked": 10, "merged": merged})
    assert all(part in said for part in says), said
