"""How each row of iFTM's experiments is made: topics that one party, or several, learn from their own or from noised words.

Rounds are played in one process by the questions and updates of a federation; words get the noise of the profile `iftm`, made
by the mechanism that a party uses, from a secret that follows from the seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lab.documents import per_word
from lab.keeping import Key
from lab.measuring import Row
from lab.papers.fednmf_rows import narrow
from lab.papers.protected import SEMANTIC, UNTRAINED, cost, trained
from lab.research_corpora import FILE, SUBJECTS, public_words, read_newsgroups, research_corpus
from lab.training import exact_sum
from securetm.contracts import Answer, Array, Memory, State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.corpus.text_embeddings import TextEmbedder
from securetm.mechanisms.laplace_counts import LaplaceCounts
from securetm.mechanisms.perturbed_documents import PerturbedDocuments
from securetm.models.quality import diversity, document_npmi, top_words
from securetm.plans.profiles import make_model

ALONE, MATCHED, ALIGNED, WITHOUT = "one party alone", "iFTM, matched", "synchronised at every iteration", "no topic model"
PROTECTED = "under a profile"
SHARES = {3: (29_723, 59_445, 89_169), 4: (28_000, 57_000, 80_000, 13_337)}  # documents of the paper's parties
_TESTED = 1 / 7  # of the documents judges, as in the paper
_MIXED = 0.5  # of the documents are dealt out by chance, the others by their labels
_LONGEST = {"sentence-lda": {"longest": 10}}  # words: the corpus has no full stops
_CLASSIFIED, _BESIDE = 600, 0.3  # documents of the parties with a known subject; the length of topics beside TF-IDF's 1


def make(key: Key) -> Row:
    """The row of a case."""
    if key["trained"] == PROTECTED:
        return under_profile(key)
    place = split(key["documents"], key["words"], key["parties"], key["seed"])
    if key["trained"] == WITHOUT:
        lengths = np.concatenate([documents.lengths() for documents in place.parties.values()])
        median, long = (float(np.quantile(lengths, share)) for share in (0.5, 0.95))
        return {"precision": round(precision(place, None), 4), "median_words": median, "long_words": long}
    row: Row = {}
    model: Any = None
    for after, model, state in _learned(place, key):
        row[f"likelihood_after_{after}"] = round(likelihood(model, state, place.tested), 4)
    return row | {"likelihood": row[f"likelihood_after_{after}"], **_of_topics(place, model, state)}


def under_profile(key: Key) -> Row:
    """The same of one federation of the parties under a profile. Topics of embeddings predict no words."""
    embedded = key["model"] == SEMANTIC
    place = split(key["documents"], key["words"], key["parties"], key["seed"], embedded)
    if key["profile"] == UNTRAINED:
        return {"precision": round(precision(place, None), 4)}
    run = trained(place.parties, place.tested.vocabulary, key)
    row = {} if embedded else {"likelihood": round(likelihood(run.model, run.state, place.tested), 4)}
    return {**row, **_of_topics(place, run.model, run.state), **cost(run)}


def _of_topics(place: Place, model: TopicModel, state: State) -> Row:
    topics = model.topics(state)
    top, shares = top_words(topics), [model.infer(state, documents) for documents in (place.known, place.tested)]
    return {
        "topics_found": len(topics),
        "precision": round(precision(place, (shares[0], shares[1])), 4),
        "npmi": round(float(document_npmi(top, place.tested.counts).mean()), 4),
        "diversity": round(float(diversity(top)), 4),
    }


# ---- the parties -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Place:
    """Unequal parties with different subjects, documents that judge, and the parties' documents with known labels."""

    parties: Mapping[str, Corpus]
    tested: Corpus
    known: Corpus


@lru_cache(2)
def split(documents: int, words: int, parties: int, seed: int, embedded: bool = False) -> Place:
    """Parts of 20 Newsgroups over public words, with as unequal shares as the paper's parties have.

    Half of the documents are dealt out in the order of their labels, so that each party has subjects of its own.
    """
    raw = research_corpus(FILE, embed=TextEmbedder().embed) if embedded else read_newsgroups()
    rng = np.random.default_rng(seed)
    whole = raw.select(np.sort(rng.permutation(len(raw))[:documents])).project(public_words(words))
    whole = whole.select(np.flatnonzero(whole.lengths() > 0))
    order = rng.permutation(len(whole))
    tried, rest = np.split(order, [round(_TESTED * len(order))])
    shares = np.cumsum(SHARES[parties])[:-1] / sum(SHARES[parties])
    mixed, by_label = np.split(rest, [round(_MIXED * len(rest))])
    by_label = by_label[np.argsort(np.asarray(whole.labels)[by_label], kind="stable")]
    dealt = [np.split(part, np.round(shares * len(part)).astype(int)) for part in (mixed, by_label)]
    rows = [np.sort(np.concatenate(parts)) for parts in zip(*dealt, strict=True)]
    names = [f"P{n}" for n in range(1, parties + 1)]
    held = {name: whole.of_party(own, name) for name, own in zip(names, rows, strict=True)}
    some = np.sort(rng.permutation(rest)[:_CLASSIFIED])
    return Place(held, whole.select(np.sort(tried)), whole.select(some))


# ---- learning --------------------------------------------------------------------------------------------------------


def _learned(place: Place, key: Key) -> Iterator[tuple[int, TopicModel, State]]:
    """The model and its state after each of the rounds that are asked for."""
    settings = {"n_topics": key["topics"], **_LONGEST.get(key["model"], {})}
    if key["trained"] == ALONE:
        alone: Any = make_model(key["model"], settings)
        alone.fit(place.parties[key["party"]], epochs=key["rounds"], seed=key["seed"])
        yield key["rounds"], alone, alone.learned.state
        return
    matched = key["trained"] == MATCHED
    form = {"form": "matched", "sweeps": key["sweeps"], "merged": "all"} if matched else {"sweeps": 1}
    model = make_model(key["model"], {**settings, **form})
    parties = {name: noised(documents, name, key) for name, documents in place.parties.items()}
    state = model.start(place.tested.vocabulary, np.random.default_rng(key["seed"]))
    memories: dict[str, Memory] = {name: {} for name in parties}
    for number in range(1, key["rounds"] + 1):
        each: dict[str, Mapping[str, Array]] = {}
        for party, (name, documents) in enumerate(parties.items()):
            query, rng = model.query(model.for_party(state, name)), np.random.default_rng([key["seed"], number, party])
            each[name] = exact_sum(query, documents, rng, memory=memories[name])
        state = model.update(state, _answer(each, matched, key["epsilon"] is not None))
        if number in key["after"]:
            yield number, model, state


def _answer(each: Mapping[str, Mapping[str, Array]], matched: bool, noised_words: bool) -> Answer:
    if matched:
        return Answer(None, each, tuple(each), words_noised=noised_words)
    total = {block: np.sum([parts[block] for parts in each.values()], axis=0) for block in next(iter(each.values()))}
    return Answer(total, words_noised=noised_words)


def noised(documents: Corpus, party: str, key: Key) -> Any:
    """A party's documents with noise in place of their words; without epsilon as they are."""
    if key["epsilon"] is None:
        return documents
    mechanism = LaplaceCounts(key["epsilon"], key["tau"], key["distribution"])
    secret = hashlib.sha256(f"{party} {key['seed']}".encode()).digest()
    return PerturbedDocuments.of(documents, mechanism.law(len(documents.vocabulary)), secret)


# ---- judging ---------------------------------------------------------------------------------------------------------


def likelihood(model: TopicModel, state: State, tested: Corpus) -> float:
    """Log-likelihood of each word of half of each document, given the other half."""
    return per_word(*tested.halves(0), lambda seen, unseen: model.log_likelihood(state, seen, unseen))


def precision(place: Place, shares: tuple[Array, Array] | None) -> float:
    """Macro precision of a linear SVM on TF-IDF and, where there are some, topic shares beside it."""
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.metrics import precision_score
    from sklearn.svm import LinearSVC

    weighted = TfidfTransformer(sublinear_tf=True).fit(narrow(place.known.counts))
    known, tried = (weighted.transform(narrow(documents.counts)) for documents in (place.known, place.tested))
    if shares is not None:
        logs = [np.log(share + 1e-4) for share in shares]
        middle, spread = logs[0].mean(axis=0), logs[0].std(axis=0) + 1e-9
        scale = _BESIDE / (spread * logs[0].shape[1] ** 0.5)
        beside = [sparse.csr_array((part - middle) * scale) for part in logs]
        known, tried = (sparse.hstack([words, topics]).tocsr() for words, topics in zip((known, tried), beside, strict=True))
    labels = [subjects(documents) for documents in (place.known, place.tested)]
    said = LinearSVC().fit(known, labels[0]).predict(tried)
    return float(precision_score(labels[1], said, average="macro", zero_division=0))


def subjects(documents: Corpus) -> Array:
    """The subject of each document: the first part of its group's name."""
    first = [str(label).split(".")[0] for label in np.asarray(documents.labels)]
    return np.array([name if name in SUBJECTS else "other" for name in first])
