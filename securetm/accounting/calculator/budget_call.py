"""The calculator for Python: one call returns the record that the command prints with --json. It computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from securetm.accounting.calculator.dp_sgd import Training
from securetm.accounting.calculator.solve_for import Target
from securetm.accounting.calculator.word_noise import WordNoise
from securetm.errors import NotFound
from securetm.settings import from_table
from securetm.stages import Unwatched

QUESTIONS: Mapping[str, type[Training | Target | WordNoise]] = {"dp-sgd": Training, "solve": Target, "laplace": WordNoise}


def budget(question: str = "dp-sgd", **settings: Any) -> dict[str, Any]:
    """What is spent, allowed or needed: `budget(documents=19000, batch=190, epochs=10, noise=1.0, delta=1e-5)["epsilon"]`.

    `question` is dp-sgd, solve (with sought="noise", "epochs" or "batch") or laplace; the settings are those of the command.
    """
    if question not in QUESTIONS:
        raise NotFound("question", question, tuple(QUESTIONS))
    return from_table(QUESTIONS[question], settings, f"budget {question}").report(Unwatched()).record()
