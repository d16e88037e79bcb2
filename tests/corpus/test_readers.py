"""Every format gives the same corpus, a document at a time. What bad files do is tested elsewhere."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from securetm.corpus.readers import read_corpus
from tests.corpus.generated import check, sentences_of

TEXTS = ["Wings beat. Feathers, too, fall!", "Horses run\n\nover hills", "the of", "naïve cafés — “quoted, twice”"]
LABELS = ["bird", "horse", "none", "café"]
PEOPLE = ["ann", "bob", "ann", "ann"]
VECTORS = [[0.5, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
WANTED = [[["wings", "beat"], ["feathers", "fall"]], [["horses", "run"], ["hills"]], [["naïve", "cafés", "quoted"]]]
ROWS = [{"text": t, "label": n, "person": p, "embedding": v} for t, n, p, v in zip(TEXTS, LABELS, PEOPLE, VECTORS, strict=True)]


def write(path: Path) -> None:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        if ".jsonl" in path.name:
            file.writelines(json.dumps(row) + "\n" for row in ROWS)
            return
        delimiter = "\t" if ".tsv" in path.name else ";" if "semicolon" in path.name else ","
        table = csv.writer(file, delimiter=delimiter)
        table.writerow(["text", "label", "person", "embedding"])
        table.writerows([r["text"], r["label"], r["person"], " ".join(map(str, r["embedding"]))] for r in ROWS)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.csv.gz", "a.tsv", "a.tsv.gz", "semicolon.csv"])
def test_text_formats(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    seen: list[tuple[int, int]] = []
    corpus = read_corpus(tmp_path / name, on_progress=lambda done, total: seen.append((done, total)))
    check(corpus)
    assert sentences_of(corpus) == WANTED
    assert corpus.skipped == 1
    assert corpus.labels.tolist() == ["bird", "horse", "café"]
    assert corpus.persons.tolist() == [0, 1, 0]
    assert corpus.embeddings.tolist() == [VECTORS[0], VECTORS[1], VECTORS[3]]
    assert corpus.embeddings.dtype == np.float32
    assert corpus.name == name
    assert seen[-1] == ((tmp_path / name).stat().st_size,) * 2


@pytest.mark.parametrize("vectors", [VECTORS, pa.array(VECTORS, pa.list_(pa.float32(), 2)), [str(v) for v in VECTORS]])
def test_parquet_as_gfedntm_writes_it(tmp_path: Path, vectors: object) -> None:
    columns = {"id": [1, 2, 3, 4], "bow_text": TEXTS, "embeddings": vectors, "fos": LABELS, "text": ["wrong"] * 4}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=2)
    seen: list[tuple[int, int]] = []
    corpus = read_corpus(tmp_path / "a.parquet", on_progress=lambda done, total: seen.append((done, total)))
    assert sentences_of(corpus) == WANTED
    assert corpus.labels.tolist() == ["bird", "horse", "café"]
    assert corpus.embeddings.tolist() == [VECTORS[0], VECTORS[1], VECTORS[3]]
    assert seen[-1] == ((tmp_path / "a.parquet").stat().st_size,) * 2


def test_a_folder(tmp_path: Path) -> None:
    for name, text in zip(("b/2.txt", "a/1.txt", "3.txt"), TEXTS[:2] + TEXTS[3:], strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
    (tmp_path / "notes.md").write_text("not a document")
    corpus = read_corpus(tmp_path)
    assert sentences_of(corpus) == [WANTED[2], WANTED[1], WANTED[0]]
    assert corpus.labels.tolist() == ["", "a", "b"]


def test_renamed_columns_and_gaps(tmp_path: Path) -> None:
    rows = [{"body": "wings", "who": 7}, {"body": "hooves", "who": 8, "group": None}, {"body": "horns", "who": 7, "group": "z"}]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(r) for r in [{**rows[0], "group": "y"}, *rows[1:]]))
    corpus = read_corpus(tmp_path / "a.jsonl", text="body", person="who", party="group", name="given")
    assert corpus.parties.tolist() == ["y", "", "z"]
    assert corpus.persons.tolist() == [0, 1, 0]
    assert corpus.name == "given"
    assert corpus.labels is None


def test_a_large_group_of_rows_of_a_parquet_file_is_not_in_memory_at_once(tmp_path: Path) -> None:
    """Mapped pages count as the process's memory too, so the file is read by pieces."""
    texts = ["wings beat over the hills and far away " * 20] * 40_000
    parquet.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", compression=None, use_dictionary=False)
    size = (tmp_path / "a.parquet").stat().st_size
    code = (
        "import sys; from securetm.corpus.records import Columns; from securetm.corpus.readers import records_of\n"
        "peak = lambda: int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) << 10\n"
        "found = records_of(sys.argv[1], Columns())[1]; next(found); before = peak()\n"
        "print(sum(1 for _ in found), peak() - before)"
    )
    if not Path("/proc/self/status").is_file():
        pytest.skip("this system does not measure the peak of a process's memory")
    told = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.parquet")], check=True, capture_output=True, text=True)
    rows, grown = map(int, told.stdout.split())
    assert rows == len(texts) - 1
    assert grown < size / 2
