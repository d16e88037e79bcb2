"""What SentenceLDA's draws must follow, counted out: every assignment of a small document's sentences, and chains of them."""

from __future__ import annotations

from itertools import product
from math import lgamma

import numpy as np

from securetm.corpus.corpus import Corpus
from securetm.models.lda.counting import Assignments

ETA = 0.3


def spoken(documents, words, keys=None):
    """Documents as lists of sentences of word numbers."""
    tokens = [word for document in documents for sentence in document for word in sentence]
    lengths = [len(sentence) for document in documents for sentence in document]
    ends = np.cumsum([sum(map(len, document)) for document in documents], dtype=np.int64)
    vocabulary = tuple(f"w{v}" for v in range(words))
    return Corpus.from_tokens(np.array(tokens, dtype=np.int32), ends, vocabulary, sentence_ends=np.cumsum(lengths), keys=keys)


def copies_of(sentences, words, copies):
    """The same document many times over, each under another key."""
    tokens = np.tile(np.concatenate(sentences), copies)
    length, ends = sum(map(len, sentences)), np.cumsum([len(sentence) for sentence in sentences])
    starts = np.arange(copies) * length
    vocabulary = tuple(f"w{v}" for v in range(words))
    return Corpus.from_tokens(tokens, starts + length, vocabulary, sentence_ends=(starts[:, None] + ends).ravel())


def own_counts(sentences, topics, shape):
    own = np.zeros(shape)
    for sentence, z in zip(sentences, topics, strict=True):
        np.add.at(own, (z, sentence), 1)
    return own


def posterior(sentences, others, alpha, eta=ETA):
    """The chance of every assignment of one document's sentences, given everybody else's counts."""
    k, words = others.shape
    logs = {}
    for topics in product(range(k), repeat=len(sentences)):
        table = others + own_counts(sentences, topics, others.shape)
        log = sum(lgamma(n + a) for n, a in zip(np.bincount(topics, minlength=k), alpha, strict=True))
        log += sum(lgamma(n + eta) for n in table.ravel()) - sum(lgamma(n + words * eta) for n in table.sum(1))
        logs[topics] = log
    best = max(logs.values())
    chances = {topics: np.exp(log - best) for topics, log in logs.items()}
    whole = sum(chances.values())
    return {topics: chance / whole for topics, chance in chances.items()}


def drawn(model, sentences, others, alpha, copies, old=None):
    """The topics of many copies of one document after a round; `old` makes them counted, under these topics."""
    documents = copies_of(sentences, others.shape[1], copies)
    state = {**model.start(documents.vocabulary, np.random.default_rng(1)), "counts": others, "alpha": np.array(alpha)}
    held = model.read(documents, others.shape[1])
    names = held.names(documents.keys)
    before = Assignments.remembered({}).recall(held.draw_ends, names)
    if old is not None:
        state = {**state, "counts": others + own_counts(sentences, old, others.shape), "step": np.array([7])}
        before = Assignments(names, np.full(copies, 6), held.draw_ends, np.tile(np.array(old, np.uint16), copies))
    return held.redrawn(model.table(state), before, model.sweeps, 1).reshape(copies, len(sentences))


def distance(found, expected):
    """Total variation between how often assignments came and how often they should."""
    k = 1 + max(max(topics) for topics in expected)
    codes = np.ravel_multi_index(found.T.astype(np.int64), (k,) * found.shape[1])
    often = np.bincount(codes, minlength=len(expected)) / len(found)
    return 0.5 * float(np.abs(often - list(expected.values())).sum())  # assignments come in the order of their codes


# ---- chains ------------------------------------------------------------------------------------------------------------


def predictive(words, counts, eta=ETA):
    """How likely each topic makes these words, one after the other, by counts that hold neither of them."""
    counts, likelihood = counts.astype(float), np.ones(len(counts))
    for word in words:
        likelihood *= (counts[:, word] + eta) / (counts.sum(1) + counts.shape[1] * eta)
        counts[:, word] += 1
    return likelihood


def exact(move):
    """What a move from z to y must be weighed by, derived in protocols/samplers.md."""
    return move.f * (1 if move.word is None else (move.here + move.alpha) / move.q)


def paper_document(move):
    """Equation 27 as it stands: the proposal's own counts hold the sentence where it is now."""
    if move.word is not None:
        return exact(move)
    with_it = move.here + (np.arange(len(move.here)) == move.z)
    return move.f * (move.here + move.alpha) / (with_it + move.alpha)


def paper_words(move):
    """Equation 28 as it stands: the likelihood is the proposing word's alone."""
    if move.word is None:
        return exact(move)
    return predictive([move.word], move.without) * (move.here + move.alpha) / move.q


class Move:
    """One proposal for one sentence whose topic is z: by its document, or by a word."""

    def __init__(self, sentences, topics, s, word, others, alpha):
        rest = [i for i in range(len(sentences)) if i != s]
        self.z, self.word, self.alpha = topics[s], word, np.array(alpha)
        self.here = np.bincount([topics[i] for i in rest], minlength=len(others)).astype(float)
        self.without = others + own_counts([sentences[i] for i in rest], [topics[i] for i in rest], others.shape)
        self.f = predictive(sentences[s], self.without)
        phi = (others + ETA) / (others + ETA).sum(1, keepdims=True)
        self.q = (self.here + self.alpha if word is None else phi[:, word]).astype(float)
        self.q /= self.q.sum()


def chain(sentences, others, alpha, weigh):
    """The matrix of one sweep, each sentence's document first and then each of its words: assignments x assignments."""
    k = len(others)
    states = list(product(range(k), repeat=len(sentences)))
    sweep = np.eye(len(states))
    for s, sentence in enumerate(sentences):
        for word in (None, *dict.fromkeys(sentence)):
            step = np.zeros_like(sweep)
            for i, topics in enumerate(states):
                move = Move(sentences, topics, s, word, others, alpha)
                weight = weigh(move)
                for y in range(k):
                    if y != move.z:
                        j = states.index((*topics[:s], y, *topics[s + 1 :]))
                        step[i, j] = move.q[y] * min(1.0, weight[y] / weight[move.z])
                step[i, i] = 1 - step[i].sum()
            sweep = sweep @ step
    return states, sweep
