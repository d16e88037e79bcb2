"""Which model predicts best in a minute? Each model of the house on the demonstration's federation, with its own defaults.

`securetm run` without arguments trains the one that wins here. Seconds are of this machine; it is no benchmark of models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lab.measuring import OnProgress, Row, told
from securetm import federate
from securetm.corpus.corpus import Corpus
from securetm.federation.sources import corpora_of
from securetm.plans.recommend import whole_plan
from securetm.plans.schema import DEFAULT_MODEL
from securetm.stages import Unwatched

MODELS = ("lda", "sentence-lda", "lda-vi", "nmf", "prodlda", "neural-lda", "combined-tm", "zeroshot-tm")
MINUTE = 60.0
SHORT, LONGER = 4, 12  # rounds of the two runs that tell how long a round takes


def reproduce(on_progress: OnProgress | None = None, models: Sequence[str] = MODELS, seconds: float = MINUTE) -> Row:
    """Trains each model for as many of its rounds as fit; rows are in order of held-out perplexity, the best first."""
    rows = [_row(name, seconds) for name in told(models, on_progress)]
    rows.sort(key=lambda row: float(row["held_out"]))
    best = rows[0]["model"]
    return {
        "reproduction": "default-model", "documents": "docstrings of installed packages", "seconds_for_each": seconds,
        "default": DEFAULT_MODEL, "best": best, "default_is_best": best == DEFAULT_MODEL, "rows": rows,
    }  # fmt: skip


def _row(name: str, seconds: float) -> Row:
    plan = whole_plan(None, {"model.name": name})
    corpora = corpora_of(plan, Unwatched())  # embeddings are made before the clock starts
    _trained(corpora, name, 1)  # compiles
    short, longer = (float(_trained(corpora, name, rounds)["seconds"]) for rounds in (SHORT, LONGER))
    each = max((longer - short) / (LONGER - SHORT), 1e-4)
    fits = max(1, int((seconds - max(short - SHORT * each, 0.0)) / each))
    usual = _trained(corpora, name, min(fits, plan.training.rounds), plan.training.epochs)
    figures = {measure: round(float(usual["quality"][measure]), 4) for measure in ("held_out", "npmi", "diversity")}
    traffic = {way: int(usual[way]) for way in ("bytes_up", "bytes_down")}
    return {"model": name, "rounds": usual["rounds"], **figures, "seconds": usual["seconds"], **traffic}


def _trained(corpora: Mapping[str, Corpus], name: str, rounds: int, epochs: float = 0.0) -> Mapping[str, Any]:
    settings = {"model.name": name, "training.rounds": rounds, "training.epochs": epochs}
    with TemporaryDirectory() as folder:
        return federate(corpora, Path(folder) / "run", settings, comparison=False)
