"""iFTM's matched form of the models that count: parties train topics of their own, which a coordinator matches and gives back.

It is no sum over documents: it needs each party's own table of topics (Algorithms 3 to 5), so no secure sum admits it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import Answer, Array, Block, ClippedSum, Memory, Needs, Public, State, Terms, TopicModel, Unit
from securetm.errors import check_setting
from securetm.models.lda.counted_topics import MOST_TOPICS
from securetm.models.lda.counting import Assignments, CountTable, SampledDocuments, bounded
from securetm.models.lda.lda import LDA
from securetm.models.lda.matching import NOWHERE, composed, integrated, merged, shares, summed
from securetm.models.lda.sentence_lda import SentenceLDA

N_TOPICS, ALL = "n_topics", "all"
_OWN = "composed/"  # in the coordinator's state, before the name of the party whose model it is
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

    form: str = "matched"
    sweeps: int = 20
    xi: float = 0.4  # topics at least so alike are one
    top: int = 100  # heaviest words by which topics are compared
    merged: str = N_TOPICS  # the shared model has `n_topics` topics; all: it has every topic that is found
    topics_at: Mapping[str, int] = field(default_factory=dict)  # parties with another number of topics than `n_topics`

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "form", self.form == "matched", "must be matched here")
        check_setting(self, "xi", 0 <= self.xi <= 1, "must be a similarity, 0 to 1")
        check_setting(self, "top", self.top >= 1, "must be at least 1")
        check_setting(self, "merged", self.merged in (N_TOPICS, ALL), f"is neither {N_TOPICS} nor {ALL}")
        check_setting(
            self, "priors", self.priors == "fixed", "must be fixed in the matched form: nothing is asked to learn them from"
        )
        fine = all(isinstance(k, int) and 1 <= k <= MOST_TOPICS for k in self.topics_at.values())
        check_setting(self, "topics_at", fine, f"must name parties with 1 to {MOST_TOPICS} topics")

    @property
    def most_topics(self) -> int:
        """The number of topics of the party with the most topics."""
        return max(self.n_topics, *self.topics_at.values(), 1)

    @property
    def most_shown_topics(self) -> int:
        """The most topics of the shared model: those of all parties together, unless they are merged."""
        return MOST_TOPICS if self.merged == ALL else self.n_topics

    def fits(self, state: State, words: int) -> bool:
        """Whether a state, which may come from a file, has a form that this model can have over so many words."""
        tables = {name: array for name, array in state.items() if name == "counts" or name.startswith(_OWN)}
        if "counts" not in tables or not all(t.ndim == 2 and 0 < len(t) <= MOST_TOPICS for t in tables.values()):
            return False
        like: dict[str, Any] = {name: ((len(table), words), np.float64) for name, table in tables.items()}
        like |= {"weights": ((len(tables["counts"]),), np.float64)}
        like |= {"step": ((1,), np.int64), "seed": ((1,), np.uint64), "found": ((1,), np.int64)}
        return {name: (array.shape, array.dtype) for name, array in state.items()} == like

    # ---- contracts.TopicModel ----

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

    def query(self, state: State) -> TopicsQuery:  # type: ignore[override]  # it asks another question
        """The next question to one party: its own topics after training from the state that it was shown."""
        return TopicsQuery(self, self.for_party(state, ""))

    def update(self, state: State, answer: Answer) -> State:
        """Algorithm 5, lines 6 to 9: topics are integrated, and a new local model is composed for each party that answered."""
        after = {**state, "step": state["step"] + 1}
        each = answer.each or ({} if not answer.total else {"": answer.total})  # one machine is one party
        tables = {name: np.maximum(blocks["topics"], 0.0) for name, blocks in each.items()}
        local = {name: shares(table[:, :-1]) for name, table in tables.items()}
        amounts = {name: float(table[:, -1].max(initial=0.0)) for name, table in tables.items()}
        found = integrated(local, amounts, self.xi, self.top)
        if not len(found.topics):
            return after
        each_topic, masses = {}, np.zeros(len(found.topics))
        for name, went in found.went.items():
            if len(merged_into := went[went != NOWHERE]):
                each_topic[name] = amounts[name] / len(merged_into)
                np.add.at(masses, merged_into, each_topic[name])
        for name, amount in each_topic.items():
            after[_OWN + name] = self._composed(found.topics, masses, local[name], amount)
        counts, weights = found.topics * masses[:, None], found.weights
        if self.merged == N_TOPICS:
            counts, weights = self._as_asked(counts, weights, local, each_topic)
        return {**after, "counts": counts, "weights": weights, "found": np.full(1, len(found.topics), dtype=np.int64)}

    def _predicting(self, state: State) -> tuple[Array, Array]:
        """Words x topics and topics' sizes as the table says: parties may have noised their words, and it does not tell."""
        return self.by_word(state), self.smoothed(state).sum(axis=1)

    def _as_asked(
        self, counts: Array, weights: Array, local: Mapping[str, Array], each_topic: Mapping[str, float]
    ) -> tuple[Array, Array]:
        """The found topics merged to `n_topics`; where fewer were found, the parties' own topics are merged to that number."""
        if len(counts) < self.n_topics:
            names = sorted(each_topic)
            counts = np.concatenate([local[name] * each_topic[name] for name in names])
            weights = np.concatenate([np.full(len(local[name]), each_topic[name]) for name in names])
        member = merged(counts, self.n_topics)
        return summed(counts, member), summed(weights, member)

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

    # ---- training at a party ----

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
        topics: Array = filled.astype(np.uint16)[held.redrawn(table, unknown, 1, self.threads)]
        return topics

    def _composed(self, topics: Array, masses: Array, local: Array, amount: float) -> Array:
        """A party's new model as counts: each topic has as many counts as there is data for it."""
        found = composed(topics, local, self.xi, self.top)
        own = np.full(len(local), amount)
        taken = found.taken != NOWHERE
        own[taken] = masses[found.taken[taken]]
        counts: Array = found.topics * own[:, None]
        return counts


@dataclass(frozen=True)
class TopicsQuery:
    """Asks one party for its own topics: the counts of words in each, and in the last column the party's amount of data."""

    model: Matched
    state: State

    @property
    def terms(self) -> Terms:
        """One row per topic of this party. Nothing bounds what one document may change in it."""
        most, words = self.state["counts"].shape
        return Terms((Block("topics", (most, words + 1)),), needs=Needs.EACH, ragged=True, unit=Unit.PARTY)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Adds the party's table. Draws use public noise. Each round restarts from the composed model."""
        start = self.model.table(self.state)
        held = self.model.read(documents, start.words)
        counts = self.model.trained(start, held, held.names(documents.keys))
        amount = np.full((len(counts), 1), float(amount_of(documents)))
        clipped_sum.add(np.hstack([counts, amount]).astype(np.float32), np.arange(len(counts)))


def amount_of(documents: Any) -> int:
    """The number of token slots. Where noise replaces the words, lengths are public."""
    if documents.perturbed is not None:
        return len(documents.perturbed)
    return int(documents.counts.sum())


@dataclass(frozen=True)
class MatchedLDA(Matched):
    """LDA in the matched form."""

    name: ClassVar[str] = "lda-matched"


@dataclass(frozen=True)
class MatchedSentenceLDA(Matched, SentenceLDA):
    """SentenceLDA in the matched form."""

    name: ClassVar[str] = "sentence-lda-matched"

    alpha: float = SentenceLDA.alpha  # of two parents, a dataclass takes the first one's defaults
    eta: float = SentenceLDA.eta
