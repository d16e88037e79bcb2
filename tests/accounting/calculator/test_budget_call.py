"""The calculator from Python says what the command says."""

from __future__ import annotations

import pytest

import securetm
from securetm.errors import NotFound, SecuretmError


def test_a_budget_is_one_call() -> None:
    found = securetm.budget(documents=100_000, batch=1_000, epochs=10, noise=1.0, delta=1e-5)
    assert found["epsilon"] == pytest.approx(1.828, rel=0.01)
    assert (found["unit"], found["accountant"], found["sampling"]) == ("document", "PLD", "poisson")


@pytest.mark.parametrize(
    ("question", "settings", "error"),
    [("magic", {}, NotFound), ("dp-sgd", {"colour": 3}, NotFound), ("dp-sgd", {"noise": -1.0}, SecuretmError)],
)
def test_nonsense_gets_a_letter(question: str, settings: dict[str, object], error: type[Exception]) -> None:
    sensible = {"documents": 100, "batch": 10, "epochs": 1, "noise": 1.0, "delta": 1e-5}
    with pytest.raises(error):
        securetm.budget(question, **{**sensible, **settings})
