"""Reads a finished run, or a model from a file: its topics, and the topics of new documents. It changes no file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from securetm.contracts import Array, State, TopicModel
from securetm.contracts.origin import Origin
from securetm.corpus.corpus import Corpus
from securetm.corpus.dates import all_periods, periods_of
from securetm.corpus.readers import read_corpus
from securetm.corpus.tokeniser import Tokeniser
from securetm.data_classes import dataclass, field
from securetm.data_frames import library
from securetm.errors import BadSetting, Failed, Mistake, Misuse, NotFound
from securetm.federation.folder import RESULT, RUN, ChangedFile, NotARun, check, reopen, result_of
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.party.result import REPORT
from securetm.federation.release import MODEL, released_model
from securetm.federation.simulation.simulation import documents_of
from securetm.federation.sources import embed_of
from securetm.federation.store import DamagedStore, read_json
from securetm.federation.topic_labels import TopicLabels
from securetm.foreign_text import html_text, printable
from securetm.models import MODELS
from securetm.models.fixed_order import product_transposed
from securetm.models.given_documents import over, warn_of_left_out, warn_of_unknown, words_of
from securetm.models.noisy_counts import top_words_above_noise
from securetm.models.public_knowledge import clusters, of_length_one
from securetm.models.quality import named_topics
from securetm.models.semantic import SemanticTopics
from securetm.models.stored_model import StoredModel, check_plan_of, write_model
from securetm.plans.profiles import model_class
from securetm.plans.schema import Plan, decode
from securetm.private_files import check_private
from securetm.quality.judged_topics import JudgedTopics
from securetm.settings import require
from securetm.stages import Stages, Unwatched


class SeveralRuns(Misuse):
    """{path} is no run: it is a folder of runs, such as {first}"""

    path: str
    first: str
    hint = "give one of them: {first}"


class NoFigures(Misuse):
    """{path} holds a model, and no figures of the parties: {what}"""

    path: str
    what: str
    hint = "give the folder that `securetm run` wrote, which has the figures of all parties"


_BAR, _PALEST = 80, 0.35  # in a notebook: pixels of the longest bar, and how dark the palest word is
_ALIKE, _MOST_ALIKE = 0.75, 5  # the common weight of topics that say the same, and how many such pairs are told


def load(path: str | Path) -> LearnedModel:
    """Reads the model of a finished run (its folder, or the file in it), or a model that `save` wrote.

    A file that is no such model, is damaged, or is of a later version is refused by name.
    """
    place = Path(path)
    if place.is_dir():
        if any((place / record).is_file() for record in (RUN, REPORT)) or not (place / MODEL).is_file():
            return FinishedRun.open(place)
        place = place / MODEL  # what was released of a run, without the run
    if not place.exists():
        raise NotFound("run or model file", str(place), ("the folder of a run, and release/model.safetensors in it",))
    stored = StoredModel.open(place)
    return LearnedModel(place.name, *_read(stored), stored.tokeniser, stored.origin)


def model_of(path: Path) -> Path:
    """Returns the file of the model in a folder: what was released of a run, or an adapted model, which may not leave."""
    released = released_model(path)
    return released if released.is_file() else path / MODEL


def _read(stored: StoredModel, plan: Plan | None = None) -> tuple[Any, State, tuple[str, ...]]:
    def kind_of(name: str) -> type[Any]:
        kind = model_class(name)
        if kind is None:
            raise Failed(
                "{path} holds a model called {found!r}, which this securetm does not have",
                hint="load it with the securetm that wrote it, or a newer one; this one has {known}",
                path=str(stored.path),
                found=name,
                known=MODELS.names(),
            )
        return kind

    return stored.model(kind_of, plan.model.settings.get("module", "") if plan else "")


def _pairs_alike(topics: Array) -> list[tuple[int, int, float]]:
    pairs = []
    for one, weights in enumerate(topics):
        common = np.minimum(topics[one + 1 :], weights).sum(axis=1)
        pairs += [(one, one + 1 + int(place), float(common[place])) for place in np.flatnonzero(common >= _ALIKE)]
    return pairs


def _heaviest(topics: Array, vocabulary: tuple[str, ...], words: int) -> Iterator[tuple[int, int, str, float]]:
    for topic, weights in enumerate(topics):
        order = np.argsort(-weights, kind="stable")[:words]
        yield from ((topic, rank, vocabulary[word], float(weights[word])) for rank, word in enumerate(order, 1))


@dataclass(frozen=True, eq=False)
class MergedTopics:
    """Topics of which those that are nearly the same are one."""

    groups: tuple[tuple[int, ...], ...]  # of the model's topics (from 0), in the order of the first of each
    topics: Array  # groups x words, rows sum to one
    vocabulary: tuple[str, ...]

    def words(self, words: int = 10) -> list[list[str]]:
        """Returns the heaviest words of each, heaviest first."""
        return named_topics(self.topics, self.vocabulary, words)

    def heaviest_words(self, words: int = 10) -> Iterator[tuple[int, int, str, float]]:
        """Returns group (from 0), rank (from 1), word and weight of each one's heaviest words."""
        yield from _heaviest(self.topics, self.vocabulary, words)

    def table(self, words: int = 10) -> list[dict[str, Any]]:
        """Returns it ready for JSON."""
        return [{"topics": list(group), "words": found} for group, found in zip(self.groups, self.words(words), strict=True)]

    def shares(self, of_topics: Array) -> Array:
        """Returns documents x groups, of what `transform` returns."""
        return np.stack([of_topics[:, list(group)].sum(axis=1) for group in self.groups], axis=1)


@dataclass(frozen=True)
class LearnedModel:
    """A trained topic model, with its words."""

    name: str  # of the run, or of the file
    model: TopicModel
    state: State
    vocabulary: tuple[str, ...]
    tokeniser: Tokeniser | None = None  # what reads texts; none: the usual one
    origin: Origin | None = None  # where it comes from, as its file says; a copy says it too

    @property
    def components_(self) -> Array:
        """Topics x vocabulary, rows sum to one."""
        return np.asarray(self.model.topics(self.state))

    def topics(self, words: int = 10) -> list[list[str]]:
        """Returns the heaviest words of each topic, heaviest first."""
        return named_topics(self.components_, self.vocabulary, words)

    def above_noise(self, words: int = 10) -> list[list[bool]] | None:
        """Returns for each of these words whether it stands above the noise in its topic; None where that is not tested."""
        return top_words_above_noise(self.model, self.state, words)

    def transform(self, documents: Any) -> Array:
        """Returns topic shares of a corpus, texts or counts: documents x topics, rows sum to one. Only words it knows count.

        For a document without a known word it returns what it expects of any document; a warning counts such documents.
        """
        warn_of_left_out(documents)
        known = self._known(documents)
        if self.model.reads_words:
            warn_of_unknown(known)
        return np.asarray(self.model.infer(self.state, known))

    def known_words(self, documents: Any) -> Array:
        """Returns how many words of each document the model knows. Repeated words count each time."""
        return words_of(self._known(documents))

    def nearness(self, documents: Any) -> Array:
        """Returns how near the nearest topic is to each document, as a cosine; only of topics that are clusters of meaning."""
        if not isinstance(self.model, SemanticTopics):
            raise Mistake(
                "the model {name} has no centres of meaning, so no document is far from all of them",
                hint="look for documents without a strong topic in what `transform` gives, or train --model semantic",
                name=self.model.name,
            )
        return self.model.nearness(self.state, self._known(documents))

    def under(self, groups: int) -> list[list[int]]:
        """Returns the topics (from 0) in so many groups of like ones: by their centres of meaning, else by their words."""
        require(
            1 <= groups <= len(self.components_), "", "--under", groups, f"must be 1 to {len(self.components_)}, the topics"
        )
        centres = self.state["centres"] if isinstance(self.model, SemanticTopics) else np.sqrt(self.components_)
        rows = of_length_one(centres)
        nearest = product_transposed(rows, clusters(rows, groups)).argmax(axis=1)
        return [np.flatnonzero(nearest == group).tolist() for group in np.unique(nearest)]

    def alike(self) -> list[tuple[int, int, float]]:
        """Returns pairs of topics (from 0) that are nearly the same, with the share of their words' weight that they have in
        common, the likest first."""
        return sorted(_pairs_alike(self.components_), key=lambda pair: -pair[2])[:_MOST_ALIKE]

    def merged(self, shares: Array | None = None) -> MergedTopics:
        """Returns the topics with those made one that are nearly the same, after the training: the model stays as it is.

        `shares` say how much of documents each topic takes, and weigh the words; without them all topics count alike.
        """
        topics = self.components_
        group_of = np.arange(len(topics))
        for one, other, _ in _pairs_alike(topics):
            group_of[group_of == group_of[other]] = group_of[one]
        groups = [np.flatnonzero(group_of == group).tolist() for group in dict.fromkeys(group_of.tolist())]
        weights = np.ones(len(topics)) if shares is None else np.maximum(shares, 1e-9)
        rows = [weights[group] @ topics[group] / weights[group].sum() for group in groups]
        return MergedTopics(tuple(map(tuple, groups)), np.array(rows), self.vocabulary)

    def heaviest_words(self, words: int = 10) -> Iterator[tuple[int, int, str, float]]:
        """Returns topic (from 0), rank (from 1), word and weight of each of a topic's heaviest words."""
        yield from _heaviest(self.components_, self.vocabulary, words)

    def topics_frame(self, words: int = 10) -> Any:
        """Returns a data frame of pandas with the columns topic, rank, word and weight."""
        return library("pandas").DataFrame(self.heaviest_words(words), columns=["topic", "rank", "word", "weight"])

    def _repr_html_(self) -> str:
        """What a notebook shows: topics with a bar for how much of documents each takes, and words as dark as they weigh."""
        shares, rows = self.mean_shares(), list[str]()
        for topic, words in enumerate(self.topics(_WORDS)):
            weights = np.sort(self.components_[topic])[::-1][: len(words)]
            dark = np.maximum(weights / weights[0], _PALEST)
            told = " ".join(f"<span style='opacity:{o:.2f}'>{html_text(w)}</span>" for o, w in zip(dark, words, strict=True))
            drawn = ""
            if shares is not None:
                bar = f"<rect width='{_BAR * shares[topic] / shares.max():.1f}' height='10' fill='currentColor'/>"
                drawn = f"<td><svg width='{_BAR}' height='10'>{bar}</svg> {shares[topic]:.0%}</td>"
            rows.append(f"<tr><th>{topic}</th>{drawn}<td style='text-align:left'>{told}</td></tr>")
        return f"<p>{html_text(self.name)}</p><table><tbody>{''.join(rows)}</tbody></table>"

    def mean_shares(self) -> Array | None:
        """Returns how much of its documents a party finds each topic takes, on average over parties; None where nobody says."""
        return None

    def save(self, path: str | Path) -> None:
        """Writes weights, vocabulary and settings as one safetensors file: no code in it, nothing of the documents."""
        write_model(Path(path), self.model, self.state, self.vocabulary, self.tokeniser, self.origin)

    def _known(self, documents: Any) -> Any:
        """Returns the documents over the model's words: of a corpus over any words, or of a matrix over the model's."""
        projected = documents.project(self.vocabulary) if isinstance(documents, Corpus) else documents
        return over(projected, self.vocabulary, self._reads_texts())

    def _reads_texts(self) -> Tokeniser | None:
        return self.tokeniser


@dataclass(frozen=True)
class FinishedRun(LearnedModel):
    """The shared model of a finished run, with its words and its plan."""

    plan: Plan = field(kw_only=True)
    folder: Path = Path()  # of the run, or of what a party has of one

    def _reads_texts(self) -> Tokeniser:
        return self.plan.tokeniser.make()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Opens a run that is finished, if its plan, words and model are as it wrote them; or what a party has of one."""
        if not (path / RUN).is_file() and (path / REPORT).is_file():
            return cls._at_party(path)
        if not (path / RUN).is_file() and (inside := sorted(one.parent for one in path.glob(f"*/{RUN}"))):
            raise SeveralRuns(str(path), str(inside[0]))
        folder = reopen(path)
        if not folder.model.is_file():
            raise NotARun(str(path), "finished model")
        check(path, folder.model, folder.words)
        stored = StoredModel.open(folder.model)
        model, state, vocabulary = _read(stored, folder.agreement.plan)
        if model != folder.agreement.model:
            raise ChangedFile(str(folder.model), f"it is not the model of the plan in {RUN}")
        words = folder.words.read_bytes() if folder.words.is_file() else b""
        if words != "\n".join(vocabulary).encode():
            raise ChangedFile(str(folder.words), f"its words are not those of {folder.model.name}")
        made = folder.path.name, model, state, vocabulary
        return cls(*made, origin=stored.origin, plan=folder.agreement.plan, folder=path)

    @classmethod
    def _at_party(cls, path: Path) -> Self:
        """Opens the folder in a party's home in which the model of a run landed."""
        check_private(path)
        report = read_json(path / REPORT)
        if not model_of(path).is_file():
            raise NotARun(str(path), "finished model")
        try:
            check_plan_of(str(path / REPORT), report["plan"])
            plan, name = decode(report["plan"], str(path / REPORT)), f"{report['federation']} {report['party']}"
        except (KeyError, TypeError, AttributeError) as problem:
            raise DamagedStore(str(path / REPORT), "it is not the report of a party") from problem
        stored = StoredModel.open(model_of(path))
        return cls(name, *_read(stored, plan), origin=stored.origin, plan=plan, folder=path)

    def quality_frame(self) -> Any:
        """Returns the shared model's figures and those of each party's own, as `federate` returns them."""
        return self._result().quality_frame()

    def prevalence_frame(self) -> Any:
        """Returns parties x topics: how much of its documents each party finds a topic takes."""
        return self._result().prevalence_frame()

    def mean_shares(self) -> Array | None:
        """Returns how much of its documents a party finds each topic takes, on average over the parties of a simulation."""
        prevalence = self._told().get("prevalence") if (self.folder / RESULT).is_file() else None
        return np.mean(list(prevalence.values()), axis=0) if prevalence else None

    def labels(self) -> TopicLabels:
        """Reads the labels that people gave to the topics of this run."""
        return TopicLabels.in_folder(self.folder, len(self.components_))

    def moved(self) -> list[dict[str, Any]]:
        """Returns how far each topic moved since the model that the run went on from; nothing where it began anew."""
        return list(self._told().get("moved") or ())

    def is_adapted(self) -> bool:
        """Returns whether a party adapted it to its own documents: then the model is as secret as these."""
        return "adapted" in self._told()

    def spent_a_budget(self) -> bool:
        """Returns whether noise was added for a privacy budget, as far as its folder says."""
        spent = self._told().get("spent") or []
        return any(one["epsilon"] is not None for one in (spent if isinstance(spent, list) else [spent]))

    def rounds(self) -> int:
        """Returns how many rounds the model was trained for, as far as its folder says; else as many as its plan asked for."""
        return int(self._told().get("rounds") or self.plan.training.rounds)

    def _result(self) -> FederationResult:
        if not (self.folder / RUN).is_file() and (self.folder / REPORT).is_file():
            adapted = "it was adapted to the documents of one party"
            raise NoFigures(str(self.folder), adapted if self.is_adapted() else "it is what one party has of the run")
        return FederationResult(result_of(self.folder))

    def _told(self) -> dict[str, Any]:
        told = next((self.folder / name for name in (RESULT, REPORT) if (self.folder / name).is_file()), None)
        return read_json(told) if told else {}

    def read(
        self, file: Path, text: str | None, date: str | None = None, stages: Stages | None = None, label: str | None = None
    ) -> Corpus:
        """Reads new documents in the words of this run, also those that have none of these words."""
        return self.read_whole(file, stages, text=text, date=date, label=label).project(self.vocabulary)

    def read_whole(
        self, file: Path, stages: Stages | None = None, *, text: str | None, date: str | None = None, label: str | None = None
    ) -> Corpus:
        """Reads new documents in all their words.

        Where the model reads embeddings, they are in the column that the plan names; without one, they are made as it says.
        """
        column = self.plan.corpus.embedding if self.model.embedding_size else ""
        made: dict[str, Any] = {
            "embedding": column or None,
            "tokeniser": self.plan.tokeniser.make(),
            "embed": embed_of(self.plan, stages or Unwatched()),
        }
        return read_corpus(file, text=text, date=date, label=label, keep_empty=True, **made)


@dataclass(frozen=True, eq=False)
class TopicsByDate:
    """The mean share of every topic in the documents of every period. Documents that the model cannot read count nowhere."""

    period: str  # year, month or day
    periods: tuple[str, ...]  # in order, such as 2026-11; those between without a document too
    documents: Array  # periods: how many documents there are, int64
    shares: Array  # periods x topics, rows sum to one; not a number where a period has no document

    def table(self) -> dict[str, Any]:
        """Returns it ready for JSON, with null where a period has no document."""
        rows = [None if not n else np.round(row, 6).tolist() for n, row in zip(self.documents, self.shares, strict=True)]
        return {"period": self.period, "periods": list(self.periods), "documents": self.documents.tolist(), "shares": rows}


@dataclass(frozen=True, eq=False)
class TopicsByLabel:
    """The mean share of every topic in the documents of every label."""

    labels: tuple[str, ...]  # in order
    documents: Array  # labels: how many documents there are, int64
    shares: Array  # labels x topics, rows sum to one

    def table(self) -> dict[str, Any]:
        """Returns it ready for JSON."""
        shares = np.round(self.shares, 6).tolist()
        return {"labels": list(self.labels), "documents": self.documents.tolist(), "shares": shares}


def topics_by_date(learned: LearnedModel, corpora: Mapping[str, Corpus], period: str = "month") -> TopicsByDate:
    """Returns the topics of these documents by date. `corpora` are named by whose they are, for the place of a wrong date."""
    found, counts, shares = _mean_shares(learned, corpora, lambda corpus, name: periods_of(corpus.dates, period, name))
    ordered = all_periods(found, period)
    places = np.searchsorted(ordered, found)
    every, means = np.zeros(len(ordered), dtype=np.int64), np.full((len(ordered), len(learned.components_)), np.nan)
    every[places], means[places] = counts, shares
    return TopicsByDate(period, tuple(ordered), every, means)


def topics_by_label(learned: LearnedModel, corpora: Mapping[str, Corpus]) -> TopicsByLabel:
    """Returns the topics of these documents by their label: a class, a person, whatever the column of labels says."""

    def labels_of(corpus: Corpus, name: str) -> list[str]:
        if corpus.labels is None:
            raise Mistake(
                "the documents of {where} have no labels",
                hint="name the column: --by-label COLUMN --corpus FILE; those of a run have the labels that it read",
                where=name,
            )
        return [str(label) for label in corpus.labels]

    found, counts, shares = _mean_shares(learned, corpora, labels_of)
    return TopicsByLabel(tuple(found), counts, shares)


def _mean_shares(
    learned: LearnedModel, corpora: Mapping[str, Corpus], groups_of: Callable[[Corpus, str], list[str]]
) -> tuple[list[str], Array, Array]:
    """The groups in order, how many documents each has, and the mean topic shares of these."""
    shares, groups = [np.zeros((0, len(learned.components_)))], list[str]()
    for name, corpus in corpora.items():
        named = groups_of(corpus, name)  # of all documents, so that the place of a wrong one counts all of them
        for places, known in corpus.project(learned.vocabulary).parts():
            kept = readable_rows(learned.model, known)
            shares.append(np.asarray(learned.model.infer(learned.state, known.select(kept))))
            groups += [named[row] for row in places[kept]]
    ordered = sorted(set(groups))
    place_of = {group: place for place, group in enumerate(ordered)}
    members = np.array([place_of[group] for group in groups], dtype=np.int64)
    counts, sums = np.bincount(members, minlength=len(ordered)), np.zeros((len(ordered), len(learned.components_)))
    np.add.at(sums, members, np.concatenate(shares))
    return ordered, counts, sums / np.maximum(counts, 1)[:, None]


def readable_rows(model: TopicModel, documents: Corpus) -> Array:
    """The documents whose topics the model can tell: those with a word that it knows, unless it reads embeddings alone."""
    return np.flatnonzero(documents.lengths() > 0) if model.reads_words else np.arange(len(documents))


def documents_in(run: FinishedRun, party: str | None = None) -> dict[str, Corpus]:
    """Returns the documents that lie in the folder of a simulation, of every party or of one. No other run has any there."""
    if not (run.folder / RUN).is_file():
        raise BadSetting("", "--corpus", None, "only the folder of a simulation holds documents")
    folder = reopen(run.folder)
    if party is not None and party not in folder.members:
        raise NotFound("party", party, folder.members)
    names = [name for name in folder.members if party in (None, name)]
    if not all(folder.documents(name).is_file() for name in names):
        raise BadSetting("", "--corpus", None, "the folder of this run holds no documents")
    return {name: documents_of(folder, name) for name in names}


NO_DOCUMENTS = "needs documents, and the folder of this run holds none: --corpus FILE"


def judged_run(run: FinishedRun) -> JudgedTopics:
    """The topics of the run's model."""
    return JudgedTopics.of_model(run.name, run.model, run.state, run.vocabulary)


def documents_of_run(run: FinishedRun) -> Corpus | None:
    """The documents of all parties of a simulation, over all their words; None where the folder holds none."""
    try:
        held = documents_in(run)
    except BadSetting:  # no simulation, or its documents were taken away
        return None
    found: dict[str, Corpus] = {name: corpus.gathered() for name, corpus in held.items() if len(corpus)}
    columns = ("labels", "embeddings")  # the others play no part, and may be there at some parties only
    kept = [name for name in columns if all(getattr(corpus, name) is not None for corpus in found.values())]
    bare = dict.fromkeys(("labels", "embeddings", "parties", "dates", "texts"))
    chosen = [one.replace(**{**bare, **{name: getattr(one, name) for name in kept}}) for one in found.values()]
    return Corpus.concat(chosen, name=run.name) if chosen else None


def held_out_keys(run: FinishedRun) -> tuple[Array, Array]:
    """The keys of the documents that the run trained on, and of those that it held out, as its parties divide them."""
    agreement, parts = reopen(run.folder).agreement, []
    for corpus in documents_in(run).values():
        documents = PartyDocuments(corpus)
        documents.adopt(run.vocabulary, agreement)
        parts.append(documents)
    trained, held_out = (
        np.concatenate([np.asarray(getattr(one, name).keys, np.uint64) for one in parts]) for name in ("train", "held_out")
    )
    return trained, held_out


def held_out_rows(documents: Corpus, runs: list[FinishedRun]) -> Array:
    """The rows that the first run held out, and that no other run whose documents are known trained on."""
    kept = np.isin(documents.keys, held_out_keys(runs[0])[1])
    for other in runs[1:]:
        if documents_of_run(other) is not None:
            kept &= ~np.isin(documents.keys, held_out_keys(other)[0])
    return np.flatnonzero(kept)


_WORDS = 7  # of a topic, where it is shown


class FederationResult(dict[str, Any]):
    """What `securetm run --json` prints, and the same as data frames of pandas. A frame's topics are numbered from 0."""

    @property
    def model(self) -> FinishedRun:
        """The shared model, read from the run's folder: `topics`, `transform`, `save`."""
        return FinishedRun.open(Path(self["directory"]))

    @property
    def quality(self) -> dict[str, float]:
        """The figures of the shared model: npmi, diversity, held_out (perplexity)."""
        return dict(self["quality"])

    def topics_frame(self, words: int = 10) -> Any:
        """A row for each of a topic's heaviest words: topic, rank (from 1), word, weight."""
        return self.model.topics_frame(words)

    def prevalence_frame(self) -> Any:
        """Parties x topics: how much of its documents each party finds a topic takes."""
        frame = library("pandas").DataFrame.from_dict(self["prevalence"], orient="index")
        return frame.rename_axis(index="party", columns="topic")

    def documents_frame(self) -> Any:
        """For each party: its documents, those with an agreed word, and those that were left out."""
        left_out = {name: sum(one["documents"] for one in each) for name, each in self["dropped"].items()}
        rows = {name: {**each, "left_out": left_out.get(name, 0)} for name, each in self["documents"].items()}
        return library("pandas").DataFrame.from_dict(rows, orient="index").rename_axis(index="party")

    def quality_frame(self) -> Any:
        """The shared model's figures on everybody's documents and on each party's own, and those of each party's own model."""
        rows = [{"model": "shared", "party": None, **self["quality"]}]
        rows += [{"model": "shared", "party": name, **each} for name, each in self["shared_at_party"].items()]
        rows += [{"model": "alone", "party": name, **each} for name, each in self["alone"].items()]
        for name, each in self["adapted_at_party"].items():
            rows.append({"model": "adapted", "party": name, **{k: v for k, v in each.items() if k != "chosen_by"}})
        return library("pandas").DataFrame(rows)

    def spent_frame(self) -> Any:
        """What the run spent of each party's budget."""
        return library("pandas").DataFrame(self["spent"]).set_index("party")

    def __repr__(self) -> str:
        figures = ", ".join(f"{name} {value:.4g}" for name, value in self["quality"].items())
        topics = "".join(f"\n  {number}: {printable(' '.join(words[:_WORDS]))}" for number, words in enumerate(self["topics"]))
        return f"<{printable(f'{self._sentence()}; {figures}')}{topics}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: topics, and how much of its documents each party finds they take."""
        heads = "".join(f"<th>{html_text(name)}</th>" for name in self["prevalence"])
        rows = "".join(self._row(number, words) for number, words in enumerate(self["topics"]))
        figures = ", ".join(f"{html_text(name)} {value:.4g}" for name, value in self["quality"].items())
        head = f"<thead><tr><th></th><th style='text-align:left'>top words</th>{heads}</tr></thead>"
        return f"<p>{html_text(self._sentence())}<br>{figures}</p><table>{head}<tbody>{rows}</tbody></table>"

    def _sentence(self) -> str:
        parties, rounds = len(self["parties"]), self["rounds"]
        return f"{self['model']} of {parties} parties under {self['profile']}, {rounds} rounds, in {self['directory']}"

    def _row(self, number: int, words: list[str]) -> str:
        said = html_text(" ".join(words[:_WORDS]))
        cells = "".join(f"<td>{shares[number]:.0%}</td>" for shares in self["prevalence"].values() if number < len(shares))
        return f"<tr><th>{number}</th><td style='text-align:left'>{said}</td>{cells}</tr>"
