"""Documents of which it is not known where their sentences end."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.tree import Misuse


@dataclass(eq=False)
class NoSentences(Misuse):
    """the documents are counts of words: where their sentences end is not known"""

    hint = (
        "read them from texts (Corpus.from_strings, read_corpus), or give tokens with sentence_ends; for bare counts take LDA"
    )
