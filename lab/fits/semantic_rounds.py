"""How many rounds semantic topics need under a budget: mutual information with labels after 1 to 8 rounds, and the rule's fit.

Parts of three corpora, so that documents are few; all are in one place, and the noise is a plain Gaussian one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from lab.bench.semantic import CORPORA, DELTA, TOPICS, labelled
from lab.keeping import KeptRows, Key
from lab.measuring import OnProgress, Row, told
from lab.training import trained
from securetm.corpus.public_words import frequent_words
from securetm.corpus.text_embeddings import TextEmbedder
from securetm.corpus.tokeniser import Tokeniser
from securetm.models.public_knowledge import public_knowledge
from securetm.models.semantic import SemanticTopics
from securetm.plans.rules import noise_of_one_round, rounds_of_signal

SIZES, EPSILONS, ROUNDS, WORDS = (1_000, 2_000, 5_000, 10_000), (0.5, 1.0, 3.0), (1, 2, 4, 8), 2_000
EACH = (0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.3)  # rounds for each unit of the signal, that are tried
MODEL = SemanticTopics(n_topics=TOPICS)


def reproduce(seeds: Sequence[int] = (0, 1, 2), on_progress: OnProgress | None = None, keep: Path | None = None) -> Row:
    """Every corpus, size and budget with every number of rounds, the fit, and what the rule gives up on each."""
    kept, rows = KeptRows(keep), list[Row]()
    for corpus, size, epsilon in told(list(product(CORPORA, SIZES, EPSILONS)), on_progress):
        key: Key = {"corpus": corpus, "documents": size, "epsilon": epsilon, "seeds": list(seeds)}
        if key not in kept:
            kept.add(key, _found(corpus, size, epsilon, seeds))
        rows.append({**key, **kept[key]})
    each = min(EACH, key=lambda one: round(sum(_given_up(row, one) for row in rows), 3))
    judged = [
        {**row, "rounds": rounds_of_signal(row["signal"], each, max(ROUNDS)), "given_up": _given_up(row, each)} for row in rows
    ]
    return {"reproduction": "semantic-rounds", "topics": TOPICS, "delta": DELTA, "rounds_each": each, "rows": judged}


def _found(name: str, size: int, epsilon: float, seeds: Sequence[int]) -> Row:
    documents = labelled(name, size)
    words = frequent_words("en", WORDS, Tokeniser(stop_words="english"))
    known, noise = documents.project(words), noise_of_one_round(epsilon, DELTA)
    public = public_knowledge(TextEmbedder().embed(words), TOPICS)
    begun = MODEL.started(known.vocabulary, public, np.random.default_rng(0))
    found = {}
    for rounds in ROUNDS:
        each = []
        for seed in seeds:
            rng = np.random.default_rng([seed, rounds])
            state = trained(MODEL, known, begun, rounds, 1.0, noise * rounds**0.5, rng)
            topics = MODEL.infer(state, known).argmax(axis=1)
            each.append(normalized_mutual_info_score(documents.labels, topics))
        found[str(rounds)] = round(float(np.mean(each)), 3)
    return {"signal": round(size / (noise * TOPICS), 1), "nmi": found}


def _given_up(row: Row, each: float) -> float:
    """How much less mutual information there is after the rule's rounds than after the best number of those tried."""
    found = {int(rounds): value for rounds, value in row["nmi"].items()}
    asked = np.log(rounds_of_signal(row["signal"], each, max(ROUNDS)))
    lost: float = max(found.values()) - float(np.interp(asked, np.log(list(found)), list(found.values())))
    return round(lost, 3)
