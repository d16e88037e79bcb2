"""The curve of utility against documents, and the bench of private training: rows are federations, and what follows of them."""

from __future__ import annotations

import numpy as np
import pytest

from lab.bench import private as bench_private
from lab.reproduce import documents_curve
from lab.reproduce.contenders import MOMENTS, PUBLIC
from lab.reproduce.frontier_cases import CENTRAL, NO_NOISE


@pytest.mark.slow
def test_noise_costs_the_less_the_more_documents_there_are() -> None:
    result = documents_curve.reproduce(documents=(1_000, 8_000), models=[MOMENTS])
    at = {(row["model"], row["profile"], row["documents"]): row for row in result["rows"]}
    noised, clear = ([at[MOMENTS, profile, size] for size in (1_000, 8_000)] for profile in (CENTRAL, NO_NOISE))
    assert noised[0]["held_out"] < noised[1]["held_out"] < clear[1]["held_out"] < clear[1]["true_topics"]
    assert noised[0]["away_from_truth"] > noised[1]["away_from_truth"]
    assert 0.9 < noised[1]["spent"] <= 1.0
    assert result["tables"]["Where they meet"][0]["meets_at_documents"] is None


def test_they_meet_where_noise_costs_no_more_from_there_on() -> None:
    costs = {10: 0.01, 100: 0.5, 1_000: 0.01, 10_000: 0.0}
    rows = [{"model": "a", "profile": NO_NOISE, "documents": size, "held_out": -5.0} for size in costs]
    rows += [{"model": "a", "profile": CENTRAL, "documents": size, "held_out": -5.0 - cost} for size, cost in costs.items()]
    assert documents_curve.meetings(rows)[0]["meets_at_documents"] == 1_000


def test_topics_are_matched_with_the_true_ones() -> None:
    true = np.eye(3)
    assert documents_curve.away(true[[2, 0, 1]], true) == 0
    assert documents_curve.away(np.full((3, 3), 1 / 3), true) == pytest.approx(2 / 3)


@pytest.mark.slow
def test_the_cost_of_a_private_training_is_all_of_it() -> None:
    few = next(one for one in bench_private.measured() if one.name == MOMENTS)
    row = bench_private.cost_of(few, 3_000)
    assert row["rounds"] == 1
    assert row["spent"] <= bench_private.EPSILON
    assert row["megabytes"] > 5 * 2_000 * 2_001 / 2 * 4 / 1e6  # five parties, each with the half of a table of pairs


def test_the_published_figure_is_said_to_be_cited() -> None:
    cited = [one for one in bench_private.measured() if one.is_cited]
    assert [(one.name, one.topics, one.words) for one in cited] == [(PUBLIC, 5, 3_000)]
    assert "not measured here" in bench_private.CITED
