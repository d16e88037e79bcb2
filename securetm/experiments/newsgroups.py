"""20 Newsgroups as the experiments count it, where its file lies beside the checkout. It ships no document of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import securetm
from securetm.corpus.corpus import Corpus
from securetm.corpus.readers import read_corpus
from securetm.corpus.tokeniser import prune
from securetm.errors import NotFound

FILE = "20newsgroups.jsonl.gz"
PUBLIC = ("tagmynews.jsonl.gz", "stackoverflow.jsonl.gz")
SUBJECTS = ("comp", "rec", "sci", "talk")  # the first part of a group's name; the other groups are a fifth party's
FEWEST_WORDS = 3  # shorter documents are left out: what remains of them is chance


def newsgroups_file() -> Path | None:
    """Where the research corpora lie beside this checkout, if they do."""
    path = _beside(FILE)
    return path if path.is_file() else None


def research_file(name: str) -> Path:
    """One of the research corpora, or what to do where they do not lie beside this checkout."""
    path = _beside(name)
    if not path.is_file():
        raise NotFound("corpus", name, ("a folder shared/data beside the checkout",))
    return path


def read_newsgroups() -> Corpus:
    """All documents over all their words."""
    return read_corpus(research_file(FILE))


def by_subject(raw: Corpus) -> dict[str, Corpus]:
    """Five parties, each with the groups of one subject."""
    first = [str(label).split(".")[0] for label in np.asarray(raw.labels)]
    subjects = np.array([name if name in SUBJECTS else "other" for name in first])
    return {name: raw.select(np.flatnonzero(subjects == name)) for name in (*SUBJECTS, "other")}


def public_words(most: int) -> tuple[str, ...]:
    """A public list: the words that are most frequent in two other corpora, so that no document of this one chose them."""
    return prune(Corpus.concat([read_corpus(research_file(name)) for name in PUBLIC]), max_words=most)


def _beside(name: str) -> Path:
    return Path(securetm.__file__).resolve().parents[2] / "shared" / "data" / name


def most_frequent(corpus: Corpus, words: int) -> Corpus:
    """The same documents over their most frequent words, without those that have hardly any left."""
    projected = corpus.project(prune(corpus, max_words=words))
    return projected.select(np.flatnonzero(projected.lengths() >= FEWEST_WORDS))
