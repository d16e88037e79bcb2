"""`a-billion-documents.md` and its picture, from the committed figures of `bench scale` and rounds simulated with them.

Both are committed, and a test compares them: python -m docs.generate.cluster_page
"""

from __future__ import annotations

from collections.abc import Iterator

from docs.generate.cluster_picture import Curve, drawn
from docs.generate.cluster_rounds import (
    CALM,
    DISK_RATE,
    DOCUMENTS,
    HUGE_VALUES,
    LINK,
    ROUNDS,
    SHARD_BLOCKS,
    SIMULATED,
    WORKERS,
    Cluster,
    Setting,
    best_workers,
    build_hours,
    curve,
    driver_bytes,
    epoch_hours,
    kept_bytes,
    median,
    most_waiting,
    row_of,
    settings,
    simulated,
    stored_bytes,
    task_sizes,
)
from docs.generate.folder_pages import ASSETS, ROOT
from docs.generate.markdown import listed, page, table
from lab.bench.scale_cases import LARGE, PARTS, ROUND
from securetm.models.neural.prodlda import ProdLDA
from securetm.wording import counted

FILE, PICTURE = ROOT / "docs" / "research" / "a-billion-documents.md", ASSETS / "a-billion-documents.svg"
_TROUBLED = Cluster(WORKERS)
_TOLD = "Seconds of a round over a billion documents by number of workers. The page has the same figures as a table."


def picture() -> str:
    """Seconds of a round by number of workers."""
    curves = [Curve(_in_lines(setting), list(curve(setting))) for setting in settings()]
    return drawn("A round over a billion documents", curves, _TOLD)


def _in_lines(setting: Setting) -> str:
    least = "" if setting.measured else "; (at least)"
    return f"{setting.topics:,} topics,; {setting.words:,} words{least}"


def cluster_page() -> str:
    """The whole page."""
    return page(
        "<!-- Made by `python -m docs.generate.cluster_page`: change that file, and not this one. -->",
        "# What a billion documents cost over 100 workers",
        "A party whose corpus outgrows its machine answers from a cluster ([engines](../how-to/several-processes.md)). "
        f"This page says what a round of LDA over 10^9 documents of 60 words takes with {WORKERS} workers of one core "
        f"each, and "
        "where it would break. **Nobody has run it.** The figures are a simulation: tasks, sums and their tree are "
        "those of the "
        "engines, seconds and bytes are measured on one machine (`python -m lab bench scale`), and what is assumed is named.",
        "## What goes in",
        table(("measured with one thread", *map(str, _measured())), _inputs()),
        _assumed(),
        "## A round",
        table(("", *map(str, settings())), _round_rows()),
        _round_notes(),
        "## More workers",
        "<!-- picture: a-billion-documents.svg -->",
        "When nothing goes wrong. Dotted: what it would be if the work of ten workers were shared evenly.",
        table(("workers", *map(str, settings())), _curve_rows()),
        _more_notes(),
        "## Where it would break",
        listed(_breaks()),
        "A party sends one masked sum a round, of the same bytes whatever its engine. Others see only how long it takes.",
    )


# ---- what goes in ----------------------------------------------------------------------------------------------------


def _measured() -> list[Setting]:
    return [setting for setting in settings() if setting.measured]


def _inputs() -> Iterator[tuple[str, ...]]:
    first, second = (setting.rates for setting in _measured())
    timed = [f"{row_of(*case)['documents']:,}" for case in ((ROUND, "lda"), (LARGE, "lda"))]
    both = (first, second)
    yield "documents over which seconds were measured", *timed
    yield "a worker's seconds for a million documents (two sweeps)", *(f"{one.document_seconds * 1e6:.1f}" for one in both)
    yield "bytes read and written for a document", *(f"{one.document_bytes:,}" for one in both)
    yield "question, with the model's state", *(_bytes(one.question_bytes) for one in both)
    yield "a partial sum", *(_bytes(one.sum_bytes) for one in both)
    yield "adding one to another", *(_seconds(one.add_seconds) for one in both)


def _assumed() -> str:
    troubled = _TROUBLED
    return (
        f"Assumed: each machine's network carries {LINK / 1e9:.2f} GB/s in and out, each worker reads "
        f"{DISK_RATE / 1e9:.1f} GB/s, "
        f"{troubled.slow:.0%} of the workers take {troubled.slowness:.0f} times as long, {troubled.lost_an_hour:.0%} "
        f"of them are "
        f"lost each hour, and a lost one is back after {troubled.restart:.0f} seconds; its task is done anew by another. "
        "1,000 topics and 100,000 words were not timed: bytes and additions are scaled by values, and a worker's "
        "seconds are those "
        "of 200 topics and 20,000 words, so its times are lower bounds."
    )


# ---- a round ---------------------------------------------------------------------------------------------------------


def _round_rows() -> Iterator[tuple[str, ...]]:
    calm = [simulated(setting, CALM) for setting in settings()]
    troubled = [simulated(setting, _TROUBLED) for setting in settings()]
    marks = ["" if setting.measured else "at least " for setting in settings()]
    yield "questions, from the driver to workers", *(_bytes(median(one, "sent")) for one in calm)
    yield "partial sums, back to the driver", *(_bytes(median(one, "received")) for one in calm)
    yield "until every worker has the question", *(_seconds(median(one, "broadcast")) for one in calm)
    yield "until the last task is done", *(_marked(marks, [median(one, "workers_ended") for one in calm]))
    yield "**a round, when nothing goes wrong**", *(_marked(marks, [median(one, "seconds") for one in calm]))
    yield (
        f"**a round with slow and lost workers** (median of {SIMULATED})",
        *(_marked(marks, [median(one, "seconds") for one in troubled])),
    )
    yield "the slowest of these", *(_marked(marks, [max(each.seconds for each in one) for one in troubled]))
    hours = [ROUNDS * median(one, "seconds") / 3600 for one in troubled]
    yield f"{ROUNDS} rounds", *(f"{mark}{hour:.1f} h" for mark, hour in zip(marks, hours, strict=True))
    yield "worker-hours of these", *(f"{mark}{hour * WORKERS:,.0f}" for mark, hour in zip(marks, hours, strict=True))


def _marked(marks: list[str], seconds: list[float]) -> Iterator[str]:
    return (f"{mark}{_seconds(one)}" for mark, one in zip(marks, seconds, strict=True))


def _round_notes() -> str:
    tasks = task_sizes(DOCUMENTS, WORKERS)
    sums = sum(len(task.sums) for task in tasks)
    lost = sum(one.lost for one in simulated(settings()[0], _TROUBLED))
    return (
        f"An answer is {len(tasks):,} tasks, a file of {SHARD_BLOCKS} blocks each, and {sums:,} partial sums, of 64-bit "
        f"numbers. "
        "Workers send each other nothing. The driver adds sums as they arrive, in the order of their tree, so that the "
        "bytes of "
        "the answer depend on no order and no loss. A slow worker takes fewer tasks. A lost one costs the task that it had: "
        f"in {SIMULATED} rounds with {settings()[0]} that were {counted(lost, 'worker')}. "
        f"In the first round each worker also compares its blocks with their digests ({_seconds(_check_seconds())} of its "
        f"time)."
    )


def _check_seconds() -> float:
    row = row_of(PARTS, "lda")
    return float(row["check_seconds"]) / int(row["documents"]) * DOCUMENTS / WORKERS


# ---- more workers, and limits ----------------------------------------------------------------------------------------


def _curve_rows() -> Iterator[tuple[str, ...]]:
    curves = [list(curve(setting)) for setting in settings()]
    for points in zip(*curves, strict=True):
        seconds = (_seconds(second) for _, second in points)
        yield f"{points[0][0]:,}", *seconds


def _more_notes() -> str:
    fastest = "; ".join(f"{best_workers(setting):,} for {setting}" for setting in settings())
    return (
        f"The fastest of these numbers: {fastest}. With more workers tasks are smaller, so there are more sums, and every "
        f"one of "
        "them passes through the driver."
    )


def _breaks() -> Iterator[str]:
    huge = settings()[2]
    (calm,) = simulated(huge, CALM)
    yield (
        f"**The driver's network.** {huge}: {HUGE_VALUES / 1e6:.0f} million values. {_bytes(calm.received)} of sums come to "
        f"the "
        f"driver in a round, which takes its network {_seconds(calm.received / LINK)}. Workers that add for each other in "
        f"pairs "
        "would leave it a handful of sums; no engine does that yet."
    )
    waiting = most_waiting(DOCUMENTS, calm)
    troubled = max(most_waiting(DOCUMENTS, one) for one in simulated(huge, _TROUBLED))
    yield (
        f"**The driver's memory for sums.** Up to {waiting} sums wait for their neighbours when all workers are equally fast, "
        f"and up to {troubled} when some are slow or lost: "
        f"{_bytes(troubled * huge.rates.sum_bytes)} with {huge}, "
        f"{_bytes(troubled * settings()[0].rates.sum_bytes)} with {settings()[0]}. Who would run far ahead takes a task of "
        "the slowest instead."
    )
    yield (
        f"**The driver's memory for documents.** Choosing the documents that are held out took memory that grows with them: "
        f"{_bytes(driver_bytes())} for a billion, as measured from 10^5 to 10^7."
    )
    yield (
        f"**Building.** One process builds a corpus: {build_hours():.1f} hours from texts for a billion documents. "
        "Parts that were built apart cannot be joined."
    )
    yield (
        f"**Disks.** The corpus is {_bytes(stored_bytes())}, what a party remembers between rounds "
        f"{_bytes(kept_bytes())}, twice "
        "while a round is under way. A worker has files of its own, which come to it in every round, and takes "
        "those of a slow or lost one, so each has to reach all files: "
        f"{WORKERS} workers that read at once take {_bytes(settings()[0].rates.document_bytes * DOCUMENTS)} in "
        f"{_seconds(median(simulated(settings()[0], CALM), 'seconds'))} from a shared file system, "
        f"{_bytes(_shared_rate())} a second."
    )
    yield (
        f"**Mini-batches.** A batch of ProdLDA costs the same in any corpus, and is answered by one process: an epoch "
        f"over a billion "
        f"documents in batches of {ProdLDA.batch} takes {epoch_hours(ProdLDA.batch):,.0f} hours of a party alone, without the "
        "network of its federation. No number of workers shortens it; larger batches do."
    )


def _shared_rate() -> float:
    setting = settings()[0]
    return setting.rates.document_bytes * DOCUMENTS / median(simulated(setting, CALM), "seconds")


# ---- figures in words ------------------------------------------------------------------------------------------------


def _bytes(count: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}" if count < 999.5 * size else f"{count / size:,.0f} {unit}"
    return f"{count:.0f} bytes"


def _seconds(seconds: float) -> str:
    if seconds >= 10:
        return f"{seconds:,.0f} s"
    return f"{seconds:.2g} s" if seconds >= 0.01 else f"{seconds * 1e3:.2g} ms"


if __name__ == "__main__":
    FILE.write_text(cluster_page(), "utf-8")
    PICTURE.write_text(picture(), "utf-8")
