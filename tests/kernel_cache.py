"""Where compiled kernels lie while tests run: once for all processes, and never older than the source. It tests nothing itself.

Numba compiles a kernel again when its own file changes, and not when a kernel that it calls in another file does. So the folder
has the digest of all files with kernels, whatever their remarks: where any of them changed, all kernels are compiled anew.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".numba_cache"
VARIABLE = "NUMBA_CACHE_DIR"


def digest() -> str:
    """Of what the files with kernels do, and where they are."""
    whole = hashlib.sha256()
    for path in sorted((ROOT / "securetm").rglob("*.py")):
        if b"import njit" in (text := path.read_bytes()):
            whole.update(f"{path.relative_to(ROOT)} {ast.dump(ast.parse(text))}".encode())
    return whole.hexdigest()[:16]


def use() -> None:
    """This process and those that it starts take kernels from there, unless they were told of another place."""
    if VARIABLE in os.environ:
        return
    folder = FOLDER / digest()
    if not folder.is_dir():
        shutil.rmtree(FOLDER, ignore_errors=True)  # of an older source
        folder.mkdir(parents=True, exist_ok=True)
    os.environ[VARIABLE] = str(folder)
