"""What federating is worth to parties with different subjects: iFTM's two models, aligned and matched, with and without noise.

Every row is a real federation over 20 Newsgroups, dealt out by subject. It judges the paper's figures by their order, not by
their size: the paper's corpus is not public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lab.federations import FederationForm, begun
from lab.measuring import OnProgress, Row, told
from lab.research_corpora import by_subject, public_words, read_newsgroups
from securetm.corpus.corpus import Corpus
from securetm.federation.simulation.simulation import execute
from securetm.stages import Unwatched

WORDS, TOPICS = 2_000, 20
MODELS: Mapping[str, Mapping[str, Any]] = {"lda": {}, "sentence-lda": {"longest": 10}}  # the corpus has no full stops


def forms(epsilons: Sequence[float]) -> tuple[FederationForm, ...]:
    """The counts of all parties in one hidden sum; each party's own topics, matched; and the same behind noise."""
    matched = {"form": "matched", "sweeps": 20, "merged": "all"}  # as the paper: every topic that is found is kept
    behind = [FederationForm(f"matched, epsilon {e:g} per word", "iftm", matched, 8, {"epsilon": e}) for e in epsilons]
    return (FederationForm("aligned", "masked", {"sweeps": 2}, 80), FederationForm("matched", "open", matched, 8), *behind)


def reproduce(
    epsilons: Sequence[float] = (8.0, 11.0),
    models: Sequence[str] = tuple(MODELS),
    documents: int | None = None,
    on_progress: OnProgress | None = None,
) -> Row:
    """One federation for each model and form, each beside what every party learns alone; fewer documents for a quick look."""
    raw = read_newsgroups()
    raw = raw if documents is None else raw.select(np.arange(0, len(raw), max(len(raw) // documents, 1)))
    parties = by_subject(raw)
    cases = [(model, form) for model in models for form in forms(epsilons)]
    rows = [_row(parties, public_words(WORDS), model, form) for model, form in told(cases, on_progress)]
    facts = {"documents": len(raw), "parties": {name: len(part) for name, part in parties.items()}, "topics": TOPICS}
    return {"reproduction": "matched-topics", **facts, "words": WORDS, "rows": rows}


def _row(parties: Mapping[str, Corpus], words: Sequence[str], model: str, form: FederationForm) -> Row:
    settings = {"name": model, "n_topics": TOPICS, **MODELS[model]}
    with begun(parties, words, form.tables(settings)) as run:
        result = execute(run, Unwatched())
    # perplexities (lower is better) of the shared model and of the parties' own, on everybody's documents and on their own
    alone, shared = result["alone"].values(), result["shared_at_party"].values()
    own = [figures["held_out"] for figures in alone]
    served = [figures["held_out"] for figures in shared]
    return {
        "model": model,
        "form": form.title,
        "profile": form.profile,
        "rounds": form.rounds,
        "topics": len(result["topics"]),
        "npmi": round(result["quality"]["npmi"], 3),
        "diversity": round(result["quality"]["diversity"], 3),
        "held_out": round(result["quality"]["held_out"], 1),
        "best_alone": round(min(figures["held_out_everywhere"] for figures in alone), 1),
        "on_own_documents": round(float(np.mean(served)), 1),
        "alone_on_own_documents": round(float(np.mean(own)), 1),
        "better_on_own_documents": sum(s < o for s, o in zip(served, own, strict=True)),
        "megabytes_up": round(result["bytes_up"] / 1e6, 1),
        "seconds": round(result["seconds"], 1),
        "spent": result["spent"][0]["epsilon"],
    }
