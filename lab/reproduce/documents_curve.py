"""How many documents does a budget need? Utility at epsilon 1 per document against the number of documents, up to a million.

Documents are synthetic, so that the true topics are known: they bound what any model could predict. Nothing public is known of
their words. Every point is a federation of five parties with ledgers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from lab.documents import per_word
from lab.federations import federated
from lab.keeping import KeptRows, Key, made
from lab.measuring import OnProgress, Row
from lab.reproduce.contenders import curve_contenders, shown_as
from lab.reproduce.frontier_cases import CENTRAL, NO_NOISE
from lab.synthetic_documents import LdaNodes, SyntheticNodes, lda_nodes
from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import NO_ORDER

PARTIES, TOPICS, WORDS = 5, 20, 500
ALPHA, ETA, SHORTEST, LONGEST = 0.1, 0.05, 10, 30
EPSILON, DELTA = 1.0, 1e-6  # delta must be below one over the documents of a party
DOCUMENTS = (2_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
JUDGES = 2_000  # documents that nobody trains on
MET = 0.02  # log-likelihood per word within which a model with noise has met the one without

CONTENDERS = curve_contenders()


def reproduce(
    on_progress: OnProgress | None = None,
    documents: Sequence[int] = DOCUMENTS,
    models: Sequence[str] = tuple(CONTENDERS),
    keep: Path | None = None,
    workers: int = 1,
) -> Row:
    """Trains every contender with noise and without on each number of documents; the largest first, where workers share."""
    sizes = sorted(documents, reverse=True)
    keys: list[Key] = []
    for size, name, (profile, epsilon) in product(sizes, models, ((CENTRAL, EPSILON), (NO_NOISE, None))):
        settings = CONTENDERS[name].tables(TOPICS, size, epsilon, 0.01, DELTA)
        keys.append({"model": name, "documents": size, "profile": profile, "settings": settings})
    rows = made(keys, row, KeptRows(keep), workers, on_progress)
    rows.sort(key=lambda one: (one["model"], one["profile"], one["documents"]))
    facts: Row = {"parties": PARTIES, "topics": TOPICS, "words": WORDS, "epsilon": EPSILON, "delta": DELTA}
    facts |= {"words_of_a_document": f"{SHORTEST} to {LONGEST}", "tables": {"Where they meet": meetings(rows)}}
    return {"reproduction": "documents-curve", **facts, "rows": rows, "plots": _plots(rows)}


@cache
def drawn(documents: int) -> SyntheticNodes:
    """Five parties with the same topics; the same number of documents is the same corpus in every process."""
    each = LdaNodes(
        nodes=PARTIES,
        topics=TOPICS,
        words=WORDS,
        alpha=ALPHA,
        eta=ETA,
        documents=documents // PARTIES,
        validation_documents=JUDGES // PARTIES,
        shortest=SHORTEST,
        longest=LONGEST,
    )
    return lda_nodes(each)


def row(key: Key) -> Row:
    drawn.cache_clear() if drawn.cache_info().currsize > 1 else None
    nodes = drawn(key["documents"])
    parties = {name: corpus.replace(**NO_ORDER) for name, corpus in nodes.train.items()}
    words = next(iter(parties.values())).vocabulary
    run = federated(parties, words, {"profile": key["profile"], **key["settings"]})
    judges = Corpus.concat(list(nodes.validation.values()), name="judges")
    facts = {name: key[name] for name in ("model", "profile", "documents")}
    cost = {"rounds": run.rounds, "spent": run.spent, "seconds": round(run.seconds, 1), "megabytes": round(run.megabytes, 1)}
    true_model, true_state = shown_as(nodes.beta)
    halves = judges.halves(0)
    return {
        **facts,
        "held_out": per_word(*halves, lambda seen, unseen: run.model.log_likelihood(run.state, seen, unseen)),
        "true_topics": per_word(*halves, lambda seen, unseen: true_model.log_likelihood(true_state, seen, unseen)),
        "away_from_truth": away(run.model.topics(run.state), nodes.beta),
        **cost,
    }


def away(topics: Array, true: Array) -> float:
    """The mean total variation distance between the true topics and those that were learned, matched one to one."""
    distances = np.abs(topics[:, None] - true[None]).sum(axis=2) / 2
    rows, columns = linear_sum_assignment(distances)
    return float(distances[rows, columns].mean())


def meetings(rows: Sequence[Row]) -> list[Row]:
    """For each model, the least number of documents from which on noise costs no more than `MET` per word."""
    found = []
    for name in dict.fromkeys(row["model"] for row in rows):
        at = {(row["profile"], row["documents"]): row["held_out"] for row in rows if row["model"] == name}
        sizes = [size for size in sorted({size for _, size in at}) if {(NO_NOISE, size), (CENTRAL, size)} <= at.keys()]
        costs = {size: at[NO_NOISE, size] - at[CENTRAL, size] for size in sizes}
        meets = next((size for size in sorted(costs) if all(costs[more] <= MET for more in costs if more >= size)), None)
        last = max(costs, default=0)
        found.append({"model": name, "meets_at_documents": meets, "noise_costs_at_the_most": round(costs.get(last, 0.0), 4)})
    return found


def _plots(rows: Sequence[Row]) -> list[Row]:
    def line(model: str, profile: str, measure: str) -> list[tuple[float, float]]:
        mine = [row for row in rows if (row["model"], row["profile"]) == (model, profile)]
        return [(float(np.log10(row["documents"])), float(np.exp(-row[measure]))) for row in mine]

    names = list(dict.fromkeys(row["model"] for row in rows))
    shown = {CENTRAL: f"epsilon {EPSILON:g}", NO_NOISE: "no noise"}
    lines = {f"{name}, {said}": line(name, profile, "held_out") for name in names for profile, said in shown.items()}
    lines["the true topics"] = line(names[0], NO_NOISE, "true_topics")
    title = "perplexity of held-out words against the number of documents"
    return [{"title": title, "x": "documents, logarithm to base 10", "y": "perplexity", "lines": lines}]
