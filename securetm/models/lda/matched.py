"""iFTM's matched form of the models that count: parties train topics of their own, which a coordinator matches and gives back.

It is no sum over documents: it needs each party's own table of topics (Algorithms 3 to 5), so no secure sum admits it. The
merge down to a requested number of topics is not in the paper, whose model keeps every topic that Algorithm 3 finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from securetm.compiled import njit
from securetm.contracts import Answer, Array, Block, ClippedSum, Memory, Needs, Public, State, Terms, TopicModel, Unit
from securetm.data_classes import dataclass, field
from securetm.errors import Mistake
from securetm.extras import sparse
from securetm.models.estimator import Count, Question, Smoothing
from securetm.models.lda.counting import MOST_TOPICS, Assignments, CountTable, SampledDocuments, bounded
from securetm.models.lda.lda import LDA
from securetm.models.lda.sentence_lda import SentenceLDA
from securetm.settings import Limit, one_of, within

NOWHERE = -1  # where an empty topic goes
_MOST = 1e280  # of an entry: rows are summed


class IntegratedTopics(NamedTuple):
    """The matched topics of all parties."""

    topics: Array  # global topics x words; rows sum to one
    weights: Array  # the amount of data of each
    went: Mapping[str, Array]  # of each party's topics: which global topic it became part of, or NOWHERE


# ---- similarity (Eq. 29) ---------------------------------------------------------------------------------------------


def similarities(ones: Array, others: Array, words: int) -> Array:
    """The similarity of topics by their heaviest words: a weighted Jaccard index.

    Only a topic's `words` heaviest words count. Two topics without any weight have 0. A topic and itself have exactly 1. The
    order of the two does not matter.
    """
    (ends, columns, weights), theirs = _heaviest(ones, words), _heaviest(others, words)
    by_word = sparse.csr_array((theirs[2], theirs[1], theirs[0]), shape=(len(others), ones.shape[1])).tocsc()
    borders, topics = by_word.indptr.astype(np.int64), by_word.indices.astype(np.int64)  # the topics with each word
    return _compared(ends, columns, weights, borders, topics, by_word.data, _masses(theirs[0], theirs[2]))


def _heaviest(topics: Array, words: int) -> tuple[Array, Array, Array]:
    """Each topic's heaviest words in the order of the vocabulary, as CSR; of equally heavy ones the first, of none nothing."""
    kept = [_heaviest_of(row, words) for row in topics]
    ends = np.cumsum([0, *map(len, kept)]).astype(np.int64)
    columns = np.concatenate([*kept, np.zeros(0, np.int64)]).astype(np.int64)
    return ends, columns, np.asarray(topics[np.repeat(np.arange(len(kept)), np.diff(ends)), columns], dtype=np.float64)


def _heaviest_of(row: Array, words: int) -> Array:
    some = np.flatnonzero(row > 0)
    if len(some) <= words:
        return some
    weights = row[some]
    least = np.partition(weights, len(some) - words)[len(some) - words]
    above = weights > least
    level = np.flatnonzero(weights == least)[: words - int(above.sum())]
    above[level] = True
    found: Array = some[above]
    return found


@njit(cache=True, nogil=True)
def _masses(ends: Array, weights: Array) -> Array:
    """Total weights, added in the order of `_compared`: in another order, a topic's similarity with itself would be below 1."""
    masses = np.zeros(len(ends) - 1)
    for z in range(len(masses)):
        for i in range(ends[z], ends[z + 1]):
            masses[z] += weights[i]
    return masses


@njit(cache=True, nogil=True)
def _compared(
    ends: Array, columns: Array, weights: Array, borders: Array, topics: Array, theirs: Array, masses: Array
) -> Array:
    mine = _masses(ends, weights)
    out = np.zeros((len(mine), len(masses)))
    for z in range(len(mine)):
        common = out[z]
        for i in range(ends[z], ends[z + 1]):
            for j in range(borders[columns[i]], borders[columns[i] + 1]):
                common[topics[j]] += min(weights[i], theirs[j])
        for y in range(len(masses)):
            if common[y] > 0.0:
                common[y] /= mine[z] + masses[y] - common[y]
    return out


# ---- Algorithm 3 -----------------------------------------------------------------------------------------------------


def integrated(topics: Mapping[str, Array], amounts: Mapping[str, float], xi: float, words: int) -> IntegratedTopics:
    """Algorithm 3: all parties' topics together, those that are alike merged into one in proportion to their parties' data.

    All parties' topics are merged at once, and not one party after the other into a growing model. So only local topics are
    compared, and none with a half-merged one; the order of the parties, by name, decides the order of the topics alone.
    As in the paper every pair is compared, so two topics of one party may become one. Similarity is transitive here: two topics
    that differ become one if a third is like both. A topic without weight, or of a party without data, goes to NOWHERE.
    """
    names = sorted(topics)
    for name in names:
        if not (float(topics[name].max(initial=0)) < _MOST and float(topics[name].min(initial=0)) >= 0):  # NaN is neither
            raise _no_topics(name, "some entries are negative, too large or no numbers")
        if not 0 <= amounts[name] < np.inf:
            raise _no_topics(name, f"its amount of data is {amounts[name]}")
    whole = np.concatenate([shares(topics[name]) for name in names])
    weights = np.concatenate([np.full(len(topics[name]), float(amounts[name])) for name in names])
    filled = np.flatnonzero((weights > 0) & (whole.sum(axis=1) > 0))
    went = np.full(len(whole), NOWHERE, dtype=np.int64)
    went[filled] = _sets(whole[filled], xi, words)
    count = int(went.max(initial=NOWHERE)) + 1
    member = sparse.csr_array((weights[filled], (went[filled], filled)), shape=(count, len(whole)))
    ends = np.cumsum([0, *(len(topics[name]) for name in names)])
    places = {name: went[first:last] for name, (first, last) in zip(names, pairwise(ends), strict=True)}
    return IntegratedTopics(shares(member @ whole), member.sum(axis=1), places)


def _sets(topics: Array, xi: float, words: int) -> Array:
    """Union-find over all pairs that are alike: the number of each topic's set, numbered by their first topics."""
    if not len(topics):
        return np.zeros(0, dtype=np.int64)
    _, found = connected_components(sparse.csr_array(similarities(topics, topics, words) >= xi), directed=False)
    _, first, member = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[member]


# ---- Algorithm 4 -----------------------------------------------------------------------------------------------------


def composed(global_topics: Array, local_topics: Array, xi: float, words: int) -> tuple[Array, Array]:
    """Algorithm 4: replaces each local topic by the most similar global one, if their similarity is at least xi.

    Returns the topics, in the places of the local ones, and the global one in each place, or NOWHERE where the own one stayed.

    The printed pseudo-code leaves some choices open and can lose topics. Here a global topic is used once, and leaves the list
    only when it is used; as printed it also leaves where nothing was replaced. The most similar pair is taken first, since the
    numbers of topics mean nothing; of equally similar pairs the first local topic's, then the first global topic's. A topic
    without a similar one left stays. An empty topic has similarity 0 to all, so it is replaced only if xi is 0.
    """
    topics, wider = shares(local_topics), shares(global_topics)
    alike = similarities(topics, wider, words)
    own, theirs = np.nonzero(alike >= xi)
    order = np.argsort(-alike[own, theirs], kind="stable")  # stable: pairs are ordered by local topic, then by global
    taken = _dealt(own[order], theirs[order], *alike.shape)
    topics[taken != NOWHERE] = wider[taken[taken != NOWHERE]]
    return topics, taken


@njit(cache=True, nogil=True)
def _dealt(own: Array, theirs: Array, places: int, topics: int) -> Array:
    """Takes pairs in order: each place is filled once, and each topic is used once."""
    taken, given = np.full(places, NOWHERE), np.zeros(topics, dtype=np.bool_)
    for pair in range(len(own)):
        if taken[own[pair]] == NOWHERE and not given[theirs[pair]]:
            taken[own[pair]], given[theirs[pair]] = theirs[pair], True
    return taken


def shares(topics: Array) -> Array:
    """Rows that sum to one (iFTM's topic-wise normalisation); an empty row stays empty."""
    table = np.asarray(topics, dtype=np.float64)
    sums = table.sum(axis=1, keepdims=True)
    found: Array = np.divide(table, sums, out=np.zeros(table.shape), where=sums > 0)
    return found


def merged(counts: Array, most: int) -> Array:
    """The merged topic that each topic became part of, numbered by their first topics; an empty topic has NOWHERE.

    Each step merges the pair with the least loss until `most` topics are left: the squared Hellinger distance times
    m1 m2 / (m1 + m2), where m are their counts (Ward's method). So similar pairs are merged first, and of equally similar pairs
    the one with less data. Of equal losses the first pair is merged first.
    """
    table = np.asarray(counts, dtype=np.float64)
    filled = np.flatnonzero(table.sum(axis=1) > 0)
    member = _merged(np.ascontiguousarray(table[filled]), most)
    _, first, group = np.unique(member, return_index=True, return_inverse=True)
    found = np.full(len(table), NOWHERE, dtype=np.int64)
    found[filled] = np.argsort(np.argsort(first))[group]
    return found


def summed(rows: Array, member: Array) -> Array:
    """The sum of the rows of each merged topic."""
    total = np.zeros((int(member.max(initial=NOWHERE)) + 1, *rows.shape[1:]))
    np.add.at(total, member[member != NOWHERE], rows[member != NOWHERE])
    return total


@njit(cache=True, nogil=True)
def _merged(counts: Array, most: int) -> Array:
    """The first topic of each topic's set. Sums run in a fixed order, so every processor merges alike."""
    member, masses, roots = np.arange(len(counts)), np.zeros(len(counts)), np.zeros_like(counts)
    for z in range(len(counts)):
        masses[z] = _refreshed(counts[z], roots[z])
    losses = _all_losses(masses, roots)
    nearest = np.array([np.argmin(losses[z]) for z in range(len(counts))])
    for _ in range(len(counts) - most):
        best = _best(losses, nearest, member)
        one, other = min(best, nearest[best]), max(best, nearest[best])
        for w in range(counts.shape[1]):
            counts[one, w] += counts[other, w]
        for z in range(len(member)):
            if member[z] == other:
                member[z] = one
        masses[one] = _refreshed(counts[one], roots[one])
        for z in range(len(member)):
            losses[other, z] = losses[z, other] = np.inf
        _update_nearest(losses, nearest, member, masses, roots, one, other)
    return member


@njit(cache=True, nogil=True)
def _all_losses(masses: Array, roots: Array) -> Array:
    """The loss of merging every pair of different topics."""
    losses = np.full((len(masses), len(masses)), np.inf)
    for z in range(len(masses)):
        for y in range(z):
            losses[z, y] = losses[y, z] = _loss(masses, roots, z, y)
    return losses


@njit(cache=True, nogil=True)
def _refreshed(row: Array, roots: Array) -> float:
    """The total weight of a topic. Writes the square roots of its shares to `roots`."""
    mass = 0.0
    for w in range(len(row)):
        mass += row[w]
    for w in range(len(row)):
        roots[w] = np.sqrt(row[w] / mass)
    return mass


@njit(cache=True, nogil=True)
def _loss(masses: Array, roots: Array, one: int, other: int) -> float:
    """The loss of merging these two topics, never below 0."""
    alike = 0.0
    for w in range(roots.shape[1]):
        alike += roots[one, w] * roots[other, w]
    found: float = max(1.0 - alike, 0.0) * (masses[one] * masses[other] / (masses[one] + masses[other]))
    return found


@njit(cache=True, nogil=True)
def _best(losses: Array, nearest: Array, member: Array) -> int:
    """The first topic with the least loss of merging with its nearest one."""
    best = -1
    for z in range(len(nearest)):
        if member[z] == z and (best < 0 or losses[z, nearest[z]] < losses[best, nearest[best]]):
            best = z
    return best


@njit(cache=True, nogil=True)
def _update_nearest(losses: Array, nearest: Array, member: Array, masses: Array, roots: Array, one: int, other: int) -> None:
    """Updates losses and nearest topics after `other` became part of `one`. All pairs are searched only where the nearest topic
    was one of the two."""
    for z in range(len(member)):
        if z != one and member[z] == z:
            losses[one, z] = losses[z, one] = _loss(masses, roots, one, z)
    for z in range(len(member)):
        now = losses[z, nearest[z]]
        if z == one or nearest[z] == one or nearest[z] == other:
            nearest[z] = np.argmin(losses[z])
        elif losses[z, one] < now or (losses[z, one] == now and one < nearest[z]):
            nearest[z] = one


def _no_topics(whose: str, problem: str) -> Mistake:
    return Mistake(
        "the topics of {whose} cannot be matched: {problem}",
        hint="the party runs another version, or is not honest; leave it out or correct its software",
        whose=whose,
        problem=problem,
    )


N_TOPICS, ALL = "n_topics", "all"
_OWN = "composed/"  # in the coordinator's state, before the name of the party whose model it is
Merged = Annotated[str, one_of(N_TOPICS, ALL)]
Fixed = Annotated[
    str, Limit(lambda priors: priors == "fixed", "must be fixed in the matched form: nothing is asked to learn them from")
]
TopicsAt = Annotated[
    Mapping[str, int],
    Limit(
        lambda topics: all(isinstance(k, int) and 1 <= k <= MOST_TOPICS for k in topics.values()),
        f"must name parties with 1 to {MOST_TOPICS} topics",
    ),
]
_EVEN = 1e9  # alpha at a restart: so large that a document's other words do not matter
_FIRM = 1e12  # tokens of each topic at a restart: so many that earlier draws do not matter


@dataclass(frozen=True)
class Matched(LDA):
    """A model that counts, in iFTM's matched form.

    In a round each party restarts from the topics that were composed for it, draws its documents' topics anew `sweeps` times,
    given its own table alone, and sends that table. The coordinator merges similar topics into global ones, and gives each
    party the global topics that are similar to its own. There may be more global topics than a party has, or fewer. `merged`
    says which the shared model shows: all, as in the paper, or `n_topics` of them.
    """

    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20}
    federated_rounds: ClassVar[int] = 10
    party_models: ClassVar[bool] = True
    gains_topics: ClassVar[bool] = False

    form: Annotated[str, one_of("matched")] = "matched"
    sweeps: Count = 20
    xi: Annotated[float, within(0, 1)] = 0.4  # topics at least so alike are one
    top: Count = 100  # heaviest words by which topics are compared
    merged: Merged = N_TOPICS  # the shared model has `n_topics` topics; all: it has every topic that is found
    priors: Fixed = "fixed"
    topics_at: TopicsAt = field(default_factory=dict)  # parties with another number of topics than `n_topics`

    @property
    def most_topics(self) -> int:
        """The number of topics of the party with the most topics."""
        return max(self.n_topics, *self.topics_at.values(), 1)

    @property
    def most_shown_topics(self) -> int:
        return MOST_TOPICS if self.merged == ALL else self.n_topics

    def fits(self, state: State, words: int) -> bool:
        tables = {name: array for name, array in state.items() if name == "counts" or name.startswith(_OWN)}
        if "counts" not in tables or not all(t.ndim == 2 and 0 < len(t) <= MOST_TOPICS for t in tables.values()):
            return False
        like: dict[str, Any] = {name: ((len(table), words), np.float64) for name, table in tables.items()}
        like |= {"weights": ((len(tables["counts"]),), np.float64)}
        like |= {"step": ((1,), np.int64), "seed": ((1,), np.uint64), "found": ((1,), np.int64)}
        return {name: (array.shape, array.dtype) for name, array in state.items()} == like

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """A state without counts: the first draws of each document, from the seed, make topics differ."""
        return {
            "counts": np.zeros((self.n_topics, len(vocabulary))),
            "weights": np.zeros(self.n_topics),
            "found": np.zeros(1, dtype=np.int64),
            "step": np.zeros(1, dtype=np.int64),
            "seed": rng.integers(0, 2**64, 1, dtype=np.uint64),
        }

    def started(self, vocabulary: Sequence[str], public: Public, rng: np.random.Generator) -> State:
        """Each party begins with the public topics. No answer has noise, so nothing else of them is kept."""
        return {**self.start(vocabulary, rng), "counts": public.counts(1.0), "weights": np.ones(self.n_topics)}

    def going_on(self, earlier: State, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """The global topics, from which the parties restart. No prior holds them: each round composes topics anew."""
        return TopicModel.going_on(self, earlier, vocabulary, rng)

    def query(self, state: State) -> Question:
        """One party is asked for its own topics after training from the state that it was shown."""
        return Question(self, self.for_party(state, ""))

    def terms(self, state: State) -> Terms:
        """One row per topic of this party. Nothing bounds what one document may change in it."""
        most, words = state["counts"].shape
        return Terms((Block("topics", (most, words + 1)),), needs=Needs.EACH, ragged=True, unit=Unit.PARTY)

    def answer(self, state: State, documents: Any, clipped_sum: ClippedSum, memory: Memory) -> None:
        """Adds the party's table, and in the last column its amount of data. Draws use public noise."""
        start = self.table(state)
        held = self.read(documents, start.words)
        counts = self.trained(start, held, held.names(documents.keys))
        slots = documents.counts.sum() if documents.perturbed is None else len(documents.perturbed)  # whose number is public
        amount = np.full((len(counts), 1), float(slots))
        clipped_sum.add(np.hstack([counts, amount]).astype(np.float32), np.arange(len(counts)))

    def update(self, state: State, answer: Answer) -> State:
        """Algorithm 5, lines 6 to 9: topics are integrated, and a new local model is composed for each party that answered."""
        after = {**state, "step": state["step"] + 1}
        each = answer.each or ({} if not answer.total else {"": answer.total})  # one machine is one party
        tables = {name: np.maximum(blocks["topics"], 0.0) for name, blocks in each.items()}
        local = {name: shares(table[:, :-1]) for name, table in tables.items()}
        amounts = {name: float(table[:, -1].max(initial=0.0)) for name, table in tables.items()}
        if not local or not len((found := integrated(local, amounts, self.xi, self.top)).topics):
            return after
        each_topic, masses = {}, np.zeros(len(found.topics))
        for name, went in found.went.items():
            if len(merged_into := went[went != NOWHERE]):
                each_topic[name] = amounts[name] / len(merged_into)
                np.add.at(masses, merged_into, each_topic[name])
        for name, amount in each_topic.items():
            own, taken = composed(found.topics, local[name], self.xi, self.top)
            after[_OWN + name] = own * np.where(taken == NOWHERE, amount, masses[taken])[:, None]  # each as many as its data
        counts, weights = found.topics * masses[:, None], found.weights
        if self.merged == N_TOPICS:
            if len(counts) < self.n_topics:  # fewer were found, so the parties' own topics are merged to that number
                names = sorted(each_topic)
                counts = np.concatenate([local[name] * each_topic[name] for name in names])
                weights = np.concatenate([np.full(len(local[name]), each_topic[name]) for name in names])
            member = merged(counts, self.n_topics)
            counts, weights = summed(counts, member), summed(weights, member)
        return {**after, "counts": counts, "weights": weights, "found": np.full(1, len(found.topics), dtype=np.int64)}

    def _predicting(self, state: State) -> tuple[Array, Array]:
        """Words x topics and topics' sizes as the table says: parties may have noised their words, and it does not tell."""
        return self.by_word(state), self.smoothed(state).sum(axis=1)

    def findings(self, state: State) -> Mapping[str, Any]:
        """The number of different topics that were found, and the number that was asked for."""
        return {"matched": {"found": int(state["found"][0]), "asked": self.n_topics, "merged": self.merged}}

    def for_party(self, state: State, party: str) -> State:
        """The local model composed for that party. A party without one gets the global topics with the most data."""
        if "held" in state:
            return dict(state)
        held = self.topics_at.get(party, self.n_topics)
        own = state.get(_OWN + party, state.get(_OWN))
        if own is None:
            own = state["counts"][np.argsort(-state["weights"], kind="stable")[:held]]
        counts = np.zeros((self.most_topics, own.shape[1]))
        counts[: len(own)] = own
        kept = {name: state[name] for name in ("step", "seed")}
        return {"counts": counts, "held": np.full(1, max(held, len(own)), dtype=np.int64), **kept}

    def shared(self, state: State) -> State:
        """The global topics, without any party's own model."""
        return {name: array for name, array in state.items() if not name.startswith(_OWN)}

    def table(self, state: State) -> CountTable:
        """A party's own topics, or the global ones, as counts. They are clamped: the coordinator may be malicious."""
        held = min(max(int(state["held"][0]), 1), self.most_topics) if "held" in state else len(state["counts"])
        counts = bounded(state["counts"][:held])
        return CountTable(counts, np.full(held, self.alpha), self.eta, int(state["step"][0]), int(state["seed"][0]))

    def trained(self, start: CountTable, held: SampledDocuments, names: Array) -> Array:
        """Algorithm 1 from line 8: this party's table after a restart and `sweeps` local iterations."""
        step = start.step * (self.sweeps + 1)
        old = Assignments(names, np.full(len(held), step), held.draw_ends, self._restarted(start, held, names, step))
        for _ in range(self.sweeps):
            step += 1
            table = CountTable(held.counted(old.topics, start), start.alpha, start.eta, step, start.seed)
            topics = held.redrawn(table, old, 1, self.threads)
            old = Assignments(names, np.full(len(held), step), held.draw_ends, topics)
        return held.counted(old.topics, start)

    def _restarted(self, start: CountTable, held: SampledDocuments, names: Array, step: int) -> Array:
        """A first topic of every draw, by the probability of its words under the composed model; in the first round uniform."""
        filled = np.flatnonzero(start.counts.sum(axis=1) > 0)
        firm = shares(start.counts[filled]) * _FIRM
        if not len(filled):
            filled, firm = np.arange(start.topics), np.full(start.counts.shape, _FIRM / max(start.words, 1))
        unknown = Assignments.remembered({}).recall(held.draw_ends, names)
        table = CountTable(firm, np.full(len(filled), _EVEN), start.eta, step, start.seed)
        return filled.astype(np.uint16)[held.redrawn(table, unknown, 1, self.threads)]


@dataclass(frozen=True)
class MatchedLDA(Matched):
    """LDA in the matched form."""

    name: ClassVar[str] = "lda-matched"


@dataclass(frozen=True)
class MatchedSentenceLDA(Matched, SentenceLDA):
    """SentenceLDA in the matched form."""

    name: ClassVar[str] = "sentence-lda-matched"

    alpha: Smoothing = SentenceLDA.alpha  # of two parents, a dataclass takes the first one's defaults
    eta: Smoothing = SentenceLDA.eta
