"""The result of a paper's experiment as files: everything as JSON, the rows as CSV, and each figure as SVG and PNG."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

from lab.measuring import Row
from lab.papers.pictures import figures_of, png, svg
from securetm.reports.files import write_report


def write_files(result: Row, folder: Path) -> list[Path]:
    """Writes `NAME-SCALE.json`, `.csv`, and a picture of each figure twice; returns what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{result['reproduction']}-{result['scale']}"
    files: dict[str, str | bytes] = {f"{name}.json": as_json(result), f"{name}.csv": as_csv(result)}
    for figure, plots in figures_of(result).items():
        files[f"{name}-{in_file_name(figure)}.svg"] = svg(figure, plots)
        files[f"{name}-{in_file_name(figure)}.png"] = png(plots)
    for file, text in files.items():
        write_report(folder / file, text)
    return [folder / file for file in files]


def in_file_name(figure: str) -> str:
    """`Figure 3` becomes `figure-3`."""
    return re.sub(r"[^a-z0-9]+", "-", figure.lower()).strip("-")


def as_json(result: Row) -> str:
    """With no number that JSON lacks."""
    finite = json.loads(json.dumps(result), parse_constant=lambda _: None)
    return json.dumps(finite, indent=2, ensure_ascii=False) + "\n"


def as_csv(result: Row) -> str:
    """One line a row; a cell that a row lacks is empty."""
    columns = list(dict.fromkeys(column for row in result["rows"] for column in row))
    out = io.StringIO()
    table = csv.DictWriter(out, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(result["rows"])
    return out.getvalue()
