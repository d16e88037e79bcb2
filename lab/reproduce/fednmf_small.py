"""FedNMF on three corpora of short texts: does mutual information help, and is federated LDA worse? Ours beside theirs.

Rounds are played in one process by the questions and updates of a federation, without keys and messages. The paper's figures
are of another preparation of the corpora, and means over three numbers of topics: they are judged by their order.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lab.measuring import OnProgress, Row, timed, told
from lab.research_corpora import PUBLIC, SMS, research_file
from lab.training import exact_sum
from securetm.contracts import Answer, Array, Memory, State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import no_column
from securetm.corpus.readers import read_corpus
from securetm.corpus.tokeniser import prune
from securetm.corpus.word_vectors import GLOVE, read_vectors
from securetm.errors import BadSetting
from securetm.models.fednmf import FedNMF, TopicWeights
from securetm.models.gradients import SERVER_STEPS
from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.nmf import NMF, FactoredTopics
from securetm.models.quality import diversity, document_npmi, top_words
from securetm.quality.evaluation import paired_difference
from securetm.quality.measures import Classified, classified, embedding_coherence

WORDS, TOPICS, PARTIES, ALPHA, FRACTION = 2_000, 50, 10, 1.0, 0.2
ROUNDS, INFORMATION, SERVER_RATE = 20, 0.1, 0.03
SAMPLED = 1_434  # of TagMyNews, as many as the paper has; it does not say which
TITLES: Mapping[str, tuple[str, int]] = {  # the file, and the local epochs of a round: about as many steps on each
    "SMS Spam": (SMS, 1),
    "TagMyNews": (PUBLIC[0], 5),
    "StackOverflow": (PUBLIC[1], 1),
}
FED_LDA, OUR_LDA, PLAIN, INFORMED = "FedLDA (lda-vi)", "lda, every party each round", "FedNMF, {}", "FedNMF+MI, {}"
# Table IV: macro F1 and accuracy, in the order SMS Spam, TagMyNews, StackOverflow.
THEIRS: Mapping[str, tuple[float, ...]] = {
    "LDA (scikit-learn)": (0.821, 0.903, 0.651, 0.653, 0.689, 0.683),
    "NMF (scikit-learn)": (0.904, 0.954, 0.859, 0.840, 0.803, 0.747),
    "NMF+SGD": (0.927, 0.965, 0.950, 0.969, 0.777, 0.778),
    "NMF+SGD+MI": (0.941, 0.968, 0.982, 0.983, 0.820, 0.831),
    FED_LDA: (0.704, 0.841, 0.508, 0.555, 0.421, 0.401),
    PLAIN.format("average"): (0.652, 0.673, 0.663, 0.670, 0.304, 0.313),
    INFORMED.format("average"): (0.724, 0.730, 0.724, 0.740, 0.360, 0.421),
    PLAIN.format("adagrad"): (0.816, 0.830, 0.920, 0.931, 0.558, 0.600),
    INFORMED.format("adagrad"): (0.856, 0.867, 0.953, 0.956, 0.630, 0.641),
    PLAIN.format("yogi"): (0.827, 0.837, 0.924, 0.930, 0.352, 0.360),
    INFORMED.format("yogi"): (0.861, 0.870, 0.973, 0.970, 0.372, 0.367),
    PLAIN.format("adam"): (0.833, 0.838, 0.890, 0.638, 0.562, 0.584),
    INFORMED.format("adam"): (0.881, 0.887, 0.945, 0.957, 0.647, 0.650),
}


def reproduce(titles: Sequence[str] = tuple(TITLES), on_progress: OnProgress | None = None) -> Row:
    """Every method on every corpus with one seed; a verdict, and NMF beside scikit-learn's in the same seconds."""
    cases = [(title, method) for title in titles for method in (*methods(1), None)]
    benches: dict[str, ShortTexts] = {}
    said: dict[tuple[str, str], Classified] = {}
    rows, equal = [], []
    for title, method in told(cases, on_progress):
        texts = benches.setdefault(title, ShortTexts.read(title))
        if method is None:
            equal.append(in_equal_seconds(texts))
            continue
        row, labels = texts.row(method)
        rows.append(row)
        said[title, method] = labels
    facts = {
        "corpus": f"{', '.join(titles)}; of TagMyNews {SAMPLED:,} documents drawn at random: the paper does not say which",
        "words": WORDS, "topics": TOPICS, "parties": PARTIES, "alpha": ALPHA, "fraction": FRACTION, "rounds": ROUNDS,
        "mutual_information": INFORMATION,
    }  # fmt: skip
    return {"reproduction": "fednmf-small", **facts, "rows": rows, **judge(rows, said), "in_equal_seconds": equal}


@dataclass(frozen=True)
class LearnedTopics:
    """The topics of one method, the documents' topic weights under them, and those that Algorithm 1 kept at the parties."""

    topics: Array
    weights: Array
    kept: Array | None = None


@dataclass(frozen=True)
class ShortTexts:
    """One corpus, dealt out to its parties."""

    title: str
    corpus: Corpus
    epochs: int  # of each party in a round

    @classmethod
    def read(cls, title: str) -> ShortTexts:
        """The documents with a word among the most frequent ones."""
        file, epochs = TITLES[title]
        corpus = read_corpus(research_file(file))
        if file == PUBLIC[0]:
            corpus = corpus.select(np.sort(np.random.default_rng(0).permutation(len(corpus))[:SAMPLED]))
        corpus = corpus.project(prune(corpus, max_words=WORDS))
        return cls(title, corpus.select(np.flatnonzero(corpus.lengths() > 0)), epochs)

    @cached_property
    def dealt(self) -> Corpus:
        """The documents in the order of their parties: all but the few that cannot be shared out evenly."""
        return Corpus.concat(list(self.parties.values()), name=self.title)

    @cached_property
    def parties(self) -> dict[str, Corpus]:
        """Ten parties with different mixtures of labels."""
        return papers_partition(self.corpus, PARTIES, ALPHA, seed=0)

    def row(self, method: str) -> tuple[Row, Classified]:
        """The figures of one method, and what a classifier says of every document."""
        seconds, learned = timed(lambda: methods(self.epochs)[method](self))
        labels = np.asarray(self.dealt.labels)
        found, top = classified(learned.weights, labels), top_words(learned.topics)
        kept = None if learned.kept is None else round(classified(learned.kept, labels).macro_f1, 3)
        vectors = read_vectors(GLOVE, self.corpus.vocabulary).matrix(self.corpus.vocabulary)
        theirs = THEIRS.get(method, ())[2 * list(TITLES).index(self.title) :][:2]
        figures = {
            "f1": round(found.macro_f1, 3), "f1_of_kept_weights": kept, "accuracy": round(found.accuracy, 3),
            "their_f1": theirs[0] if theirs else None, "their_accuracy": theirs[1] if theirs else None,
            "we_coherence": round(float(embedding_coherence(top, vectors).mean()), 3),
            "npmi": round(float(document_npmi(top, self.dealt.counts).mean()), 3),
            "diversity": round(diversity(top), 3), "seconds": round(seconds, 1),
        }  # fmt: skip
        return {"of": self.title, "method": method, **figures}, found


# ---- the methods -----------------------------------------------------------------------------------------------------


def methods(epochs: int) -> dict[str, Callable[[ShortTexts], LearnedTopics]]:
    """Every method by its name; `epochs` of each party in a round."""
    steps: dict[str, Any] = {"n_topics": TOPICS, "local_epochs": epochs}
    found: dict[str, Callable[[ShortTexts], LearnedTopics]] = {
        "LDA (scikit-learn)": _their_lda,
        "NMF (scikit-learn)": _their_nmf,
        "nmf, every party each round": lambda texts: in_rounds(NMF(n_topics=TOPICS), texts, 1.0),
        "NMF+SGD": lambda texts: alone(FedNMF(mutual_information=0.0, **steps), texts),
        "NMF+SGD+MI": lambda texts: alone(FedNMF(mutual_information=INFORMATION, **steps), texts),
        FED_LDA: lambda texts: in_rounds(VariationalLDA(n_topics=TOPICS, forgetting=FRACTION), texts, FRACTION),
        OUR_LDA: lambda texts: in_rounds(LDA(n_topics=TOPICS, sweeps=5), texts, 1.0),
    }
    for server in SERVER_STEPS:
        rate = 0.0 if server == SERVER_STEPS[0] else SERVER_RATE
        for name, information in ((PLAIN, 0.0), (INFORMED, INFORMATION)):
            model = FedNMF(mutual_information=information, server=server, server_rate=rate, **steps)
            found[name.format(server)] = lambda texts, model=model: in_rounds(model, texts, FRACTION)  # type: ignore[misc]
    return found


def in_rounds(model: TopicModel, texts: ShortTexts, fraction: float, seed: int = 0) -> LearnedTopics:
    """What a federation learns, of whose parties a share is asked in each round."""
    state = model.start(texts.corpus.vocabulary, np.random.default_rng(seed))
    memories: dict[str, Memory] = {name: {} for name in texts.parties}
    for number, names in enumerate(cohorts(list(texts.parties), fraction, seed)):
        sums: dict[str, Array] = {}
        for name in names:
            query, rng = model.query(model.for_party(state, name)), np.random.default_rng([seed, number])
            answer = exact_sum(query, texts.parties[name], rng, memory=memories[name])
            sums = {block: sums[block] + part if sums else part for block, part in answer.items()}
        state = model.update(state, Answer(sums))
    return _learned(model, state, texts.dealt, [(texts.parties[name], memories[name]) for name in texts.parties])


def alone(model: FedNMF, texts: ShortTexts) -> LearnedTopics:
    """What one machine learns that has all documents, in as many epochs as a party has in the federation."""
    state, memory = model.start(texts.corpus.vocabulary, np.random.default_rng(0)), Memory()
    for number in range(max(1, round(ROUNDS * FRACTION))):
        exact = exact_sum(model.query(state), texts.dealt, np.random.default_rng(number), memory=memory)
        state = model.update(state, Answer(exact))
    return _learned(model, state, texts.dealt, [(texts.dealt, memory)])


def cohorts(names: Sequence[str], fraction: float, seed: int) -> Iterator[list[str]]:
    """The parties of each round: drawn at random, the same ones for every method."""
    rng, some = np.random.default_rng(seed), max(round(fraction * len(names)), 1)
    for _ in range(ROUNDS):
        yield [names[place] for place in np.sort(rng.choice(len(names), some, replace=False))]


def _learned(model: TopicModel, state: State, documents: Corpus, held: Sequence[tuple[Corpus, Memory]]) -> LearnedTopics:
    if not isinstance(model, FactoredTopics):
        return LearnedTopics(model.topics(state), model.infer(state, documents))
    nearest = nearest_weights(model, state, documents)
    if not isinstance(model, FedNMF):
        return LearnedTopics(model.topics(state), nearest)
    parts = []
    for corpus, memory in held:
        names = model.read(corpus, len(corpus.vocabulary)).names(corpus.keys)
        parts.append(TopicWeights.recalled(memory, names, nearest_weights(model, state, corpus).astype(np.float32)).weights)
    return LearnedTopics(model.topics(state), nearest, np.concatenate(parts))


def nearest_weights(model: FactoredTopics, state: State, documents: Corpus) -> Array:
    """The documents' topic weights under the learned topics."""
    topics = model.factor(state)
    return model.factored(topics, model.read(documents, topics.shape[1])).topics


def _their_lda(texts: ShortTexts) -> LearnedTopics:
    from sklearn.decomposition import LatentDirichletAllocation

    lda = LatentDirichletAllocation(TOPICS, max_iter=ROUNDS, random_state=0)
    weights = lda.fit_transform(texts.dealt.counts)
    return LearnedTopics(lda.components_, weights)


def _their_nmf(texts: ShortTexts) -> LearnedTopics:
    nmf, weights = their_factors(texts)
    return LearnedTopics(nmf.components_, weights)


def their_factors(texts: ShortTexts) -> tuple[Any, Array]:
    """scikit-learn's NMF by coordinate descent, on rows of length 1."""
    from sklearn import decomposition
    from sklearn.preprocessing import normalize

    nmf = decomposition.NMF(TOPICS, init="nndsvda", max_iter=200, random_state=0)
    with warnings.catch_warnings():  # it warns where it has not settled
        warnings.simplefilter("ignore")
        return nmf, nmf.fit_transform(normalize(texts.dealt.counts.astype(float)))


# ---- what follows ----------------------------------------------------------------------------------------------------


def in_equal_seconds(texts: ShortTexts) -> Row:
    """The relative distance from the documents that scikit-learn's NMF leaves, and that ours leaves after the same seconds."""
    model, documents = NMF(n_topics=TOPICS), texts.dealt
    state, rounds = model.start(documents.vocabulary, np.random.default_rng(0)), 0
    model.factored(model.factor(state), model.read(documents.select(np.arange(1)), WORDS))  # compiled before the clock runs
    given, (theirs, _) = timed(lambda: their_factors(texts))
    begun = time.perf_counter()
    while rounds < 1 or time.perf_counter() - begun < given:
        exact = exact_sum(model.query(state), documents, np.random.default_rng(0))
        state, rounds = model.update(state, Answer(exact)), rounds + 1
    found = model.factored(model.factor(state), model.read(documents, len(documents.vocabulary)))
    lengths = len(documents) ** 0.5  # every document has length 1
    ours = float(np.sqrt(2 * found.losses.sum())) / lengths
    figures = {"ours": round(ours, 4), "theirs": round(float(theirs.reconstruction_err_) / lengths, 4)}
    return {"of": texts.title, "seconds": round(given, 2), "rounds": rounds, **figures}


def judge(rows: Sequence[Row], said: Mapping[tuple[str, str], Classified]) -> Row:
    """Where mutual information wins on macro F1, over FedNMF by the same server and over both forms of federated LDA."""
    of = {(row["of"], row["method"]): row for row in rows}
    titles = list(dict.fromkeys(row["of"] for row in rows))
    pairs = [_pair(title, server, of, said) for title in titles for server in SERVER_STEPS]
    best = {title: max(of[title, INFORMED.format(server)]["f1"] for server in SERVER_STEPS) for title in titles}
    over = {name: [t for t in titles if best[t] > of[t, name]["f1"]] for name in (FED_LDA, OUR_LDA)}
    wins = sum(pair["f1"] > 0 for pair in pairs)
    surely = sum(pair["surely"] and pair["f1"] > 0 for pair in pairs)
    holds = wins == len(pairs) and over[FED_LDA] == titles
    return {
        "verdict": "holds" if holds else "does not hold",
        "with_mutual_information": f"better F1 in {wins} of {len(pairs)} pairs, in {surely} of them by more than chance",
        "better_than_federated_lda": f"{', '.join(over[FED_LDA]) or 'nowhere'} ({FED_LDA}); "
        f"{', '.join(over[OUR_LDA]) or 'nowhere'} ({OUR_LDA})",
        "pairs": pairs,
    }


def _pair(title: str, server: str, of: Mapping[tuple[str, str], Row], said: Mapping[tuple[str, str], Classified]) -> Row:
    names = [(title, name.format(server)) for name in (INFORMED, PLAIN)]
    right = [said[name].right.astype(float) for name in names]
    accuracy = paired_difference(right[0], right[1], np.ones(len(right[0])))
    kept = [of[name]["f1_of_kept_weights"] for name in names]
    gained = {"f1": round(of[names[0]]["f1"] - of[names[1]]["f1"], 3), "f1_of_kept_weights": round(kept[0] - kept[1], 3)}
    interval = [round(accuracy.low, 4), round(accuracy.high, 4)]
    return {"of": title, "server": server, **gained, "accuracy_interval": interval, "surely": accuracy.sure}


# ---- parties of one size whose mixtures of labels differ, as in section IV-D of the paper -----------------------------


def papers_partition(corpus: Corpus, parties: int, alpha: float, seed: int = 0) -> dict[str, Corpus]:
    """Parties whose mixtures of labels differ: q ~ Dir(alpha p), p being the label distribution of all documents.

    Every party gets documents // parties documents, drawn without replacement: first a label by q, then a document that has
    it. When a label has run out, q is renormalised over those that are left. alpha = inf gives every party the mixture p,
    alpha near 0 a single label (until it runs out). Documents that are left over belong to no party.
    """
    labels = corpus.labels
    if labels is None:
        raise no_column("label")
    if not alpha > 0:
        raise BadSetting("dirichlet", "alpha", str(alpha), "must be above zero")
    rng = np.random.default_rng(seed)
    _, member = np.unique(labels, return_inverse=True)
    piles = [rng.permutation(np.flatnonzero(member == label)) for label in range(int(member.max()) + 1)]
    share = np.bincount(member) / len(member)
    stock = np.bincount(member)
    parts = []
    for _ in range(parties):
        taken = _draw(len(corpus) // parties, share, stock, alpha, rng)
        parts.append(
            np.sort(np.concatenate([pile[left - n : left] for pile, left, n in zip(piles, stock, taken, strict=True)]))
        )
        stock = stock - taken
    return {f"party-{number}": corpus.of_party(rows, f"party-{number}") for number, rows in enumerate(parts, 1)}


def _draw(documents: int, share: Array, stock: Array, alpha: float, rng: np.random.Generator) -> Array:
    """The number of documents of each label that one party gets."""
    mixture = _mixture(share, alpha, rng)
    taken = np.zeros(len(share), dtype=np.int64)
    while taken.sum() < documents:
        left = stock - taken
        mixture = np.where(left > 0, mixture, 0.0)
        if mixture.sum() <= 0.0:  # q is 0 on all labels that are left: the Dirichlet's neutrality allows to draw that part anew
            mixture = _mixture(np.where(left > 0, share, 0.0), alpha, rng)
        mixture = mixture / mixture.sum()
        taken += _until_one_runs_out(mixture, left, int(documents - taken.sum()), rng)
    return taken


def _until_one_runs_out(mixture: Array, left: Array, documents: int, rng: np.random.Generator) -> Array:
    """Draws labels one after the other, and stops before the first that has run out."""
    labels = rng.choice(len(mixture), size=documents, p=mixture)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(len(mixture)))
    nth = np.empty(documents, dtype=np.int64)
    nth[order] = np.arange(documents) - starts[labels[order]]
    missing = np.flatnonzero(nth >= left[labels])
    return np.bincount(labels[: missing[0] if len(missing) else documents], minlength=len(mixture))


def _mixture(share: Array, alpha: float, rng: np.random.Generator) -> Array:
    present = np.flatnonzero(share)
    mixture = np.zeros(len(share))
    if np.isinf(alpha):
        mixture[present] = share[present] / share[present].sum()
        return mixture
    concentration = np.maximum(alpha * share[present], np.finfo(float).tiny)
    drawn = rng.dirichlet(concentration)
    if not np.isfinite(drawn).all() or drawn.sum() == 0.0:  # alpha is too small for floating point: one label, by its share
        drawn = np.eye(len(present))[rng.choice(len(present), p=share[present] / share[present].sum())]
    mixture[present] = drawn
    return mixture
