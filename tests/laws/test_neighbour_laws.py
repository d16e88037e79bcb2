"""Every model, profile, reader and partition keeps the laws of neighbours, and each law catches the fault it is there for."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from securetm.contracts import Array, ClippedSum, Memory, Query, State, TopicModel
from securetm.corpus import building, partitions
from securetm.corpus.corpus_build import CorpusBuild
from securetm.corpus.document_names import document_keys
from securetm.corpus.records import Columns
from securetm.corpus.tokeniser import RECOMMENDED, Tokeniser
from securetm.errors import Mistake
from securetm.resources import toml_names
from securetm.testing import NeighbourLaws
from securetm.testing.neighbour_laws import EMBEDDING, Row, WholeWay, way_of
from tests.federation.test_refused_plans import MODELS_OF_OURS, READ_EMBEDDINGS, refused
from tests.laws import toys
from tests.quick_part import quick

PROFILES = [name for name in toml_names("protocols", "profiles") if name != "iftm"]  # whose neighbours differ in one word
EVERY = [f"{model} under {profile}" for profile in PROFILES for model in MODELS_OF_OURS if not refused(model, profile)]
FEW = ("lda-vi under dp-central", "prodlda under masked")
EVERY_COLUMN = ("text", "label", "party", "person")


class TestEveryModelAndProfile(NeighbourLaws):
    @pytest.fixture(params=quick(EVERY, *FEW))
    def way(self, request: pytest.FixtureRequest, tmp_path: Path, model: TopicModel | None) -> WholeWay:
        name, profile = request.param.split(" under ")
        settings: dict[str, Any] = {"model.name": name, "profile": profile}
        if name in READ_EMBEDDINGS:
            self.columns = ("text", "label", "party", "embedding")  # type: ignore[misc]
            settings |= {
                "model.embedding_size": EMBEDDING,
                "embeddings.model": "",
                "origins.embeddings": "made up for the laws",
            }
        return way_of(settings, tmp_path, model)


class OneModel(NeighbourLaws):
    settings: ClassVar[Mapping[str, Any]] = {"model.name": "lda", "profile": "dp-distributed"}


class TestPersons(OneModel):
    columns = EVERY_COLUMN


class TestPersonsWithLabels(OneModel):
    columns = EVERY_COLUMN
    settings: ClassVar[Mapping[str, Any]] = {**OneModel.settings, "corpus.partition": "dirichlet"}


class TestDirichlet(OneModel):
    settings: ClassVar[Mapping[str, Any]] = {**OneModel.settings, "corpus.partition": "dirichlet", "corpus.alpha": 2.0}


class TestColumn(OneModel):
    settings: ClassVar[Mapping[str, Any]] = {**OneModel.settings, "corpus.partition": "column"}


class TestDocumentsOfPersons(OneModel):
    """Where single documents are protected, one that goes moves no other document of its person."""

    columns = EVERY_COLUMN
    settings: ClassVar[Mapping[str, Any]] = {**OneModel.settings, "privacy.unit": "document"}

    def gone(self, rows: Sequence[Row]) -> list[list[int]]:
        return [[place] for place in (0, 1, 31, len(rows) // 2, len(rows) - 1)]


class TestIds(OneModel):
    columns = ("number", "text", "label", "party")
    settings: ClassVar[Mapping[str, Any]] = {**OneModel.settings, "corpus.id": "number"}

    def rows(self) -> list[dict[str, Any]]:
        return [{**row, "number": f"n{number}"} for number, row in enumerate(super().rows())]


class TestTables(OneModel):
    ending = "csv"

    def write(self, folder: Path, rows: Sequence[Row]) -> str:
        with (folder / "documents.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([self.columns, *([row[name] for name in self.columns] for row in rows)])
        return str(folder / "documents.csv")


class TestSparseLines(OneModel):
    """The first document has no label: no line decides for the others."""

    settings: ClassVar[Mapping[str, Any]] = {**OneModel.settings, "corpus.partition": "dirichlet"}

    def write(self, folder: Path, rows: Sequence[Row]) -> str:
        path = folder / "documents.jsonl.gz"
        lines = [{name: row[name] for name in ("text", "label") if name in row} for row in rows]
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
        return str(path)

    def rows(self) -> list[dict[str, Any]]:
        found = super().rows()
        for row in found[::9]:
            del row["label"]
        return found


class TestParquet(OneModel):
    def write(self, folder: Path, rows: Sequence[Row]) -> str:
        table = pyarrow.table({name: [row[name] for row in rows] for name in self.columns})
        parquet.write_table(table, folder / "documents.parquet")
        return str(folder / "documents.parquet")


class TestFolderOfTexts(OneModel):
    """The names of the files are those of their places, so that those after one that went have others."""

    def write(self, folder: Path, rows: Sequence[Row]) -> str:
        texts = folder / "texts"
        texts.mkdir()
        for number, row in enumerate(rows):
            (texts / f"{number:03d}.txt").write_text(row["text"])
        return str(texts)


class TestShards(OneModel):
    block_documents = 1000

    def write(self, folder: Path, rows: Sequence[Row]) -> str:
        source = super().write(folder, rows)
        read = Tokeniser(**RECOMMENDED)  # as new plans read
        CorpusBuild(source, folder / "built", Columns(), read, block_documents=self.block_documents, megabytes=64).run()
        return str(folder / "built")


class TestShardsOfPersons(TestShards):
    columns = EVERY_COLUMN


@pytest.mark.slow
class TestManyBlocks(TestShards):
    """`lda` sums whole numbers, so blocks change nothing."""

    block_documents = 7


# ---- persons at several parties, words, and mutants ---------------------------------------------------------------------


def test_persons_at_several_parties_of_a_simulation_are_refused(tmp_path: Path) -> None:
    """Unless single documents are protected: then a person is nobody's unit."""
    laws = TestColumn()
    laws.columns = EVERY_COLUMN  # type: ignore[misc]
    rows = laws.rows()
    for row in rows[::2]:
        row["person"] = f"person {rows.index(row) % 7}"
    way = way_of(laws.settings, tmp_path)
    with pytest.raises(Mistake, match="documents at several parties, and the budget") as refused:
        laws.summed(way, tmp_path / "one", rows)
    assert "m times the budget" in refused.value.advice()
    laws.summed(replace(way, settings={**way.settings, "privacy.unit": "document"}), tmp_path / "two", rows)


def test_another_word_moves_no_document_where_words_are_protected(tmp_path: Path) -> None:
    """Under iftm a neighbour has another word in one place: no split, no party and no key may show it."""
    laws = TestColumn()
    way = way_of(laws.settings, tmp_path)
    words = {"profile": "iftm", "corpus.partition": "equal", "corpus.parties": 3}
    way = replace(way, settings={**way.settings, **words})
    rows = laws.rows()
    before = laws.summed(way, tmp_path / "before", rows)
    for place in (0, 45, 89):
        first, rest = rows[place]["text"].split(" ", 1)
        other = "termaa" if first != "termaa" else "termab"
        changed = [*rows[:place], {**rows[place], "text": f"{other} {rest}"}, *rows[place + 1 :]]
        after = laws.summed(way, tmp_path / f"other word in {place}", changed)
        for name, held in before.documents.items():
            np.testing.assert_array_equal(after.documents[name].keys, held.keys)


SHUFFLED, LESS_ONE = "test_a_shuffled_file_gives_the_same_sums", "test_a_unit_that_goes_takes_its_own_rows_and_no_other"


def by_place(secret: bytes, digests: Array, copies: Array) -> Array:
    return document_keys("a file", len(digests))


def by_count(corpus: Any, parties: int, seed: int = 0, *, persons_whole: bool = True) -> Mapping[str, Any]:
    """Parties of one size: a permutation of as many places as there are documents decides, in the order of their keys."""
    dealt = np.random.default_rng(seed).permutation(len(corpus)) % parties
    return partitions._named(corpus, parties, dealt[np.argsort(np.argsort(corpus.keys))])


@dataclass(frozen=True, eq=False)
class SharedStream(toys.Memberships):
    """Every document's row is drawn from one stream, so that a document's draws depend on how many are before it."""

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        drawn = rng.random((len(documents), self.terms.size))
        clipped_sum.add(drawn, np.arange(len(documents)))


class Streaming(toys.Mixture):
    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        return {"topics": rng.dirichlet(np.ones(len(vocabulary)), self.topic_count)}

    def query(self, state: State) -> Query:
        return SharedStream(state["topics"])


# Documents are in the order of their keys, whatever the file's: two of the faults show only when a document goes.
MUTANTS = [("a party by count", LESS_ONE), ("a draw from a shared stream", LESS_ONE)]
MUTANTS += [(mutant, law) for mutant in ("a name from a position", "equal documents") for law in (SHUFFLED, LESS_ONE)]


@pytest.mark.parametrize(("mutant", "law"), MUTANTS)
def test_a_mutant_is_caught(mutant: str, law: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if mutant == "a name from a position":
        monkeypatch.setattr(building, "content_keys", by_place)
    if mutant == "a party by count":
        monkeypatch.setattr(partitions, "equal", by_count)
    if mutant == "equal documents":
        monkeypatch.setattr(building, "copy_numbers", lambda digests: np.arange(len(digests)))
    laws = OneModel()
    way = way_of(laws.settings, tmp_path, Streaming() if "stream" in mutant else None)
    with pytest.raises(AssertionError):
        getattr(laws, law)(way, tmp_path)
