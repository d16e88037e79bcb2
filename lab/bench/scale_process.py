"""Measures one case of `bench scale`: python -m lab.bench.scale_process FOLDER CASE prints one line of JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lab.bench.scale_cases import (
    BUILD,
    CHOICE,
    LARGE,
    PARTS,
    ROUND,
    TEXT,
    ScaleCase,
    answered,
    built,
    built_from_text,
)
from lab.bench.scale_parts import choice, parts
from lab.measuring import Row
from lab.processes import memory_now

_KINDS = {BUILD: built, TEXT: built_from_text, ROUND: answered, PARTS: parts, LARGE: parts, CHOICE: choice}


def measured(case: ScaleCase, folder: Path) -> Row:
    """The figures of one case."""
    return {**_KINDS[case.what](case, folder), "peak_mib": round(memory_now(), 1)}


def main() -> None:
    """Measures the case that the command line names."""
    folder, case = sys.argv[1:]
    print(json.dumps(measured(ScaleCase(**json.loads(case)), Path(folder))), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
