"""Writes the topics of a model and the topic shares of documents as CSV or Parquet. It computes neither."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from securetm.contracts import Array
from securetm.foreign_text import csv_text
from securetm.reports.streams import StandardOutput
from securetm.reports.writing import write_report

STANDARD_OUTPUT = "-"  # as the name of a file


def topics_csv(words: Iterable[tuple[int, int, str, float]], labels: Mapping[int, str], to: str, *, private: bool) -> None:
    """A line for each of a topic's heaviest words: topic (from 0), label, rank (from 1), word, weight."""
    lines = [(topic, labels.get(topic, ""), rank, word, f"{weight:.8g}") for topic, rank, word, weight in words]
    _write(csv_text(("topic", "label", "rank", "word", "weight"), lines), to, private=private)


def shares_csv(shares: Array, known: Sequence[int], to: str) -> None:
    """A line for each document: its number (from 1), its known words, and the share of each topic."""
    lines = [(*facts, *(f"{share:.6f}" for share in row)) for facts, row in zip(enumerate(known, 1), shares, strict=True)]
    _write(csv_text(_columns(shares), lines), to, private=True)


def shares_parquet(shares: Array, known: Sequence[int], to: Path) -> None:
    """The same columns as an Arrow table, in a Parquet file that its owner alone can read."""
    import pyarrow
    from pyarrow import parquet

    columns: list[Any] = [range(1, len(known) + 1), known, *shares.T]
    table = pyarrow.table([pyarrow.array(column) for column in columns], names=list(_columns(shares)))
    whole = io.BytesIO()
    parquet.write_table(table, whole)
    write_report(to, whole.getvalue(), private=True)


def _columns(shares: Array) -> tuple[str, ...]:
    return "document", "known_words", *(f"topic_{topic}" for topic in range(shares.shape[1]))


def _write(text: str, to: str, private: bool) -> None:
    if to == STANDARD_OUTPUT:
        StandardOutput().write(text)
    else:
        write_report(Path(to), text, private=private)
