"""Texts become embeddings at the party: alone, kept on disk, without a network."""

from __future__ import annotations

import json
import random
import socket
import sqlite3
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.corpus.readers import read_corpus
from securetm.corpus.text_embeddings import NoSentenceModel, TextEmbedder, find_sentence_model
from securetm.errors import Mistake, OpenToOthers
from tests.corpus.tiny_sentence_model import WORDS, tiny_model

from ..quick_part import quick

TEXTS = [" ".join(random.Random(n).choices(WORDS, k=1 + n % 23)) for n in range(150)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def embedder(folder: Path, tmp_path: Path) -> TextEmbedder:
    return TextEmbedder(str(folder), folder=tmp_path / "kept")


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that a model embeds from now on."""
    seen: list[str] = []
    computed = TextEmbedder._computed

    def and_note(self: TextEmbedder, texts: list[str]) -> Any:
        seen.extend(texts)
        return computed(self, texts)

    monkeypatch.setattr(TextEmbedder, "_computed", and_note)
    return seen


def test_a_text_has_the_same_embedding_whatever_is_beside_it(embedder: TextEmbedder, tmp_path: Path, folder: Path) -> None:
    whole = embedder.embed(TEXTS)
    assert whole.shape == (150, 16)
    assert whole.dtype == np.float32
    few = TextEmbedder(str(folder), folder=tmp_path / "others").embed(TEXTS[7:9])
    assert few.tobytes() == whole[7:9].tobytes()
    assert len(np.unique(whole, axis=0)) == len(set(TEXTS))


def test_kept_embeddings_are_not_computed_again(embedder: TextEmbedder, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    first = embedder.embed(TEXTS)
    seen = counted(monkeypatch)
    again = TextEmbedder(str(folder), folder=embedder.folder)
    assert again.embed(TEXTS).tobytes() == first.tobytes()
    assert seen == []
    again.embed([TEXTS[3], "rain on a hill and sun"])
    assert seen == ["rain on a hill and sun"]


def test_what_was_done_before_an_interruption_is_kept(embedder: TextEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(done: int, _total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embedder.embed(TEXTS, stop)
    seen = counted(monkeypatch)
    embedder.embed(TEXTS)
    assert 0 < len(seen) < len(set(TEXTS))


def test_the_cache_is_for_its_owner_alone(embedder: TextEmbedder) -> None:
    embedder.embed(TEXTS[:3])
    (kept,) = embedder.folder.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(embedder.folder.stat().st_mode) == 0o700
    kept.chmod(0o644)
    with pytest.raises(OpenToOthers):
        embedder.embed(TEXTS[:3])


@pytest.mark.parametrize(
    "damage", quick(["not a database", "a changed row", "a short row", "a number", "a text"], "not a database", "a changed row")
)
def test_a_damaged_cache_is_computed_again(embedder: TextEmbedder, damage: str) -> None:
    first = embedder.embed(TEXTS)
    (kept,) = embedder.folder.iterdir()
    if damage == "not a database":
        kept.write_bytes(b"damaged" * 1000)
    else:
        with sqlite3.connect(kept) as opened:
            changes = {"a changed row": "zeroblob(length(numbers))", "a number": "3", "a text": "'damaged numbers'"}
            changed = changes.get(damage, "x'00'")
            opened.execute(f"UPDATE embeddings SET numbers = {changed}")
        opened.close()
    assert embedder.embed(TEXTS).tobytes() == first.tobytes()
    assert embedder.embed(TEXTS).tobytes() == first.tobytes()


def test_a_reader_embeds_the_documents_that_it_keeps(embedder: TextEmbedder, tmp_path: Path) -> None:
    rows = [{"text": "the cat sits"}, {"text": "1 2"}, {"text": "dog runs"}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    read = read_corpus(tmp_path / "a.jsonl", embed=embedder.embed)
    assert len(read) == 2
    assert read.embeddings.tobytes() == embedder.embed(["the cat sits", "dog runs"]).tobytes()
    whole = read_corpus(tmp_path / "a.jsonl", embed=embedder.embed, keep_empty=True)
    assert whole.embeddings.shape == (3, 16)


def test_other_weights_are_refused_by_name(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="has weights of digest"):
        TextEmbedder(str(folder), digest="0" * 64, folder=tmp_path).embed(["cat"])


def test_a_name_that_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *host: asked.append(host))
    nobody = ("~nobody-here/model", "m" * 300, "m\0")
    for name in ("no-such-model", "somebody/no-such-model", "a/b/c", str(tmp_path / "nowhere"), *nobody):
        with pytest.raises(NoSentenceModel, match="is on this machine"):
            find_sentence_model(name)
    with pytest.raises(NoSentenceModel, match="neither modules"):
        find_sentence_model(str(tmp_path))
    assert not asked


def test_a_folder_that_is_no_sentence_model(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(Mistake, match="holds no weights"):
        TextEmbedder(str(tmp_path), folder=tmp_path / "kept").embed(["cat"])
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "nowhere")
    with pytest.raises(Mistake, match="No such file"):
        TextEmbedder(str(tmp_path), folder=tmp_path / "kept").embed(["cat"])
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(Mistake, match="settings cannot be read"):
        TextEmbedder(str(tmp_path), folder=tmp_path / "kept").embed(["cat"])
    for file in ("modules.json", "config.json"):
        (tmp_path / file).write_bytes((folder / file).read_bytes())
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_bytes((folder / "1_Pooling" / "config.json").read_bytes())
    with pytest.raises(Mistake, match="loading it ended in"):
        TextEmbedder(str(tmp_path), folder=tmp_path / "kept").embed(["cat"])


def test_the_installed_model_works_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *host: asked.append(host))
    embedder = TextEmbedder(folder=tmp_path)
    near, same, far = embedder.embed(["a cat sits on the mat", "on a rug there is a kitten", "interest rates of banks"])
    assert near @ same > near @ far
    assert not asked
