"""Which share of a budget a start by `moments` should have: the fit of the rule in `models/start_share.py`.

Fitted on synthetic documents and on corpora on which settings may be chosen. All documents are in one place, and the noise is a
plain Gaussian: only the share is looked at here. Share 0 is the public start, with all of the budget for its rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lab.fits.rounds import CORPORA, DELTA, RADIUS, SYNTHETIC, TOPICS, WORDS, KnownWords, synthetic_of
from lab.measuring import OnProgress, Row
from securetm.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array, Public
from securetm.corpus.public_words import public_shares
from securetm.corpus.tokeniser import Tokeniser
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.moments import LONGEST, TopicsBefore
from securetm.models.rounds_rule import noise_of_one_round, rounds_for
from securetm.models.start_share import noise_of_start

SIZES, EPSILONS, SHARES = (3_000,), (1.0, 3.0, 8.0), (0.0, 0.25, 0.5, 0.75)
MOST_DOCUMENTS = 4_000  # of a corpus: more take long, and are clearer than what a rule is needed for
MODEL = VariationalLDA(n_topics=TOPICS, **VariationalLDA.budget_defaults)


@dataclass(frozen=True)
class AskedFirst:
    """Documents whose pairs of words are asked for before the training."""

    known: KnownWords
    vectors: bool = True  # whether topics are found beside public vectors of words

    @cached_property
    def _pairs(self) -> Array:
        """The exact sum."""
        question = TopicsBefore(TOPICS).question(len(self.known.train.vocabulary), 0.0)
        summed = ClippedRowSum(question.terms, LONGEST)
        question.answer(self.known.train, summed, {}, np.random.default_rng(0))
        return summed.blocks()["pairs"]

    def begun(self, epsilon: float, share: float, seed: int) -> Public | None:
        """What the noised answer says; nothing where it has no share."""
        if not share:
            return None
        noise = noise_of_start(epsilon, DELTA, share)
        noised = self._pairs + np.random.default_rng([seed, 1]).normal(0.0, noise, self._pairs.shape)
        words, public = self.known.train.vocabulary, self.known.public if self.vectors else None
        return TopicsBefore(TOPICS).found(words, Answer({"pairs": noised}, deviation=noise), public)

    def row(self, epsilon: float, shares: Sequence[float], seeds: Sequence[int]) -> Row:
        """The log-likelihood of a held-out word by share, each with as many rounds as the rule for rounds says."""
        size, words = len(self.known.train), len(self.known.train.vocabulary)
        found, rounds = dict[str, float](), dict[str, int]()
        for share in shares:
            asked = rounds_for(size, TOPICS, words, noise_of_one_round(epsilon, DELTA) / (1.0 - share) ** 0.5)
            each = [self.known.held_out(MODEL, epsilon, asked, s, share, self.begun(epsilon, share, s)) for s in seeds]
            found[f"{share:g}"], rounds[f"{share:g}"] = round(float(np.mean(each)), 4), asked
        facts = {"corpus": self.known.name, "documents": size, "words": words, "epsilon": epsilon}
        return {**facts, "held_out": found, "rounds": rounds, "frequencies": round(self.known.frequencies, 4)}


def reproduce(seeds: Sequence[int] = (0,), on_progress: OnProgress | None = None) -> Row:
    """Every case with every epsilon and share, the share that gives up least, and what it gives up on each."""
    rows = list[Row]()
    for name, make in CASES.items():
        case = AskedFirst(replace(make(), name=name))
        for epsilon in EPSILONS:
            rows.append(case.row(epsilon, SHARES, seeds))
            if on_progress:
                on_progress(len(rows), len(CASES) * len(EPSILONS))
    share = fitted(rows)
    settings = {"topics": TOPICS, "words": WORDS, "delta": DELTA, "radius": RADIUS, "seeds": len(seeds)}
    judged = [{**row, "given_up": round(_given_up(row, share), 4)} for row in rows]
    return {"reproduction": "start-rule", **settings, "start_share": share, "rows": judged}


def fitted(rows: Sequence[Row]) -> float:
    """The share that gives up least over all rows; of equal ones the smallest."""
    shares = [float(share) for share in rows[0]["held_out"] if float(share)]
    return min(shares, key=lambda share: (round(float(np.mean([_given_up(row, share) for row in rows])), 3), share))


def _given_up(row: Row, share: float) -> float:
    """How much less likely a held-out word is with this share than with the best one."""
    found: Mapping[str, float] = row["held_out"]
    return max(found.values()) - found[f"{share:g}"]


def _with_frequencies(make: Callable[[], KnownWords]) -> Callable[[], KnownWords]:
    """The same documents, not too many, and what a run knows of their words: also their frequencies in general English."""

    def made() -> KnownWords:
        known = make()
        train, shares = known.train, public_shares(known.train.vocabulary, "en", Tokeniser())
        filled = np.where(shares > 0, shares, shares[shares > 0].min() / 2)
        few = train.select(np.random.default_rng(0).permutation(len(train))[:MOST_DOCUMENTS])
        return replace(known, train=few, public=replace(known.public, frequencies=filled / filled.sum()))

    return made


CASES: Mapping[str, Callable[[], KnownWords]] = {
    **{f"{SYNTHETIC} {size}": synthetic_of(size) for size in SIZES},
    **{name: _with_frequencies(make) for name, make in CORPORA.items()},
}
