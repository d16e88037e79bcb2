"""A corpus on disk is the same as in memory; what is saved comes back whole, and what is damaged is refused by name."""

from __future__ import annotations

import dataclasses
import errno
import json
import pickle
import random
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from securetm import federate
from securetm.answers.block_answers import files_in
from securetm.answers.route import Route
from securetm.contracts import Answer, Cohort, Keeping, Memory, RoundContext
from securetm.corpus.building import CorpusBuilder
from securetm.corpus.corpus import Corpus
from securetm.corpus.corpus_build import BuildingParts, CorpusBuild, UnwrittenBlocks
from securetm.corpus.held_documents import HeldDocuments
from securetm.corpus.partitions import equal
from securetm.corpus.readers import read_corpus
from securetm.corpus.records import Columns, Record
from securetm.corpus.tokeniser import Tokeniser
from securetm.entropy import OperatingSystem
from securetm.errors import CannotWrite, Mistake, NoSuchPath
from securetm.models.lda.lda import LDA
from securetm.testing.few_documents import InAnyOrder

from .generated import check, corpora


@settings(max_examples=30)  # each is flushed to the disk
@given(corpora(name="Ünïcode"))
def test_round_trip(corpus: Corpus) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new" / "corpus.npz"
        corpus.save(path)
        again = Corpus.load(path)
        corpus.save(path.with_name("twice.npz"))
        assert path.read_bytes() == path.with_name("twice.npz").read_bytes()
        assert sorted(p.name for p in path.parent.iterdir()) == ["corpus.npz", "twice.npz"]
    check(again)
    assert (corpus.counts != again.counts).nnz == 0
    fields = (*dataclasses.fields(Corpus)[1:], *dataclasses.fields(HeldDocuments))
    for name in (field.name for field in fields if field.name != "given_counts"):
        mine, theirs = getattr(corpus, name), getattr(again, name)
        if isinstance(mine, np.ndarray):
            assert mine.dtype == theirs.dtype or mine.dtype.kind == "U"
            assert mine.tolist() == theirs.tolist()
        else:
            assert mine == theirs


def test_every_damaged_byte_is_noticed_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    corpus = Corpus.from_strings(["wings beat", "horses run"], labels=["bird", "horse"])
    corpus.save(path)
    whole = path.read_bytes()
    refused = 0
    for position in range(0, len(whole), 41):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        try:
            again = Corpus.load(path)
        except Mistake:
            refused += 1
        else:  # bytes of the zip that carry no data, such as dates
            assert again.vocabulary == corpus.vocabulary
            assert (again.counts != corpus.counts).nnz == 0
    assert refused > 20


@pytest.mark.parametrize("keep", [0, 10, 0.3, 0.9, -1])
def test_a_file_that_was_cut(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "c.npz"
    Corpus.from_strings(["wings beat"]).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if 0 < keep < 1 else int(keep)])
    with pytest.raises(Mistake, match="is damaged or was cut short"):
        Corpus.load(path)


def test_parts_that_do_not_fit_and_other_versions(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    Corpus.from_strings(["wings beat", "wings"]).save(path)
    parts = dict(np.load(path))
    for name, wrong in (
        ("tokens", np.array([0, 9, 1], dtype=np.int32)),
        ("keys", np.zeros(5, np.uint64)),
        ("counts.indices", np.array([0, 1, 7], np.int32)),
        ("facts", np.array([255, 255], np.uint8)),
        ("facts", np.frombuffer(b'{"version": 2, "documents": {}, "corpus": {}}', np.uint8)),
        ("token_ends", np.array([2, 1])),
    ):
        np.savez(path, **{**parts, name: wrong})
        with pytest.raises(Mistake, match="is damaged or was cut short"):
            Corpus.load(path)
    np.savez(path, **{**parts, "facts": np.frombuffer(b'{"version": 99}', np.uint8)})
    with pytest.raises(Mistake, match="99"):
        Corpus.load(path)
    with pytest.raises(NoSuchPath):
        Corpus.load(tmp_path / "nowhere.npz")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Corpus.from_strings(["wings"]).save(tmp_path / "c.npz")
    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(CannotWrite, match="No space"):
        Corpus.from_strings(["horses"]).save(tmp_path / "c.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["c.npz"]
    assert Corpus.load(tmp_path / "c.npz").vocabulary == ("wings",)


def full_disk(number: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_what_follows_an_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    Corpus.from_strings(["wings beat"]).save(path)
    with zipfile.ZipFile(path) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    with zipfile.ZipFile(path, "w") as longer:
        for name, raw in parts.items():
            longer.writestr(name, raw + b"x" * (name == "keys.npy"))
    with pytest.raises(Mistake, match="is damaged or was cut short"):
        Corpus.load(path)


def test_pickles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    np.savez(path, version=np.array([1]), keys=np.array([object()], dtype=object))
    with pytest.raises(Mistake, match="is damaged or was cut short"):
        Corpus.load(path)


# ---- shards ----------------------------------------------------------------------------------------------------------------


COLUMNS = ("keys", "tokens", "token_ends", "sentence_ends", "labels", "parties", "dates", "embeddings", "persons", "texts")


def written(path: Path, documents: int = 300) -> Path:
    """Short texts, some of them without a word, with every column."""
    draw = random.Random(1)
    words = [f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(200)]
    with path.open("w") as file:
        for n in range(documents):
            text = ". ".join(" ".join(draw.choices(words, k=draw.randint(1, 6))) for _ in range(draw.randint(0, 4)))
            row = {
                "text": text,
                "label": draw.choice(["x", "é", ""]),
                "party": f"p{n % 3}",
                "person": f"q{draw.randint(0, 60)}",
            }
            file.write(json.dumps({**row, "embedding": [draw.random(), n]}) + "\n")
    return path


def built(source: Path, folder: Path, *, columns: Columns | None = None, **settings: Any) -> Corpus:
    CorpusBuild(str(source), folder, columns or Columns(), **settings).run()
    return Corpus.load(folder)


def same(mine: Any, theirs: Any) -> None:
    assert mine.vocabulary == theirs.vocabulary
    assert mine.name == theirs.name
    assert (mine.counts != theirs.counts).nnz == 0
    for column in COLUMNS:
        one, other = getattr(mine, column), getattr(theirs, column)
        assert (one is None) == (other is None), column
        assert one is None or (one.dtype == other.dtype and np.array_equal(one, other)), column


@pytest.mark.parametrize("block_documents", [7, 64, 1000])
def test_every_document_is_as_in_memory(tmp_path: Path, block_documents: int) -> None:
    source = written(tmp_path / "notes.jsonl")
    stored = built(source, tmp_path / "out", block_documents=block_documents).in_blocks()
    held = read_corpus(source).replace(block_documents=block_documents).in_blocks()
    assert (stored.dropped, stored.skipped, len(stored)) == (held.dropped, held.skipped, len(held))
    assert np.array_equal(stored.lengths(), held.lengths())
    assert np.array_equal(stored.document_frequencies(), held.document_frequencies())
    blocks, in_memory = stored.blocks(), held.blocks()
    assert [block.number for block in blocks] == [block.number for block in in_memory]
    for one, other in zip(blocks, in_memory, strict=True):
        same(pickle.loads(pickle.dumps(one)).read(), other.read())


def test_what_is_made_of_it_is_as_in_memory(tmp_path: Path) -> None:
    source = written(tmp_path / "notes.jsonl")
    stored, held = (
        built(source, tmp_path / "out", block_documents=50),
        read_corpus(source).replace(block_documents=50).in_blocks(),
    )
    for change in CHANGES:
        one, other = change(stored), change(held)
        assert np.array_equal(one.lengths(), other.lengths())
        for mine, theirs in zip(one.blocks(), other.blocks(), strict=True):
            same(pickle.loads(pickle.dumps(mine)).read(), theirs.read())


CHANGES: tuple[Callable[[Any], Any], ...] = (
    lambda corpus: corpus.select(np.random.default_rng(0).permutation(len(corpus))[:120]),
    lambda corpus: corpus.project(corpus.vocabulary[3:90:2]),
    lambda corpus: corpus.project(("unheard", *corpus.vocabulary[:50])).split(0.6, 3)[1],
    lambda corpus: corpus.without_persons().split(0.6, 3)[0],
    lambda corpus: corpus.of_party(np.arange(20, 200), "west").in_blocks(),
)


@pytest.mark.parametrize("few", [0, 1, 3, 10**9])
def test_documents_read_alone_are_as_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """However many documents of a block are read alone; one has so many sentences that others end far from where expected."""
    source = written(tmp_path / "notes.jsonl")
    with source.open("a") as file:
        text = ". ".join(["wordaa wordab"] * 300)
        file.write(json.dumps({"text": text, "label": "x", "party": "p0", "person": "q1", "embedding": [0.5, 9.0]}) + "\n")
    stored = built(source, tmp_path / "out", block_documents=80)
    held = read_corpus(source).replace(block_documents=80).in_blocks()
    monkeypatch.setattr("securetm.corpus.stored_documents.FEW", few)
    assert len(stored.blocks()) > 2
    for rows in (np.random.default_rng(0).permutation(len(held)), np.array([0, 5, 5, 230, 130]), np.arange(0)):
        same(stored.select(rows).read(), held.select(rows))


def test_equal_bytes_whatever_memory_and_files(tmp_path: Path) -> None:
    source = written(tmp_path / "notes.jsonl")
    digests = {
        built(source, tmp_path / f"out-{shards}", block_documents=20, shards=shards).documents.store.manifest.digest
        for shards in (1, 2, 7)
    }
    assert len(digests) == 1
    again = built(source, tmp_path / "again", block_documents=20, shards=2, megabytes=64)
    for file in sorted((tmp_path / "again").iterdir()):
        assert file.read_bytes() == (tmp_path / "out-2" / file.name).read_bytes()
        assert file.stat().st_mode & 0o777 == 0o600
    assert again.folder.stat().st_mode & 0o777 == 0o700


def test_damage_is_named(tmp_path: Path) -> None:
    stored = built(written(tmp_path / "notes.jsonl"), tmp_path / "out", block_documents=100)
    folder = stored.folder
    shard = folder / "00000.shard"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-64])
    with pytest.raises(Mistake, match=r"00000.shard .*bytes"):
        Corpus.load(folder)
    shard.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    with pytest.raises(Mistake, match="block 0 does not hold"):
        Corpus.load(folder).lengths()
    shard.write_bytes(whole)
    manifest = folder / "corpus.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"block_documents":100', '"block_documents":101'))
    with pytest.raises(Mistake, match=r"corpus.json .*what it said"):
        Corpus.load(folder)
    manifest.write_text("{}")
    with pytest.raises(Mistake, match="holds no corpus"):
        Corpus.load(folder)
    shard.unlink()
    manifest.write_text(text)
    with pytest.raises(Mistake, match="it is not there"):
        Corpus.load(folder)


def test_what_cannot_be_done_is_refused(tmp_path: Path) -> None:
    source = written(tmp_path / "notes.jsonl")
    stored = built(source, tmp_path / "out", block_documents=20)
    with pytest.raises(Mistake, match="a finished corpus"):
        CorpusBuild(str(source), tmp_path / "out").run()
    with pytest.raises(Mistake, match="other files"):
        CorpusBuild(str(source), tmp_path).run()
    (tmp_path / "half" / "building").mkdir(parents=True)
    with pytest.raises(Mistake, match="building has not ended"):
        Corpus.load(tmp_path / "half")
    with pytest.raises(Mistake, match="needs all documents in memory"):
        stored.select(np.zeros(70_000, dtype=np.int64)).gathered()


def test_a_block_that_takes_more_than_allowed_is_refused(tmp_path: Path) -> None:
    builder = CorpusBuilder(Tokeniser(), name="notes")
    parts = BuildingParts(tmp_path, builder)
    for line in range(4000):
        builder.add(Record("wings beat the air. horses run over the hill.", line))
    parts.add()
    blocks = UnwrittenBlocks(parts, np.arange(len(builder.lexicon.words)), 10_000)
    blocks.check_room(0, 9)
    with pytest.raises(Mistake, match="4000 documents takes 8 MB"):
        blocks.check_room(0, 7)


# ---- what a party remembers beside them ------------------------------------------------------------------------------------


COHORT = Cohort(b"", 0, ("party",))
MODEL = LDA(n_topics=3)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The same documents on disk and in memory, in the same blocks."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("corpus")
    names = [f"word{chr(97 + n)}" for n in range(20)]
    rows = [{"text": " ".join(rng.choice(names, rng.integers(1, 12))), "person": f"p{rng.integers(30)}"} for _ in range(120)]
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    CorpusBuild(str(folder / "documents.jsonl"), folder / "built", Columns(), block_documents=13).run()
    held = read_corpus(str(folder / "documents.jsonl")).replace(block_documents=13)
    return Corpus.load(folder / "built"), held.in_blocks()


class Trained:
    """A model that learns from these documents, and what the party remembers of them after each round."""

    def __init__(self, documents: Any, memory: Memory) -> None:
        self.documents, self.memory = documents.in_blocks(), memory
        self.state = MODEL.start(documents.vocabulary, np.random.default_rng(0))

    def round(self, number: int, keeping: Keeping, workers: int = 1) -> bytes:
        query = MODEL.query(self.state)
        route, context = Route.through(query.terms, (), COHORT), RoundContext(COHORT, OperatingSystem(), {})  # type: ignore[arg-type]
        rng, engine = np.random.default_rng(number), InAnyOrder(workers, number)
        answer = route.answer(query, self.documents, context, self.memory, rng, engine, keeping)
        self.state = MODEL.update(self.state, Answer(answer.vector))
        return answer.vector["counts"].tobytes()


def keeping(number: int, *memories: Memory) -> Keeping:
    return Keeping("run", f"{number:08d}", frozenset().union(*map(files_in, memories)))


def test_on_disk_as_in_memory_and_back(both: tuple[Any, Any]) -> None:
    stored, held = (Trained(documents, {}) for documents in both)
    assert len(stored.documents.blocks()) > 4
    answers, kept = [], dict[int, tuple[Memory, Any]]()
    for number in range(4):
        before = dict(stored.memory)
        answers.append(stored.round(number, keeping(number, before, *(memory for memory, _ in kept.values())), workers=2))
        assert answers[-1] == held.round(number, Keeping())
        if number == 1:
            kept[number] = dict(stored.memory), stored.state
    folder = stored.documents.folder / "memory" / "run"
    versions = {path.name.split("-")[1] for path in folder.iterdir()}
    assert versions == {"00000001.npz", "00000002.npz", "00000003.npz"}  # one to go back to, the one before, the last
    assert all(len(array) < 100 for array in stored.memory.values())
    stored.memory, stored.state = kept[1]
    again = [stored.round(number, keeping(number, kept[1][0]), workers=4) for number in (2, 3)]
    assert again == answers[2:]


def test_what_a_killed_worker_left_is_deleted_and_damage_is_named(both: tuple[Any, Any]) -> None:
    stored = Trained(both[0], {})
    folder = stored.documents.folder / "memory" / "other"
    stored.round(0, Keeping("other", "00000000"))
    left, later = folder / ".00000-00000000.npz.1.part", folder / "00000-00000009.npz"
    left.write_bytes(b"half")
    later.write_bytes(b"by a worker that was given up")
    stored.round(1, Keeping("other", "00000001", files_in(stored.memory)))
    assert not left.exists()
    assert later.exists()
    (folder / "00002-00000001.npz").write_bytes(b"damaged")
    before = {name: array.tobytes() for name, array in stored.memory.items()}
    with pytest.raises(Mistake, match="is damaged or was cut short"):
        stored.round(2, keeping(2, stored.memory))
    assert {name: array.tobytes() for name, array in stored.memory.items()} == before


@pytest.mark.slow
def test_a_comparison_reads_more_than_a_block_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parties with more documents than fit into memory at once are judged like parties whose documents are in memory."""
    monkeypatch.setattr("securetm.corpus.corpus.BLOCK_DOCUMENTS", 30)
    monkeypatch.setattr("securetm.federation.simulation.comparison.MOST_TRAINED", 25)
    monkeypatch.setattr("securetm.federation.simulation.comparison.MOST_JUDGED", 100)
    source = written(tmp_path / "notes.jsonl", 600)
    stored, held = built(source, tmp_path / "out", block_documents=20), read_corpus(source).replace(block_documents=20)
    settings = {"model.name": "lda", "model.n_topics": 3, "training.rounds": 2}
    results = [federate(equal(corpus, 5), tmp_path / name, settings) for name, corpus in (("disk", stored), ("memory", held))]
    assert min(len(part) for part in equal(stored, 5).values()) > 30
    for name in ("quality", "baseline", "shared_at_party", "alone", "adapted_at_party", "prevalence"):
        np.testing.assert_equal(results[0][name], results[1][name])  # parties with too many documents have no figure
