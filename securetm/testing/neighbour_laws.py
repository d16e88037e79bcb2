"""The laws of neighbours: the order of a file plays no part, and a unit that goes takes its own rows and moves no other unit.

They follow documents the whole way: written to a file, read, dealt out to parties, split, drawn into batches, and summed. What
follows the sums, noise and masks, sees nothing of the documents. Subclass `NeighbourLaws` for a model or a reader.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from securetm.answers.route import Route
from securetm.contracts import Answer, Array, Cohort, Memory, Needs, RoundContext, State, TopicModel, Unit
from securetm.data_classes import dataclass, replace
from securetm.entropy import OperatingSystem
from securetm.federation.document_minimum import check_whole_persons
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.questions import TRAIN, Questions
from securetm.federation.sources import corpora_of
from securetm.mechanisms.clipping import BoundedCounts, Clip
from securetm.mechanisms.sampling import ShuffledBatches
from securetm.plans.agreement import Agreement, agree
from securetm.plans.recommend import whole_plan
from securetm.stages import Unwatched
from securetm.testing.few_documents import EmptyStore

Row = Mapping[str, Any]  # a document and its columns
ROUNDS, PARTIES, WORDS = 2, 3, 40
EMBEDDING = 16
VOCABULARY = tuple(f"term{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(WORDS))


def some_rows(documents: int = 90, seed: int = 0) -> list[dict[str, Any]]:
    """Documents with all columns. Some say the same, and two of these are the first and the last."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(documents):
        subject = rng.integers(3)
        words = rng.choice(WORDS // 3, size=rng.integers(4, 12)) + subject * (WORDS // 3)
        said = [VOCABULARY[word] for word in words]
        text = f"{' '.join(said[:3])}. {' '.join(said[3:])}."
        columns = {"label": f"label {subject}", "party": f"party {number % PARTIES}", "person": f"person {number % 30}"}
        rows.append({"text": text, **columns, "embedding": [round(float(x), 3) for x in rng.normal(size=EMBEDDING)]})
    rows[documents // 3] = rows[documents // 3 + 1] = dict(rows[0])  # three copies of a document that is also the last
    return [*rows[:-1], dict(rows[0])]


@dataclass(frozen=True)
class Summed:
    """What every party would send without noise and mask: its sum in each round, and the documents that may be in it."""

    agreement: Agreement
    sums: Mapping[str, Sequence[Array]]
    documents: Mapping[str, Any]
    bound: float  # on what one unit adds to a sum
    by_unit: bool  # whether a sum has a row for each unit
    batch: int

    def total(self, number: int) -> Array:
        """The sum over all parties in that round."""
        found: Array = np.sum([rounds[number] for rounds in self.sums.values()], axis=0)
        return found


@dataclass
class WholeWay:
    """The way from documents to the sums of a federation under one plan. The states asked about stay the same."""

    settings: Mapping[str, Any]
    model: TopicModel | None = None  # in the place of the plan's
    states: list[State] | None = None

    def agreement(self, source: str) -> Agreement:
        """What all parties agree on about documents from there."""
        found = agree(whole_plan(None, {**self.settings, "corpus.source": source}))
        return found if self.model is None else replace(found, model=self.model)

    def summed(self, source: str) -> Summed:
        """The sums over the documents of a file."""
        agreement = self.agreement(source)
        corpora = corpora_of(agreement.plan, Unwatched())
        named = any(corpus.persons is not None for corpus in corpora.values())
        if agreement.budget is not None and not agreement.plan.privacy.unit and named:
            agreement = agreement.with_privacy(unit=Unit.PERSON.value)
        check_whole_persons(corpora, agreement)
        parties: dict[str, Any] = {}
        for name, corpus in corpora.items():
            read = PartyDocuments(corpus.in_blocks())
            read.adopt(VOCABULARY, agreement)
            parties[name] = read.for_question(TRAIN)
        return self.sums_of(agreement, parties)

    def sums_of(self, agreement: Agreement, parties: Mapping[str, Any]) -> Summed:
        """The sums over these documents of the parties."""
        cohort = Cohort(bytes(32), 0, tuple(parties), seed=agreement.plan.seed)
        # the profile's steps that choose public batches and bound rows: coins are fresh, and noise is no function of documents
        bounding = [one for one in agreement.profile.mechanisms if isinstance(one, Clip | BoundedCounts | ShuffledBatches)]
        questions, mechanisms = Questions(agreement, VOCABULARY), tuple(bounding)
        states = [agreement.start(VOCABULARY)] if self.states is None else self.states
        sums: dict[str, list[Array]] = {name: [] for name in parties}
        memories: dict[str, Memory] = {name: {} for name in parties}
        for number in range(ROUNDS):
            each: dict[str, Mapping[str, Array]] = {}
            for name, documents in parties.items():
                query = questions.make(TRAIN, questions.shown(TRAIN, states[number], name))
                route = Route.through(query.terms, mechanisms, cohort)
                context = RoundContext(replace(cohort, number=number), OperatingSystem(), EmptyStore())
                answer = route.answer(query, documents, context, memories[name], np.random.default_rng([1, number]))
                each[name] = answer.vector
                sums[name].append(np.concatenate([np.asarray(block).ravel() for block in answer.vector.values()]))
            if self.states is None and number == len(states) - 1:
                states.append(_updated(agreement.model, states[number], each, query.terms.needs))
        self.states = states
        terms = route.terms
        by_unit = terms.needs is Needs.SUM and terms.unit is not Unit.PARTY
        return Summed(agreement, sums, parties, terms.l2, by_unit, terms.batch)


def _updated(model: TopicModel, state: State, each: Mapping[str, Mapping[str, Array]], needs: Needs) -> State:
    if needs is Needs.EACH:
        return model.update(state, Answer(None, each, tuple(each)))
    total = {name: np.sum([blocks[name] for blocks in each.values()], axis=0) for name in next(iter(each.values()))}
    return model.update(state, Answer(total, {}, tuple(each)))


def way_of(settings: Mapping[str, Any], folder: Path, model: TopicModel | None = None) -> WholeWay:
    """The way under a plan with these settings, over a public list of words, which is written into that folder."""
    listed = folder / "words.txt"
    listed.write_text("\n".join(VOCABULARY))
    usual: dict[str, Any] = {
        "origins.vocabulary": "made up for the laws",
        "vocabulary.source": "file",
        "vocabulary.file": str(listed),
        "corpus.partition": "equal",
    }
    usual |= {"corpus.parties": PARTIES, "training.held_out": 0.25, "model.n_topics": 4, "training.start": "plain"}
    chosen = {**usual, **settings}
    if chosen["corpus.partition"] == "column":
        del chosen["corpus.parties"]
    return WholeWay(chosen, model)


class NeighbourLaws:
    """Laws of the whole way for one model, profile, partition and form of file."""

    settings: ClassVar[Mapping[str, Any]] = {"model.name": "lda", "profile": "masked"}  # of a plan
    columns: ClassVar[tuple[str, ...]] = ("text", "label", "party")  # that are written
    ending: ClassVar[str] = "jsonl"
    rounding: ClassVar[float] = 1e-9  # of sums in floating point

    @pytest.fixture
    def model(self) -> TopicModel | None:
        return None

    @pytest.fixture
    def way(self, tmp_path: Path, model: TopicModel | None) -> WholeWay:
        return way_of(self.settings, tmp_path, model)

    def write(self, folder: Path, rows: Sequence[Row]) -> str:
        """Writes these documents in a form of its own, and returns what a plan says as `source`."""
        path = folder / f"documents.{self.ending}"
        path.write_text("".join(json.dumps({name: row[name] for name in self.columns}) + "\n" for row in rows))
        return str(path)

    def rows(self) -> list[dict[str, Any]]:
        return some_rows()

    def gone(self, rows: Sequence[Row]) -> list[list[int]]:
        """The places of the units that go, one after another: first, middle and last, and one of equal documents."""
        middle = len(rows) // 2
        if "person" not in self.columns:
            return [[0], [1], [len(rows) // 3 + 1], [middle], [len(rows) - 2], [len(rows) - 1]]
        persons = [rows[place]["person"] for place in (1, middle, len(rows) - 2)]
        return [[place for place, row in enumerate(rows) if row["person"] == person] for person in persons]

    def summed(self, way: WholeWay, folder: Path, rows: Sequence[Row]) -> Summed:
        """The sums over these documents, written into a folder of this name that holds nothing else."""
        folder.mkdir()
        return way.summed(self.write(folder, rows))

    def test_a_shuffled_file_gives_the_same_sums(self, way: WholeWay, tmp_path: Path) -> None:
        rows = self.rows()
        before = self.summed(way, tmp_path / "before", rows)
        for seed in range(2):
            order = np.random.default_rng(seed).permutation(len(rows))
            after = self.summed(way, tmp_path / f"shuffled {seed}", [rows[place] for place in order])
            assert list(after.sums) == list(before.sums)
            for name, rounds in before.sums.items():
                for one, other in zip(rounds, after.sums[name], strict=True):
                    np.testing.assert_array_equal(other, one)

    def test_a_unit_that_goes_takes_its_own_rows_and_no_other(self, way: WholeWay, tmp_path: Path) -> None:
        rows = self.rows()
        before = self.summed(way, tmp_path / "before", rows)
        for number, places in enumerate(self.gone(rows)):
            left = [row for place, row in enumerate(rows) if place not in places]
            self.compare(way, before, self.summed(way, tmp_path / f"less {number}", left), len(places))

    def compare(self, way: WholeWay, before: Summed, after: Summed, documents: int) -> None:
        """Nobody else moved; and the sums differ by what the unit adds alone, which is within the bound."""
        own: dict[str, Any] = {}
        for name, whole in before.documents.items():
            own[name] = whole.select(np.flatnonzero(~np.isin(whole.keys, after.documents[name].keys)))
            assert np.isin(after.documents[name].keys, whole.keys).all(), "a unit that stayed has another name"
        assert sum(map(len, own.values())) <= documents, "units that stayed were moved"
        assert sum(len(part) > 0 for part in own.values()) <= 1, "the unit was at several parties"
        if not before.by_unit or before.batch:
            return
        alone = (
            way.sums_of(before.agreement, {name: part for name, part in own.items() if len(part)})
            if any(map(len, own.values()))
            else None
        )
        for number in range(ROUNDS):
            moved = before.total(number).astype(np.float64) - after.total(number).astype(np.float64)
            expected = np.zeros_like(moved) if alone is None else alone.total(number)
            np.testing.assert_allclose(moved, expected, rtol=self.rounding, atol=self.rounding)
            assert np.linalg.norm(moved) <= before.bound * (1 + self.rounding)
