"""The smallest honest noise on words: drawn once from a kept secret, in place of each document's counts. For tests only."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from securetm.contracts import Claim, Cohort, Desk, Mechanism, Noised, Terms, Unit
from securetm.mechanisms.noising import PRIVATE
from securetm.models.estimator import BagOfWords

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class ToyWordNoise(Mechanism):
    """Rounded Laplace noise on every count of every document; the draw is named by the documents it is for."""

    epsilon: float = 8.0
    threshold: float = 0.2
    distribution: str = "discrete"

    @property
    def once(self) -> bool:
        return True

    def remembers(self, documents: Any, terms: Terms, desk: Desk) -> bool:
        assert desk.lasting is not None
        return desk.lasting.get(self._name(documents)) is not None

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        others = len(cohort.members) - 1
        helpers = {"coordinator": others, "model reader": others, "party": others - 1}
        return frozenset(Claim(PRIVATE, who, n, Unit.WORD) for who, n in helpers.items())

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        return replace(terms, noised=Noised.WHOLE, unit=Unit.WORD, deviation=1.0)

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:
        from dp_accounting.dp_event import DiscreteLaplaceDpEvent

        return DiscreteLaplaceDpEvent(self.epsilon, 1)

    def on_documents(self, documents: Any, terms: Terms, desk: Desk) -> Any:
        assert desk.lasting is not None
        name = self._name(documents)
        if (secret := desk.lasting.get(name)) is None:
            secret = desk.entropy.bytes(32)
            desk.lasting.put(name, secret)
        rng = np.random.default_rng(np.frombuffer(secret, np.uint32))
        counts = documents.counts.toarray() + np.rint(rng.laplace(0, 1 / self.epsilon, documents.counts.shape))
        kept = sparse.csr_array(np.where(counts > self.threshold, counts, 0).astype(np.int32))
        return BagOfWords(kept, documents.vocabulary, documents.keys)

    def _name(self, documents: Any) -> str:
        whole = hashlib.sha256("\n".join(documents.vocabulary).encode())
        for part in (documents.keys, documents.counts.indptr, documents.counts.indices, documents.counts.data):
            whole.update(np.ascontiguousarray(part).data)
        return f"toy {self.epsilon} {whole.hexdigest()}"
