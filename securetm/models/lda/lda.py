"""Latent Dirichlet allocation: every token of a document has a topic of its own, drawn by Gibbs sampling or by proposals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Answer, Array, Block, Rows, State, Terms
from securetm.data_classes import dataclass, replace
from securetm.extras import later, sparse
from securetm.models.batches import on_ranges
from securetm.models.document_noise import starts_of, uniform
from securetm.models.estimator import Count
from securetm.models.lda.counting import Assignments, Counting, CountTable, RoundFacts, SampledDocuments
from securetm.models.lda.samplers import LANES, Proposals, choose, draw, lanes_for, proposals_of
from securetm.models.lda.slots import Slots
from securetm.models.mixed_topics import BagDocuments, Bags
from securetm.settings import one_of

special = later("scipy.special")


@njit(cache=True, nogil=True)
def resample(first: int, last: int, bags: Bags, draw_ends: Array, given: RoundFacts, sweeps: int, topics: Array) -> None:
    """Collapsed Gibbs sweeps over documents `first` to `last`; `topics` holds each token's topic before and after.

    `given.shared` is in single precision, with zeros up to whole blocks of lanes. A document that is `counted` in it takes its
    old topics out and puts its new ones in as it goes. Of the other documents it sees the table alone. A document that is not
    `known` draws its first topics one by one.
    """
    ends, words, counts = bags
    noise, known, counted, shared, totals, alpha, eta, smoothing = given
    k, blocks = len(alpha), shared.shape[1] // LANES
    one, least = np.float32(1.0), np.float32(eta)
    here, others = np.empty(k), np.empty(k)
    weight, share, sums = lanes_for(k), lanes_for(k), lanes_for(k)
    for d in range(first, last):
        begin, end = draw_ends[d], draw_ends[d + 1]
        old, now = topics[begin:end].copy(), topics[begin:end]
        _open(old, known[d], counted[d], totals, alpha, smoothing, here, others, share)
        drawn = 0
        for sweep in range(sweeps):
            assigned = known[d] or sweep > 0
            t = 0
            for i in range(ends[d], ends[d + 1]):
                _weigh(shared[words[i]], old, now, t, counts[i], counted[d], assigned, weight)
                for _ in range(counts[i]):
                    z, less, product = np.int64(-1), np.float32(0.0), np.float32(0.0)
                    if assigned:
                        z = np.int64(now[t])
                        less = np.float32((here[z] - 1.0 + alpha[z]) / (others[z] + here[z] - 1.0))
                        product = (max(weight[z] - one, np.float32(0.0)) + least) * less
                    chance = uniform(noise[d], drawn)
                    found: int = choose(weight, least, share, sums, blocks, z, product, chance)  # type: ignore[call-arg]
                    fresh = min(found, k - 1)
                    if fresh != z:
                        if assigned:
                            weight[z] = max(weight[z] - one, np.float32(0.0))
                            here[z] -= 1.0
                            share[z] = less
                        now[t] = fresh
                        weight[fresh] += one
                        here[fresh] += 1.0
                        share[fresh] = (here[fresh] + alpha[fresh]) / (others[fresh] + here[fresh])
                    t += 1
                    drawn += 1


@njit(cache=True, nogil=True, inline="always")
def _open(
    old: Array,
    known: bool,
    counted: bool,
    totals: Array,
    alpha: Array,
    smoothing: float,
    here: Array,
    others: Array,
    share: Array,
) -> None:
    """Sets a document's counts of topics, everybody else's, and the factor of a topic's probability that no word changes."""
    here[:] = 0.0
    if known:
        for z in old:
            here[z] += 1.0
    for z in range(len(here)):
        others[z] = max(totals[z] - here[z] if counted else totals[z], 0.0) + smoothing
        share[z] = (here[z] + alpha[z]) / (others[z] + here[z])


@njit(cache=True, nogil=True, inline="always")
def _weigh(row: Array, old: Array, now: Array, t: int, count: int, counted: bool, assigned: bool, weight: Array) -> None:
    """Sets each topic's count of one word: the others' count, never below 0, and this document's current one."""
    one = np.float32(1.0)
    for z in range(len(row)):
        weight[z] = row[z]
    if counted:
        for j in range(t, t + count):
            weight[old[j]] = max(weight[old[j]] - one, np.float32(0.0))
    if assigned:
        for j in range(t, t + count):
            weight[now[j]] += one


@njit(cache=True, nogil=True)
def counts_of(bags: Bags, draw_ends: Array, topics: Array, by_word: Array) -> None:
    """Adds all documents' topic-word counts to `by_word` (vocabulary x topics)."""
    ends, words, counts = bags
    for d in range(len(ends) - 1):
        t = draw_ends[d]
        for i in range(ends[d], ends[d + 1]):
            for j in range(t, t + counts[i]):
                by_word[words[i], topics[j]] += 1.0
            t += counts[i]


@njit(cache=True, nogil=True)
def rows_of(
    documents: Array, bags: Bags, draw_ends: Array, topics: Array, vocabulary: int, k: int, narrow: Array
) -> tuple[Array, Array, Array]:
    """These documents' topic-word counts as parts of a CSR matrix; no row names a place twice, so that its norm is right.

    Places have the type of `narrow`.
    """
    ends, words, counts = bags
    size = 0
    for d in documents:
        size += draw_ends[d + 1] - draw_ends[d]
    values, places = np.empty(size, dtype=np.int64), np.empty(size, dtype=narrow.dtype)
    borders = np.zeros(len(documents) + 1, dtype=narrow.dtype)
    found = np.zeros(k, dtype=np.int64)
    used = 0
    for row, d in enumerate(documents):
        t = draw_ends[d]
        for i in range(ends[d], ends[d + 1]):
            if counts[i] == 1:
                values[used] = 1
                places[used] = topics[t] * np.int64(vocabulary) + words[i]
                used += 1
                t += 1
                continue
            for j in range(t, t + counts[i]):
                found[topics[j]] += 1
            for j in range(t, t + counts[i]):
                if found[topics[j]]:
                    values[used] = found[topics[j]]
                    places[used] = topics[j] * np.int64(vocabulary) + words[i]
                    found[topics[j]] = 0
                    used += 1
            t += counts[i]
        borders[row + 1] = used
    return values[:used], places[:used], borders


@njit(cache=True, nogil=True)
def resample_by_proposals(
    first: int,
    last: int,
    bags: Bags,
    draw_ends: Array,
    given: RoundFacts,
    proposals: Proposals,
    sweeps: int,
    cycles: int,
    topics: Array,
) -> None:
    """As `resample`, with so many pairs of proposals per token and sweep: the document's and then the word's.

    `given.shared` holds counts with eta added. A document that is not `known` begins with topics of the words alone.
    """
    ends, words, counts = bags
    noise, known, counted, shared, totals, alpha, eta, smoothing = given
    of_words, by_word, of_alpha, by_alpha, alone = proposals
    here, others = np.empty(len(alpha)), np.empty(len(alpha))
    prior = alpha.sum()
    for d in range(first, last):
        now = topics[draw_ends[d] : draw_ends[d + 1]]
        old, drawn = now.copy(), 0
        for i in range(ends[d], ends[d] if known[d] else ends[d + 1]):
            drawn = _begin(counts[i], of_words[words[i]], by_word[words[i]], noise[d], drawn, now)
        _open_counts(old, now, counted[d], totals, smoothing, here, others)
        for _ in range(sweeps):
            stop = 0
            for i in range(ends[d], ends[d + 1]):
                w, start, stop = words[i], stop, stop + counts[i]
                row, table, bits = shared[w], of_words[w], by_word[w]
                for t in range(start, stop):
                    z = _whole(now[t])
                    here[z] -= 1.0
                    for _ in range(cycles):
                        x = uniform(noise[d], drawn) * (len(now) + prior)
                        other = _by_document(x, now, of_alpha, by_alpha, prior)
                        more = _weight(row, other, t, start, stop, old, now, counted[d], eta) * (others[z] + here[z])
                        less = _weight(row, z, t, start, stop, old, now, counted[d], eta) * (others[other] + here[other])
                        z = _kept(z, other, less, more, uniform(noise[d], drawn + 1), t, now)
                        other = draw(table, bits, uniform(noise[d], drawn + 2))
                        if other != z:
                            more = _weight(row, other, t, start, stop, old, now, counted[d], eta) * (others[z] + here[z])
                            less = _weight(row, z, t, start, stop, old, now, counted[d], eta) * (others[other] + here[other])
                            more *= (here[other] + alpha[other]) * (row[z] * alone[z])
                            less *= (here[z] + alpha[z]) * (row[other] * alone[other])
                            z = _kept(z, other, less, more, uniform(noise[d], drawn + 3), t, now)
                        drawn += 4
                    here[z] += 1.0


@njit(cache=True, nogil=True)
def _begin(count: int, table: Array, bits: Array, noise: np.uint64, drawn: int, now: Array) -> int:
    """Draws a word's first topics in a document, each by the word alone. Returns how many the document has drawn then."""
    for t in range(drawn, drawn + count):
        now[t] = draw(table, bits, uniform(noise, t))
    return drawn + count


@njit(cache=True, nogil=True, inline="always")
def _whole(z: Any) -> int:
    """A topic as a signed number: numba turns a mixture of signed and unsigned numbers into floats."""
    return np.int64(z)  # type: ignore[return-value]


@njit(cache=True, nogil=True, inline="always")
def _kept(z: int, other: int, less: float, more: float, chance: float, t: int, now: Array) -> int:
    """The topic of token `t` after another was proposed: the ratio of their target probabilities is more / less."""
    kept = other if chance * less < more else z
    now[t] = kept
    return kept


@njit(cache=True, nogil=True, inline="always")
def _by_document(x: float, now: Array, of_alpha: Array, by_alpha: Array, prior: float) -> int:
    """The topic of one of the document's tokens, or one by alpha; `x` lies between 0 and their number and alpha together.

    A token's own current topic is among them. To draw it is to stay, so moves are proposed by the counts of the other tokens
    and alpha. These are one factor of the target probability, so the ratio holds the other factor only: the word's.
    """
    if x < len(now):
        return _whole(now[int(x)])
    return draw(of_alpha, by_alpha, (x - len(now)) / prior)


@njit(cache=True, nogil=True, inline="always")
def _open_counts(old: Array, now: Array, counted: bool, totals: Array, smoothing: float, here: Array, others: Array) -> None:
    """Sets a document's counts of topics, and everybody else's."""
    for z in range(len(here)):
        here[z] = 0.0
        others[z] = totals[z]
    for t in range(len(now)):
        here[now[t]] += 1.0
        if counted:
            others[old[t]] -= 1.0
    for z in range(len(here)):
        others[z] = max(others[z], 0.0) + smoothing


@njit(cache=True, nogil=True, inline="always")
def _weight(row: Array, z: int, t: int, start: int, stop: int, old: Array, now: Array, counted: bool, eta: float) -> float:
    """A topic's count of one word without token `t`: the others' count, never below eta, and this document's."""
    weight: float = row[z]
    for s in range(start, stop):
        if counted and old[s] == z:
            weight = max(weight - 1.0, eta)
    for s in range(start, stop):
        if s != t and now[s] == z:
            weight += 1.0
    return weight


@dataclass(frozen=True)
class LdaDocuments(BagDocuments, SampledDocuments):
    """Bags of words whose tokens are drawn: they stand in the order of the vocabulary."""

    cycles: int = 0  # of proposals for each token in a sweep; 0: it is drawn by Gibbs

    def redrawn(self, table: CountTable, old: Assignments, sweeps: int, threads: int) -> Array:
        topics, documents = old.topics.copy(), (self.bags, self.draw_ends)
        if self.cycles:
            given, proposals = table.facts(old, table.by_word), proposals_of(table, threads)
            facts = (*documents, given, proposals, sweeps, self.cycles, topics)
            on_ranges(self.draw_ends, threads, resample_by_proposals, *facts)
        else:
            shared = np.zeros((table.words, -(-table.topics // LANES) * LANES), dtype=np.float32)
            shared[:, : table.topics] = table.counts.T
            on_ranges(self.draw_ends, threads, resample, *documents, table.facts(old, shared), sweeps, topics)
        return topics

    def counted(self, topics: Array, table: CountTable) -> Array:
        by_word = np.zeros((table.words, table.topics))
        counts_of(self.bags, self.draw_ends, topics, by_word)
        return np.ascontiguousarray(by_word.T)

    def rows(self, documents: Array, topics: Array, table: CountTable) -> Rows:
        width = table.topics * table.words
        narrow = np.zeros(0, dtype=np.int32 if width < 2**31 else np.int64)
        parts = rows_of(documents, self.bags, self.draw_ends, topics, table.words, table.topics, narrow)
        return sparse.csr_array(parts, shape=(len(documents), width))


# ---- learned priors: how evenly documents share their topics (alpha), and topics their words (eta) ------------------------
# Minka's fixed point (2000; for LDA Wallach 2008) divides the expected number of tables in a Chinese restaurant by a sum over
# documents. Here each document draws its number of tables by public noise. The mean is the same, and the sum is one of small
# whole numbers, so a federation's sum equals the count of one machine.

LEAST_PRIOR, MOST_PRIOR = 1e-5, 1e2  # of any prior that is learned
_WAIT = 10  # rounds until topics are worth learning from
_BELIEF = 1.0  # the weight of the value that was set, in documents: without any document, it stays
_STEPS = 5  # of the fixed point, for eta, each round
_TABLES = 1  # the stream of a document's noise; topics are drawn from stream 0

TABLES = "tables"  # the block beside the counts: the tables of each topic, and those of whole documents


def learned_alpha(tables: Array, alpha: Array, first: float, symmetric: bool) -> Array:
    """Alpha after one step of the fixed point, from sums of tables that were drawn by `alpha`; `first` is the setting."""
    topics, whole = np.maximum(tables[:-1], 0.0), max(float(tables[-1]), 0.0)
    lengths = whole / alpha.sum() + _BELIEF
    found: Array = (topics + _BELIEF * first) / lengths
    return np.clip(np.full(len(found), found.mean()) if symmetric else found, LEAST_PRIOR, MOST_PRIOR)


def learned_eta(counts: Array, eta: float, first: float) -> float:
    """Eta after some steps of the fixed point. It is a function of the opened table, so no question is asked for it."""
    values, times = np.unique(np.rint(counts[counts > 0.5]), return_counts=True)
    totals, words = counts.sum(axis=1), counts.shape[1]
    for _ in range(_STEPS):
        tables = eta * (times @ (special.digamma(values + eta) - special.digamma(eta)))
        lengths = words * float(np.sum(special.digamma(totals + words * eta) - special.digamma(words * eta)))
        eta = float(np.clip((tables + _BELIEF * first) / (lengths + _BELIEF), LEAST_PRIOR, MOST_PRIOR))
    return eta


def tables_of_documents(topics: Array, draw_ends: Array, names: Array, alpha: Array, seed: int, step: int) -> Any:
    """Each document's tables as a sparse row: one number per topic, and last the whole document's."""
    found = _draw_tables(topics, draw_ends, starts_of(seed, step, names, _TABLES), alpha)
    return sparse.csr_array(found, shape=(len(names), len(alpha) + 1))


@njit(cache=True, nogil=True)
def _draw_tables(topics: Array, draw_ends: Array, noise: Array, alpha: Array) -> tuple[Array, Array, Array]:
    """Every draw of a topic begins a table with probability alpha / (alpha + earlier draws of the topic)."""
    k, documents, whole = len(alpha), len(draw_ends) - 1, alpha.sum()
    room = draw_ends[-1] + documents
    values, places = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    borders, used = np.zeros(documents + 1, dtype=np.int64), 0
    before, tables = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    for d in range(documents):
        begun = 0
        for t in range(draw_ends[d], draw_ends[d + 1]):
            z, earlier = topics[t], t - draw_ends[d]
            if uniform(noise[d], 2 * earlier) * (alpha[z] + before[z]) < alpha[z]:
                tables[z] += 1
            if uniform(noise[d], 2 * earlier + 1) * (whole + earlier) < whole:
                begun += 1
            before[z] += 1
        for t in range(draw_ends[d], draw_ends[d + 1]):
            z = topics[t]
            if before[z]:  # a topic's first draw always begins a table
                values[used], places[used] = tables[z], z
                before[z], tables[z] = 0, 0
                used += 1
        if begun:
            values[used], places[used] = begun, k
            used += 1
        borders[d + 1] = used
    return values[:used], places[:used], borders


# ---- the model --------------------------------------------------------------------------------------------------------------

Sampler = Annotated[str, one_of("auto", "gibbs", "mh")]
# Up to here a draw over all topics learns more in a second than proposals do. Held-out nats per word on 20 Newsgroups, by Gibbs
# and by proposals, which had as much time or more: K = 50 -6.69 and -6.77, K = 200 -6.61 and -6.76, K = 1,000 -6.63 and -6.91.
# The cost of a draw grows with the number of topics, and that of a proposal does not, so beyond it proposals are taken.
_FEW_TOPICS = 4_000


@dataclass(frozen=True)
class LDA(Counting):
    """LDA by Gibbs sampling or by Metropolis-Hastings; in a federation all parties draw from one shared table of counts.

    `priors` says whether alpha and eta are fixed, or learned from the values that are set: `symmetric` learns one alpha for all
    topics, `learned` one for each (Wallach et al. 2009). Eta is learned from the table alone. For alpha each document gives a
    few whole numbers more.
    """

    name: ClassVar[str] = "lda"
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20, "sweeps": 5}
    federated_rounds: ClassVar[int] = 100
    budget_rounds: ClassVar[int] = 5
    short_by_pairs: ClassVar[bool] = True

    sampler: Sampler = "auto"  # gibbs, or mh: both draw from the same distribution; auto: whichever learns faster
    cycles: Count = 1  # of mh: pairs of proposals for a token in a sweep
    priors: Annotated[str, one_of("fixed", "symmetric", "learned")] = "fixed"

    def read(self, documents: Any, words: int) -> SampledDocuments:
        """Each document's words and counts; every token is a draw. Behind noise, every slot is."""
        if documents.perturbed is not None:
            return Slots.from_documents(documents, words)
        return replace(LdaDocuments.from_counts(documents.counts, words), cycles=self.cycles_from(_FEW_TOPICS))

    def cycles_from(self, few_topics: int) -> int:
        """The pairs of proposals for a token in a sweep; 0 where it is drawn by Gibbs, as `auto` does for few topics."""
        by_proposals = self.sampler == "mh" or (self.sampler == "auto" and self.n_topics > few_topics)
        return self.cycles if by_proposals else 0

    def terms(self, state: State) -> Terms:
        """Where priors are learned, a row also holds how many tables each topic has, at most one per word, and the document."""
        counts, tables = super().terms(state), Block(TABLES, (self.n_topics + 1,))
        return counts if self.priors == "fixed" else replace(counts, layout=(*counts.layout, tables))

    def beside(self, held: SampledDocuments, fresh: Assignments, table: CountTable, documents: Any) -> Any:
        """The tables of the counted topics. Where noise replaced the words, all documents give one row."""
        if self.priors == "fixed":
            return None
        found = tables_of_documents(fresh.topics, held.draw_ends, fresh.names, table.alpha, table.seed, table.step)
        return found if documents.perturbed is None else sparse.csr_array(found.sum(axis=0)[None])

    def update(self, state: State, answer: Answer) -> State:
        """The state after one sum: its counts, and the learned priors."""
        after = super().update(state, answer)
        if self.priors == "fixed" or not answer.total or state["step"][0] < _WAIT:
            return after
        tables = np.asarray(answer.total[TABLES], dtype=np.float64)
        alpha = learned_alpha(tables, self.table(state).alpha, self.alpha, self.priors == "symmetric")
        eta = learned_eta(after["counts"], self.table(state).eta, self.eta)
        return {**after, "alpha": alpha, "eta": np.full(1, eta)}
