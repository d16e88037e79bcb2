"""A finished run, opened to read: its topics, and the topics of new documents. It changes nothing in the folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from securetm.contracts import Array, State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.corpus.readers import read_corpus
from securetm.errors import NotARun
from securetm.federation.folder import reopen
from securetm.federation.simulation import named_topics
from securetm.federation.store import read_arrays
from securetm.plans import Plan


@dataclass(frozen=True)
class FinishedRun:
    """What a run ended with: the shared model and its words."""

    name: str
    plan: Plan
    model: TopicModel
    state: State
    vocabulary: tuple[str, ...]

    @classmethod
    def open(cls, path: Path) -> Self:
        """The run in this folder, if it came to its end."""
        folder = reopen(path)
        if not folder.model.is_file():
            raise NotARun(str(path), "finished model")
        words = (folder.coordinator / "vocabulary.txt").read_text("utf-8").split("\n")
        state = read_arrays(folder.model, bare=True)[0]
        return cls(folder.path.name, folder.plan, folder.plan.make_model(), state, tuple(words))

    @property
    def model_name(self) -> str:
        """Which topic model it is."""
        return self.plan.model.name

    def topics(self, words: int) -> list[list[str]]:
        """The heaviest words of each topic."""
        return named_topics(self.model.topics(self.state), self.vocabulary, words)

    def read(self, file: Path, text: str | None) -> Corpus:
        """New documents over the words of this run, also those without any of them."""
        return read_corpus(file, text=text, tokeniser=self.plan.tokeniser.make(), keep_empty=True).project(self.vocabulary)

    def transform(self, documents: Corpus) -> Array:
        """Topic shares, a row for every document; one without a known word gets the model's answer to nothing."""
        return np.asarray(self.model.infer(self.state, documents))
