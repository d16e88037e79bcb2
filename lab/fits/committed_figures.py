"""Writes the figures of committed results that the product shows: `python -m lab.fits.committed_figures FILE`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.measuring import committed
from securetm.reports.committed_costs import BENCH, CONTROL, CORPUS, FREQUENCIES, FRONTIER, HE, JUDGING, MODEL, TOPICS, WORDS

COLUMNS = {
    FRONTIER: ("model", "profile", "epsilon", "held_out", "f1", "rounds", "seconds", "megabytes"),
    BENCH: ("case", "ours", "rounds"),
    WORDS: ("model", "form", "held_out", "rounds", "seconds", "megabytes_up"),
    HE: ("case", "times_float32"),
}


def shown() -> dict[str, list[dict[str, Any]]]:
    """The rows and columns that are read, by the name of the result."""
    return {
        name: [{column: row[column] for column in columns} for row in committed(name)["rows"] if _read(name, row)]
        for name, columns in COLUMNS.items()
    }


def _read(name: str, row: Mapping[str, Any]) -> bool:
    if name == FRONTIER:
        judged = (row["corpus"], row["topics"], row["judging"]) == (CORPUS, TOPICS, JUDGING)
        return judged and row["model"] in (MODEL, CONTROL, FREQUENCIES)
    if name == BENCH:
        return str(row["case"]).startswith(MODEL)
    return row["model"] == "lda" if name == WORDS else "times_float32" in row


if __name__ == "__main__":
    rows = {name: "[\n    " + ",\n    ".join(map(json.dumps, found)) + "\n  ]" for name, found in shown().items()}
    text = ",\n  ".join(f'"{name}": {found}' for name, found in rows.items())
    Path(sys.argv[1]).write_text(f"{{\n  {text}\n}}\n", encoding="utf-8")
