"""Semantic topics beside packages that need every embedding in one place: what the topics tell, how they last, what they cost.

All get the same embeddings, and as many topics where they take a number. Ours is ten parties, without a budget and under two;
theirs see all documents and protect nothing. A figure is a mean over seeds. `--keep` keeps each fit as it comes: those of ours
are made anew where a model's source has changed, and those of the packages stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import securetm.models
from lab.bench.semantic_judged import Topics, judged, summary
from lab.federations import FederatedRun, begun, dealt_out, federated
from lab.keeping import KeptRows, Key, fits
from lab.measuring import OnProgress, Row, beside, record, told
from lab.peers.other_packages import PeerMissing
from lab.peers.semantic import SemanticPackages
from lab.research_corpora import FILE, M10, MEASURED, PUBLIC, embedded, research_file
from securetm.corpus.corpus import Corpus
from securetm.corpus.text_embeddings import TextEmbedder
from securetm.errors import BadSetting
from securetm.models.quality import named_topics

CORPORA = {"StackOverflow": PUBLIC[1], "TagMyNews": PUBLIC[0], "20 Newsgroups": FILE}
LABELLED = {**CORPORA, "M10": M10}  # not judged: a rule is fitted on it
TOPICS, PARTIES, ROUNDS, DELTA, WORDS = 20, 10, 8, 1e-6, 2_000
START = "start"  # clusters of public words, before any round
OURS: Mapping[str, Mapping[str, Any]] = {
    "masked": {"profile": "masked"},
    START: {"profile": "masked"},
    **{
        f"epsilon {epsilon:g}": {"profile": "dp-central", "privacy": {"epsilon": epsilon, "delta": DELTA}}
        for epsilon in (1.0, 3.0)
    },
}
OPEN, BEST = "masked", "epsilon 3"
PEERS = {
    "bertopic": "BERTopic with HDBSCAN",
    "bertopic-means": f"BERTopic with {TOPICS} means",
    "s3": "S3",
    "fastopic": "FASTopic",
}
SEEDS = {
    START: 1,
    OPEN: 5,
    **dict.fromkeys(("epsilon 1", "epsilon 3"), 5),
    **dict.fromkeys(("bertopic", "bertopic-means"), 3),
    "s3": 5,
    "fastopic": 2,
}


def bench(
    on_progress: OnProgress | None = None,
    documents: int | None = None,
    keep: Path | None = None,
    only: Sequence[str] = (),
) -> Row:
    """Every system on every corpus with every seed, or those that fit `only`; fewer documents for a quick look."""
    where, kept, missing = "bench semantic", KeptRows(keep), list[str]()
    keys = [key for key in cases(documents) if fits(key, only, where)]
    if not keys:
        raise BadSetting(where, "--only", " ".join(only), "fits no case")
    pieces = []
    for key in told(keys, on_progress):
        try:
            if key not in kept:
                corpus = labelled(key["corpus"], key["documents"])
                topics, facts_of = _ours(corpus, key) if key["system"] in OURS else _theirs(key)
                kept.add(key, {**judged(corpus, topics), **facts_of})
            pieces.append({**key, **kept[key]})
        except PeerMissing as reason:
            missing.append(str(reason))
    found = summary(pieces)
    facts = {"topics": TOPICS, "parties": PARTIES, "rounds": ROUNDS, "delta": DELTA, "words": WORDS}
    result = record(
        "semantic", _rows(found), missing=sorted(set(missing)), packages=("numpy", "numba", "scikit-learn"), **facts
    )
    return {**result, "tables": {**_tables(found), "Goals": goals(found)}, "means": found}


def cases(documents: int | None) -> Iterator[Key]:
    """Seed after seed, so that what was measured before a stop is of every corpus and system."""
    for seed, corpus, (system, seeds) in product(range(max(SEEDS.values())), CORPORA, SEEDS.items()):
        of = {"settings": OURS[system], "source": source_of_models()} if system in OURS else {}
        if seed < seeds:
            yield {"corpus": corpus, "system": system, "seed": seed, "documents": documents, **of}


@cache
def source_of_models() -> str:
    """Says which source our models have, so that a kept fit is of this one."""
    found = hashlib.sha256()
    for file in sorted(Path(str(securetm.models.__file__)).parent.glob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()[:16]


# ---- one fit -----------------------------------------------------------------------------------------------------------


@cache
def labelled(name: str, documents: int | None) -> Corpus:
    return embedded(research_file(LABELLED[name]), documents, name)


def _ours(corpus: Corpus, key: Key) -> tuple[Topics, Row]:
    if key["system"] == START:
        with begun(dealt_out(corpus, PARTIES), "english", _tables_of(START, key["seed"])) as folder:
            agreed = folder.agreement
            model, listed = agreed.model, agreed.words or ()
            state, facts = agreed.start(listed), {"seconds": 0.0, "processor": 0.0, "spent": None}
    else:
        _compile(key["system"])
        run = _federated(corpus, key["system"], key["seed"])
        model, state, listed = run.model, run.state, run.words
        facts = {"seconds": round(run.seconds, 2), "processor": round(run.processor, 2), "spent": run.spent}
    shares = model.infer(state, corpus.project(listed))
    return Topics(shares, shares.argmax(axis=1), named_topics(model.topics(state), listed)), facts


def _federated(corpus: Corpus, system: str, seed: int) -> FederatedRun:
    return federated(dealt_out(corpus, PARTIES), "english", _tables_of(system, seed))


def _tables_of(system: str, seed: int) -> Mapping[str, Any]:
    model, training = {"name": "semantic", "n_topics": TOPICS}, {"rounds": ROUNDS, "vectors": "minilm"}
    return {"seed": seed, "model": model, "training": training, **OURS[system]}


@cache
def _compile(system: str) -> None:
    """A fit of a few documents that is not counted."""
    texts = [f"{word} {other}" for word, other in product(("water", "music", "school", "market"), repeat=2)] * 20
    _federated(Corpus.from_strings(texts, tokeniser=MEASURED, embed=TextEmbedder().embed), system, 0)


@cache
def _packages(name: str, documents: int | None) -> SemanticPackages:
    return SemanticPackages(labelled(name, documents), TOPICS, WORDS)


def _theirs(key: Key) -> tuple[Topics, Row]:
    packages = _packages(key["corpus"], key["documents"])
    said, shares, hard = packages.fitted(key["system"], key["seed"])
    topics = Topics(shares, hard, said.pop("words"))
    return topics, {name: round(value, 2) if isinstance(value, float) else value for name, value in said.items()}


# ---- all of them side by side --------------------------------------------------------------------------------------------

NAMES = {
    START: "ours, nothing learned",
    "masked": "ours, no budget",
    "epsilon 1": "ours, epsilon 1",
    "epsilon 3": "ours, epsilon 3",
    **PEERS,
}
COMPARED = {  # our form without a budget beside each package: what, its unit, and whether more is better
    "f1": ("macro F1 of a logistic regression on topic shares", "F1", True),
    "nmi": ("normalised mutual information of topics and labels", "NMI", True),
    "processor": ("processor time of a fit", "s", False),
}
_COLUMNS = ("f1", "f1_plain", "nmi", "rand", "npmi", "embedding_coherence", "diversity", "topics", "outliers", "processor")


def _rows(found: Sequence[Row]) -> list[Row]:
    rows, by = [], {(row["corpus"], row["system"]): row for row in found}
    for corpus, (what, (said, unit, more)) in product(CORPORA, COMPARED.items()):
        ours = by.get((corpus, OPEN))
        for system, name in PEERS.items():
            theirs = by.get((corpus, system))
            if ours and theirs:
                pair = ours[what], theirs[what]
                peer = f"{name} {theirs['version']}"
                ratio = pair[0] / pair[1] if more else None
                rows.append(beside(f"{corpus}: {said}, no budget", *pair, unit, peer, ratio=ratio))
    return rows


def _tables(found: Sequence[Row]) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {}
    for row in found:
        line: Row = {"system": NAMES[row["system"]], "seeds": row["seeds"]}
        for name in _COLUMNS:
            line[name] = row.get(name)
            if name in ("f1", "nmi"):
                line[f"{name} +-"] = row.get(f"{name}_away")
        tables.setdefault(row["corpus"], []).append(line)
    return tables


KEPT = {"epsilon 1": 0.85, BEST: 0.95}  # of the mutual information without a budget
STEADY = 0.6  # of adjusted Rand between seeds
OF_ANY_NUMBER = "bertopic"  # finds as many topics as there are: a classifier reads ten times as many numbers of a document
LEVEL = 0.98  # of the best package's F1 or mutual information is level with it


def goals(found: Sequence[Row]) -> list[Row]:
    rows, by = [], {(row["corpus"], row["system"]): row for row in found}
    for corpus in CORPORA:
        ours = {system: by[corpus, system] for system in OURS if (corpus, system) in by}
        theirs = {system: by[corpus, system] for system in PEERS if (corpus, system) in by}
        if len(ours) < len(OURS):
            continue
        for system, share in KEPT.items():
            kept = ours[system]["nmi"] / ours[OPEN]["nmi"]
            rows.append(_goal(corpus, f"NMI of {NAMES[system]}, over NMI without a budget", kept, share))
        if "rand" in ours[BEST]:
            rows.append(_goal(corpus, f"adjusted Rand between seeds of {NAMES[BEST]}", ours[BEST]["rand"], STEADY))
        alike = {system: row for system, row in theirs.items() if system != OF_ANY_NUMBER}
        if not alike:
            continue
        for (what, title), (system, share) in product((("f1", "F1"), ("nmi", "NMI")), ((OPEN, 1.0), (BEST, LEVEL))):
            best = max(alike, key=lambda name: float(alike[name][what]))
            goal = f"{title} of {NAMES[system]}, over the best of {TOPICS} topics"
            rows.append(_goal(corpus, goal, ours[system][what] / alike[best][what], share, best))
        quickest = min(theirs, key=lambda name: float(theirs[name]["processor"]))
        times = theirs[quickest]["processor"] / ours[OPEN]["processor"]
        rows.append(_goal(corpus, "processor time of the quickest package, over ours without a budget", times, 1.0, quickest))
        rows.append(_goal(corpus, "documents with a topic", 1 - ours[BEST]["outliers"], 1.0))
    return rows


def _goal(corpus: str, goal: str, found: float, least: float, beside: str = "") -> Row:
    named = {"beside": PEERS[beside]} if beside else {}
    return {"corpus": corpus, "goal": goal, "found": round(found, 3), "limit": least, "held": bool(found >= least), **named}
