"""How far one machine goes: seconds and memory for 10^5, 10^6 and 10^7 documents, on disk and in memory, beside other packages.

Documents are a seeded stream: 60 words each by Zipf's law, 50 topics, 2,000 words. Each measurement has a process of its own.
Rows are kept in a file where one is named, and not measured again.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from securetm.experiments import peers
from securetm.experiments.bench_frame import OnProgress, Row, beside, record
from securetm.experiments.flower_peer import interpreter
from securetm.experiments.kept_rows import KeptRows
from securetm.experiments.measured_process import NotFinished, finished
from securetm.experiments.scale_cases import (
    BUILD,
    DISK,
    LENGTH,
    MEMORY,
    MODELS,
    POOL,
    RAY,
    ROUND,
    TEXT,
    THREADS,
    TOPICS,
    WORDS,
    ScaleCase,
    as_argument,
)

SIZES = (10**5, 10**6, 10**7)
ENGINES_AT, MOST_IN_MEMORY, MOST_TEXTS = 10**6, 10**6, 10**6
PEERS = ("tomotopy", "gensim", "scikit-learn")
PEER_SECONDS, PEER_MEBIBYTES = 600, 12 * 1024
OUR_SECONDS = 1_800
MOST_GROWTH, MOST_GIB, LEAST_OF_MEMORY, MOST_SLOWER = 1.2, 6.0, 0.7, 1.15
_ALPHA, _ETA = 0.1, 0.01
_SECONDS = {BUILD: 10, TEXT: 90, "lda": 30, "lda-vi": 40, "moments": 8}  # about, for a million documents; for progress only
_PEER_SECONDS = {"tomotopy": 60, "gensim": 200, "scikit-learn": 500}


def bench(on_progress: OnProgress | None = None, documents: int = SIZES[-1], keep: Path | None = None) -> Row:
    """Rows for every size up to so many documents; a smaller number than the least size is the only size."""
    sizes = [size for size in SIZES if size <= documents] or [documents]
    with tempfile.TemporaryDirectory(prefix="securetm-scale-") as place:
        run = ScaleRun(Path(place), KeptRows(keep), on_progress, work_of(sizes))
        for size in sizes:
            run.at(size)
    return result_of(run, sizes)


def work_of(sizes: Sequence[int]) -> int:
    """Seconds that all cases take, about."""
    ours = sum(_about(case) for size in sizes for case in cases_at(size, sizes))
    return ours + sum(_about_peer(name, size) for size in sizes for name in PEERS)


def cases_at(size: int, sizes: Sequence[int]) -> list[ScaleCase]:
    """What is measured of ours at one size. The corpus is built first: later cases read it."""
    cases = [ScaleCase(BUILD, size), *(ScaleCase(ROUND, size, model) for model in MODELS)]
    if size <= MOST_TEXTS:
        cases.insert(1, ScaleCase(TEXT, size))
    if size <= MOST_IN_MEMORY:
        cases += [ScaleCase(ROUND, size, model, MEMORY) for model in MODELS]
    if size == min(ENGINES_AT, sizes[-1]):
        cases += [ScaleCase(ROUND, size, "lda", place) for place in (POOL, RAY)]
    return cases


def _about(case: ScaleCase) -> int:
    return 3 + _SECONDS.get(case.model or case.what, 5) * case.documents // 10**6


def _about_peer(name: str, size: int) -> int:
    return 3 + min(_PEER_SECONDS[name] * size // 10**6, PEER_SECONDS)


@dataclass
class ScaleRun:
    """The measurements so far."""

    folder: Path
    kept: KeptRows
    on_progress: OnProgress | None
    work: int
    done: int = 0

    def at(self, size: int) -> None:
        """Every case of one size, ours and theirs; its documents are deleted afterwards."""
        built = False
        sizes = [one for one in SIZES if one <= size] or [size]
        for case in cases_at(size, sizes):
            if case.what == ROUND and case.place != MEMORY and not built and asdict(case) not in self.kept:
                built = self._there(ScaleCase(BUILD, size))
            self._row(asdict(case), lambda case=case: self._ours(case), _about(case))  # type: ignore[misc]
        for name in PEERS:
            key = {"peer": name, "documents": size, "seconds": PEER_SECONDS}
            self._row(key, lambda name=name: self._theirs(name, size), _about_peer(name, size))  # type: ignore[misc]
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def rows(self) -> Iterator[Row]:
        """All rows so far."""
        return iter(self.kept.rows.values())

    def _row(self, key: Row, make: Callable[[], Row], about: int) -> None:
        if key not in self.kept:
            try:
                found = make()
            except NotFinished as reason:
                found = {"missing": str(reason)}
            self.kept.add(key, {**key, **found})
        self.done += about
        if self.on_progress is not None:
            self.on_progress(self.done, self.work)

    def _ours(self, case: ScaleCase) -> Row:
        command = [sys.executable, "-m", "securetm.experiments.scale_cases", str(self.folder), as_argument(case)]
        return finished(command, OUR_SECONDS)

    def _there(self, case: ScaleCase) -> bool:
        """Builds documents again whose row was kept from an earlier start."""
        if not case.corpus_in(self.folder).is_dir():
            self._ours(case)
        return True

    def _theirs(self, name: str, size: int) -> Row:
        python = interpreter()
        if python is None:
            raise NotFinished("is not installed (in an environment of its own: make bench-peers)")
        self._check_reach(name, size)
        path, stream = self.folder / "tokens.npy", ScaleCase(BUILD, size).stream
        if not path.exists():
            table = np.lib.format.open_memmap(path, "w+", np.int32, (size, LENGTH))
            for number in range(stream.blocks):
                first = number * stream.block_documents
                table[first : first + stream.block_documents] = stream.tokens(number)
            table.flush()
        settings = [TOPICS, WORDS, _ALPHA, _ETA, THREADS, 1]
        script = Path(peers.__file__).with_name("lda_at_scale.py")
        return finished([str(python), str(script), name, str(path), *map(str, settings)], PEER_SECONDS, PEER_MEBIBYTES)

    def _check_reach(self, name: str, size: int) -> None:
        """Does not begin what a smaller size shows to be out of reach."""
        earlier = [row for row in self.rows() if row.get("peer") == name and row["documents"] < size]
        for row in earlier:
            if "missing" in row:
                raise NotFinished(f"was not tried: at {row['documents']:,} documents it {row['missing']}")
            needed = (row["seconds"] + row["build_seconds"]) * size / row["documents"]
            if needed > PEER_SECONDS:
                raise NotFinished(f"was not tried: by its {row['documents']:,} documents it would take {needed:,.0f} s")


# ---- the record ------------------------------------------------------------------------------------------------------


def result_of(run: ScaleRun, sizes: Sequence[int]) -> Row:
    """All rows with their goals, and what is missing."""
    rows = [row for row in run.rows() if row["documents"] in sizes]
    missing = [f"{row.get('peer') or ScaleCase(**_case(row))}, {row['documents']:,} documents: {row['missing']}"
               for row in rows if "missing" in row]  # fmt: skip
    complete = [row for row in rows if "missing" not in row]
    ours = {ScaleCase(**_case(row)): row for row in complete if "peer" not in row}
    missing += [f"texts and memory at {size:,} documents: not asked for" for size in sizes if size > MOST_IN_MEMORY]
    shown = [_shown(case, row) for case, row in ours.items()]
    compared = [_compared(row, ours) for row in complete if "peer" in row]
    tables = {"Goals": goals(ours, sizes), "Peak memory": [_peak(row) for row in complete]}
    facts = {"documents": sizes[-1], "topics": TOPICS, "words": WORDS, "length": LENGTH, "threads": THREADS}
    result = record("scale", [*shown, *compared], missing=missing, packages=("numpy", "numba", "torch"), **facts)
    return {**result, "tables": tables, "measured": complete}


def _case(row: Row) -> Row:
    return {name: row[name] for name in ("what", "documents", "model", "place")}


def _shown(case: ScaleCase, row: Row) -> Row:
    by_batches = case.model in MODELS and MODELS[case.model].by_batches
    unit = "s a mini-batch" if by_batches else "s a round" if case.model else "s"
    return {"case": str(case), "ours": round(row["seconds"], 5 if by_batches else 2), "unit": unit}


def _compared(row: Row, ours: dict[ScaleCase, Row]) -> Row:
    """A pass over all documents of theirs, beside a sweep of our LDA or a pass of our `lda-vi` over documents on disk."""
    model = "lda" if row["peer"] == "tomotopy" else "lda-vi"
    found = ours[ScaleCase(ROUND, row["documents"], model)]
    seconds = found["seconds"] / MODELS[model].passes if model == "lda" else found["seconds"]
    case = f"a pass over {row['documents']:,} documents, ours {model} on disk"
    return beside(case, seconds, row["seconds"], "s", f"{row['peer']} {row['version']}", digits=2)


def _peak(row: Row) -> Row:
    who = row["peer"] if "peer" in row else str(ScaleCase(**_case(row)))
    return {"case": who, "documents": row["documents"], "GiB": round(row["peak_mib"] / 1024, 2)}


def goals(ours: dict[ScaleCase, Row], sizes: Sequence[int]) -> list[Row]:
    """What was asked for, what was found, and whether it holds."""
    least, most = sizes[0], sizes[-1]
    found: list[Row] = []
    for model, scaled in MODELS.items():
        small, large = ours.get(ScaleCase(ROUND, least, model)), ours.get(ScaleCase(ROUND, most, model))
        if small is None or large is None:
            continue
        found.append(_goal(f"{model}: peak memory at {most:,} documents, GiB", large["peak_mib"] / 1024, MOST_GIB))
        if least == most:
            continue
        growth = large["seconds"] / small["seconds"] / (1 if scaled.by_batches else most / least)
        what = "seconds of a mini-batch" if scaled.by_batches else "seconds per document"
        found.append(_goal(f"{model}: {what}, {most:,} over {least:,} documents", growth, MOST_GROWTH))
    return found + _beside_memory(ours, sizes) + _beside_process(ours, sizes)


def _beside_memory(ours: dict[ScaleCase, Row], sizes: Sequence[int]) -> list[Row]:
    found = []
    for size in sizes:
        disk, memory = (ours.get(ScaleCase(ROUND, size, "lda", place)) for place in (DISK, MEMORY))
        if disk and memory:
            share = disk["tokens_per_second"] / memory["tokens_per_second"]
            case = f"lda: tokens per second on disk over in memory, {size:,} documents"
            found.append(_goal(case, share, LEAST_OF_MEMORY, at_least=True))
    return found


def _beside_process(ours: dict[ScaleCase, Row], sizes: Sequence[int]) -> list[Row]:
    size = min(ENGINES_AT, sizes[-1])
    one, found = ours.get(ScaleCase(ROUND, size, "lda")), []
    for place in (POOL, RAY):
        several = ours.get(ScaleCase(ROUND, size, "lda", place))
        if one and several:
            case, same = f"lda, {size:,} documents, {place}", several["sha256"] == one["sha256"]
            slower = several["seconds"] / one["seconds"]
            found.append(_goal(f"{case}: seconds over one process with {THREADS} threads", slower, MOST_SLOWER))
            found.append(_goal(f"{case}: the same SHA-256 of all its answers", float(same), 1.0, at_least=True))
    return found


def _goal(case: str, found: float, limit: float, *, at_least: bool = False) -> Row:
    held = found >= limit if at_least else found <= limit
    return {"goal": case, "found": round(found, 3), "limit": limit, "held": bool(held)}
