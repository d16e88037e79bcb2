"""How many rounds semantic topics need under a budget: mutual information with labels after 1 to 8 rounds, and the rule's fit.

Parts of four corpora, so that documents are few; all are in one place, and the noise is a plain Gaussian one. The rule is
fitted on all of them. What it gives up on a corpus is told of the rule that is fitted on the other three.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from lab.bench.semantic import DELTA, LABELLED, TOPICS, labelled
from lab.fits.rounds_and_starts import given_up
from lab.keeping import KeptRows, Key
from lab.measuring import OnProgress, Row, told
from lab.training import trained
from securetm.corpus.public_words import frequent_words
from securetm.corpus.text_embeddings import TextEmbedder
from securetm.corpus.tokeniser import Tokeniser
from securetm.models.public_knowledge import PublicKnowledge, public_knowledge
from securetm.models.semantic import SemanticTopics
from securetm.plans.rules import noise_of_one_round, rounds_of_signal

MOST = {"M10": 5_000}  # documents: it has 8,355
SIZES, EPSILONS, ROUNDS, WORDS = (1_000, 2_000, 5_000, 10_000), (0.5, 1.0, 3.0), (1, 2, 4, 8), 2_000
EACH = (0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.3)  # rounds for each unit of the signal, that are tried
MODEL = SemanticTopics(n_topics=TOPICS)


def reproduce(seeds: Sequence[int] = (0, 1, 2), on_progress: OnProgress | None = None, keep: Path | None = None) -> Row:
    """Every corpus, size and budget with every number of rounds, the fit, and what the rule gives up on each."""
    kept, rows = KeptRows(keep), list[Row]()
    cases = [case for case in product(LABELLED, SIZES, EPSILONS) if case[1] <= MOST.get(case[0], max(SIZES))]
    for corpus, size, epsilon in told(cases, on_progress):
        key: Key = {"corpus": corpus, "documents": size, "epsilon": epsilon, "seeds": list(seeds)}
        if key not in kept:
            kept.add(key, _found(corpus, size, epsilon, seeds))
        rows.append({**key, **kept[key]})
    judged = []
    for row in rows:
        others = _fitted([other for other in rows if other["corpus"] != row["corpus"]])
        rounds, lost = rounds_of_signal(row["signal"], others, max(ROUNDS)), given_up(row, others, max(ROUNDS), "nmi")
        judged.append({**row, "rounds": rounds, "given_up": round(lost, 3)})
    return {"reproduction": "semantic-rounds", "topics": TOPICS, "delta": DELTA, "rounds_each": _fitted(rows), "rows": judged}


def _fitted(rows: Sequence[Row]) -> float:
    """With how many rounds for each unit of the signal least is given up."""
    return min(EACH, key=lambda each: round(sum(given_up(row, each, max(ROUNDS), "nmi") for row in rows), 3))


@cache
def _public_words() -> tuple[tuple[str, ...], PublicKnowledge]:
    words = frequent_words("en", WORDS, Tokeniser(stop_words="english"))
    return words, public_knowledge(TextEmbedder().embed(words), TOPICS)


def _found(name: str, size: int, epsilon: float, seeds: Sequence[int]) -> Row:
    documents, (words, public) = labelled(name, size), _public_words()
    known, noise = documents.project(words), noise_of_one_round(epsilon, DELTA)
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
