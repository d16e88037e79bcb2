"""Where words come from under a budget: the documents' own, a public list, or both; by F1 of all documents.

The order in which `choose` ranks these is judged by it. All documents are in one place, and the noise is a plain Gaussian. Own
words are the most frequent ones, as many as noised sums show; what finding them costs of the budget is taken off. A document
without a listed word counts, and has even shares. F1 is of a classifier that is tried on each quarter of 1,500 documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score
from sklearn.svm import LinearSVC

from lab.documents import by_frequencies, held_out
from lab.fits.forecast_trials import (
    DOCSTRINGS,
    PAPERS,
    SNIPPETS,
    ForecastDocuments,
    ForecastTrial,
    known_of,
    model_of,
    rounds_of,
    trained,
    with_judges,
)
from lab.keeping import KeptRows, Key, fits, made
from lab.measuring import OnProgress, Row
from lab.reproduce.contenders import DELTA, MOMENTS
from securetm.contracts import Array
from securetm.corpus.public_words import frequent_words
from securetm.corpus.tokeniser import Tokeniser, prune
from securetm.plans.forecast import WORDS_SHARE
from securetm.plans.rules import noise_of_one_round

JUDGES, TOPICS, LISTED = 1_500, 50, 2_000
OWN, ENGLISH, BOTH = "own", "english", "both"
_PARTS = 4
_MOST_SHARE = 0.5
CASES: Sequence[Key] = [
    {"corpus": corpus, "documents": documents, "epsilon": 3.0, "source": source, "found": found}
    for corpus, documents, found, sources in (
        (SNIPPETS, 7_600, 350, (OWN, ENGLISH, BOTH)),
        (PAPERS, 6_855, 250, (OWN, ENGLISH, BOTH)),
        (DOCSTRINGS, 8_000, 600, (OWN, BOTH)),
    )
    for source in sources
]


def reproduce(
    on_progress: OnProgress | None = None, only: Sequence[str] = (), keep: Path | None = None, workers: int = 1
) -> Row:
    """Trains once for each source of words; rows in the file `keep` are not made again."""
    wanted = [key for key in CASES if fits(key, only, "word-sources")]
    return found(made(wanted, row, KeptRows(keep), workers, on_progress))


def found(rows: Sequence[Row]) -> Row:
    about = {"model": MOMENTS, "topics": TOPICS, "listed": LISTED, "judges": JUDGES}
    read = "TagMyNews, M10, docstrings of installed packages"
    return {"corpus": read, "reproduction": "word-sources", **about, "rows": list(rows)}


def row(key: Key) -> Row:
    """How well topics of words of this source tell labels, and how well they predict words on their list."""
    train, judges = with_judges(key["corpus"], key["documents"], JUDGES)
    own = prune(train, max_words=key["found"]) if key["source"] in (OWN, BOTH) else ()
    listed = frequent_words("en", LISTED, Tokeniser(), _MOST_SHARE) if key["source"] in (ENGLISH, BOTH) else ()
    words = tuple(sorted({*own, *listed}))
    counted, judged = train.project(words), judges.project(words)
    counted = counted.select(np.flatnonzero(counted.lengths() >= 1))
    there, told = np.flatnonzero(judged.lengths() >= 1), judged.select(np.flatnonzero(judged.lengths() >= 2))
    documents = ForecastDocuments(counted, told, *known_of(words))
    trial = ForecastTrial(key["corpus"], len(counted), MOMENTS, key["epsilon"], len(words), TOPICS)
    model = model_of(trial)
    state, _ = trained(model, documents, trial, rounds_of(trial, len(counted), len(words)), _left(key))
    shares = np.full((len(judged), TOPICS), 1 / TOPICS)
    shares[there] = model.infer(state, judged.select(there))
    gain = held_out(model, state, told) - by_frequencies(counted, told)
    return {
        **key,
        "words": len(words),
        "covered": round(float(judged.lengths().sum() / judges.lengths().sum()), 3),
        "gain": round(gain, 4),
        "f1": round(_told_of(shares, np.asarray(judges.labels)), 4),
    }


def _left(key: Mapping[str, Any]) -> float:
    """Which share of the budget finding words leaves, in squares of noise."""
    if key["source"] == ENGLISH:
        return 1.0
    whole_noise, part = (noise_of_one_round(key["epsilon"] * share, DELTA) for share in (1.0, WORDS_SHARE))
    return 1.0 - (whole_noise / part) ** 2


def _told_of(shares: Array, labels: Array) -> float:
    """Macro F1 of labels that a linear classifier tells, which did not see the documents that it is tried on."""
    order, logs, said = np.random.default_rng(0).permutation(len(labels)), np.log(shares + 1e-4), np.empty_like(labels)
    for part in range(_PARTS):
        tried = order[part::_PARTS]
        known = np.setdiff1d(order, tried)
        scaled = (logs - logs[known].mean(axis=0)) / (logs[known].std(axis=0) + 1e-9)
        said[tried] = LinearSVC(C=0.1, dual=False).fit(scaled[known], labels[known]).predict(scaled[tried])
    return float(f1_score(labels, said, average="macro"))
