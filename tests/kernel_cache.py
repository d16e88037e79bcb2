"""Where compiled kernels lie while tests run: once for all processes, and never older than the source. It tests nothing itself.

Numba compiles a kernel again when its own file changes, and not when another one does from which it takes a kernel or a number.
So what was compiled of a file is thrown away where it, or a file from which it takes something, is another one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from .source_trees import ROOT, files, source

FOLDER = ROOT / ".numba_cache"
RECORD = FOLDER / "sources.json"
VARIABLE = "NUMBA_CACHE_DIR"
_IMPORT = re.compile(rb"^ *from (securetm[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)


def digests() -> dict[str, str]:
    """Of each file with kernels: itself, and all that its kernels may be made of."""
    kernels = {path for path in files() if b"securetm.compiled import" in source(path)}
    return {str(path.relative_to(ROOT)): _digest(_closure(path, kernels)) for path in sorted(kernels)}


def _closure(path: Path, kernels: set[Path]) -> set[Path]:
    """A file, those that it imports from, and those that their kernels are made of."""
    found, waiting = {path}, [path]
    while waiting:
        new = _imported(waiting.pop()) - found
        found |= new
        waiting += new & kernels
    return found


@cache
def _imported(path: Path) -> frozenset[Path]:
    return frozenset(_places(source(path)))


def _places(text: bytes) -> Iterator[Path]:
    for module, names in _IMPORT.findall(text):
        for name in (module, *(module + b"." + one for one in re.findall(rb"\w+", names))):
            place = ROOT.joinpath(*name.decode().split("."))
            yield from (one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file())


def _digest(paths: set[Path]) -> str:
    whole = hashlib.sha256()
    for path in sorted(paths):
        whole.update(f"{path.relative_to(ROOT)} {hashlib.sha256(source(path)).hexdigest()}".encode())
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


def compile_once() -> None:
    """Where two processes want the same kernel, one compiles it and the other waits for it.

    A kernel is waited for by those that call it, and calls none of them: nobody waits in a circle.
    """
    from numba.core.caching import NullCache
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    kernels: Any = Dispatcher
    plain, held = kernels.compile, set[str]()

    def compiled(kernel: Any, signature: Any) -> Any:
        name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
        with global_compiler_lock:  # by one thread of this process
            if name in held or isinstance(kernel._cache, NullCache) or not FOLDER.is_dir():
                return plain(kernel, signature)
            held.add(name)
            try:
                with (FOLDER / f"{name}.lock").open("w") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    return plain(kernel, signature)
            finally:
                held.discard(name)

    kernels.compile = compiled
