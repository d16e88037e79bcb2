"""How each row of FedNMF's experiments is made: topics of one method on one corpus, judged by a classifier and by words.

Rounds are played in one process by the questions and updates of a federation, without keys and messages; those under a profile
are in `fednmf_private.py`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from lab.keeping import Key
from lab.measuring import Row
from lab.papers.fednmf_clients import Clients, coherence, dealt, labelled
from lab.papers.fednmf_private import private
from lab.training import exact_sum
from securetm.contracts import Answer, Array, Memory, State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.models.fednmf import FedNMF, TopicWeights
from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.nmf import NMF, FactoredTopics
from securetm.models.quality import named_topics, top_words
from securetm.quality.measures import classified

MAIN, HETEROGENEOUS, TUNING, SUPERVISED, PRIVATE = "main", "heterogeneous", "tuning", "supervised", "private"
SERVERS = {"FedAvg": "average", "FedAdagrad": "adagrad", "FedYogi": "yogi", "FedAdam": "adam"}
WITH_MI = "+MI"
CENTRAL_LDA, CENTRAL_NMF, SGD, FED_LDA, EACH_ROUND = "LDA", "NMF", "NMF+SGD", "FedLDA", "nmf, every party each round"
FACTORED = tuple(server + end for server in SERVERS for end in ("", WITH_MI))
METHODS = (CENTRAL_LDA, CENTRAL_NMF, SGD, SGD + WITH_MI, FED_LDA, *FACTORED, EACH_ROUND)
FRACTION = 0.2  # of the parties takes part in a round
_SWEEPS, _SHOWN = 5, 5


def make(key: Key) -> Row:
    if key["part"] == PRIVATE:
        return private(key)
    return supervised(key) if key["part"] == SUPERVISED else topics_judged(key)


def _dealt(key: Key) -> Clients:
    return dealt(*(key[name] for name in ("corpus", "documents", "words", "clients", "alpha", "seed")))


# ---- a method on its clients -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnedTopics:
    """The topics of one method, the documents' weights under them, and those that Algorithm 1 kept at the clients."""

    topics: Array
    weights: Array
    kept: Array | None = None
    on_the_way: Mapping[int, Array] | None = None  # weights after so many rounds
    megabytes: float | None = None  # of a round, up and down


def topics_judged(key: Key) -> Row:
    """Classification by topic weights, and coherence."""
    clients = _dealt(key)
    learned = _learned(clients, key)
    found, top = classified(learned.weights, clients.labels), top_words(learned.topics)
    row = {"f1": found.macro_f1, "accuracy": found.accuracy, **coherence(top, clients.everything)}
    if learned.kept is not None:
        row["f1_of_kept_weights"] = classified(learned.kept, clients.labels).macro_f1
    if learned.megabytes is not None:
        row["megabytes_a_round"] = learned.megabytes
    for after, weights in (learned.on_the_way or {}).items():
        row[f"f1_after_{after}"] = classified(weights, clients.labels).macro_f1
    if key.get("shown"):
        row["topic_words"] = "; ".join(_typical(learned, clients.everything.vocabulary))
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}


def _typical(learned: LearnedTopics, vocabulary: Sequence[str]) -> list[str]:
    heaviest = np.argsort(-learned.weights.sum(axis=0), kind="stable")[:_SHOWN]
    return [" ".join(words) for words in named_topics(learned.topics[heaviest], vocabulary, 7)]


def _learned(clients: Clients, key: Key) -> LearnedTopics:
    method, topics = key["method"], key["topics"]
    if method == CENTRAL_NMF:
        return by_scikit_learn(clients, topics, key["seed"])
    if method == CENTRAL_LDA:  # counts add up, and a document's draws are its own: one place learns the same
        return in_rounds(LDA(n_topics=topics, sweeps=_SWEEPS), clients, key, 1.0)
    if method == EACH_ROUND:
        return in_rounds(NMF(n_topics=topics), clients, key, 1.0)
    if method == FED_LDA:
        return in_rounds(VariationalLDA(n_topics=topics, forgetting=FRACTION), clients, key, FRACTION)
    return alone(fednmf_of(key), clients, key) if method.startswith(SGD) else in_rounds(fednmf_of(key), clients, key, FRACTION)


def fednmf_of(key: Key) -> FedNMF:
    server = SERVERS.get(key["method"].removesuffix(WITH_MI), "average")
    information = key["information"] if key["method"].endswith(WITH_MI) else 0.0
    rate = 0.0 if server == "average" else key["server_rate"]
    steps: dict[str, Any] = {n: key[n] for n in ("local_epochs", "learning_rate", "weighting")}
    return FedNMF(n_topics=key["topics"], mutual_information=information, server=server, server_rate=rate, **steps)


def in_rounds(model: TopicModel, clients: Clients, key: Key, fraction: float) -> LearnedTopics:
    """What a federation learns, of whose clients a share is asked in each round."""
    seed, parties = key["seed"], clients.parties
    state = model.start(clients.everything.vocabulary, np.random.default_rng(seed))
    size, asked = 4e-6 * sum(math.prod(block.shape) for block in model.query(state).terms.layout), 0
    memories: dict[str, Memory] = {name: {} for name in parties}
    on_the_way = {}
    for number, names in enumerate(cohorts(list(parties), fraction, key["rounds"], seed), 1):
        sums: dict[str, Array] = {}
        for name in names:
            query, rng = model.query(model.for_party(state, name)), np.random.default_rng([seed, number])
            answer = exact_sum(query, parties[name], rng, memory=memories[name])
            sums = {block: sums[block] + part if sums else part for block, part in answer.items()}
        state, asked = model.update(state, Answer(sums)), len(names)
        if number in key.get("after", ()):
            on_the_way[number] = _weights(model, state, clients.everything)
    held = [(parties[name], memories[name]) for name in parties]
    return _found(model, state, clients.everything, held, on_the_way, 2 * asked * size)


def alone(model: FedNMF, clients: Clients, key: Key) -> LearnedTopics:
    """What one machine learns that has all documents, in as many epochs as a client has in the federation."""
    state, memory = model.start(clients.everything.vocabulary, np.random.default_rng(key["seed"])), Memory()
    for number in range(max(1, round(key["rounds"] * FRACTION))):
        rng = np.random.default_rng([key["seed"], number])
        state = model.update(state, Answer(exact_sum(model.query(state), clients.everything, rng, memory=memory)))
    return _found(model, state, clients.everything, [(clients.everything, memory)])


def cohorts(names: Sequence[str], fraction: float, rounds: int, seed: int) -> Iterator[list[str]]:
    """The clients of each round: drawn at random, the same ones for every method."""
    rng, some = np.random.default_rng(seed), max(round(fraction * len(names)), 1)
    for _ in range(rounds):
        yield [names[place] for place in np.sort(rng.choice(len(names), some, replace=False))]


def _found(
    model: TopicModel,
    state: State,
    documents: Corpus,
    held: Sequence[tuple[Corpus, Memory]],
    on_the_way: Mapping[int, Array] | None = None,
    megabytes: float | None = None,
) -> LearnedTopics:
    kept = None
    if isinstance(model, FedNMF):
        parts = []
        for corpus, memory in held:
            names = model.read(corpus, len(corpus.vocabulary)).names(corpus.keys)
            parts.append(TopicWeights.recalled(memory, names, _weights(model, state, corpus).astype(np.float32)).weights)
        kept = np.concatenate(parts)
    return LearnedTopics(model.topics(state), _weights(model, state, documents), kept, on_the_way, megabytes)


def _weights(model: TopicModel, state: State, documents: Corpus) -> Array:
    """The documents' topic weights under the learned topics; of a factorisation those that are nearest to the documents."""
    if not isinstance(model, FactoredTopics):
        return model.infer(state, documents)
    topics = model.factor(state)
    nearest: Array = model.factored(topics, model.read(documents, topics.shape[1])).topics
    return nearest


def by_scikit_learn(clients: Clients, topics: int, seed: int) -> LearnedTopics:
    """NMF by coordinate descent on one machine, on rows of length 1."""
    from sklearn import decomposition
    from sklearn.preprocessing import normalize

    nmf = decomposition.NMF(topics, max_iter=100, random_state=seed)
    with warnings.catch_warnings():  # it warns where it has not settled
        warnings.simplefilter("ignore")
        weights = nmf.fit_transform(normalize(clients.everything.counts.astype(float)))
    return LearnedTopics(nmf.components_, weights)


def narrow(counts: Any) -> Any:
    """The same counts with places of 32 bits, which scikit-learn's classifiers ask for."""
    table = sparse.csr_array(counts)
    return sparse.csr_array((table.data, table.indices.astype(np.int32), table.indptr.astype(np.int32)), shape=table.shape)


# ---- what no topic model can know: labels ----------------------------------------------------------------------------


def supervised(key: Key) -> Row:
    """A linear SVM that reads all words of the documents, weighted by TF-IDF: the ceiling for features without labels."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.metrics import accuracy_score, f1_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    documents = labelled(key["corpus"], key["documents"])
    labels, folds = np.asarray(documents.labels), StratifiedKFold(5, shuffle=True, random_state=key["seed"])
    said = cross_val_predict(
        make_pipeline(TfidfTransformer(sublinear_tf=True), LinearSVC()), narrow(documents.counts), labels, cv=folds
    )
    return {
        "f1": round(float(f1_score(labels, said, average="macro")), 4),
        "accuracy": round(float(accuracy_score(labels, said)), 4),
    }
