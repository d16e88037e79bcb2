"""What is saved comes back whole; what is damaged is refused by name."""

from __future__ import annotations

import dataclasses
import errno
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.errors import CannotWrite, Mistake, NoSuchPath
from tests.corpus.generated import check, corpora


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
    fields = (*dataclasses.fields(Corpus)[1:], *dataclasses.fields(HeldDocuments))
    for field in fields:
        mine, theirs = getattr(corpus, field.name), getattr(again, field.name)
        if field.name == "counts":
            assert (mine != theirs).nnz == 0
        elif isinstance(mine, np.ndarray):
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
