"""The models of the frontier of privacy and utility, with the settings that they are judged with.

A contender is trained by a federation, or stands beside it: a peer without privacy, or what is known before any document.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lab.documents import JudgedDocuments
from lab.peers.lda_vi import knowing_assignments, knowing_topics
from lab.peers.other_packages import TOMOTOPY, PeerProcess
from lab.peers.spectral_lda import by_spectral_lda
from lab.reproduce.frontier_cases import CENTRAL, DISTRIBUTED, HELPERS, LOCAL, PARTIES, FrontierCase
from securetm.contracts import Array, State, TopicModel
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.noisy_counts import likely_totals
from securetm.plans.agreement import Agreement, agree
from securetm.plans.recommend import plan_from_tables
from securetm.plans.rules import noise_of_one_round

_USUAL = 20_000  # documents
RADIUS = 2.0  # of the clip: in 1,000 words, nine documents of ten have a longer row, so that nearly all weigh alike
DELTA = 1e-5
STARTED, STARTED_PLAIN = "lda-vi, start by moments and vectors", "lda-vi, start by moments"
TOLD = "lda-vi, told that texts have five words"  # where it begins is left to the rule for short texts
PUBLIC, PLAIN, MOMENTS = "lda-vi, public start", "lda-vi, plain start", "moments"
TOPICS_KNOWN, ASSIGNED = "oracle: true topics known", "oracle: assignments known"
FIRM = "lda-vi, public start, without tempering"
AGAIN = "lda-vi, public start, trained again"  # where more was measured later: its words by relevance
SPECTRAL = "private spectral LDA, one curator"
PEER, FREQUENCIES, CONTROL = "tomotopy LDA", "word frequencies", "public start, no document"
_ADDED = {CENTRAL: 1.0, DISTRIBUTED: PARTIES / (PARTIES - HELPERS), LOCAL: PARTIES}  # squares of the noise in a sum
NOISED = "noised word frequencies"  # the whole budget for them: a model without topics cannot know more

Rounds = Callable[[int, float | None], int]  # of documents and epsilon; 0: as many as the package's own rule says
Change = Callable[[Agreement, JudgedDocuments], Agreement]  # puts a model that has no name into the agreement


def _as_agreed(agreement: Agreement, documents: JudgedDocuments) -> Agreement:  # noqa: ARG001 - no oracle
    return agreement


@dataclass(frozen=True)
class Contender:
    """A model that a federation trains: its name in a plan, its settings, and how often it asks."""

    model: str
    settings: Mapping[str, Any]
    training: Mapping[str, Any]
    rounds: Rounds
    changed: Change = _as_agreed
    radius: float = RADIUS
    oracle: bool = False  # knows what no private model may know

    def training_on(self, documents: int, epsilon: float | None) -> Mapping[str, Any]:
        """The [training] of a plan for so many documents: rounds, and the number of documents where a rule reads it."""
        rounds = self.rounds(documents, epsilon)
        by_rule = epsilon is not None and self.model == VariationalLDA.name and "totals" not in self.settings
        known = {"documents": documents} if by_rule or not rounds else {}
        return {**self.training, **({"rounds": rounds} if rounds else {}), **known}

    def tables(
        self, topics: int, documents: int, epsilon: float | None, held_out: float, delta: float = DELTA
    ) -> Mapping[str, Any]:
        """What a federation of it is told beside its words and its profile: a kept row is of these settings."""
        return {
            "model": {"name": self.model, "n_topics": topics, **self.settings},
            "training": {**self.training_on(documents, epsilon), "held_out": held_out},
            "privacy": {} if epsilon is None else {"epsilon": epsilon, "delta": delta, "radius": self.radius},
        }


def _by_epsilon(without: int, few: int, *of_epsilon: tuple[float, int]) -> Rounds:
    """So many rounds up to each epsilon, so many without noise, and `few` where documents are few and noise is added.

    The epsilons are for as many documents as 20 Newsgroups has: twice the documents are as clear as at twice the epsilon.
    """

    def rounds(documents: int, epsilon: float | None) -> int:
        if epsilon is None:
            return without
        alike = epsilon * documents / _USUAL
        fits = next((count for most, count in of_epsilon if alike <= most), of_epsilon[-1][1])
        return min(fits, few) if documents < _USUAL / 4 else fits

    return rounds


def _by_rule(documents: int, epsilon: float | None) -> int:  # noqa: ARG001 - the rule reads a plan
    return 20 if epsilon is None else 0


def _once(documents: int, epsilon: float | None) -> int:  # noqa: ARG001 - always
    return 1


_VI: Mapping[str, Any] = {name: value for name, value in VariationalLDA.budget_defaults.items() if name != "totals"}  # by rule
_FIRM: Mapping[str, Any] = {**_VI, "tempering": 1.0}
FEDERATED: Mapping[str, Contender] = {
    PUBLIC: Contender("lda-vi", _VI, {"start": "public"}, _by_rule),
    AGAIN: Contender("lda-vi", _VI, {"start": "public"}, _by_rule),
    FIRM: Contender("lda-vi", _FIRM, {"start": "public"}, _by_rule),
    PLAIN: Contender("lda-vi", _VI, {"start": "plain"}, _by_rule),
    STARTED: Contender("lda-vi", _VI, {"start": "moments", "vectors": "glove"}, _by_rule),
    STARTED_PLAIN: Contender("lda-vi", _VI, {"start": "moments", "vectors": "none"}, _by_rule),
    TOLD: Contender("lda-vi", _VI, {"document_length": 5.0}, _by_rule),
    MOMENTS: Contender("moments", {}, {}, _once, radius=1.0),  # its rows have that length
    TOPICS_KNOWN: Contender("lda-vi", _VI, {"start": "plain"}, _once, knowing_topics, oracle=True),
    ASSIGNED: Contender("lda-vi", _VI, {"start": "plain"}, _once, knowing_assignments, oracle=True),
}


def curve_contenders() -> Mapping[str, Contender]:
    """Those that need nothing public of words, for documents whose words mean nothing."""
    return {name: one for name, one in FEDERATED.items() if name in (PLAIN, MOMENTS)}


def shown_as(topics: Array) -> tuple[TopicModel, State]:
    """Topics from anywhere as a model that infers documents' shares as `lda-vi` does."""
    model = VariationalLDA(n_topics=len(topics), **_VI)
    start = model.start([f"word{n}" for n in range(topics.shape[1])], np.random.default_rng(0))
    return model, {**start, "counts": topics * 1e6 * topics.shape[1]}


def by_peer(documents: JudgedDocuments, case: FrontierCase, passes: int = 300) -> Array:
    """Topics x words by tomotopy's collapsed Gibbs sampler, on the documents that parties would train on."""
    known = documents.held_back(1 - case.judging, case.seed)[0]
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.npz"
        sparse.save_npz(counts, sparse.csr_matrix(known.counts))
        with PeerProcess(TOMOTOPY, counts, (case.topics, 0.1, 0.01, 1, 0)) as peer:
            peer.train(passes)
            return peer.topics()[0]


def by_frequencies(documents: JudgedDocuments, case: FrontierCase) -> Array:
    """Every topic is the word frequencies: whoever learns no more is no better."""
    known = documents.held_back(1 - case.judging, case.seed)[0]
    shares = np.asarray(known.counts.sum(axis=0)).ravel() + 0.5
    return np.tile(shares / shares.sum(), (case.topics, 1))


def by_noised_frequencies(documents: JudgedDocuments, case: FrontierCase) -> Array:
    """Every topic is the likely word frequencies behind one noised sum, in which each document counts a word once.

    The noise is that of the form: one curator's, shares of which helpers know some, or each party's own.
    """
    known = documents.held_back(1 - case.judging, case.seed)[0]
    held = sparse.csr_array((known.counts > 0).astype(np.float64))
    lengths = np.sqrt(np.asarray(held.sum(axis=1)).ravel())
    found = np.minimum(RADIUS / np.maximum(lengths, 1.0), 1.0) @ held
    deviation = 0.0 if case.epsilon is None else RADIUS * noise_of_one_round(case.epsilon, DELTA) * _ADDED[case.profile] ** 0.5
    found = found + np.random.default_rng(case.seed).normal(0.0, deviation, found.shape)
    totals = likely_totals(found, deviation, _agreed(documents, case).frequencies(documents.words))
    return np.tile(totals / totals.sum(), (case.topics, 1))


def by_vectors(documents: JudgedDocuments, case: FrontierCase) -> Array:
    """The topics at which a public start begins: it reads no document."""
    public = _agreed(documents, case).public(documents.words)
    assert public is not None
    return public.topics


def _agreed(documents: JudgedDocuments, case: FrontierCase) -> Agreement:
    """What says what is public of the words where a training begins at public topics."""
    listed = {"source": "file", "file": "english"}  # the words themselves are those of the documents
    tables = {"profile": "dp-central", "model": {"name": "lda-vi", "n_topics": case.topics}, "vocabulary": listed}
    return agree(plan_from_tables({**tables, "training": {"start": "public"}}, "the control"), listed=documents.words)


def by_moments_of_three(documents: JudgedDocuments, case: FrontierCase) -> Array:
    """Topics x words by DeCarolis and others' spectral LDA, with noise by one curator that holds all documents."""
    return by_spectral_lda(documents, case.topics, case.judging, case.epsilon, DELTA)


BESIDE: Mapping[str, Callable[[JudgedDocuments, FrontierCase], Array]] = {
    PEER: by_peer,
    FREQUENCIES: by_frequencies,
    NOISED: by_noised_frequencies,
    CONTROL: by_vectors,
    SPECTRAL: by_moments_of_three,
}
NEVER_PRIVATE = (PEER, FREQUENCIES, CONTROL)
