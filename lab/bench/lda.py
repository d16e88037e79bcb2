"""LDA beside tomotopy and scikit-learn: how fast topics are drawn, and how well held-out words are predicted in equal time.

Ours and theirs take turns in one run, so that a busy machine slows both, and ours never gets more seconds than theirs had. One
judge is for all: our own folding in, given each one's topics and prior.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lab.measuring import OnProgress, Row, beside, record, told
from lab.peers.other_packages import SCIKIT, TOMOTOPY, PeerMissing, PeerProcess
from lab.research_corpora import news
from lab.training import exact_sum
from securetm.contracts import Array, Memory
from securetm.models.estimator import held_back
from securetm.models.lda.lda import LDA, LdaDocuments

ALPHA, ETA = 0.1, 0.01
WORDS, HELD_OUT = 2_000, 0.1
PASSES = 100  # of folding in
THREADS = (1, 2)


def bench(
    on_progress: OnProgress | None = None, documents: int | None = None, topics: int | None = None, seconds: int = 60
) -> Row:
    """Rows for each number of topics and threads; fewer documents, other topics or seconds for a quick look."""
    name, corpus = news(WORDS, documents or 18_000, ALPHA)
    corpus = corpus.select(np.arange(min(len(corpus), documents or len(corpus))))
    back = held_back(np.asarray(corpus.keys), HELD_OUT)
    train, judge = corpus.select(np.flatnonzero(~back)), HeldOutJudge(corpus.select(np.flatnonzero(back)))
    title = f"{name}, {len(train):,} documents, {int(train.counts.sum()):,} tokens, V = {len(corpus.vocabulary):,}"
    races = [race for k in ((topics,) if topics else (50, 200)) for race in _races(k, seconds)]
    rows: list[Row] = []
    missing: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.npz"
        sparse.save_npz(counts, sparse.csr_matrix(train.counts))
        for race in told(races, on_progress):
            try:
                rows += _raced(race, train, judge, counts)
            except PeerMissing as absent:
                missing.append(str(absent))
    return record("lda", rows, missing=sorted(set(missing)), packages=("numpy",), corpus=title)


@dataclass(frozen=True)
class Race:
    peer: str
    topics: int
    threads: int
    at: tuple[int, ...]  # seconds of the peer's time
    method: str = "0"  # of the peer: whether it learns priors, or which algorithm
    learned: bool = False

    def __str__(self) -> str:
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        priors = "priors learned by both" if self.learned else f"alpha {ALPHA}, eta {ETA}"
        return f"K = {self.topics}, {threads}, {priors}"


def _races(topics: int, seconds: int) -> list[Race]:
    """With fixed priors at several times, the rest once."""
    half = max(seconds // 2, 1)
    several = tuple(sorted({max(seconds // 6, 1), half, seconds}))
    races = [Race(TOMOTOPY, topics, threads, several if threads == 1 else several[:-1] or several) for threads in THREADS]
    races.append(Race(TOMOTOPY, topics, 1, (half,), method="1", learned=True))
    return races + [Race(SCIKIT, topics, 1, (half,), method) for method in ("online", "batch")]


def _raced(race: Race, train: Any, judge: HeldOutJudge, counts: Path) -> list[Row]:
    """Both train by turns; they are judged as often as the case says, and their speed is taken over all of it."""
    rows = []
    with PeerProcess(race.peer, counts, (race.topics, ALPHA, ETA, race.threads, race.method)) as theirs:
        ours = OurTraining(train, race)
        for at in race.at:
            while theirs.seconds < at:
                theirs.advance(at)
                ours.advance(theirs.seconds)
            found, peers = judge.per_word(*ours.topics()), judge.per_word(*theirs.topics())
            what = f"held-out log-likelihood per word after {at} s: {race}"
            ratio = float(np.exp(found - peers))
            row = beside(what, found, peers, "nats per word", theirs.title, digits=4, ratio=ratio)
            rows.append({**row, "difference": round(found - peers, 4), "ours_seconds": round(ours.seconds, 2)})
        tokens = float(train.counts.sum()) / 1e6 / race.threads
        speeds = (tokens * ours.sweeps / ours.seconds, tokens * theirs.passes / theirs.seconds)
        what = f"tokens drawn per second and thread: {race}"
        rows.append(beside(what, *speeds, "million per s", theirs.title, digits=4, ratio=speeds[0] / speeds[1]))
    return rows


class OurTraining:
    """Our model, a round at a time, as `fit` does it."""

    def __init__(self, train: Any, race: Race) -> None:
        priors = "learned" if race.learned else "fixed"
        self.model = LDA(n_topics=race.topics, alpha=ALPHA, eta=ETA, threads=race.threads, priors=priors)
        self.model.fit(train.select(np.arange(min(50, len(train)))), epochs=12)  # compiles
        self._train, self._memory, self._rng = train, Memory(), np.random.default_rng(0)
        self._state = self.model.start(train.vocabulary, self._rng)
        self.seconds, self.sweeps, self._slowest = 0.0, 0, 0.0

    def advance(self, until: float) -> None:
        """As many rounds as fit into that many seconds altogether, and at least one at first."""
        while not self.sweeps or self.seconds + self._slowest <= until:
            begun = time.perf_counter()
            answer = exact_sum(self.model.query(self._state), self._train, self._rng, memory=self._memory)
            self._state = self.model.advance(self._state, answer, in_place=True)
            took = time.perf_counter() - begun
            self.seconds, self.sweeps = self.seconds + took, self.sweeps + self.model.sweeps
            self._slowest = took  # about what the next one will take

    def topics(self) -> tuple[Array, Array]:
        """Topics x words, and each topic's prior."""
        return self.model.topics(self._state), np.asarray(self._state["alpha"])


class HeldOutJudge:
    """Log-likelihood per word of half of each held-out document, given the other half: the same for everybody."""

    def __init__(self, held: Any) -> None:
        seen, unseen = held.halves(1)
        words = held.counts.shape[1]
        self._seen, self._unseen = LdaDocuments.from_counts(seen.counts, words), LdaDocuments.from_counts(unseen.counts, words)

    def per_word(self, topics: Array, alpha: Array) -> float:
        """Nats per unseen word under topics x words, with each topic's prior; less is a worse guess."""
        by_word = np.ascontiguousarray(topics.T, dtype=np.float64)
        shares = self._seen.shares(by_word, np.ascontiguousarray(alpha, dtype=np.float64), PASSES, 1)
        out = self._unseen.log_likelihood(by_word, shares, 1)
        return float(out.sum() / max(self._unseen.draw_ends[-1], 1))
