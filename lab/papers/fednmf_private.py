"""The figures of FedNMF's experiments under a profile: real federations of its clients, with models that take a budget, too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lab.keeping import Key
from lab.measuring import Row
from lab.papers.fednmf_clients import coherence, file_of, labelled, papers_partition
from lab.papers.protected import SEMANTIC, cost, trained
from lab.research_corpora import embedded
from securetm.corpus.corpus import Corpus
from securetm.corpus.tokeniser import prune
from securetm.models.quality import top_words
from securetm.quality.measures import classified

_HELD_OUT = 0.1


def private(key: Key) -> Row:
    """A real federation of these clients under a profile; a tenth of the documents is held back for the likelihood."""
    semantic = key["method"] == SEMANTIC
    whole = labelled(key["corpus"], key["documents"])
    if semantic:
        whole = _with_embeddings(key["corpus"], key["documents"])
    listed: Sequence[str] | str = "english" if semantic else prune(whole, max_words=key["words"])
    learned_from, held = whole.split(1 - _HELD_OUT, key["seed"])
    parties = papers_partition(learned_from, key["clients"], key["alpha"], key["seed"])
    run = trained(parties, listed, {**key, "model": key["method"]}, key["rounds"])
    judged, left = (some.project(run.words) for some in (whole, held))
    shares = run.model.infer(run.state, judged)
    found = classified(shares, np.asarray(whole.labels))
    row = {
        "f1": found.macro_f1,
        "accuracy": found.accuracy,
        **coherence(top_words(run.model.topics(run.state)), judged),
        **cost(run),
    }
    if not semantic:
        seen, unseen = left.halves(0)
        likelihood = float(np.sum(run.model.log_likelihood(run.state, seen, unseen)) / unseen.counts.sum())
        row["perplexity"] = float(np.exp(-likelihood))
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}


@lru_cache(1)
def _with_embeddings(corpus: str, documents: int | None) -> Corpus:
    return embedded(file_of(corpus), documents, corpus)
