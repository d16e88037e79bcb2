"""The plan of parties that try their engines: LDA with few topics, in few rounds."""

from __future__ import annotations

from ..federation.joined import PLAN


def plan(rounds: int, seed: int = 0) -> str:
    """The plan as a file's text."""
    return f"seed = {seed}{PLAN.replace('rounds = 2', f'rounds = {rounds}')}"
