"""The JSON document that every command can print. What people read instead is in reports/terminal.py."""

from __future__ import annotations

import json
import math
import sys
from typing import Annotated, Any

import typer

from securetm.reports.streams import output_named

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and the tables on stderr.")]


def print_json(content: Any) -> None:
    """One document; what is not a number is null, since JSON knows no NaN."""
    encoding = sys.stdout.encoding or "utf-8"
    spelt = not encoding.lower().startswith("utf")  # \\u00e9 is JSON wherever it is written
    with output_named():
        sys.stdout.write(json.dumps(_finite(content), ensure_ascii=spelt, indent=2, allow_nan=False) + "\n")
        sys.stdout.flush()  # here, where a reader that has gone can still be told apart from a failure


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
