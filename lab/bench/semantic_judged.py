"""How topics of documents are judged, whatever found them, and what several fits of one system come to."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, f1_score, normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler

from lab.measuring import Row, mean_with_interval
from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.text_embeddings import TextEmbedder
from securetm.models.quality import diversity, document_npmi
from securetm.quality.measures import embedding_coherence

SPLITS = 3
TOP = 10
_LEAST = 1e-4  # is added to each share before its logarithm is taken
MEASURES = ("f1", "f1_plain", "nmi", "npmi", "embedding_coherence", "diversity", "outliers", "topics", "seconds", "processor")
_HARD = "hard"  # each document's topic in a kept fit


@dataclass(frozen=True)
class Topics:
    """What one fit found: documents x topics, whose rows need not sum to one; each document's topic, or -1; words by weight."""

    shares: Array
    hard: Array
    words: Sequence[Sequence[str]]


def judged(corpus: Corpus, found: Topics) -> Row:
    """One fit's figures. Documents without a topic count as one group more in NMI and in adjusted Rand."""
    labels = np.asarray(corpus.labels)
    macro, micro = classified(found.shares, labels)
    top, words = _numbered(found.words)
    return {
        "f1": round(macro, 4),
        "f1_plain": round(micro, 4),
        "nmi": round(float(normalized_mutual_info_score(labels, found.hard)), 4),
        "npmi": round(float(document_npmi(top, corpus.project(words).counts).mean()), 4),
        "embedding_coherence": round(float(embedding_coherence(top, TextEmbedder().embed(words)).mean()), 4),
        "diversity": round(diversity(top), 4),
        "outliers": round(float(np.mean(found.hard < 0)), 4),
        "topics": len(np.unique(found.hard[found.hard >= 0])),
        _HARD: packed(found.hard),
    }


def classified(shares: Array, labels: Array) -> tuple[float, float]:
    """What a logistic regression on half of the documents says of the other half: means over splits.

    Macro F1 where it reads logarithms of shares, each topic's scaled to unit variance, so that how sharp a system's shares are
    decides nothing (of signed weights, the weights). And micro F1 where it reads the shares as they are.
    """
    read = np.log(shares + _LEAST) if shares.min() >= 0 else shares
    found = []
    for split in range(SPLITS):
        known, tried = np.array_split(np.random.default_rng(split).permutation(len(labels)), 2)
        scale = StandardScaler().fit(read[known])
        fitted = LogisticRegression(max_iter=300).fit(scale.transform(read[known]), labels[known])
        plain = LogisticRegression(max_iter=300, C=10.0).fit(shares[known], labels[known])
        macro = f1_score(labels[tried], fitted.predict(scale.transform(read[tried])), average="macro")
        found.append((macro, np.mean(labels[tried] == plain.predict(shares[tried]))))
    macro, micro = np.mean(found, axis=0)
    return float(macro), float(micro)


def _numbered(words: Sequence[Sequence[str]]) -> tuple[Array, list[str]]:
    """The top words of topics as numbers of a list; topics with fewer words are left out."""
    whole = [list(row[:TOP]) for row in words if len(row) >= TOP]
    listed = sorted({word for row in whole for word in row})
    place = {word: number for number, word in enumerate(listed)}
    return np.array([[place[word] for word in row] for row in whole]), listed


def packed(hard: Array) -> str:
    """Each document's topic as text for the file of kept fits."""
    return base64.b64encode(zlib.compress(hard.astype("<i2").tobytes())).decode("ascii")


def unpacked(text: str) -> Array:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i2")


# ---- several fits of one system ------------------------------------------------------------------------------------------


def summary(fits: Iterable[Row]) -> list[Row]:
    """A row for each corpus and system: means over seeds, and half of each one's interval in which 95 of 100 means lie."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for one in fits:
        groups.setdefault((one["corpus"], one["system"]), []).append(one)
    return [_mean(corpus, system, of) for (corpus, system), of in groups.items()]


def _mean(corpus: str, system: str, of: Sequence[Row]) -> Row:
    row: Row = {"corpus": corpus, "system": system, "seeds": len(of)}
    row |= {name: of[0][name] for name in ("version", "spent") if of[0].get(name) is not None}
    for name in MEASURES:
        mean, away = mean_with_interval([one[name] for one in of])
        row |= {name: round(mean, 4)} | ({} if away is None else {f"{name}_away": round(away, 4)})
    hard = [unpacked(one[_HARD]) for one in of]
    agreement = [float(adjusted_rand_score(*pair)) for pair in combinations(hard, 2)]
    return row | ({"rand": round(float(np.mean(agreement)), 4)} if agreement else {})
