"""Word vectors from files and installed packages: the same words, whatever the form; and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from securetm.corpus import word_vectors
from securetm.corpus.text_embeddings import NoSentenceModel
from securetm.corpus.word_vectors import MOST_NUMBERS, VectorSource, read_vectors
from securetm.errors import Mistake, NoSuchPath, NotFound

from .tiny_sentence_model import tiny_model

ROWS = {"rain": [3.0, 4.0], "storm": [0.0, 2.0], "nothing": [0.0, 0.0], "bread": [-1.0, 0.0]}


def text_of(head: str = "") -> str:
    return head + "".join(f"{word} {row[0]} {row[1]}\n" for word, row in ROWS.items())


@pytest.mark.parametrize("head", ["", "4 2\n"])
def test_text_with_and_without_a_first_line(head: str, tmp_path: Path) -> None:
    (tmp_path / "vectors.vec").write_text(text_of(head), "utf-8")
    found = read_vectors(str(tmp_path / "vectors.vec"), ["rain", "bread", "nothing", "unknown"])
    assert found.known(["rain", "storm", "nothing", "bread", "unknown"]) == ["rain", "bread"]  # only those asked for
    np.testing.assert_allclose(found.matrix(["bread", "unknown", "rain"]), [[-1, 0], [0, 0], [0.6, 0.8]])


def test_an_array_with_a_list_of_words_beside_it(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", np.array(list(ROWS.values()), dtype=np.float32))
    (tmp_path / "vectors.txt").write_text("\n".join(ROWS) + "\n", "utf-8")
    found = read_vectors(str(tmp_path / "vectors.npy"), ROWS)
    np.testing.assert_allclose(found.matrix(["storm", "rain"]), [[0, 1], [0.6, 0.8]], rtol=1e-6)
    (tmp_path / "vectors.txt").write_text("rain\n", "utf-8")
    with pytest.raises(Mistake, match="a row for each of the 1 lines"):
        read_vectors(str(tmp_path / "vectors.npy"), ROWS)
    (tmp_path / "vectors.txt").unlink()
    with pytest.raises(NoSuchPath):
        read_vectors(str(tmp_path / "vectors.npy"), ROWS)


def test_glove_knows_that_rain_is_like_storm() -> None:
    found = read_vectors("glove", ["rain", "storm", "bread", "xqzzy"])
    rain, storm, bread, unknown = found.matrix(["rain", "storm", "bread", "xqzzy"])
    assert rain @ storm > rain @ bread
    assert not unknown.any()


@pytest.mark.slow
def test_a_sentence_model_reads_each_word_as_a_sentence(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path)
    found = read_vectors(str(folder), ["rain", "storm"])
    assert found.known(["rain", "storm", "bread"]) == ["rain", "storm"]
    np.testing.assert_allclose(np.linalg.norm(found.matrix(["rain", "storm"]), axis=1), 1)


def test_names_that_are_no_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFound, match="word vectors called 'golve'"):
        read_vectors("golve", ["rain"])
    with pytest.raises(NoSentenceModel):
        read_vectors(str(tmp_path), ["rain"])
    monkeypatch.setattr(word_vectors, "GLOVE_PACKAGE", "no_such_package_of_vectors")
    with pytest.raises(Mistake, match="glove are not installed"):
        read_vectors("glove", ["rain"])


def test_what_might_never_end_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.vec")
    with (tmp_path / "huge.vec").open("wb") as huge:
        huge.truncate(1 << 35)  # a hole: it takes no room
    with (tmp_path / "line.vec").open("wb") as line:
        line.truncate(1 << 20)
    (tmp_path / "empty.vec").touch()
    np.save(tmp_path / "none.npy", np.zeros((0, 3)))
    (tmp_path / "none.txt").touch()
    (tmp_path / "wide.vec").write_text("rain" + " 1" * (MOST_NUMBERS + 1), "utf-8")
    np.save(tmp_path / "wide.npy", np.ones((1, MOST_NUMBERS + 1)))
    (tmp_path / "wide.txt").write_text("rain\n", "utf-8")
    (tmp_path / "words.vec").write_text("rain\n", "utf-8")
    for name, said in (
        ("pipe.vec", "no ordinary file"),
        ("huge.vec", "larger than"),
        ("line.vec", "too long"),
        ("empty.vec", "holds no vector"),
        ("none.npy", "holds no vector"),
        ("wide.vec", "line 1: it has 4,097 numbers where 1 to 4,096 are expected"),
        ("wide.npy", "4,096 are the most"),
        ("words.vec", "it has 0 numbers where 1 to 4,096 are expected"),
    ):
        with pytest.raises(Mistake, match=said):
            read_vectors(str(tmp_path / name), ["rain"])
    with pytest.raises(Mistake, match="no ordinary file"):
        VectorSource("/dev/zero").digest  # noqa: B018 - asking is the test
