"""Topics drawn behind Laplace noise: how fast, beside the naive form, and what such models are worth. It protects nobody.

Speed is in tokens per second of processor time on one core, for one sweep over all tokens: their noise is drawn anew from the
cipher's stream, each draws its topic, and the counts are added up. Worth is the likelihood of raw documents that were held out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product
from typing import Any

import numpy as np

from lab.documents import per_word
from lab.measuring import OnProgress, Row, record, stepper, zipf_words
from lab.research_corpora import news
from securetm.answers.clipped_sum import ClippedRowSum
from securetm.compiled import njit
from securetm.contracts import Answer, Array, Domain, Memory, State
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.mechanisms.laplace_counts import LaplaceCounts
from securetm.mechanisms.perturbed_documents import PerturbedDocuments, RegeneratedSlots
from securetm.mechanisms.slot_noise import SECRET, SlotNoise
from securetm.models.document_noise import uniform
from securetm.models.lda.counting import Assignments, Counting, CountTable
from securetm.models.lda.lda import LDA
from securetm.models.lda.sentence_lda import SentenceLDA
from securetm.models.lda.slots import Slots

EPSILONS, THRESHOLD = (8.0, 9.0, 10.0, 11.0), 0.2
KINDS = ("continuous", "discrete")
ASKED, TIMES = 100_000, 10.0  # tokens a second behind continuous noise at epsilon 8, and how many times as many behind discrete
TURNS = 15
LENGTH = 80  # tokens of a document
MORE, FEWER = 10, 50  # discrete noise is tried on so many times the tokens, the naive form on so many times fewer
HELD_OUT, ETA = 1_000, 0.1  # documents that models are judged by; of their topics' words
PEER = "our own naive O(V) form"


def less_noise(counts: Array, noise: float) -> Array:
    """A table of topics less its expected noise. `noise` is the mean noise per word and slot, which its distribution says.

    The number of a topic's slots follows from its total: each slot adds about 1 for its own word, and noise for all others.
    """
    slots = counts.sum(axis=1, keepdims=True) / (1.0 + noise * (counts.shape[1] - 1))
    without: Array = np.maximum(counts - noise * slots, 0.0)
    return without


def bench(
    tokens: int = 20_000,
    words: int = 5_000,
    topics: int = 50,
    documents: int = 1_000,
    learned_words: int = 2_000,
    learned_topics: int = 20,
    rounds: int = 30,
    on_progress: OnProgress | None = None,
) -> Row:
    """Speed over that many tokens and words; then models learned from some documents behind noise, and without."""
    name, read = news(learned_words, documents + HELD_OUT)
    order = np.random.default_rng(0).permutation(len(read))
    train = read.select(np.sort(order[: min(documents, len(read) - HELD_OUT)]))
    held_out = read.select(np.sort(order[-HELD_OUT:]))
    cases = len(KINDS) * len(EPSILONS)
    step = stepper(cases + 2 * (1 + cases), on_progress)
    rows: list[Row] = []
    for row in chain(_speeds(tokens, words, topics), _worths(train, held_out, learned_topics, rounds)):
        rows.append(row)
        step()
    corpus = (
        f"{name}, {learned_words:,} words: {len(train):,} documents, {len(_tokens(train)):,} tokens; {len(held_out):,} held out"
    )
    return record("private-mh", rows, corpus=corpus, rounds=rounds)


# ---- speed -------------------------------------------------------------------------------------------------------------


def _speeds(tokens: int, words: int, topics: int) -> Iterator[Row]:
    table, continuous = _table(words, topics), dict[float, float]()
    for kind, epsilon in product(KINDS, EPSILONS):
        law = LaplaceCounts(epsilon, THRESHOLD, kind).law(words)
        text, secret = _text(tokens * (MORE if law.whole else 1), words), OperatingSystem().bytes(SECRET)
        drawn = _tokens(text)
        ours, theirs = len(drawn) / _sweep(RegeneratedSlots(law, secret, drawn), text, table), _naive_rate(law, text, table)
        row = {"case": f"{kind} noise, epsilon {epsilon:g}, V = {words:,}, K = {topics}, one sweep", "ours": round(ours)}
        row |= {"unit": "tokens/s per core", "peer": PEER, "theirs": round(theirs), "ratio": round(ours / theirs, 1)}
        row |= {"weights": round(law.expected + 1, 2), "threshold": THRESHOLD}
        if law.whole:
            stored = PerturbedDocuments.of(text, law, secret).perturbed
            row |= {"stored": round(len(drawn) / _sweep(stored, text, table))}
            row |= {"times_continuous": round(ours / continuous[epsilon], 1)}
        else:
            continuous[epsilon] = round(ours)
        asked = {"asked_times": TIMES} if law.whole else {"asked": ASKED}
        yield row | (asked if epsilon == EPSILONS[0] else {})


def _sweep(perturbed: Any, text: Corpus, table: CountTable) -> float:
    """The least processor time of some turns."""
    behind, took = PerturbedDocuments(perturbed, text.vocabulary, text.keys, text.token_ends), list[float]()
    for _ in range(TURNS):
        begun = time.process_time()
        held = Slots.from_documents(behind, table.words)
        nothing = Assignments.remembered({}).recall(held.draw_ends, held.names(behind.keys))
        held.counted(held.redrawn(table, nothing, sweeps=1, threads=1), table)
        took.append(time.process_time() - begun)
    return min(took)


def _naive_rate(law: SlotNoise, text: Corpus, table: CountTable) -> float:
    """Tokens a second where every word of every token is given noise and weighed."""
    some = _tokens(text)[: max(len(_tokens(text)) // (FEWER * (MORE if law.whole else 1)), 1)]
    smooth = table.counts + table.eta
    log_phi = np.log(smooth / smooth.sum(axis=1, keepdims=True))
    noise, here = np.arange(len(some), dtype=np.uint64), np.full(table.topics, 0.1)
    took = []
    for _ in range(max(TURNS // 2, 1) + 1):  # the first one compiles
        begun = time.process_time()
        naive(some, log_phi, here, law.epsilon, law.threshold, law.whole, noise, np.zeros_like(table.counts))
        took.append(time.process_time() - begun)
    return len(some) / min(took[1:])


@njit(cache=True, nogil=True)
def naive(
    tokens: Array, log_phi: Array, here: Array, epsilon: float, threshold: float, whole: bool, noise: Array, sums: Array
) -> Array:
    """Each token's topic when all its counts are written down: noise on every word, and every word in every likelihood.

    Its noise is the simplest there is, from no cipher, and it proposes by the document twice: it is the form to be beaten.
    """
    words = log_phi.shape[1]
    counts, topics = np.empty(words), np.empty(len(tokens), np.int64)
    for t in range(len(tokens)):
        for w in range(words):
            u = uniform(noise[t], w) - 0.5
            size = -math.log(max(1.0 - 2.0 * abs(u), 1e-300)) / epsilon
            if whole:
                size = math.floor(size)
            x = (1.0 if w == tokens[t] else 0.0) + (size if u > 0 else -size)
            counts[w] = x if x > threshold else 0.0
        z = _naive_topic(counts, log_phi, here, noise[t], words)
        topics[t] = z
        for w in range(words):
            sums[z, w] += counts[w]
    return topics


@njit(cache=True, nogil=True)
def _naive_topic(counts: Array, log_phi: Array, here: Array, start: np.uint64, index: int) -> int:
    k = len(here)
    z, said = 0, _naive_sum(counts, log_phi, 0)
    for n in range(2):
        left, y = uniform(start, index + 2 * n) * here.sum(), 0
        while y < k - 1 and left >= here[y]:
            left -= here[y]
            y += 1
        other = _naive_sum(counts, log_phi, y)
        if uniform(start, index + 2 * n + 1) < math.exp(min(other - said, 0.0)):
            z, said = y, other
    return z


@njit(cache=True, nogil=True)
def _naive_sum(counts: Array, log_phi: Array, z: int) -> float:
    said = 0.0
    for w in range(len(counts)):
        said += counts[w] * log_phi[z, w]
    return said


def _text(tokens: int, words: int) -> Corpus:
    """Words by Zipf's law in documents of one length."""
    drawn = zipf_words(1, tokens, words).astype(np.int32)
    ends = np.append(np.arange(LENGTH, tokens, LENGTH), tokens)
    return Corpus.from_tokens(drawn, ends, [f"w{v:05}" for v in range(words)])


def _tokens(corpus: Corpus) -> Array:
    return np.asarray(corpus.tokens)


def _table(words: int, topics: int) -> CountTable:
    """Counts as they are after some rounds: topics with words of their own above a floor of noise."""
    counts = np.random.default_rng(2).gamma(0.1, 100.0, (topics, words)) + 5.0
    return CountTable(counts, np.full(topics, 0.1), 0.01, 1, 3)


# ---- worth -------------------------------------------------------------------------------------------------------------


def _worths(train: Corpus, held_out: Corpus, topics: int, rounds: int) -> Iterator[Row]:
    """The noise that a topic is expected to hold is taken from its counts before they are read. It is a public number of the
    law and a topic's own total, so it is post-processing; `as_counted` leaves it in."""
    spread = np.asarray(train.counts.sum(axis=0)).ravel() + ETA
    unseen = held_out.halves(0)[1].counts
    words_alone = round(float((unseen @ np.log(spread / spread.sum())).sum() / unseen.sum()), 4)
    for model in (LDA(n_topics=topics, eta=ETA), SentenceLDA(n_topics=topics, eta=ETA)):
        clean = _judged(model, _learned(model, train, rounds), held_out)
        yield _named(model, "no noise", clean) | {"words_alone": words_alone}
        for kind, epsilon in product(KINDS, EPSILONS):
            law = LaplaceCounts(epsilon, THRESHOLD, kind).law(len(train.vocabulary))
            state = _learned(model, PerturbedDocuments.of(train, law, OperatingSystem().bytes(SECRET)), rounds)
            # the mean noise on a word that a slot does not hold: steps above the threshold are geometric
            mean = law.chance * (law.least + 1 / math.expm1(law.epsilon / law.steps)) / law.steps
            ours = _judged(model, {**state, "counts": less_noise(state["counts"], mean)}, held_out)
            row = _named(model, f"{kind} noise, epsilon {epsilon:g}", ours) | {"peer": "no noise", "theirs": clean}
            row |= {"ratio": round(math.exp(ours - clean), 4), "as_counted": _judged(model, state, held_out)}
            yield row | {"threshold": THRESHOLD}


def _named(model: Counting, noise: str, likelihood: float) -> Row:
    case = f"{type(model).__name__}, K = {model.n_topics}, {noise}: held-out likelihood"
    return {"case": case, "ours": likelihood, "unit": "nats per word"}


def _learned(model: Counting, documents: Any, rounds: int) -> State:
    memory: Memory = {}
    state = model.start(documents.vocabulary, np.random.default_rng(1))
    whole = documents.perturbed is None or documents.perturbed.whole
    for _ in range(rounds):
        query = model.query(state)
        clipped_sum = ClippedRowSum(query.terms if whole else replace(query.terms, domain=Domain.REAL, bits=64))
        query.answer(documents, clipped_sum, memory, np.random.default_rng(0))
        state = model.update(state, Answer(clipped_sum.blocks()))
    return state


def _judged(model: Counting, state: State, held_out: Corpus) -> float:
    """Document completion: log-likelihood per unseen word of held-out documents, given their seen ones."""
    return round(per_word(*held_out.halves(0), lambda seen, unseen: model.log_likelihood(state, seen, unseen)), 4)
