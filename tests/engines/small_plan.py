"""The plan of parties that try their engines: LDA with few topics, in few rounds."""

from __future__ import annotations

_PLAN = """
seed = {seed}
profile = "masked"
[model]
name = "lda"
n_topics = 3
[vocabulary]
min_documents = 2
max_share = 1.0
most_candidates = 500
[training]
rounds = {rounds}
held_out = 0.2
"""


def plan(rounds: int, seed: int = 0) -> str:
    """The plan as a file's text."""
    return _PLAN.format(rounds=rounds, seed=seed)
