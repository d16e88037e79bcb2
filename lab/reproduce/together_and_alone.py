"""What training together is worth to each of five parties with different subjects, by model, before and after adapting.

Every row is a real federation over docstrings of installed packages, a sample of each party's. Figures are perplexities of
held-out documents: all parties', or its own. A party that adapts gains topics; beside it stands one alone with as many.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lab.measuring import OnProgress, Row, told
from securetm import federate
from securetm.contracts import Memory
from securetm.corpus.corpus import Corpus
from securetm.corpus.docstrings import docstring_parties
from securetm.federation.folder import reopen
from securetm.federation.party.alone import held_out_likelihood, trained_on
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.simulation.simulation import documents_of
from securetm.models.quality import perplexity
from securetm.runs.finished import FinishedRun

MODELS = ("lda", "lda-vi", "sentence-lda", "nmf", "prodlda")
DOCUMENTS, TOPICS = 300, 10
AS_GOOD = 1.02  # times the perplexity of a party alone


def reproduce(
    models: Sequence[str] = MODELS, documents: int = DOCUMENTS, topics: int = TOPICS, on_progress: OnProgress | None = None
) -> Row:
    """One federation for each model, over so many documents of each party."""
    parties = dict(docstring_parties())
    for name, corpus in parties.items():
        if len(corpus) > documents:
            some = np.random.default_rng(0).choice(len(corpus), documents, replace=False)
            parties[name] = corpus.select(np.sort(some))
    rows = [_row(parties, model, topics) for model in told(models, on_progress)]
    held = {name: len(corpus) for name, corpus in parties.items()}
    return {"reproduction": "together-and-alone", "parties": held, "topics": topics, "profile": "open", "rows": rows}


def _row(parties: Mapping[str, Corpus], model: str, topics: int) -> Row:
    settings: dict[str, Any] = {"profile": "open", "model.name": model, "model.n_topics": topics}
    with tempfile.TemporaryDirectory() as place:
        result = federate(parties, Path(place) / "run", settings)
        wider = _alone_with_more(Path(place) / "run", result)
    alone = {name: figures["held_out"] for name, figures in result["alone"].items()}
    shared = {name: figures["held_out"] for name, figures in result["shared_at_party"].items()}
    adapted = {name: figures["held_out"] for name, figures in result["adapted_at_party"].items()}
    everybody, best = result["quality"]["held_out"], min(one["held_out_everywhere"] for one in result["alone"].values())
    return {
        "model": model,
        "rounds": result["rounds"],
        "everybody_shared": round(everybody, 1),
        "everybody_best_alone": round(best, 1),
        "own_alone": _rounded(alone),
        "own_shared": _rounded(shared),
        "own_adapted": _rounded(adapted),
        "own_topics": max(one["own_topics"] for one in result["adapted_at_party"].values()),
        "own_alone_with_as_many_topics": _rounded(wider),
        "better_for_everybody": bool(everybody < best),
        "shared_as_good_at": sum(shared[name] <= AS_GOOD * alone[name] for name in alone),
        "adapted_as_good_at": sum(adapted[name] <= AS_GOOD * alone[name] for name in alone),
        "adapted_better_at": sum(adapted[name] < alone[name] for name in alone),
        "seconds": round(result["seconds"], 1),
    }


def _alone_with_more(place: Path, result: Mapping[str, Any]) -> dict[str, float]:
    """The perplexity of each party alone with as many topics as its adapted model; nothing for models that gain none."""
    run, folder = FinishedRun.open(place), reopen(place)
    if not run.model.gains_topics:
        return {}
    found, seed = {}, run.plan.seed
    for name, told_of in result["adapted_at_party"].items():
        model: Any = replace(run.model, n_topics=told_of["shared_topics"] + told_of["own_topics"])  # type: ignore[type-var]
        documents = PartyDocuments(documents_of(folder, name))
        documents.adopt(run.vocabulary, folder.agreement)
        start = model.start(run.vocabulary, np.random.default_rng(seed))
        state = trained_on(model, start, documents.train, range(result["rounds"]), seed, Memory(), lambda *_: None)
        found[name] = perplexity(*held_out_likelihood(model, state, documents, seed))
    return found


def _rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 1) for name, value in figures.items()}
