"""Canaries: made documents that the judge adds to the parties' own by fair coins before a run, and the record of the coins.

They are made of words that the parties use. The coins come from the operating system, so no attack can compute them from the
plan's seed. They are stored beside the run, for the judge alone. No attack reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from securetm.auditing.attack import Canaries
from securetm.contracts import Array, Entropy
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem

LENGTH = 30  # different words of one canary: as many as a bounded row of counts may hold
RECORD = "canaries.npz"  # beside the run's transcript, in no role's own folder
_OFTEN = 5  # documents that a word must be in: the default of plans
_IN, _OUT = "in", "out"


def with_canaries(
    documents: Mapping[str, Corpus],
    each: int,
    seed: int,
    words: Sequence[str] | None = None,
    entropy: Entropy | None = None,
    *,
    different: int = LENGTH,
) -> tuple[Mapping[str, Corpus], Corpus]:
    """Every party's documents with about half of its `each` canaries, and the record of all canaries.

    They are made of the rarer half of the words that the parties use, or of a public list, where there is one. Each has so
    many `different` words. Where a clip bounds the length of rows a few words suffice, and two canaries then have hardly a word
    in common, so none hides another. The seed decides their words, which an attacker knows anyway. `entropy` decides the coins;
    its default is the operating system's.
    """
    rng, fair = np.random.default_rng([seed, each]), entropy or OperatingSystem()
    listed = _rare_words(documents, words)
    made = {name: _made(name, _thrown(each, fair), listed, rng, min(different, len(listed))) for name in documents}
    put = {name: Corpus.concat([documents[name], _plain(found.select(_coins(found)))]) for name, found in made.items()}
    return put, Corpus.concat(list(made.values()), name="canaries")


def record_of(run: Path, vocabulary: tuple[str, ...]) -> Canaries | None:
    """The canaries in the agreed words; None of a run without canaries."""
    if not (run / RECORD).is_file():
        return None
    record = Corpus.load(run / RECORD).gathered().project(vocabulary)
    assert record.parties is not None
    return Canaries(_plain(record), tuple(str(name) for name in record.parties), _coins(record))


def _thrown(coins: int, entropy: Entropy) -> Array:
    """So many fair coins."""
    return np.unpackbits(np.frombuffer(entropy.bytes(-(-coins // 8)), dtype=np.uint8), count=coins).astype(bool)


def _made(party: str, put: Array, words: tuple[str, ...], rng: np.random.Generator, long: int) -> Corpus:
    """Canaries with words drawn from the whole list, so two of them share few words. `put` has those that take part."""
    each = len(put)
    tokens = np.concatenate([rng.choice(len(words), long, replace=False) for _ in range(each)])
    coins = np.where(put, _IN, _OUT)
    names = np.full(each, party)
    ends = np.arange(1, each + 1) * long
    made = Corpus.from_tokens(tokens, ends, words, name=f"canaries of {party}")
    return replace(made, labels=coins, parties=names)  # now, so that no coin is in the name of its canary


def _coins(record: Corpus) -> Array:
    assert record.labels is not None
    return np.asarray(record.labels == _IN)


def _plain(record: Corpus) -> Corpus:
    """The documents without their coins, as parties and attacks get them."""
    return replace(record, labels=None, parties=None)


def _rare_words(documents: Mapping[str, Corpus], words: Sequence[str] | None) -> tuple[str, ...]:
    """The rarer half of the frequent enough words. Words of too few documents are on no agreed list."""
    whole = Corpus.concat(list(documents.values()))
    whole = whole if words is None else whole.project(words)
    often = whole.document_frequencies()
    by_rank = [whole.vocabulary[place] for place in np.argsort(-often, kind="stable") if often[place] >= _OFTEN]
    return tuple(sorted(by_rank[len(by_rank) // 2 :] or whole.vocabulary))
