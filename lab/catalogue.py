"""Which tables and measurements there are, by name. Each has its own file; this one only finds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from lab.research_corpora import corpus_in_words, looking_in
from securetm.errors import NotFound
from securetm.settings import require
from securetm.stages import Stages

REPRODUCTIONS: Mapping[str, str] = {  # the module, and its function where that is not `reproduce`
    "adapted-ngrams": "reproduce.adapted_ngrams",
    "additive-prodlda": "reproduce.additive_prodlda",
    "common-vocabulary": "reproduce.common_vocabulary",
    "default-model": "reproduce.default_model",
    "documents-curve": "reproduce.documents_curve",
    "fednmf-small": "reproduce.fednmf_small",
    "iftm": "reproduce.iftm",
    "lda-frontier": "reproduce.noise_frontiers:lda_frontier",
    "one-run-audits": "reproduce.one_run_audits",
    "private-frontier": "reproduce.private_frontier",
    "privacy-utility": "reproduce.noise_frontiers:privacy_utility",
    "rounds-rule": "fits.rounds_and_starts:rounds_rule",
    "rounds-without-vectors": "fits.rounds_and_starts:rounds_without_vectors",
    "settings-rule": "fits.settings",
    "start-rule": "fits.rounds_and_starts:start_rule",
    "together-and-alone": "reproduce.together_and_alone",
    "usefulness-forecast": "fits.forecast_trials",
}
BENCHES: Mapping[str, str] = {
    name: f"bench.{name.replace('-', '_')}"
    for name in (
        "correlated-noise", "dp", "federation", "he", "lda", "neural", "noise", "private", "private-mh", "prodlda", "scale",
        "sum",
    )
}  # fmt: skip
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
    module, _, named = known[name].partition(":")
    run: Callable[..., dict[str, Any]] = getattr(import_module(f"lab.{module}"), named or function)
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
