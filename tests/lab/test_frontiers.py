"""The frontiers of private models: a row is a federation with a ledger, rows are not made twice, and goals follow from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.documents import JudgedDocuments
from lab.keeping import KeptRows, Key, made
from lab.measuring import Row
from lab.reproduce.contenders import (
    ASSIGNED,
    FREQUENCIES,
    MOMENTS,
    PLAIN,
    PUBLIC,
)
from lab.reproduce.frontier_cases import (
    CENTRAL,
    DISTRIBUTED,
    EPSILONS,
    NEWS,
    NO_NOISE,
    TITLES,
    FrontierBlock,
    FrontierCase,
    chosen,
)
from lab.reproduce.frontier_findings import goals_of, means
from lab.reproduce.private_frontier import federation_row, settings_of
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting

from .squares import squared

SUBJECTS = ("river water lake boat fish", "court judge trial law jury", "tensor matrix vector gradient loss")


@pytest.fixture(scope="module")
def three_subjects() -> JudgedDocuments:
    """Three subjects in place of twenty newsgroups, and a public list of their words."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(SUBJECTS[n % 3].split(), 12)) for n in range(900)]
    corpus = Corpus.from_strings(texts, labels=[str(n % 3) for n in range(900)], name="little")
    return JudgedDocuments(corpus, tuple(sorted(" ".join(SUBJECTS).split())))


@pytest.mark.slow
@pytest.mark.parametrize("model", [PLAIN, ASSIGNED])
def test_a_row_is_a_federation_that_paid_for_what_it_learned(model: str, three_subjects: JudgedDocuments) -> None:
    case = FrontierCase("little", 3, model, CENTRAL, 8.0, 0)
    row = federation_row(case, settings_of(case, len(three_subjects.raw)), three_subjects)
    assert 7 < row["spent"] <= 8.0
    assert row["noise"] > 0.5
    assert row["held_out"] > np.log(1 / 15)  # every word alike
    assert row["megabytes"] > 0


def test_cases_are_chosen_by_their_fields() -> None:
    cases = list(FrontierBlock(NEWS, 20, (PLAIN, MOMENTS), (NO_NOISE, CENTRAL), (0, 1)).cases())
    assert len(cases) == 2 * 2 * (1 + len(EPSILONS))
    assert {case.epsilon for case in chosen(cases, ["epsilon=1", "epsilon=none", "seed=0"])} == {1.0, None}
    with pytest.raises(BadSetting, match="fits no case"):
        chosen(cases, ["epsilon=2"])
    with pytest.raises(BadSetting, match="must be FIELD=VALUE"):
        chosen(cases, ["colour=red"])


def _never(key: Key) -> Row:
    raise AssertionError(key)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_kept_rows_are_not_made_again(workers: int, tmp_path: Path) -> None:
    keys: list[dict[str, Any]] = [{"n": n} for n in range(4)]
    file, told = tmp_path / "rows.jsonl", list[tuple[int, int]]()
    made(keys[:2], squared, KeptRows(file))
    with file.open("a", encoding="utf-8") as torn:
        torn.write('{"key": {"n": 2}, "row": {"squ')  # where it was killed
    rows = made(keys, squared, KeptRows(file), workers, lambda done, total: told.append((done, total)))
    assert [row["square"] for row in rows] == [0, 1, 4, 9]
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert made(keys, _never, KeptRows(file)) == rows


def _run(model: str, profile: str, epsilon: float | None, held_out: float, corpus: str = NEWS, seed: int = 0) -> Row:
    case = FrontierCase(corpus, 20, model, profile, epsilon, seed)
    figures = {"f1": 0.32, "held_out": held_out, "npmi": 0.2, "npmi_held_out": 0.1, "diversity": 0.5}
    return {**case.key(), **figures, "rounds": 3, "seconds": 1.0, "megabytes": 1.0, "noise": 1.0}


def test_goals_say_what_was_reached() -> None:
    central = {0.5: -6.2, 1.0: -6.1, 3.0: -6.0, 8.0: -5.97}
    runs = [_run(PUBLIC, CENTRAL, epsilon, value) for epsilon, value in central.items()]
    runs += [_run(PUBLIC, DISTRIBUTED, 3.0, -6.1), _run(PUBLIC, NO_NOISE, None, -5.9)]
    runs += [_run(FREQUENCIES, NO_NOISE, None, -4.9, TITLES), _run(PUBLIC, CENTRAL, 1.0, -5.0, TITLES)]
    goals = {goal["goal"]: goal for goal in goals_of(means(runs))}
    at_least = f"{NEWS}, 20 topics, central, epsilon %s, {PUBLIC}: log-likelihood per held-out word at least"
    assert not goals[at_least % 1]["held"]
    assert goals[at_least % 3]["held"]
    dearer = next(
        goal for name, goal in goals.items() if name.startswith(f"{NEWS}, distributed at epsilon 3") and "held_out" in name
    )
    assert dearer["reached"] == pytest.approx(3.0, abs=0.01)
    assert not dearer["held"]
    assert any(name.startswith(TITLES) and not goal["held"] for name, goal in goals.items())
    assert not any("2,000 of" in name for name in goals)  # no such row was made
