"""The JSON document that every command can print. What people read instead is in reports/terminal.py."""

from __future__ import annotations

import json
import math
import sys
from typing import Annotated, Any

import typer

from securetm.foreign_text import json_text
from securetm.reports.files import output_named

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and the tables on stderr.")]


def print_json(content: Any) -> None:
    """Prints one document. A number that is not finite becomes null, because JSON has no NaN."""
    encoding = sys.stdout.encoding or "utf-8"
    spelt = not encoding.lower().startswith("utf")  # escapes are valid JSON in every encoding
    with output_named():
        sys.stdout.write(json_text(json.dumps(_finite(content), ensure_ascii=spelt, indent=2, allow_nan=False)) + "\n")
        sys.stdout.flush()  # here, where a reader that has gone can still be distinguished from a failure


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
