"""Every way in which a file can be bad ends in its own error: the file, the line, what to do, and no word of a document."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from securetm.corpus.readers import read_corpus
from securetm.errors import BadSetting, Mistake, NoSuchPath, SecuretmError

SECRET = "diagnosis"  # what no message may hold
GOOD = json.dumps({"text": f"the {SECRET} of a patient"}).encode()


def jsonl(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


BAD: dict[str, tuple[str, bytes, type[SecuretmError], int | None]] = {
    "empty jsonl": ("a.jsonl", b"", "is empty", None),
    "blank jsonl": ("a.jsonl", b"\n  \n", "is empty", None),
    "empty csv": ("a.csv", b"", "is empty", None),
    "header only": ("a.csv", b"text,label\n", "is empty", None),
    "empty parquet": ("a.parquet", b"", "is empty", None),
    "missing key": ("a.jsonl", jsonl(b'{"body": "x diagnosis"}'), "there is no column called", 1),
    "missing key later": ("a.jsonl", jsonl(GOOD, b'{"body": "x diagnosis"}'), "there is no column called", 2),
    "missing csv column": ("a.csv", b"diagnosis,label\nx,y\n", "there is no column called", 1),
    "broken json": ("a.jsonl", jsonl(GOOD, b"", b'{"text": "diagnosis'), "not a JSON object", 3),
    "json array": ("a.jsonl", b'["diagnosis"]\n', "not a JSON object", 1),
    "deep json": ("a.jsonl", b"[" * 200_000, "not a JSON object", 1),
    "huge number": ("a.jsonl", b'{"text": ' + b"9" * 6_000 + b"}", "not a JSON object", 1),
    "latin1 jsonl": ("a.jsonl", jsonl(GOOD, '{"text": "café diagnosis"}'.encode("latin1")), "not UTF-8", 2),
    "latin1 csv": ("a.csv", "text\ndiagnosis\ncafé\n".encode("latin1"), "not UTF-8", 3),
    "utf16": ("a.jsonl", '{"text": "diagnosis"}'.encode("utf-16"), "NUL byte", 1),
    "nul jsonl": ("a.jsonl", jsonl(GOOD, b'{"text": "diagnosis\0"}'), "NUL byte", 2),
    "escaped nul": ("a.jsonl", jsonl(GOOD, b'{"text": "diagnosis \\u0000"}'), "NUL byte", 2),
    "nul csv": ("a.csv", b"text\ndiagnosis\n\0\n", "NUL byte", 3),
    "ragged": ("a.csv", b"text,label\ndiagnosis,b\ndiagnosis,b,c\n", "line", 3),
    "open quote": ("a.csv", b'text,label\n"diagnosis,b\nc,d\n', "line", 3),
    "stray quote": ("a.csv", b'text,label\n"diagnosis"x,b\n', "line", 2),
    "duplicate column": ("a.csv", b"text,diagnosis,diagnosis\na,b,c\n", "line", 1),
    "cut gzip": ("a.jsonl.gz", gzip.compress(jsonl(*[GOOD] * 9_000))[:-40], "is damaged or was cut short", None),
    "no gzip": ("a.jsonl.gz", GOOD, "is damaged or was cut short", None),
    "wrong bits": ("a.csv.gz", gzip.compress(b"text\ndiagnosis\n")[:-8] + b"\1" * 8, "is damaged or was cut short", None),
    "no parquet": ("a.parquet", b"PAR1 diagnosis" * 9, "is damaged or was cut short", None),
    "number as text": ("a.jsonl", jsonl(GOOD, b'{"text": 7}'), "line", 2),
    "label is a list": ("a.jsonl", jsonl(b'{"text": "x", "label": ["diagnosis"]}'), "line", 1),
    "label is a text": ("a.jsonl", jsonl(b'{"text": "x", "label": "' + b"diagnosis " * 90 + b'"}'), "line", 1),
    "lone surrogate": ("a.jsonl", jsonl(b'{"text": "x", "label": "diagnosis \\ud800"}'), "line", 1),
    "no vector": ("a.csv", b'text,embedding\na word,"1,diagnosis"\n', "line", 2),
    "infinite vector": ("a.jsonl", jsonl(b'{"text": "word", "embedding": [1, 1e999]}'), "line", 1),
    "ragged vector": (
        "a.jsonl",
        jsonl(b'{"text":"a","embedding":[1]}', b'{"text":"b","embedding":[1,2]}'),
        "line",
        2,
    ),
    "person missing": (
        "a.jsonl",
        jsonl(b'{"text":"a","person":"ann"}', b'{"text":"diagnosis"}'),
        "and some have none",
        2,
    ),
    "person too late": ("a.jsonl", jsonl(GOOD, b'{"text":"a","person":"ann"}'), "and some have none", 2),
    "vector missing": ("a.jsonl", jsonl(b'{"text":"a","embedding":[1]}', GOOD), "and some have none", 2),
    "only stop words": (
        "a.jsonl",
        jsonl(b'{"text": "the of"}', b'{"text": null}', b'{"text": ""}'),
        "holds a word that",
        None,
    ),
    "unknown ending": ("a.docx", GOOD, "in a known format", None),
    "packed parquet": ("a.parquet.gz", GOOD, "in a known format", None),
}
PROBLEMS = {"ragged": "3 cells", "open quote": "quotes", "stray quote": "quotes", "duplicate column": "columns 2 and 3"}


@pytest.mark.parametrize("case", BAD)
def test_bad_file(tmp_path: Path, case: str) -> None:
    name, content, error, line = BAD[case]
    (tmp_path / name).write_bytes(content)
    said = refusal(error, lambda: read_corpus(tmp_path / name))
    assert str(tmp_path / name) in str(said)
    assert said.facts().get("line") == line
    assert PROBLEMS.get(case, "") in str(said)


def refusal(said: str | type[SecuretmError], read: Callable[[], Any]) -> SecuretmError:
    kind, match = (Mistake, said) if isinstance(said, str) else (said, None)
    with pytest.raises(kind, match=match) as caught:
        read()
    shown = f"{caught.value} {caught.value.advice()}"
    assert caught.value.advice()
    assert SECRET not in shown
    assert "{" not in str(caught.value)
    assert caught.value.__cause__ is None or SECRET not in str(caught.value.__cause__)
    return caught.value


def test_a_line_longer_than_any_may_be(tmp_path: Path) -> None:
    for name, head in (("a.jsonl", b'{"text": "'), ("a.csv", b"text\n"), ("a.txt", b"")):
        (tmp_path / name).write_bytes(head + b"diagnosis " * 3_500_000)
        where = tmp_path if name == "a.txt" else tmp_path / name
        said = refusal("longer than 32 MB", lambda where=where: read_corpus(where))  # type: ignore[misc]
        assert "32 MB" in str(said)


def test_paths(tmp_path: Path) -> None:
    refusal(NoSuchPath, lambda: read_corpus(tmp_path / "nowhere.jsonl"))
    refusal("in a known format", lambda: read_corpus(tmp_path))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_bytes("diagnosis\n\ncafé".encode("latin1"))
    said = refusal("not UTF-8", lambda: read_corpus(tmp_path))
    assert said.facts() == {"path": str(tmp_path / "sub" / "a.txt"), "line": 3}
    refusal(BadSetting, lambda: read_corpus(tmp_path, person="author"))


def test_columns_that_were_asked_for_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(GOOD))
    for role in ("text", "label", "party", "date", "person", "embedding"):
        said = refusal("there is no column called", lambda role=role: read_corpus(tmp_path / "a.jsonl", **{role: "column"}))  # type: ignore[misc, arg-type]
        assert "column" in str(said)


def test_bad_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for table, error in (
        (pa.table({"body": ["diagnosis"]}), "there is no column called"),
        (pa.table({"text": [1, 2]}), "line"),
        (pa.table({"text": pa.array([], pa.string())}), "is empty"),
        (pa.table([["diagnosis"], ["x"]], names=["text", "text"]), "line"),
        (pa.table({"text": [b"word", "caf\xe9 diagnosis".encode("latin1")]}), "not UTF-8"),
        (pa.table({"text": ["word", "diagnosis \0"]}), "NUL byte"),
        (pa.table({"text": not_utf8()}), "not UTF-8"),
        (pa.table({"text": ["word", "diagnosis"], "label": not_utf8()}), "is damaged or was cut short"),
        (pa.table({"text": ["x"], "label": [["diagnosis"]]}), "line"),
        (pa.table({"text": ["word", "diagnosis"], "embedding": [[1.0], None]}), "and some have none"),
        (pa.table({"text": ["word"], "embedding": ["1 diagnosis"]}), "line"),
    ):
        parquet.write_table(table, path)
        refusal(error, lambda: read_corpus(path))
    parquet.write_table(pa.table({"text": ["word " * 100] * 500}), path)
    path.write_bytes(path.read_bytes()[:-30])
    refusal("is damaged or was cut short", lambda: read_corpus(path))


def not_utf8() -> pa.Array:
    """Strings as other programs write them into Parquet without looking."""
    data, offsets = b"diagnosiscaf\xe9", np.array([0, 9, 13], np.int32)
    return pa.StringArray.from_buffers(2, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data))
