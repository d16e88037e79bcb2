"""The laws of every corpus reader: documents keep order and columns, files are refused by name, no error quotes a text.

Subclass `ReaderLaws`, give `reader`, `ending` and `write`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from securetm.corpus.readers import Reader
from securetm.corpus.records import Columns
from securetm.errors import SecuretmError

PRIVATE = "zanzibarquux"  # a word of every document, which no error may quote
NAMED = ("label", "party", "date", "person")
DOCUMENTS: tuple[dict[str, str], ...] = tuple(
    {"text": f"document {n} says {PRIVATE} and “{n}”.", "label": f"label {n % 2}", "party": f"party {n % 3}", "date": f"200{n}"}
    for n in range(6)
)


class ReaderLaws:
    """Laws of one reader."""

    ending: ClassVar[str]  # of the files that it reads, without the first dot
    columns: ClassVar[tuple[str, ...]] = ("label", "party", "date")  # the columns beside the text that its format has

    @pytest.fixture
    def reader(self) -> Reader:
        raise NotImplementedError("a subclass gives the reader")

    def write(self, path: Path, documents: Sequence[Mapping[str, str]]) -> None:
        """Writes these documents in the reader's format."""
        raise NotImplementedError("a subclass writes documents in its format")

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        place = tmp_path / f"documents.{self.ending}"
        self.write(place, DOCUMENTS)
        return place

    def test_documents_keep_their_order_and_their_columns(self, reader: Reader, path: Path) -> None:
        found = list(reader(path, Columns(), None))
        assert [one.text.strip() for one in found] == [one["text"] for one in DOCUMENTS]
        for column in self.columns:
            assert [getattr(one, column) for one in found] == [one[column] for one in DOCUMENTS]

    def test_reading_twice_gives_the_same(self, reader: Reader, path: Path) -> None:
        assert list(reader(path, Columns(), None)) == list(reader(path, Columns(), None))

    def test_progress_never_passes_the_end(self, reader: Reader, path: Path) -> None:
        reported: list[tuple[int, int]] = []
        list(reader(path, Columns(), lambda done, total: reported.append((done, total))))
        assert all(0 <= done <= total for done, total in reported)

    def test_a_column_that_is_not_there_is_refused(self, reader: Reader, path: Path) -> None:
        self.refused(reader, path, Columns(text="nowhere"))

    def test_a_file_that_is_missing_empty_or_of_another_format_is_refused(self, reader: Reader, tmp_path: Path) -> None:
        place = tmp_path / f"other.{self.ending}"
        self.refused(reader, place, Columns())
        for content in (b"", b"\xff\xfe\x00\x01 no such format \x00"):
            place.write_bytes(content)
            self.refused(reader, place, Columns())

    def test_a_file_that_was_cut_fails_by_name_if_it_fails(self, reader: Reader, path: Path) -> None:
        whole = path.read_bytes()
        for part in (len(whole) // 3, len(whole) // 2, len(whole) - 2):
            path.write_bytes(whole[:part])
            try:
                list(reader(path, Columns(), None))
            except SecuretmError as refused:
                self.quotes_nothing(refused, path)

    def refused(self, reader: Reader, path: Path, columns: Columns) -> None:
        with pytest.raises(SecuretmError) as caught:
            list(reader(path, columns, None))
        self.quotes_nothing(caught.value, path)

    def quotes_nothing(self, refused: SecuretmError, path: Path) -> None:
        text = f"{refused} {refused.advice()}"
        assert type(refused) is not SecuretmError
        assert path.name in text
        assert PRIVATE not in text
