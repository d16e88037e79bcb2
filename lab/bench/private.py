"""What private training costs in all: seconds, bytes and rounds of five parties under `fortress`, from documents to topics.

All roles take turns on one machine, in one process. The published figure for encrypted decentralised LDA is cited beside a
federation of its size; it was not measured here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from lab.documents import JudgedDocuments
from lab.federations import federated
from lab.measuring import OnProgress, Row, figure, record, told, within
from lab.reproduce.contenders import FEDERATED, FIRM, PUBLIC, Contender
from lab.reproduce.noise_frontiers import RATE, SETTINGS
from lab.reproduce.noise_frontiers import ROUNDS as STEPS
from lab.synthetic_documents import LdaNodes, lda_nodes
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import NO_ORDER
from securetm.corpus.public_words import frequent_words
from securetm.corpus.tokeniser import Tokeniser

PARTIES, DOCUMENTS, WORDS, TOPICS, EPSILON = 5, 20_000, 2_000, 20, 3.0
FEW = 3_000  # documents, on which everything is compiled
SHORTEST, LONGEST = 40, 100
LIMIT = 20.0  # seconds
PROFILE = "fortress"
PRODLDA = "prodlda"
CITED, CITED_SECONDS = "encrypted decentralised LDA, TNO 2025: published, about 16 hours, not measured here", 16 * 3600.0
CITED_TOPICS, CITED_WORDS = 5, 3_000


@dataclass(frozen=True)
class TimedModel:
    name: str
    contender: Contender
    topics: int = TOPICS
    words: int = WORDS
    is_limited: bool = False
    is_cited: bool = False

    @property
    def case(self) -> str:
        return f"{self.name}, {self.topics} topics, {self.words:,} words, {DOCUMENTS:,} documents, epsilon {EPSILON:g}"


def bench(on_progress: OnProgress | None = None) -> Row:
    """A row for each model with the rounds that it is used with, and one at the size of the published figure."""
    for one in {one.contender.model: one for one in measured()}.values():  # compiles
        cost_of(replace(one, contender=replace(one.contender, rounds=lambda *_: 1)), FEW)
    rows = [cost_of(one, DOCUMENTS) for one in told(measured(), on_progress)]
    return record("private", rows, packages=("numpy",), profile=PROFILE, parties=PARTIES, documents=DOCUMENTS)


def measured() -> list[TimedModel]:
    """Each contender with the rounds that it is used with, ProdLDA, and one at the size of the published figure."""
    prodlda = {**SETTINGS, "batch": round(RATE * DOCUMENTS / PARTIES)}
    shown = {name: one for name, one in FEDERATED.items() if name != FIRM and not one.oracle}
    return [
        *(TimedModel(name, one, is_limited=True) for name, one in shown.items()),
        TimedModel(PRODLDA, Contender(PRODLDA, prodlda, {}, lambda documents, epsilon: STEPS)),  # noqa: ARG005
        TimedModel(PUBLIC, FEDERATED[PUBLIC], CITED_TOPICS, CITED_WORDS, is_cited=True),
    ]


def cost_of(one: TimedModel, documents: int) -> Row:
    """Seconds from the parties' documents to the finished model, and what was sent."""
    parties, contender = _parties(documents, one.words), one.contender
    model = {"name": contender.model, "n_topics": one.topics, **contender.settings}
    tables = {
        "model": model,
        "training": contender.training_on(documents, EPSILON),
        "privacy": {"epsilon": EPSILON, "radius": contender.radius},
    }
    some = next(iter(parties.values()))
    judged = JudgedDocuments(some, some.vocabulary)
    begun = time.perf_counter()
    run = federated(parties, judged.words, {"profile": PROFILE, **tables}, lambda agreed: contender.changed(agreed, judged))
    seconds = time.perf_counter() - begun
    cost = {"rounds": run.rounds, "megabytes": round(run.megabytes, 2), "spent": run.spent}
    row = figure(one.case, seconds, "s", 2)
    if one.is_cited:
        return {**row, "peer": CITED, "theirs": CITED_SECONDS, "ratio": round(CITED_SECONDS / seconds, 1), **cost}
    return {**row, **(within(LIMIT, seconds / LIMIT) if one.is_limited else {}), **cost}


@cache
def _parties(documents: int, words: int) -> Mapping[str, Corpus]:
    """Synthetic documents whose columns have the names of English words, so that public vectors know them."""
    sizes = LdaNodes(
        nodes=PARTIES,
        topics=TOPICS,
        words=words,
        alpha=0.1,
        documents=documents // PARTIES,
        validation_documents=1,
        shortest=SHORTEST,
        longest=LONGEST,
    )
    named = tuple(sorted(frequent_words("en", words, Tokeniser())))
    return {name: corpus.replace(vocabulary=named, **NO_ORDER) for name, corpus in lda_nodes(sizes).train.items()}
