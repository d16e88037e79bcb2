"""What a corpus on disk holds, as a table for the terminal. It reads no document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_MB = 1 << 20


def show_manifest(facts: Mapping[str, Any], to: Console) -> None:
    """One row for each figure."""
    from rich.table import Table

    table = Table(title=f"Corpus {facts['name']} in {facts['folder']}", show_header=False, title_justify="left")
    for title, value in _rows(facts):
        table.add_row(title, value)
    to.print(table)


def _rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    left_out = f" ({facts['left_out']:,} without a word are left out)" if facts["left_out"] else ""
    files = f"{facts['shards']:,} of {facts['bytes'] / _MB:,.1f} MB together"
    blocks = f"{facts['blocks']:,} of {facts['block_documents']:,} documents; the largest takes"
    settings = ", ".join(f"{name} = {value}" for name, value in facts["tokeniser"].items())
    verified = [("compared", "every byte is as it was written")] if facts.get("verified") else []
    return [
        ("documents", f"{facts['documents']:,}{left_out}"),
        ("words", f"{facts['words']:,} different, {facts['tokens']:,} in all"),
        ("columns", ", ".join(facts["columns"]) or "none but the text"),
        ("blocks", f"{blocks} {facts['largest_block_bytes'] / _MB:,.1f} MB"),
        ("files", files),
        ("tokeniser", settings),
        ("digest", facts["digest"]),
        *verified,
    ]
