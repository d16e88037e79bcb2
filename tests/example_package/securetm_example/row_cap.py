"""A bound on how much one document may add: rows are scaled down to an l1 norm. It adds no noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from securetm.contracts import INF, Cohort, Domain, Mechanism, Noised, Rows, Terms
from securetm.errors import BadSetting


@dataclass(frozen=True)
class RowCap(Mechanism):
    """Real rows with an l1 norm of at most `most`; that is the sensitivity of the sum. Whole numbers stay as they are."""

    most: float

    def __post_init__(self) -> None:
        if not 0 < self.most < INF:
            raise BadSetting("RowCap", "most", str(self.most), "must be above 0 and finite")

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        if not self._bounds(terms):
            return terms
        bound = min(terms.l1, self.most)
        return replace(terms, l1=bound, l2=min(terms.l2, bound), linf=min(terms.linf, bound))

    def on_rows(self, rows: Rows, terms: Terms) -> Rows:
        if not self._bounds(terms):
            return rows
        norms = np.asarray(abs(rows).sum(axis=1), dtype=float).ravel()
        scale = np.minimum(1.0, self.most / np.maximum(norms, 1e-300))
        return sparse.csr_array(rows.multiply(scale[:, None])) if sparse.issparse(rows) else rows * scale[:, None]

    def _bounds(self, terms: Terms) -> bool:
        return terms.domain is Domain.REAL and terms.noised is Noised.NOT and not terms.ragged
