"""Perplexity of n-grams adapted by topics that were learned together: iFTM's section 4.5 without speech.

The paper's word error rates need recordings and a recogniser; they are out of scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from lab.federations import FederationForm, begun
from lab.measuring import OnProgress, Row, told
from lab.peers.ngrams import ELSEWHERE, LAMBDA, NGrams, adapted, topical
from lab.research_corpora import by_subject, read_newsgroups
from securetm.contracts import Array, State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.corpus.tokeniser import Tokeniser, prune
from securetm.federation.simulation.simulation import train
from securetm.models.quality import perplexity
from securetm.plans.profiles import make_model
from securetm.stages import Unwatched

SENTENCE = 20  # words: this corpus came without punctuation, so a sentence is as many words as a sentence has
REACH = 200  # words of the document that its topics are told from
EPOCHS = 60  # of a party by itself
# More alike than usual: in text with all its small words any two topics share these.
MATCHED = {"form": "matched", "sweeps": 20, "xi": 0.6}
ALIGNED, BY_TOPIC = FederationForm("aligned", "open", {"sweeps": 5}, 24), FederationForm("matched", "open", MATCHED, 6)
NOISED = FederationForm("matched, epsilon 8 per word occurrence", "iftm", MATCHED, 6)
Forms = Mapping[str, Sequence[FederationForm]]  # by model
FORMS: Forms = {"lda": (ALIGNED, BY_TOPIC, NOISED), "sentence-lda": (ALIGNED, BY_TOPIC)}


def reproduce(
    documents: int = 3_000, words: int = 10_000, topics: int = 20, on_progress: OnProgress | None = None
) -> Row:  # fmt: skip
    """One n-gram model of all text beside every topic model, as in the paper's Table 2; then each party's own n-grams."""
    return compared(PerplexityStudy(documents, words, topics), FORMS, on_progress)


def compared(study: PerplexityStudy, forms: Forms, on_progress: OnProgress | None = None) -> Row:
    sources = list(study.sources(forms))
    chances = {title: study.by_topics(*make()) for title, make in told(sources, on_progress)}
    facts = {"documents": len(study.raw), "words": len(study.words), "topics": study.topics, "lambda": LAMBDA, "order": 3}
    parties = {name: len(part) for name, part in study.parties.items()}
    rows = [*study.with_all_text(chances), *study.with_own_text(chances, tuple(forms))]
    return {"reproduction": "adapted-ngrams", **facts, "parties": parties, "rows": rows, "out_of_scope": "word error rate"}


@dataclass(frozen=True)
class RunningText:
    """Running text in the numbers of the n-gram model; the last number is any word that it does not know."""

    tokens: Array
    ends: Array  # of documents

    @property
    def cuts(self) -> Array:
        """Ends of sentences, as far as this corpus has any: its documents are cut into runs of words."""
        return np.unique(np.concatenate([np.arange(SENTENCE, len(self.tokens) + 1, SENTENCE), self.ends]))


@dataclass
class PerplexityStudy:
    """The documents, their parties, and what each model says of them."""

    documents: int
    most_words: int
    topics: int

    @cached_property
    def raw(self) -> Corpus:
        """Every so-many-th document with all its words: an n-gram model needs the small ones too."""
        whole = read_newsgroups(Tokeniser(stop_words="none", min_length=1))
        return whole.select(np.arange(0, len(whole), max(len(whole) // self.documents, 1)))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words that models know."""
        return tuple(sorted(prune(self.raw, max_words=self.most_words)))

    @cached_property
    def parties(self) -> dict[str, Corpus]:
        """Five parties, each with the groups of one subject."""
        return by_subject(self.raw)

    @cached_property
    def learned_from(self) -> dict[str, Corpus]:
        """What each party learns from: four fifths of its documents."""
        return {name: part.split(0.8, 0)[0] for name, part in self.parties.items()}

    @cached_property
    def judged_on(self) -> dict[str, RunningText]:
        """The rest of each party's documents."""
        return {name: self.text(part.split(0.8, 0)[1]) for name, part in self.parties.items()}

    def text(self, corpus: Corpus) -> RunningText:
        place = {word: number for number, word in enumerate(self.words)}
        numbers = np.array([place.get(word, len(self.words)) for word in corpus.vocabulary], dtype=np.int64)
        return RunningText(numbers[corpus.tokens], np.asarray(corpus.token_ends, dtype=np.int64))

    # ---- topic models ----

    def sources(self, forms: Forms) -> Iterator[tuple[str, Callable[[], tuple[TopicModel, State]]]]:
        """Every topic model that is tried, and how it is trained."""
        for model in forms:
            for party in self.parties:
                yield f"{model} of {party}", partial(self._alone, model, party)
            for form in forms[model]:
                yield f"{model}, {form.title}", partial(self._together, model, form)

    def _settings(self, model: str) -> dict[str, Any]:
        return {"n_topics": self.topics, **({"longest": SENTENCE} if model == "sentence-lda" else {})}

    def _alone(self, model: str, party: str) -> tuple[TopicModel, State]:
        made: Any = make_model(model, self._settings(model))
        made.fit(self.learned_from[party].project(self.words), epochs=EPOCHS)
        return made, made.learned.state

    def _together(self, model: str, form: FederationForm) -> tuple[TopicModel, State]:
        settings = {"name": model, **self._settings(model)}
        with begun(self.learned_from, self.words, form.tables(settings, held_out=0.01)) as run:
            return run.agreement.model, train(run, Unwatched()).state

    def by_topics(self, model: TopicModel, state: State) -> dict[str, Array]:
        """Equation 30 for each word of each party's text."""
        known = {name: np.where(text.tokens < len(self.words), text.tokens, ELSEWHERE) for name, text in self.judged_on.items()}
        return {n: topical(model, state, known[n], text.ends, text.cuts, REACH) for n, text in self.judged_on.items()}

    # ---- n-grams beside them ----

    def with_all_text(self, chances: Mapping[str, Mapping[str, Array]]) -> list[Row]:
        """Everybody's documents, by one n-gram model of everybody's text and each topic model."""
        ngrams = self._by_ngrams([*self.parties])
        tried = {"none": None, **chances}
        return _beside([self._row("all text", title, [self._logs(ngrams, found)]) for title, found in tried.items()])

    def with_own_text(self, chances: Mapping[str, Mapping[str, Array]], models: Sequence[str]) -> list[Row]:
        """The same by each party's own n-grams, which no party can share, with its own topics or the shared ones."""
        shared = {title: dict.fromkeys(self.parties, found) for title, found in chances.items() if " of " not in title}
        own = {f"its own {model}": {name: chances[f"{model} of {name}"] for name in self.parties} for model in models}
        tried: dict[str, Mapping[str, Any]] = {"none": dict.fromkeys(self.parties), **own, **shared}
        ngrams = {name: self._by_ngrams([name]) for name in self.parties}
        logs = {title: [self._logs(ngrams[n], found[n], n) for n in self.parties] for title, found in tried.items()}
        return _beside([self._row("its own text", title, found) for title, found in logs.items()])

    def _by_ngrams(self, parties: Sequence[str]) -> dict[str, Array]:
        texts = [self.text(self.learned_from[name]) for name in parties]
        before = np.cumsum([0, *(len(text.tokens) for text in texts)])
        ends = np.concatenate([text.ends + start for text, start in zip(texts, before, strict=False)])
        model = NGrams.from_tokens(np.concatenate([text.tokens for text in texts]), ends, len(self.words) + 1)
        return {name: model.chances(text.tokens, text.ends) for name, text in self.judged_on.items()}

    def _logs(self, ngrams: Mapping[str, Array], topics: Mapping[str, Array] | None, own: str = "") -> tuple[Array, Array]:
        """Logarithms of the chances of the known words: of all parties' text, and of its own."""
        logs = {}
        for name, text in self.judged_on.items():
            mixed = ngrams[name] if topics is None else adapted(topics[name], ngrams[name])
            logs[name] = np.log(mixed[text.tokens < len(self.words)])
        return np.concatenate([*logs.values()]), logs.get(own, np.zeros(0))

    def _row(self, ngrams: str, topics: str, found: Sequence[tuple[Array, Array]]) -> Row:
        row = {"ngrams_of": ngrams, "topics": topics, "everybody": _perplexity([every for every, _ in found])}
        return {**row, **({"on_own_documents": _perplexity([own for _, own in found])} if len(found) > 1 else {})}


def _beside(rows: list[Row]) -> list[Row]:
    """By how many per cent each perplexity is lower than without topics."""
    for row in rows:
        row["percent_lower"] = round(100 * (1 - row["everybody"] / rows[0]["everybody"]), 2)
    return rows


def _perplexity(logs: Sequence[Array]) -> float:
    """Over several parties, as many words of each."""
    return round(perplexity(float(np.mean([one.mean() for one in logs])), 1), 2)
