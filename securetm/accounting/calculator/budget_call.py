"""The calculator from Python: one call, one plain record, as the command prints it with --json. It computes nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from securetm.accounting.calculator.budget_report import BudgetReport
from securetm.accounting.calculator.dp_sgd import Training, dp_sgd
from securetm.accounting.calculator.solve_for import Target, solve
from securetm.accounting.calculator.word_noise import WordNoise, laplace
from securetm.errors import NotFound
from securetm.toml_settings import from_table

QUESTIONS: Mapping[str, tuple[type[Any], Callable[..., BudgetReport]]] = {
    "dp-sgd": (Training, dp_sgd),
    "solve": (Target, solve),
    "laplace": (WordNoise, laplace),
}


class _Unseen:
    """Nobody looks on."""

    def stage(self, title: str, total: int) -> None:
        """Nothing is shown."""

    def step(self, done: int) -> None:
        """Nothing is shown."""


def budget(question: str = "dp-sgd", **settings: Any) -> dict[str, Any]:
    """What is spent, allowed or needed: `budget(documents=19000, batch=190, epochs=10, noise=1.0, delta=1e-5)["epsilon"]`.

    `question` is dp-sgd, solve (with sought="noise", "epochs" or "batch") or laplace; the settings are those of the command.
    """
    if question not in QUESTIONS:
        raise NotFound("question", question, tuple(QUESTIONS))
    kind, answer = QUESTIONS[question]
    return answer(from_table(kind, settings, f"budget {question}"), _Unseen()).record()
