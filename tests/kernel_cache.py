"""Where compiled kernels lie while tests run: once for all processes, and never older than the source. It tests nothing itself.

Numba compiles a kernel again when its own file changes, and not when another one does from which it takes a kernel or a number.
So what was compiled of a file is thrown away where its code, or that of a file from which it takes something, is another one.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from .source_trees import ROOT, files, source, tree

FOLDER = ROOT / ".numba_cache"
RECORD = FOLDER / "sources.json"
VARIABLE = "NUMBA_CACHE_DIR"


def digests() -> dict[str, str]:
    """Of each file with kernels: what it does, with all that its kernels may be made of."""
    kernels = {path for path in files() if b"import njit" in source(path)}
    return {str(path.relative_to(ROOT)): _digest(_closure(path, kernels)) for path in sorted(kernels)}


def _closure(path: Path, kernels: set[Path]) -> set[Path]:
    """A file, those that it imports from, and those that their kernels are made of."""
    found, waiting = {path}, [path]
    while waiting:
        new = set(_imported(waiting.pop())) - found
        found |= new
        waiting += new & kernels
    return found


def _imported(path: Path) -> Iterator[Path]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("securetm"):
            for name in (node.module, *(f"{node.module}.{one.name}" for one in node.names)):
                place = ROOT.joinpath(*str(name).split("."))
                yield from (one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file())


def _digest(paths: set[Path]) -> str:
    whole = hashlib.sha256()
    for path in sorted(paths):
        whole.update(f"{path.relative_to(ROOT)} {ast.dump(tree(path))}".encode())
    return whole.hexdigest()[:16]


def use() -> None:
    """This process and those that it starts take kernels from there, unless they were told of another place."""
    if VARIABLE in os.environ:
        return
    now, known = digests(), json.loads(RECORD.read_text("utf-8")) if RECORD.is_file() else {}
    for name in (name for name, one in now.items() if known.get(name) != one):
        for compiled in FOLDER.rglob(f"{Path(name).stem}.*.nb?"):
            compiled.unlink(missing_ok=True)
    if known != now:
        FOLDER.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps(now, indent=0), "utf-8")
    os.environ[VARIABLE] = str(FOLDER)
