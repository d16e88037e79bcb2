"""Rows of a long experiment: made in several processes, written to a file as they come, and not made twice.

The file has a line of JSON for each row. What a row is, and whether it is right, is said elsewhere.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.measuring import OnProgress, Row, stepper
from lab.research_corpora import chosen_folder, looking_in
from securetm.errors import BadSetting

Key = Mapping[str, Any]
_LOOKING = ExitStack()  # of a worker: kept, since a context that nobody holds ends at once
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class KeptRows:
    """The rows that were made so far, by the text of their keys; without a path, of this process only."""

    path: Path | None = None
    rows: dict[str, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reads what an earlier start wrote; where that was killed, its last line may be half a line."""
        if self.path is None or not self.path.is_file():
            return
        text = self.path.read_text("utf-8")
        for line in text[: text.rfind("\n") + 1].splitlines():
            found = json.loads(line)
            self.rows[_text(found["key"])] = found["row"]
        self.path.write_text(text[: text.rfind("\n") + 1], "utf-8")

    def __contains__(self, key: Key) -> bool:
        return _text(key) in self.rows

    def __getitem__(self, key: Key) -> Row:
        return self.rows[_text(key)]

    def add(self, key: Key, row: Row) -> None:
        self.rows[_text(key)] = row
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "row": row}) + "\n")


def _text(key: Key) -> str:
    return json.dumps(key, sort_keys=True)


def fits(key: Key, only: Sequence[str], where: str) -> bool:
    """Whether a key fits every `field=value` of `only`; several values of one field are alternatives."""
    wanted: dict[str, set[str]] = {}
    for one in only:
        field, _, value = one.partition("=")
        wanted.setdefault(field.strip(), set()).add(value.strip())
    if unknown := wanted.keys() - key.keys():
        problem = f"must be FIELD=VALUE with one of the fields {', '.join(key)}"
        raise BadSetting(where, "--only", ", ".join(sorted(unknown)), problem)
    said = {
        name: "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in key.items()
    }
    return all(said[name] in values for name, values in wanted.items())


def made(
    keys: Sequence[Key],
    make: Callable[[Key], Row],
    kept: KeptRows,
    workers: int = 1,
    on_progress: OnProgress | None = None,
) -> list[Row]:
    """The row of every key, in the order of the keys. Rows that are kept already are not made again."""
    step = stepper(len(keys), on_progress)
    wanted = [key for key in keys if key not in kept]
    for _ in range(len(keys) - len(wanted)):
        step()
    for key, row in _each(wanted, make, workers):
        kept.add(key, row)
        step()
    return [kept[key] for key in keys]


def _each(keys: Sequence[Key], make: Callable[[Key], Row], workers: int) -> Iterator[tuple[Key, Row]]:
    if workers < 2 or len(keys) < 2:
        yield from ((key, make(key)) for key in keys)
        return
    method = multiprocessing.get_context("spawn")  # a fork would share open files and threads
    with _one_thread(), ProcessPoolExecutor(min(workers, len(keys)), method, _begin, (chosen_folder(),)) as pool:
        waiting: dict[Future[Row], Key] = {pool.submit(make, key): key for key in keys}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(data: Path | None) -> None:
    """A worker looks for corpora where its parent does, for as long as that lives; then it ends, even within a case."""
    _LOOKING.enter_context(looking_in(data))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that is killed cannot end its workers, and they would go on with what it gave them."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Workers that begin meanwhile compute with one thread each."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
