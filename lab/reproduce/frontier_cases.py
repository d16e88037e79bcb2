"""What the frontier of privacy and utility tries: each case is one model on one corpus under one form of noise, with one seed.

Every corpus has 1,000 words that no document of it chose, and says whether settings were chosen on it: figures on the others
judge them. Which models there are is said in `contenders.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from lab.documents import JudgedDocuments
from lab.keeping import fits
from lab.research_corpora import INSTEAD, PUBLIC, newsgroups_file, public_words, read_newsgroups, research_corpus
from securetm.corpus.corpus import Corpus
from securetm.corpus.tokeniser import prune
from securetm.errors import BadSetting

NO_NOISE, CENTRAL, DISTRIBUTED, LOCAL = "masked", "dp-central", "dp-distributed", "dp-local"
EPSILONS = (0.5, 1.0, 3.0, 8.0)
HELD_OUT, HALF = 0.1, 0.5
PARTIES, HELPERS = 5, 2  # of the federations; so many may help the coordinator under dp-distributed


@dataclass(frozen=True)
class FrontierCase:
    """One row. `judging` is the share of the documents that nobody trains on: they judge the topics."""

    corpus: str
    topics: int
    model: str
    profile: str
    epsilon: float | None
    seed: int
    judging: float = HELD_OUT

    def key(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class FrontierBlock:
    """Cases that differ in model, form of noise, epsilon and seed only."""

    corpus: str
    topics: int
    models: Sequence[str]
    profiles: Sequence[str]
    seeds: Sequence[int]
    epsilons: Sequence[float] = EPSILONS
    judging: float = HELD_OUT

    def cases(self) -> Iterator[FrontierCase]:
        """Every combination; without noise there is no epsilon."""
        for model, profile, seed in product(self.models, self.profiles, self.seeds):
            for epsilon in (None,) if profile == NO_NOISE else self.epsilons:
                yield FrontierCase(self.corpus, self.topics, model, profile, epsilon, seed, self.judging)


def chosen(cases: Iterable[FrontierCase], only: Sequence[str]) -> list[FrontierCase]:
    """The cases that fit every `field=value` of `only`; several values of one field are alternatives."""
    where = "reproduce private-frontier"
    found = [case for case in cases if fits(case.key(), only, where)]
    if not found:
        raise BadSetting(where, "--only", " ".join(only), "fits no case")
    return found


WORDS = 1_000
NEWS, NEWS_FEW, SNIPPETS, SNIPPETS_FEW, TITLES = (
    "20 Newsgroups",
    "2,000 of 20 Newsgroups",
    "TagMyNews",
    "2,000 of TagMyNews",
    "StackOverflow titles",
)
FEW = 2_000
PUBLIC_SHARE = 0.1  # of the titles, which are set aside: their words are the public list, and nobody trains on them


@dataclass(frozen=True)
class FrontierCorpus:
    """One corpus: how it is read, where its words come from, and whether settings were chosen on it."""

    read: Callable[[], JudgedDocuments]
    words_from: str
    settings_chosen: bool


def _news(documents: int | None = None) -> JudgedDocuments:
    return JudgedDocuments(_some(read_newsgroups(), documents), tuple(sorted(public_words(WORDS))))


def _snippets(documents: int | None = None) -> JudgedDocuments:
    words = tuple(sorted(public_words(WORDS, of=PUBLIC[0])))
    return JudgedDocuments(_some(research_corpus(PUBLIC[0]), documents), words)


def _titles() -> JudgedDocuments:
    public, private = research_corpus(PUBLIC[1]).split(PUBLIC_SHARE, seed=1)
    return JudgedDocuments(private, tuple(sorted(prune(public, max_words=WORDS))))


def _some(corpus: Corpus, documents: int | None) -> Corpus:
    if documents is None or documents >= len(corpus):
        return corpus
    return corpus.select(np.sort(np.random.default_rng(0).permutation(len(corpus))[:documents]))


_OF_NEWS = "words that are frequent in TagMyNews and StackOverflow titles"
_OF_SNIPPETS = "words that are frequent in 20 Newsgroups and StackOverflow titles"
_OF_TITLES = "words of a tenth of the titles, which nobody trains on: other corpora know few of their words"
CORPORA: Mapping[str, FrontierCorpus] = {
    NEWS: FrontierCorpus(_news, _OF_NEWS, settings_chosen=False),
    SNIPPETS: FrontierCorpus(_snippets, _OF_SNIPPETS, settings_chosen=False),
    TITLES: FrontierCorpus(_titles, _OF_TITLES, settings_chosen=True),
    NEWS_FEW: FrontierCorpus(partial(_news, FEW), _OF_NEWS, settings_chosen=False),
    SNIPPETS_FEW: FrontierCorpus(partial(_snippets, FEW), _OF_SNIPPETS, settings_chosen=False),
}
DOCSTRINGS = FrontierCorpus(_news, "their own frequent words, which is no public list", settings_chosen=False)


def frontier_corpora() -> Mapping[str, FrontierCorpus]:
    """Those that are here: docstrings alone where nobody said in which folder the research corpora lie."""
    return CORPORA if newsgroups_file() else {INSTEAD: DOCSTRINGS}


@cache
def documents_of(name: str) -> JudgedDocuments:
    return frontier_corpora()[name].read()
