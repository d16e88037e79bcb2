"""How far one machine goes: seconds and memory for 10^5, 10^6 and 10^7 documents, on disk and in memory, beside other packages.

Documents are a seeded stream: 60 words each by Zipf's law, 50 topics, 2,000 words. Each measurement has a process of its own
and one thread; only engines, and what they are compared with, use two processors. Rows are kept in a file where one is named,
and not measured again.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path

import numpy as np

from lab.bench.scale_cases import (
    BUILD,
    CHOICE,
    DISK,
    ENGINES_OF,
    LARGE,
    LENGTH,
    MEMORY,
    MODELS,
    PARTS,
    ROUND,
    TEXT,
    TOPICS,
    WORDS,
    WORKERS,
    ScaleCase,
    as_argument,
)
from lab.keeping import KeptRows
from lab.measuring import OnProgress, Row, beside, record
from lab.peers.other_packages import command, interpreter
from lab.processes import NotMeasured, NotNow, conditions, finished
from securetm.engines import ENGINES
from securetm.errors import SecuretmError

SIZES = (10**5, 10**6, 10**7)
ENGINES_AT, MOST_IN_MEMORY, MOST_TEXTS, PARTS_AT = 10**6, 10**6, 10**6, 3 * 10**5
PEERS = ("tomotopy", "gensim", "scikit-learn")
PEER_SECONDS, PEER_MEBIBYTES = 1_200, 10 * 1024
OUR_SECONDS = 1_800
MOST_GROWTH, MOST_GIB, LEAST_OF_MEMORY, MOST_SLOWER = 1.2, 6.0, 0.7, 1.15
_ALPHA, _ETA = 0.1, 0.01
_TOKENS = "tokens.npy"
_IN_ITS_MEMORY = ("tomotopy",)  # the others read documents as a stream


def bench(on_progress: OnProgress | None = None, documents: int = SIZES[-1], keep: Path | None = None) -> Row:
    """Rows for every size up to so many documents; a smaller number than the least size is the only size."""
    sizes = [size for size in SIZES if size <= documents] or [documents]
    with tempfile.TemporaryDirectory(prefix="securetm-scale-") as place:
        run = ScaleRun(Path(place), sizes, KeptRows(keep), on_progress)
        for size in sizes:
            run.ours_at(size)
        run.engines()
        for size in sizes:
            run.peers_at(size)
    return result_of(run)


def cases_at(size: int) -> list[ScaleCase]:
    cases = [ScaleCase(BUILD, size), *(ScaleCase(ROUND, size, model) for model in MODELS)]
    if size <= MOST_TEXTS:
        cases.insert(1, ScaleCase(TEXT, size))
    if size <= MOST_IN_MEMORY:
        cases += [ScaleCase(ROUND, size, model, MEMORY) for model in MODELS]
    return [*cases, ScaleCase(CHOICE, size)]


def engine_cases(sizes: Sequence[int]) -> list[ScaleCase]:
    """Engines with several workers, and before them one process with as many threads."""
    size = min(ENGINES_AT, sizes[-1])
    return [ScaleCase(ROUND, size, "lda", threads=WORKERS), *(ScaleCase(ROUND, size, "lda", place) for place in ENGINES_OF)]


def parts_cases(sizes: Sequence[int]) -> list[ScaleCase]:
    """What travels, and what is kept, with few topics and words and with many."""
    return [ScaleCase(what, min(PARTS_AT, sizes[-1]), "lda") for what in (PARTS, LARGE)]


@dataclass
class ScaleRun:
    folder: Path
    sizes: Sequence[int]
    kept: KeptRows
    on_progress: OnProgress | None
    absent: dict[str, str] = field(default_factory=dict)  # what cannot be measured here now, and why
    _done: int = 0

    def ours_at(self, size: int) -> None:
        """Every case of one size; its documents are deleted afterwards."""
        self._cases(cases_at(size))

    def engines(self) -> None:
        self._cases([*parts_cases(self.sizes), *engine_cases(self.sizes)])

    def peers_at(self, size: int) -> None:
        for name in PEERS:
            key = {"peer": name, "documents": size, "seconds": PEER_SECONDS}
            self._row(key, name, partial(self._theirs, name, size))
        (self.folder / _TOKENS).unlink(missing_ok=True)

    def rows(self) -> list[Row]:
        wanted = {*self.sizes, *(case.documents for case in parts_cases(self.sizes))}
        return [row for row in self.kept.rows.values() if row["documents"] in wanted]

    def _cases(self, cases: Sequence[ScaleCase]) -> None:
        for case in cases:
            self._row(asdict(case), str(case), partial(self._ours, case))
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _row(self, key: Row, name: str, make: Callable[[], Row]) -> None:
        if key not in self.kept:
            before = conditions()
            try:
                self.kept.add(key, {**key, **make(), **before})
            except NotNow as reason:
                self.absent[f"{name}, {key['documents']:,} documents" if "peer" in key else name] = str(reason)
            except NotMeasured as reason:
                self.kept.add(key, {**key, "missing": str(reason), **before})
        self._done += 1
        if self.on_progress is not None:
            each = [len(cases_at(size)) + len(PEERS) for size in self.sizes]
            self.on_progress(self._done, sum(each) + len(parts_cases(self.sizes)) + len(engine_cases(self.sizes)))

    def _ours(self, case: ScaleCase) -> Row:
        _check_here(case)
        if case.what in (ROUND, CHOICE) and case.place != MEMORY and not case.corpus_in(self.folder).is_dir():
            self._ours(ScaleCase(BUILD, case.documents))  # its row was kept by an earlier start
        return finished([sys.executable, "-m", "lab.bench.scale_cases", str(self.folder), as_argument(case)], OUR_SECONDS)

    def _theirs(self, name: str, size: int) -> Row:
        python = interpreter()
        if python is None:
            raise NotNow("is not installed (in an environment of its own: make bench-peers)")
        self._check_reach(name, size)
        path = self.folder / _TOKENS
        if not path.exists():
            _write_tokens(path, size)
        settings = [TOPICS, WORDS, _ALPHA, _ETA, 1, 1]
        return finished(command(python, "lda.py", "once", name, path, *settings), PEER_SECONDS, PEER_MEBIBYTES)

    def _check_reach(self, name: str, size: int) -> None:
        """Does not begin what the next smaller size shows to be out of reach."""
        smaller = [row for row in self.rows() if row.get("peer") == name and row["documents"] < size]
        if not smaller:
            return
        row = max(smaller, key=lambda row: int(row["documents"]))
        if "missing" in row:
            raise NotMeasured(f"was not tried: at {row['documents']:,} documents it {row['missing']}")
        begun, times = f"was not tried: by its {row['documents']:,} documents it would take", size / row["documents"]
        if (seconds := (row["seconds"] + row["build_seconds"]) * times) > PEER_SECONDS:
            raise NotMeasured(f"{begun} {seconds:,.0f} s")
        if name in _IN_ITS_MEMORY and (needed := row["peak_mib"] * times) > PEER_MEBIBYTES:
            raise NotMeasured(f"{begun} about {needed / 1024:,.0f} GiB")


def _check_here(case: ScaleCase) -> None:
    """Refuses an engine that is not installed, and several workers or threads on one processor."""
    if case.place not in ENGINES_OF and case.threads == 1:
        return
    if conditions()["processors"] < WORKERS:
        raise NotNow(f"needs {WORKERS} processors")
    if case.place in ENGINES_OF:
        try:
            ENGINES.load(ENGINES_OF[case.place])(workers=WORKERS)  # which starts nothing
        except SecuretmError as refused:
            raise NotNow(str(refused)) from refused


def _write_tokens(path: Path, size: int) -> None:
    stream = ScaleCase(BUILD, size).stream
    table = np.lib.format.open_memmap(path, "w+", np.int32, (size, LENGTH))
    for number in range(stream.blocks):
        first = number * stream.block_documents
        table[first : first + stream.block_documents] = stream.tokens(number)
    table.flush()


def result_of(run: ScaleRun) -> Row:
    """All rows with their goals, and what is missing."""
    rows, sizes = run.rows(), run.sizes
    complete = [row for row in rows if "missing" not in row]
    ours = {_case(row): row for row in complete if "peer" not in row}
    shown = []
    for case, row in ours.items():
        by_batches = case.model in MODELS and MODELS[case.model].by_batches
        unit = "s a mini-batch" if by_batches else "s a round" if case.model else "s"
        shown.append({"case": str(case), "ours": round(row["seconds"], 5 if by_batches else 2), "unit": unit})
    compared = [_compared(row, ours) for row in complete if "peer" in row]
    used = [
        {
            "case": _name(row),
            "peak GiB": round(row["peak_mib"] / 1024, 2),
            "processor s": round(row["processor"], 4) if "processor" in row else "",
        }
        for row in complete
    ]
    tables = {"Goals": goals(ours, sizes), "Memory and processor": used}
    facts = {"documents": sizes[-1], "topics": TOPICS, "words": WORDS, "length": LENGTH}
    facts |= {"peer_limit_seconds": PEER_SECONDS, "peer_limit_gib": PEER_MEBIBYTES // 1024}
    missing = [f"{_name(row)}: {row['missing']}" for row in rows if "missing" in row]
    too_many = [size for size in sizes if size > MOST_IN_MEMORY]
    missing += [f"texts, and documents in memory, {size:,} documents: not asked for" for size in too_many]
    missing += [f"{name}: {reason}" for name, reason in run.absent.items()]
    result = record("scale", [*shown, *compared], missing=missing, packages=("numpy", "numba", "torch"), **facts)
    return {**result, "tables": tables, "measured": complete}


def _name(row: Row) -> str:
    return f"{row['peer']}, {row['documents']:,} documents" if "peer" in row else str(_case(row))


def _case(row: Row) -> ScaleCase:
    return ScaleCase(**{one.name: row[one.name] for one in fields(ScaleCase)})


def _compared(row: Row, ours: dict[ScaleCase, Row]) -> Row:
    """A pass over all documents of theirs, beside a sweep of our LDA or a pass of our `lda-vi` over documents on disk."""
    model = "lda" if row["peer"] == "tomotopy" else "lda-vi"
    found = ours[ScaleCase(ROUND, row["documents"], model)]
    what = "a sweep" if model == "lda" else f"a pass, which in ours takes {MODELS[model].passes} steps a document,"
    seconds = found["seconds"] / MODELS[model].passes if model == "lda" else found["seconds"]
    case = f"{what} over {row['documents']:,} documents, ours {model} on disk"
    return beside(case, seconds, row["seconds"], "s", f"{row['peer']} {row['version']}", digits=2)


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
        times = 1 if scaled.by_batches else most / least
        what = "seconds of a mini-batch" if scaled.by_batches else "seconds per document"
        case = f"{model}: {what}, {most:,} over {least:,} documents"
        for clock, note in (("seconds", ""), ("processor", ", by the processor's clock")):
            found.append(_goal(case + note, large[clock] / small[clock] / times, MOST_GROWTH))
    return found + _beside_memory(ours, sizes) + _beside_process(ours, sizes)


def _beside_memory(ours: dict[ScaleCase, Row], sizes: Sequence[int]) -> list[Row]:
    found = []
    for size in sizes:
        disk, memory = (ours.get(ScaleCase(ROUND, size, "lda", place)) for place in (DISK, MEMORY))
        if disk and memory:
            share = disk["tokens_per_second"] / memory["tokens_per_second"]
            case = f"lda: tokens per second on disk over in memory, {size:,} documents"
            same = f"lda: the same SHA-256 of all answers on disk as in memory, {size:,} documents"
            found.append(_goal(case, share, LEAST_OF_MEMORY, at_least=True))
            found.append(_goal(same, float(disk["sha256"] == memory["sha256"]), 1.0, at_least=True))
    return found


def _beside_process(ours: dict[ScaleCase, Row], sizes: Sequence[int]) -> list[Row]:
    one, *engines = (ours.get(case) for case in engine_cases(sizes))
    found = []
    for place, several in zip(ENGINES_OF, engines, strict=True):
        if one and several:
            case, same = f"lda, {one['documents']:,} documents, {place}", several["sha256"] == one["sha256"]
            slower = several["seconds"] / one["seconds"]
            found.append(_goal(f"{case}: seconds over one process with {WORKERS} threads", slower, MOST_SLOWER))
            found.append(_goal(f"{case}: the same SHA-256 of all its answers", float(same), 1.0, at_least=True))
    return found


def _goal(case: str, found: float, limit: float, *, at_least: bool = False) -> Row:
    held = found >= limit if at_least else found <= limit
    return {"goal": case, "found": round(found, 3), "limit": limit, "held": bool(held)}
