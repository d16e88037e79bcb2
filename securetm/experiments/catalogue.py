"""Which tables and measurements there are, by name. Each has its own file; this one only finds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from securetm.errors import NotFound
from securetm.experiments.newsgroups import corpus_in_words, looking_in
from securetm.settings import require
from securetm.stages import Stages

REPRODUCTIONS: Mapping[str, str] = {
    "adapted-ngrams": "ngram_perplexity",
    "additive-prodlda": "additive_prodlda",
    "common-vocabulary": "common_vocabulary",
    "default-model": "default_model",
    "documents-curve": "documents_curve",
    "fednmf-small": "fednmf_small",
    "lda-frontier": "lda_frontier",
    "iftm": "iftm",
    "one-run-audits": "one_run_audits",
    "rounds-rule": "fitted_rounds",
    "rounds-without-vectors": "fitted_rounds_without_vectors",
    "settings-rule": "fitted_settings",
    "start-rule": "fitted_start",
    "private-frontier": "private_frontier",
    "privacy-utility": "privacy_utility",
    "together-and-alone": "together_and_alone",
    "usefulness-forecast": "forecast_trials",
}
BENCHES: Mapping[str, str] = {
    name: f"bench_{name.replace('-', '_')}"
    for name in (
        "correlated-noise",
        "dp",
        "federation",
        "he",
        "lda",
        "neural",
        "noise",
        "private",
        "private-mh",
        "prodlda",
        "scale",
        "sum",
    )
}
KINDS = {"reproduction": ("reproduce", REPRODUCTIONS), "bench": ("bench", BENCHES)}


def measure(
    kind: str, name: str, stages: Stages, sizes: Mapping[str, Any] | None = None, data: Path | None = None
) -> dict[str, Any]:
    """Runs the reproduction or bench of that name, in other sizes than its own where they are given.

    `data` is the folder of the research corpora, where it does not lie beside the checkout.
    """
    function, known = KINDS[kind]
    if name not in known:
        raise NotFound(kind, name, tuple(sorted(known)))
    run: Callable[..., dict[str, Any]] = getattr(import_module(f"securetm.experiments.{known[name]}"), function)
    for size, value in (sizes or {}).items():
        require(size in signature(run).parameters, f"{kind} {name}", f"--{size}", value, "is no size of this one")
    with looking_in(data):
        corpus = {"corpus": corpus_in_words()} if kind == "reproduction" else {}
        return {**corpus, **run(on_progress=_telling(f"{kind} {name}", stages), **(sizes or {}))}


def _telling(title: str, stages: Stages) -> Callable[[int, int], None]:
    """Shows progress as experiments tell it: how much is done, of how much."""

    def tell(done: int, total: int) -> None:
        if done == 1:
            stages.stage(title, total)
        stages.step(done)

    return tell
