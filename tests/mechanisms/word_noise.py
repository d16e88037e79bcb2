"""Four small documents, and memories that their noise is drawn from. It tests nothing itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from securetm.contracts import RoundContext
from securetm.corpus.corpus import Corpus
from securetm.testing.few_documents import EmptyStore
from securetm.testing.mechanism_laws import context, integer_terms

ASKED = integer_terms()
SECRET = bytes(range(32))


def documents(words: int = 40, seed: int = 0) -> Corpus:
    """Four documents in reading order, the second of them empty."""
    rng, ends = np.random.default_rng(seed), np.array([3, 3, 10, 50])
    tokens = rng.integers(0, words, 50).astype(np.int32)
    listed = [f"word{w}" for w in range(words)]
    return Corpus.from_tokens(tokens, ends, listed, sentence_ends=np.array([2, 3, 5, 10, 30, 50]), name="four")


def shelf(secret: bytes | None = None) -> EmptyStore:
    return EmptyStore({}) if secret is None else Fixed({}, secret)


class Fixed(EmptyStore):
    """A memory in which every secret was drawn before, and is the same."""

    def __init__(self, kept: dict[str, bytes], secret: bytes) -> None:
        super().__init__(kept)
        self.secret = secret

    def get(self, key: str) -> bytes | None:
        return self.secret


def lasting(kept: Any = None) -> RoundContext:
    return replace(context(), lasting=EmptyStore({}) if kept is None else kept)
