"""`semantic-topics.md`, from the committed result of `bench semantic`.

It is committed, and a test compares it: python -m docs.generate.semantic_page
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from docs.generate.folder_pages import ROOT
from docs.generate.markdown import listed, page, table
from lab.bench.semantic import CORPORA, NAMES, OURS
from lab.bench.semantic_judged import SPLITS, TOP
from lab.measuring import committed

FILE = ROOT / "docs" / "research" / "semantic-topics.md"
_HEADS = ("", "seeds", "F1", "of shares", "NMI", "Rand", "NPMI", "by vectors", "diversity", "topics", "outliers", "processor")
Row = Mapping[str, Any]


@cache
def _result() -> Row:
    found: Row = committed("bench-semantic")
    return found


def semantic_page() -> str:
    """The whole page."""
    said = _result()
    return page(
        "<!-- Made by `python -m docs.generate.semantic_page`: change that file, and not this one. -->",
        "# Semantic topics beside other packages",
        f"`semantic` in {said['parties']} parties ({said['rounds']} rounds; `masked`, and `dp-central` with delta "
        f"{said['delta']:g}) beside packages that see all documents in one place and protect nothing. All have the same "
        f"embeddings (all-MiniLM-L6-v2), and {said['topics']} topics where they take a number. Our {said['words']:,} words are "
        f"those of a public list of English, theirs the {said['words']:,} most frequent ones of the corpus itself. Means over "
        "seeds, with half of their intervals (95 %).",
        *(part for corpus in CORPORA for part in (f"## {corpus}", table(_HEADS, _lines(corpus)))),
        "## What was asked",
        table(("", "at least", *CORPORA), _goals()),
        "## What the figures are",
        listed(_figures()),
        "**A caveat.** The sentence model is public, and what it was trained on may include such texts: titles of Stack "
        "Exchange are among them. All systems here have it alike.",
        f"{said['machine']}; {', '.join(_packages())}. The machine had other work, so time is processor time, on one thread. "
        "`python -m lab bench semantic --keep FILE` measures it again, and goes on where it was stopped.",
    )


def _of(corpus: str) -> Iterator[Row]:
    return (row for row in _result()["means"] if row["corpus"] == corpus)


def _lines(corpus: str) -> Iterator[tuple[str, ...]]:
    for row in _of(corpus):
        name = f"**{NAMES[row['system']]}**" if row["system"] in OURS else NAMES[row["system"]]
        rand = f"{row['rand']:.2f}" if "rand" in row else ""
        words = (f"{row[what]:.2f}" for what in ("npmi", "embedding_coherence", "diversity"))
        sizes = f"{row['topics']:.0f}", f"{row['outliers']:.0%}", f"{row['processor']:.1f} s"
        yield name, str(row["seeds"]), _mean(row, "f1"), f"{row['f1_plain']:.2f}", _mean(row, "nmi"), rand, *words, *sizes


def _mean(row: Row, what: str) -> str:
    away = row.get(f"{what}_away")
    return f"{row[what]:.3f}" if away is None else f"{row[what]:.3f} ± {away:.3f}"


def _goals() -> Iterator[tuple[str, ...]]:
    """Each goal with what was found on each corpus, and beside which package; what does not hold is marked."""
    goals = _result()["tables"]["Goals"]
    for name, limit in dict.fromkeys((goal["goal"], goal["limit"]) for goal in goals):
        found = {goal["corpus"]: goal for goal in goals if goal["goal"] == name}
        yield name, f"{limit:.2f}", *(_reached(found[corpus]) if corpus in found else "" for corpus in CORPORA)


def _reached(goal: Row) -> str:
    beside = f" ({goal['beside']})" if "beside" in goal else ""
    return f"{goal['found']:.3f}{beside}" if goal["held"] else f"**missed**: {goal['found']:.3f}{beside}"


def _figures() -> Iterator[str]:
    yield (
        f"**F1**: macro F1 of a logistic regression on half of the documents, tried on the other half, over {SPLITS} splits. "
        "It reads logarithms of topic shares, at unit variance; of S3, whose weights have signs, the weights. *Of shares*: "
        "micro F1 where it reads the shares as they are. BERTopic with means gives no shares: there a document's topic is all "
        "that is read. With HDBSCAN it finds hundreds of topics, and so many numbers of a document are read."
    )
    yield "**NMI**: normalised mutual information of documents' topics with their labels. **Rand**: adjusted, between seeds."
    yield (
        f"**NPMI**, **by vectors**, **diversity**: of each topic's first {TOP} words, by the documents of the corpus and by "
        "the mean cosine of the words' embeddings. BERTopic and S3 prefer words that other topics lack; ours are the heaviest. "
        "A pair of words that no document holds has an NPMI of -1, and a public list has words that no title holds."
    )
    yield (
        "**Outliers**: documents without a topic. In NMI and Rand they are one more group. **Processor**: of one fit, "
        "embeddings given; ours of all parties and the coordinator, with keys, encryption and exact noise."
    )
    yield (
        "**Seeds** of ours without noise decide only which tenth of the documents is held back from training: it begins at "
        "clusters of public words, and sums are exact."
    )


def _packages() -> list[str]:
    return list(dict.fromkeys(f"{NAMES[row['system']]} {row['version']}" for row in _result()["means"] if "version" in row))


if __name__ == "__main__":
    FILE.write_text(semantic_page(), "utf-8")
