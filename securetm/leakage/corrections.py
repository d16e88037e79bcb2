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
    """Whether the attack declares what an epsilon allows, itself or by the attack that it is made of."""
    module, _, declaration = ATTACKS.find(attack).place.partition(":")
    return _declares_allowed(module, declaration)


def _declares_allowed(module: str, declaration: str) -> bool:
    """Whether a declaration in this module says what is allowed, or is a `replace` of one that does."""
    source = find_spec(module)
    assert source is not None  # an attack is declared somewhere
    assert source.origin is not None
    body = ast.parse(Path(source.origin).read_text("utf-8")).body
    made = (node for node in body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call))
    call = next((one.value for one in made if isinstance(one.targets[0], ast.Name) and one.targets[0].id == declaration), None)
    if not isinstance(call, ast.Call):
        return False
    if any(given.arg == "allowed" for given in call.keywords):
        return True
    imported = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    bases = (one.id for one in call.args if isinstance(one, ast.Name))
    return any(_declares_allowed(*imported.get(base, (module, base))) for base in bases)


@cache
def _claim_epsilon(profile: str) -> bool:
    from securetm.profiles import read_profile  # with all mechanisms

    return read_profile(profile).budget is not None
