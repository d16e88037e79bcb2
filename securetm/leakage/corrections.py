"""Corrects the confidence of each test of an epsilon for the number of such tests in a plan. It runs no attack.

It reads an attack's file as text, so that looking up kept results imports no arithmetic.
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
    """The confidence of each test at which all tests together err as rarely as one alone (Bonferroni)."""
    return 1 - (1 - confidence) / max(tests, 1)


def count_of_tests(trials: Iterable[Trial]) -> int:
    """How many claims of an epsilon these trials test: one on each profile with a budget, except the baseline."""
    return sum(
        _claim_epsilon(name) for trial in trials if of_epsilon(trial) for name in trial.profiles if name != trial.expect_fail
    )


def of_epsilon(trial: Trial) -> bool:
    """Whether the trial tests differential privacy, with an attack that declares what an epsilon allows."""
    from securetm.mechanisms.noising import PRIVATE  # its import takes longer than the answer

    return trial.claim == PRIVATE and knows_epsilon(trial.attack)


@cache
def knows_epsilon(attack: str) -> bool:
    """Whether the attack declares what an epsilon allows."""
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
