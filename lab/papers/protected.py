"""What committed results say of protection on the papers' corpora: models that these papers did not have, under a budget."""

from __future__ import annotations

from math import exp

from lab.measuring import Row, committed

FRONTIER = "reproduce-private-frontier"
_MODELS = ("lda-vi, public start", "lda-vi, told that texts have five words", "moments")
_PROFILES, _EPSILONS = ("masked", "dp-distributed"), (None, 8.0, 3.0, 1.0)


def of_frontier(corpus: str) -> list[Row]:
    """F1, perplexity and coherence of 20 topics without a budget and under one, from the frontier of private models."""
    return [
        {
            **{name: row[name] for name in ("model", "profile", "epsilon", "f1")},
            "perplexity": round(exp(-row["held_out"]), 1),
            "npmi": row["npmi_held_out"],
            "diversity": row["diversity"],
            "rounds": round(row["rounds"]),
        }
        for row in committed(FRONTIER)["rows"]
        if row["corpus"] == corpus
        and row["topics"] == 20
        and row["model"] in _MODELS
        and row["profile"] in _PROFILES
        and row["epsilon"] in _EPSILONS
    ]
