"""How each row of gFedNTM's experiments is made: topics that are known (Fig. 3), and subjects of a real corpus (Fig. 4).

Rounds of a federation are played in one process, by its questions and answers, without keys and messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from lab.bench.semantic import labelled
from lab.keeping import Key
from lab.measuring import Row
from lab.papers.protected import UNTRAINED, cost, trained
from lab.peers.prodlda import DenseTraining, one_thread
from lab.research_corpora import by_subject
from lab.synthetic_documents import LdaNodes, SyntheticNodes, lda_nodes
from lab.training import together
from securetm.contracts import Array, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.corpus.tokeniser import prune
from securetm.corpus.word_vectors import GLOVE, WordVectors, read_vectors
from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.neural.contextual import CombinedTM
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.quality import named_topics

KNOWN, OF_SUBJECTS = "Figure 3", "Figure 4"
ALONE, CENTRAL, FEDERATED, NOTHING = "non-collaborative", "centralised", "federated", "nothing learned"
PRODLDA, ADDITIVE, BY_GIBBS, VARIATIONAL = "ProdLDA", "additive ProdLDA", "lda", "lda-vi"
PRIOR, ALIKE = "another draw of the prior", "all words alike"
AGAIN, SHARED = "the same nodes, trained again", "federated"  # what stands beside single nodes in Fig. 4
BATCH, NODE_BATCH = 64, 32
FEDERATED_RATE = CombinedTM.federated_defaults["learning_rate"]
AUTHORS: Mapping[str, Any] = {"rate": 2e-3, "beta1": 0.99, "theta_dropout": 0.2, "batch": BATCH}
_DRAWN = ("seed", "shared", "eta", "alpha", "words", "topics", "documents", "validation")  # what nodes are drawn by
_OTHER_DRAW, _OTHER_SEED, _DESCRIBED, _MOST_DENSE = 10_000, 20_000, 10, 2_000


def make(key: Key) -> Row:
    known = key["figure"] == KNOWN
    with one_thread():
        if key.get("profile"):
            return known_under_profile(key) if known else subjects_under_profile(key)
        return known_topics(key) if known else subject_topics(key)


# ---- Fig. 3: documents with known topics ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Learned:
    """Topics over all words, and the function that infers topic shares of documents over all words."""

    topics: Array
    shares: Callable[[Corpus], Array]


def known_topics(key: Key) -> Row:
    """How near topics and documents' similarities are to the true ones. Of nodes alone it is the mean over the nodes."""
    nodes = _nodes(*(key[name] for name in _DRAWN))
    model, scenario = key["model"], key["scenario"]
    if model == PRIOR:
        return _other_draw(nodes, key)
    tried = Corpus.concat(list(nodes.validation.values()))
    parts = list(nodes.train.values())
    read = parts if scenario == ALONE else [Corpus.concat(parts)]
    found = []
    for corpus in read:
        learned = _together(nodes, key) if scenario == FEDERATED else _learned(corpus, key)
        found.append(_scores(nodes, learned.topics, learned.shares(tried)))
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def known_under_profile(key: Key) -> Row:
    """The same of one federation of the nodes under a profile."""
    nodes = _nodes(*(key[name] for name in _DRAWN))
    if key["profile"] == UNTRAINED:
        return _other_draw(nodes, key)
    tried = Corpus.concat(list(nodes.validation.values()))
    run = trained(nodes.train, tried.vocabulary, key)
    place = {word: n for n, word in enumerate(tried.vocabulary)}
    topics = _over_all(run.model.topics(run.state), np.array([place[word] for word in run.words]), len(place))
    return {**_scores(nodes, topics, run.model.infer(run.state, tried.project(run.words))), **cost(run)}


def _other_draw(nodes: SyntheticNodes, key: Key) -> Row:
    other = lda_nodes(nodes.settings, key["seed"] + _OTHER_DRAW)
    return _scores(nodes, other.beta, np.concatenate(list(other.validation_theta.values())))


def _scores(nodes: SyntheticNodes, topics: Array, shares: Array) -> Row:
    true = np.concatenate(list(nodes.validation_theta.values()))
    return {**of_topics(nodes.beta, topics), **of_documents(true, shares)}


def of_topics(true: Array, found: Array) -> Row:
    """TSS: for each true topic the similarity of the nearest found one, added up.

    `tss_as_published` follows the script of the paper's authors, which applies a softmax to the finished shares of words, and
    puts each word's share under the word before it. Words that were never seen have none.
    """
    seen = found.sum(axis=0) > 0
    again = np.zeros_like(found)
    again[:, seen] = softmax(found[:, seen], axis=1)
    moved = np.append(again[:, 1:], np.zeros((len(again), 1)), axis=1)
    moved /= moved.sum(axis=1, keepdims=True)
    return {"tss": _nearest(true, found), "tss_as_published": _nearest(true, moved)}


def _nearest(true: Array, found: Array) -> float:
    return float((np.sqrt(true) @ np.sqrt(found).T).max(axis=1).sum())


def of_documents(true: Array, found: Array) -> Row:
    """DSS: how far similarities of documents are from the true ones, added up over the others and averaged over documents.

    `dss_per_pair` is the same for a pair of documents, so that numbers of documents can be compared.
    """
    roots = np.sqrt(true), np.sqrt(found)
    apart = np.abs(roots[0] @ roots[0].T - roots[1] @ roots[1].T)
    score = float((apart.sum() - np.trace(apart)) / len(true))
    return {"dss": score, "dss_per_pair": score / (len(true) - 1)}


@lru_cache(1)
def _nodes(
    seed: int, shared: int, eta: float, alpha: float, words: int, topics: int, documents: int, validation: int
) -> SyntheticNodes:
    of = LdaNodes(
        topics=topics, words=words, alpha=alpha, eta=eta, documents=documents, validation_documents=validation, shared=shared
    )
    return lda_nodes(of, seed)


def _learned(corpus: Corpus, key: Key) -> Learned:
    """What one place learns that has these documents, of the words that occur in them."""
    seen = np.flatnonzero(np.asarray(corpus.counts.sum(axis=0)).ravel())
    words = tuple(corpus.vocabulary[word] for word in seen)
    here = corpus.project(words)
    if key["model"] == ALIKE:
        shares, infer = np.full((key["topics"], len(words)), 1 / len(words)), _equal_shares(key["topics"])
    elif key["model"] == PRODLDA:
        shares, infer = _by_prodlda(here, key)
    else:
        model = model_of(key)
        model.fit(here, epochs=key["epochs"], seed=key["seed"])
        shares, infer = model.components_, lambda documents: model.infer(model.learned.state, documents)
    return Learned(_over_all(shares, seen, len(corpus.vocabulary)), lambda documents: infer(documents.project(words)))


def _together(nodes: SyntheticNodes, key: Key) -> Learned:
    """What the nodes learn together, of the words that occur at any of them."""
    everything = Corpus.concat(list(nodes.train.values()))
    seen = np.flatnonzero(np.asarray(everything.counts.sum(axis=0)).ravel())
    words = tuple(everything.vocabulary[word] for word in seen)
    model = model_of(key)
    parties = {name: corpus.project(words) for name, corpus in nodes.train.items()}
    batch = model.query(model.start(words, np.random.default_rng(0))).terms.batch
    rounds = key["epochs"] * (-(-key["documents"] // batch) if batch else 1)
    state = together(model, parties, model.start(words, np.random.default_rng(key["seed"])), rounds, key["seed"])
    topics = _over_all(model.topics(state), seen, len(everything.vocabulary))
    return Learned(topics, lambda documents: model.infer(state, documents.project(words)))


def model_of(key: Key) -> Any:
    """One of the models of securetm. The LDA models are told the documents' concentration."""
    topics, alpha = key["topics"], key["alpha"]
    if key["model"] == ADDITIVE:  # a step of all nodes reads a batch of each
        return ProdLDA(n_topics=topics, batch=NODE_BATCH * (LdaNodes.nodes if key["scenario"] == CENTRAL else 1), device="cpu")
    return (
        LDA(n_topics=topics, alpha=alpha)
        if key["model"] == BY_GIBBS
        else VariationalLDA(n_topics=topics, alpha=alpha, passes=20)
    )


def _by_prodlda(corpus: Corpus, key: Key) -> tuple[Array, Callable[[Corpus], Array]]:
    """ProdLDA with batch normalisation, by its authors' settings."""
    training = DenseTraining(corpus.counts, key["seed"], topics=key["topics"], **AUTHORS)
    for _ in range(key["epochs"]):
        training.epoch()
    weights = training.network.topics.weight.detach().double().numpy().T

    def shares(documents: Corpus) -> Array:
        parts = np.array_split(np.arange(len(documents)), -(-len(documents) // _MOST_DENSE))
        dense = (documents.counts[rows].toarray().astype(np.float32) for rows in parts)
        return np.concatenate([training.network.shares(torch.from_numpy(part)) for part in dense])

    return softmax(weights, axis=1), shares


def _equal_shares(topics: int) -> Callable[[Corpus], Array]:
    return lambda documents: np.full((len(documents), topics), 1 / topics)


def _over_all(topics: Array, seen: Array, words: int) -> Array:
    whole = np.zeros((len(topics), words))
    whole[:, seen] = topics
    return whole


# ---- Fig. 4: subjects of a real corpus -----------------------------------------------------------------------------------


def subject_topics(key: Key) -> Row:
    """How far each node's own topics are from the topics of another model: the mean distance to its nearest topic."""
    subjects = _subjects(key["corpus"], key["documents"], key["words"])
    asked, found = key["evaluated"], dict[str, float]()
    for name in subjects.parties:
        theirs = _described(key, name if asked == AGAIN else asked, key["topics"], again=asked == AGAIN)
        found[name] = mean_least(_described(key, name, key["reference_topics"]), theirs, subjects.vectors)
    others = [away for name, away in found.items() if name != asked]
    return {**found, "mean": float(np.mean(others))}


def subjects_under_profile(key: Key) -> Row:
    """How far each node's own topics are from those of one federation of the nodes under a profile."""
    subjects = _subjects(key["corpus"], key["documents"], key["words"])
    run = trained(subjects.parties, next(iter(subjects.parties.values())).vocabulary, key)
    theirs = named_topics(run.model.topics(run.state), run.words, _DESCRIBED)
    own = {name: _described(key, name, key["reference_topics"]) for name in subjects.parties}
    found = {name: mean_least(topics, theirs, subjects.vectors) for name, topics in own.items()}
    return {**found, "mean": float(np.mean(list(found.values()))), **cost(run)}


def mean_least(own: list[list[str]], others: list[list[str]], vectors: WordVectors) -> float:
    """The mean over topics of the Word Mover's Distance to the nearest of the other topics."""
    return float(np.mean([min(mover_distance(topic, other, vectors) for other in others) for topic in own]))


def mover_distance(one: list[str], other: list[str], vectors: WordVectors) -> float:
    """Of two lists of as many words each: the least mean distance over which the words of one move to those of the other."""
    ours, theirs = vectors.matrix(one), vectors.matrix(other)
    apart = np.linalg.norm(ours[:, None] - theirs[None], axis=2)
    return float(apart[linear_sum_assignment(apart)].mean())


@dataclass(frozen=True, eq=False)
class Subjects:
    """Each node's documents over the common words, all of which have a vector."""

    parties: Mapping[str, Corpus]
    vectors: WordVectors


@lru_cache(1)
def _subjects(name: str, documents: int | None, words: int) -> Subjects:
    corpus = labelled(name, documents)
    frequent = prune(corpus, max_words=2 * words)
    vectors = read_vectors(GLOVE, frequent)
    totals = np.asarray(corpus.project(frequent).counts.sum(axis=0)).ravel()
    order = [frequent[place] for place in np.argsort(-totals, kind="stable")]
    kept = tuple(sorted(vectors.known(order)[:words]))
    parts = {subject: part.project(kept) for subject, part in by_subject(corpus).items()}
    return Subjects({subject: part.select(np.flatnonzero(part.lengths() > 0)) for subject, part in parts.items()}, vectors)


def _described(key: Key, who: str, topics: int, *, again: bool = False) -> list[list[str]]:
    facts = key["corpus"], key["documents"], key["words"], key["epochs"], key["seed"] + again * _OTHER_SEED
    return _descriptions(who, topics, *facts)


@lru_cache(64)
def _descriptions(
    who: str, topics: int, corpus: str, documents: int | None, words: int, epochs: int, seed: int
) -> list[list[str]]:
    """The first words of each topic of a node's model, or of the one that all nodes learn together."""
    parties = _subjects(corpus, documents, words).parties
    vocabulary = next(iter(parties.values())).vocabulary
    if who == SHARED:
        model: TopicModel = CombinedTM(n_topics=topics, batch=BATCH, device="cpu", learning_rate=FEDERATED_RATE)
        rounds = epochs * round(np.mean([len(part) for part in parties.values()]) / BATCH)
        state = together(model, parties, model.start(vocabulary, np.random.default_rng(seed)), rounds, seed)
        return named_topics(model.topics(state), vocabulary, _DESCRIBED)
    alone = CombinedTM(n_topics=topics, batch=BATCH, device="cpu").fit(parties[who], epochs=epochs, seed=seed)
    return named_topics(alone.components_, vocabulary, _DESCRIBED)
