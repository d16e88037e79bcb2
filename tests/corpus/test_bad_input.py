"""Every way in which documents can be bad ends in its own error: the file, the line, what to do, and no word of a document."""

from __future__ import annotations

import gzip
import json
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from securetm.corpus.blocks import read_arrays, save_arrays
from securetm.corpus.corpus import Corpus
from securetm.corpus.dates import all_periods, periods_of
from securetm.corpus.document_names import text_digest
from securetm.corpus.readers import read_corpus
from securetm.corpus.tokeniser import LONGEST, Tokeniser
from securetm.errors import BadSetting, Mistake, NoSuchPath, SecuretmError
from securetm.models.lda.lda import LDA

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
    "missing key later": ("a.jsonl", jsonl(GOOD, b"", b'{"body": "x diagnosis"}'), "this line has no 'text'", 3),
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
    "open quote": ("a.csv", b'text,label\n\nc,d\n"diagnosis,b\nc,d\nc,d\n', "line", 4),
    "missing cell": ("a.csv", b'text,label\n"a\n\nb",c\n\n"diagnosis\nb"\nc,d\n', "line", 6),
    "missing person": ("a.csv", b'text,person\n"a\nb",c\n\n"diagnosis\nb",\nc,d\n', "this document has no person", 5),
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
        "this document has no person, and the first one has one",
        2,
    ),
    "person too late": (
        "a.jsonl",
        jsonl(GOOD, b"", b'{"text":"a","person":"ann"}'),
        "has a person, and the first one has none",
        3,
    ),
    "vector missing": ("a.jsonl", jsonl(b'{"text":"a","embedding":[1]}', GOOD), "this document has no embedding", 2),
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
        (pa.table({"text": [1, 2]}), "row 1"),
        (pa.table({"text": pa.array([], pa.string())}), "is empty"),
        (pa.table([["diagnosis"], ["x"]], names=["text", "text"]), "row 1"),
        (pa.table({"text": [b"word", "caf\xe9 diagnosis".encode("latin1")]}), "not UTF-8"),
        (pa.table({"text": ["word", "diagnosis \0"]}), "NUL byte"),
        (pa.table({"text": not_utf8()}), "not UTF-8"),
        (pa.table({"text": ["word", "diagnosis"], "label": not_utf8()}), "is damaged or was cut short"),
        (pa.table({"text": ["x"], "label": [["diagnosis"]]}), "row 1"),
        (pa.table({"text": ["word", "diagnosis"], "embedding": [[1.0], None]}), "row 2: this document has no embedding"),
        (pa.table({"text": ["word"], "embedding": ["1 diagnosis"]}), "row 1"),
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


# ---- lengths ---------------------------------------------------------------------------------------------------------------


WORDS = ("river", "court")


@pytest.mark.parametrize("entry", [2**32 - 1, 2**32 + 1, 2**31, 10**8, LONGEST + 1, 2.0**40], ids=lambda entry: f"{entry:.3g}")
def test_a_count_that_does_not_fit_is_no_other_count(entry: float) -> None:
    """2^32 - 1 would be -1 in 32 bits, and 2^32 + 1 would be 1."""
    kind: Any = np.float64 if isinstance(entry, float) else np.int64
    for matrix in (np.array([[1, 0], [0, entry]], kind), sparse.csr_array(np.array([[1, 0], [0, entry]], kind))):
        with pytest.raises(Mistake, match=r"document 2 has .* words, and a document has at most 1,000,000"):
            Corpus.from_counts(matrix, WORDS)
        with pytest.raises(Mistake, match="a document has at most"):
            LDA(n_topics=2).fit(matrix)


def test_many_counts_are_one_document() -> None:
    row = np.full((1, 100), LONGEST // 50)
    words = [f"word{n}" for n in range(100)]
    with pytest.raises(Mistake, match="a document has at most"):
        Corpus.from_counts(row, words)
    assert Corpus.from_counts(row, words, longest=10 * LONGEST).lengths().tolist() == [2 * LONGEST]
    with pytest.raises(BadSetting, match="must lie between 1 and 2,147,483,647"):
        Corpus.from_counts(row, words, longest=2**31)


@pytest.mark.parametrize("entry", [np.inf, np.nan, -1.0, 0.5])
def test_what_is_no_count_is_refused(entry: float) -> None:
    with pytest.raises(BadSetting, match=r"whole numbers, zero or more"):
        Corpus.from_counts(np.array([[1.0, entry]]), WORDS)


@pytest.mark.parametrize("word", [2**32, 2**32 + 1, -1, 2])
def test_a_word_that_does_not_exist_is_no_other_word(word: int) -> None:
    with pytest.raises(Mistake, match="words"):
        Corpus.from_tokens(np.array([0, word]), np.array([2]), WORDS)


def test_a_long_document_is_refused_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps({"text": "river court " * times}) + "\n" for times in (1, 50, 2)))
    with pytest.raises(Mistake, match=r"notes.jsonl, line 2: a document has 100 words, and a document has at most 99"):
        read_corpus(path, tokeniser=Tokeniser(longest=99))
    assert read_corpus(path, tokeniser=Tokeniser(longest=100)).lengths().tolist() == [2, 100, 4]


@pytest.mark.parametrize(("entry", "kind"), [(2**32 - 1, np.uint32), (-1, np.int32), (0, np.int32), (2**31, np.int64)])
def test_counts_of_a_file_are_those_of_a_corpus(entry: int, kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "corpus.npz"
    Corpus.from_counts(np.array([[1, 0], [0, 1]]), WORDS).save(path)
    arrays = read_arrays(path)
    save_arrays(path, {**arrays, "counts.data": np.array([entry, 1], kind)})
    with pytest.raises(Mistake, match="do not fit together"):
        Corpus.load(path)


# ---- dates -----------------------------------------------------------------------------------------------------------------


def test_dates_fall_into_their_periods() -> None:
    dates = np.array(["2026-11-23", "2024-02-29T18:30", "2024-12-31 23:59:59+02:00"])
    assert periods_of(dates, "year", "north") == ["2026", "2024", "2024"]
    assert periods_of(dates, "month", "north") == ["2026-11", "2024-02", "2024-12"]
    assert periods_of(dates, "day", "north") == ["2026-11-23", "2024-02-29", "2024-12-31"]
    assert periods_of(np.array(["1999", "1999-05"]), "year", "north") == ["1999", "1999"]


WRONG = (
    "11/23/2026", "2026-13", "2026-02-30", "20261123", "2026-1-5", "0000", "2026-11T10:00", "2026-11-23T25:00", "", "soon",
    "２０２６", "2026-11-23x", " 2026",
)  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_date_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Mistake, match="north, document 2:") as refused:
        periods_of(np.array(["2026", text]), "year", "north")
    assert refused.value.facts()["wanted"] == "date"


def test_the_text_of_a_wrong_date_is_not_shown() -> None:
    with pytest.raises(Mistake, match="names no") as refused:
        periods_of(np.array(["Ms 12 Secret " + "x" * 90]), "year", "north")
    assert refused.value.facts()["form"] == "aa 99 aaaaaa " + "a" * 17 + "…"


def test_a_coarse_date_is_in_no_finer_period() -> None:
    with pytest.raises(Mistake, match="names no month"):
        periods_of(np.array(["2026"]), "month", "north")
    with pytest.raises(Mistake, match="north"):
        periods_of(None, "year", "north")


def test_periods_between_are_there_too() -> None:
    assert all_periods(["2027-02", "2026-11"], "month") == ["2026-11", "2026-12", "2027-01", "2027-02"]
    assert all_periods(["2024-02-28", "2024-03-01"], "day") == ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert all_periods(["0201", "2026"], "year") == ["0201", "2026"]  # a mistaken year gives no table of centuries
    assert all_periods([], "year") == []


# ---- letters ---------------------------------------------------------------------------------------------------------------


FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def _written_otherwise(letter: str) -> set[str]:
    capital = letter.upper()
    cases = (capital, letter.lower(), letter.title(), letter.casefold(), capital.lower())
    return {*cases, *(unicodedata.normalize(form, one) for form in FORMS for one in (letter, capital))}


def test_no_letter_makes_a_new_document_by_its_case_or_its_form() -> None:
    """All letters with a case, and those of which forms differ; one text each is enough, since a digest is of the whole."""
    every = map(chr, range(sys.maxunicode + 1))
    letters = [letter for letter in every if unicodedata.category(letter) not in ("Cn", "Co", "Cs")]  # no letter yet
    moved = [letter for letter in letters if _written_otherwise(letter) != {letter}]
    assert len(moved) > 10_000
    split = [one for one in moved if len({text_digest(f"a{other}b") for other in {one, *_written_otherwise(one)}}) > 1]
    assert split == []


def test_other_letters_are_another_document() -> None:
    assert len({text_digest(text) for text in ("one text", "one tent", "onetext", "one text text", "öne text", "")}) == 6
