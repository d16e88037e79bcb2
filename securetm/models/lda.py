"""Latent Dirichlet allocation: every token of a document has a topic of its own.

It is not a federation and knows no privacy; what it asks of documents it asks through a query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from securetm.models.counting import Counting
from securetm.models.draws import Held
from securetm.models.lda_documents import Bags


@dataclass(frozen=True)
class LDA(Counting):
    """LDA by Gibbs sampling; in a federation all parties draw from one shared table of counts."""

    name: ClassVar[str] = "lda"

    def read(self, documents: Any, words: int) -> Held:
        """Each document's words and counts; every token is a draw."""
        return Bags.of(documents.counts, words)
