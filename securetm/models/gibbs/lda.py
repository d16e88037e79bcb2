"""Latent Dirichlet allocation: every token of a document has a topic of its own.

It is not a federation and knows no privacy. It learns from documents through a query only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from securetm.contracts import Answer, Block, State, Terms
from securetm.errors import check_setting
from securetm.models import priors
from securetm.models.gibbs.counting import Counting, CountsQuery
from securetm.models.gibbs.draws import Assignments, CountTable, SampledDocuments
from securetm.models.gibbs.lda_documents import LdaDocuments
from securetm.models.gibbs.slots import Slots

SAMPLERS = ("auto", "gibbs", "mh")
PRIORS = ("fixed", "symmetric", "learned")
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

    sampler: str = "auto"  # gibbs, or mh: both draw from the same distribution; auto: whichever learns faster
    cycles: int = 1  # of mh: pairs of proposals for a token in a sweep
    priors: str = "fixed"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "sampler", self.sampler in SAMPLERS, f"must be one of {', '.join(SAMPLERS)}")
        check_setting(self, "priors", self.priors in PRIORS, f"must be one of {', '.join(PRIORS)}")
        check_setting(self, "cycles", self.cycles >= 1, "must be at least 1")

    def read(self, documents: Any, words: int) -> SampledDocuments:
        """Each document's words and counts; every token is a draw. Behind noise, every slot is."""
        if documents.perturbed is not None:
            return Slots.of(documents, words, by_sentence=False)
        return replace(LdaDocuments.of(documents.counts, words), cycles=self.cycles_from(_FEW_TOPICS))

    def cycles_from(self, few_topics: int) -> int:
        """The pairs of proposals for a token in a sweep; 0 where it is drawn by Gibbs, as `auto` does for few topics."""
        by_proposals = self.sampler == "mh" or (self.sampler == "auto" and self.n_topics > few_topics)
        return self.cycles if by_proposals else 0

    def query(self, state: State) -> CountsQuery:
        """How often each word has each topic; where priors are learned, also the numbers they are learned from."""
        return super().query(state) if self.priors == "fixed" else LearningQuery(self, state)

    def update(self, state: State, answer: Answer) -> State:
        """The state after one sum: its counts, and the learned priors."""
        after = super().update(state, answer)
        if self.priors == "fixed" or not answer.total or not priors.settled(int(state["step"][0])):
            return after
        tables = np.asarray(answer.total[priors.BLOCK], dtype=np.float64)
        alpha = priors.learned_alpha(tables, self.table(state).alpha, self.alpha, self.priors == "symmetric")
        eta = priors.learned_eta(after["counts"], self.table(state).eta, self.eta)
        return {**after, "alpha": alpha, "eta": np.full(1, eta)}


class LearningQuery(CountsQuery):
    """Asks for the same counts and for the numbers that priors are learned from."""

    @property
    def terms(self) -> Terms:
        """The row of `CountsQuery`; beside it the number of each topic's tables, at most one per word, and the document's."""
        counts = super().terms
        return replace(counts, layout=(*counts.layout, Block(priors.BLOCK, (self.model.n_topics + 1,))))

    def beside(self, held: SampledDocuments, fresh: Assignments, table: CountTable, documents: Any) -> Any:
        """The tables of the counted topics. Where noise replaced the words, all documents give one row."""
        found = priors.tables_of_documents(fresh.topics, held.draw_ends, fresh.names, table.alpha, table.seed, table.step)
        return found if documents.perturbed is None else sparse.csr_array(found.sum(axis=0)[None])
