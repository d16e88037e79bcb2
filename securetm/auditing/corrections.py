"""Corrects the confidence of each test of an epsilon for the number of such tests in a plan. It runs no attack.

It reads an attack's file as text, so that looking up kept results imports no arithmetic.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from securetm.auditing.attacks import ATTACKS, attack_called
from securetm.auditing.audit_plans import Trial


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
    """Whether the attack declares what an epsilon allows, itself or by the attack that it is made of.

    An attack that is declared in another way than these, as a stranger's may be, is loaded and asked.
    """
    module, _, declaration = ATTACKS.find(attack).place.partition(":")
    said = _declares_allowed(module, declaration)
    return attack_called(attack).allowed is not None if said is None else said


def _declares_allowed(module: str, declaration: str) -> bool | None:
    """Whether a declaration says what is allowed, or is a `replace` of one that does; None if the file does not say it."""
    source = find_spec(module)
    assert source is not None  # an attack is declared somewhere
    assert source.origin is not None
    body = ast.parse(Path(source.origin).read_text("utf-8")).body
    made = [node for node in body if isinstance(node, ast.Assign) and _name(node.targets[0]) == declaration]
    call = made[0].value if len(made) == 1 else None
    if not isinstance(call, ast.Call) or _name(call.func) not in ("Attack", "replace"):
        return None
    given = {one.arg: one.value for one in call.keywords}
    if "allowed" in given:
        return not (isinstance(given["allowed"], ast.Constant) and given["allowed"].value is None)
    if None in given:  # more settings, by **
        return None
    if not call.args:
        return False
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in body
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
    }
    base = _name(call.args[0])
    return _declares_allowed(*imported.get(base, (module, base))) if base else None


def _name(node: ast.expr) -> str:
    """A plain name; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else ""


@cache
def _claim_epsilon(profile: str) -> bool:
    from securetm.plans.profiles import read_profile  # with all mechanisms

    return read_profile(profile).budget is not None
