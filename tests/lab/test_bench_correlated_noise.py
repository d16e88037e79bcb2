"""What noise that is correlated over rounds could buy: the bound holds for every matrix, and independent noise attains it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import lab
from lab.bench.correlated_noise import averages, equal_noise, least_noise, noise_of_sums, root_of_sums
from securetm.contracts import Array

COMMITTED = Path(lab.__file__).parent / "results" / "bench-correlated-noise.json"
WORKLOADS = {
    "averages": averages(4, 0.3),
    "sums": np.tril(np.ones((4, 4))),
    "signs": np.random.default_rng(3).normal(size=(3, 4)),
    "last": averages(4, 0.5)[-1:],
}


def worst_rows(effects: Array) -> Array:
    """The rows of one document for which no mechanism is better: round t points where it matters."""
    rows: Array = (effects / np.linalg.norm(effects, axis=0)).T
    return rows


def spent_and_left(matrix: Array, effects: Array) -> float:
    """Noise at a multiplier of 1 against that document: never more than against the worst one."""
    return float(np.linalg.norm(matrix @ worst_rows(effects)) * np.linalg.norm(effects @ np.linalg.inv(matrix)))


@pytest.mark.parametrize("name", WORKLOADS)
def test_no_matrix_leaves_less_noise(name: str) -> None:
    effects, rng, rounds = WORKLOADS[name], np.random.default_rng(0), 4
    lower = np.tril_indices(rounds)

    def logarithm(entries: Array) -> float:
        matrix = np.zeros((rounds, rounds))
        matrix[lower] = entries
        return float(np.log(spent_and_left(matrix + 1e-9 * np.eye(rounds), effects)))

    starts = [np.eye(rounds)[lower] + 0.3 * rng.normal(size=len(lower[0])) for _ in range(5)]
    found = [minimize(logarithm, start, method="L-BFGS-B").fun for start in starts]
    assert min(found) >= np.log(least_noise(effects)) - 1e-9
    assert min(found) <= np.log(least_noise(effects)) + 1e-2, "the bound is not attained"


@pytest.mark.parametrize("name", WORKLOADS)
def test_independent_noise_attains_it_for_every_document(name: str) -> None:
    effects, rng = WORKLOADS[name], np.random.default_rng(1)
    weights = np.linalg.norm(effects, axis=0)
    matrix = np.diag(np.sqrt(weights / weights.sum()))
    assert np.linalg.norm(effects @ np.linalg.inv(matrix)) == pytest.approx(least_noise(effects))
    for _ in range(200):
        rows = rng.normal(size=(4, 5))
        assert np.linalg.norm(matrix @ (rows / np.linalg.norm(rows, axis=1, keepdims=True))) <= 1 + 1e-12


def test_the_mean_of_all_rounds_needs_nothing_but_equal_noise() -> None:
    mean = np.full((1, 7), 1 / 7)
    assert least_noise(mean) == pytest.approx(equal_noise(mean)) == pytest.approx(1.0)


@pytest.mark.parametrize("bands", [1, 3, 8])
def test_the_noise_of_sums_is_that_of_the_inverse_matrix(bands: int) -> None:
    first, rounds = root_of_sums(bands), 8
    matrix = sum(np.diag(np.full(rounds - k, value), -k) for k, value in enumerate(first))
    noise = np.tril(np.ones((rounds, rounds))) @ np.linalg.inv(matrix)
    assert noise_of_sums(first, rounds) == pytest.approx(np.sqrt((noise**2).sum(axis=1).mean()))


def test_the_page_says_what_was_committed() -> None:
    rows = {row["case"]: row for row in json.loads(COMMITTED.read_text("utf-8"))["rows"]}
    page = (Path(__file__).resolve().parents[2] / "protocols" / "correlated_noise.md").read_text("utf-8")
    for forgetting in (0.3, 0.5):
        case = f"lda-vi, {{}} rounds, forgetting {forgetting:g}: the averages of all rounds, best noise of any kind"
        for name in ("ours", "last_average_alone"):
            assert " / ".join(f"{rows[case.format(rounds)][name]:.2f}" for rounds in (3, 8, 20)) in page
    sums = [row["ours"] for case, row in rows.items() if case.startswith("gradients")]
    for three in (sums[:3], sums[3:6], sums[6:]):
        assert " | ".join(f"{value:.2f}" for value in three) in page
