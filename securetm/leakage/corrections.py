"""How many claims of an epsilon a plan tests, for which the confidence of each is corrected. It runs no attack.

It reads an attack's file as text, so that kept results can be looked up without any arithmetic.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from securetm.leakage.attacks import ATTACKS
from securetm.leakage.audit_plans import Trial


def corrected(confidence: float, tests: int) -> float:
    """So that all tests together go wrong as rarely as one alone would (Bonferroni)."""
    return 1 - (1 - confidence) / max(tests, 1)


def count_of_tests(trials: Iterable[Trial]) -> int:
    """Claims of an epsilon that these trials test: one on each profile that makes one, but for a trial's baseline."""
    return sum(
        _claim_epsilon(name) for trial in trials if of_epsilon(trial) for name in trial.profiles if name != trial.expect_fail
    )


def of_epsilon(trial: Trial) -> bool:
    """Whether it tries differential privacy, with an attack that knows what an epsilon allows of its measure."""
    from securetm.mechanisms.noising import PRIVATE  # with arithmetic that takes longer to import than this takes to answer

    return trial.claim == PRIVATE and knows_epsilon(trial.attack)


@cache
def knows_epsilon(attack: str) -> bool:
    """Whether the attack's file says what an epsilon allows."""
    module, _, declaration = ATTACKS.find(attack).place.partition(":")
    source = find_spec(module)
    assert source is not None  # an attack is declared somewhere
    assert source.origin is not None
    made = (node for node in ast.parse(Path(source.origin).read_text("utf-8")).body if isinstance(node, ast.Assign))
    calls = (one.value for one in made if isinstance(one.targets[0], ast.Name) and one.targets[0].id == declaration)
    return any(given.arg == "allowed" for call in calls if isinstance(call, ast.Call) for given in call.keywords)


@cache
def _claim_epsilon(profile: str) -> bool:
    from securetm.profiles import read_profile  # with all mechanisms

    return read_profile(profile).budget is not None
