"""What every command shares: one JSON document on stdout, everything for people on stderr."""

from __future__ import annotations

import json
import math
import sys
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout; tables and progress go to stderr.")]


def print_json(content: Any) -> None:
    """One document; what is not a number is null, since JSON knows no NaN."""
    sys.stdout.write(json.dumps(_finite(content), ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()  # here, where a reader that has gone can still be told apart from a failure


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
