"""`how-far-one-machine-goes.md`, from the committed result of `bench scale`.

It is committed, and a test compares it: python -m docs.generate.scale_page
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from docs.generate.folder_pages import ROOT
from docs.generate.markdown import listed, page, table
from lab.bench.scale import PEER_SECONDS, SIZES
from lab.bench.scale_cases import BUILD, DISK, ENGINES_OF, LENGTH, MEMORY, MODELS, ROUND, TEXT, TOPICS, WORDS
from lab.measuring import committed

FILE = ROOT / "docs" / "research" / "how-far-one-machine-goes.md"
_TITLES = {"lda": "LDA, a round of two sweeps", "lda-vi": "`lda-vi`, a round", "moments": "`moments`, its only round"}
Row = Mapping[str, Any]


@cache
def _result() -> Row:
    found: Row = committed("bench-scale")
    return found


def scale_page() -> str:
    """The whole page."""
    return page(
        "<!-- Made by `python -m docs.generate.scale_page`: change that file, and not this one. -->",
        "# How far one machine goes",
        f"Documents of {LENGTH} words by Zipf's law over {WORDS:,} words and {TOPICS} topics, made by a seeded stream, on "
        f"disk. "
        "Each figure is of a process of its own that uses **one thread**, and its peak of memory is that of the whole process.",
        table(("", *(f"{size:,} documents" for size in SIZES)), _ours()),
        "A round is the party's whole work on one question: documents chosen, rows made, clipped and added. The first round is "
        "not counted. (In a training `moments` asks only once; here it asked again.) Memory depends on the size of a block, "
        "and "
        "not on the corpus.",
        "## Whether it grows",
        *_goals(),
        "## On disk, in memory, and in several processes",
        table(("LDA", "documents", "million tokens a second", "peak memory"), _places()),
        "In all rows of one size the SHA-256 of everything that left the party is the same. Memory is that of all processes "
        "together; what they share is counted in each.",
        "## Beside other packages",
        table(("one pass over all documents", *(f"{size:,} documents" for size in SIZES)), _beside()),
        f"One thread each, a limit of {PEER_SECONDS:,} seconds and {_result()['peer_limit_gib']} GiB. Packages differ in "
        f"what a pass "
        "does: tomotopy's is a Gibbs sweep as one of ours is; gensim and scikit-learn repeat their inner loop until it "
        "settles, up "
        f"to 50 and 100 times a document, `lda-vi` {MODELS['lda-vi'].passes} times. So these are costs, and not the same work.",
        "Not measured:",
        listed(_result()["missing"]),
        "## Conditions",
        _conditions(),
    )


# ---- rows ------------------------------------------------------------------------------------------------------------


def _row(what: str, size: int, model: str = "", place: str = DISK, threads: int = 1) -> Row | None:
    wanted = {"what": what, "documents": size, "model": model, "place": place, "threads": threads}
    return next((row for row in _result()["measured"] if wanted.items() <= row.items()), None)


def _ours() -> Iterator[tuple[str, ...]]:
    yield "corpus written to disk, from the stream", *(_cost(_row(BUILD, size)) for size in SIZES)
    yield "corpus built from texts (JSON lines)", *(_cost(_row(TEXT, size)) for size in SIZES)
    for model, title in _TITLES.items():
        yield title, *(_cost(_row(ROUND, size, model)) for size in SIZES)
    yield "ProdLDA, a mini-batch", *(_cost(_row(ROUND, size, "prodlda")) for size in SIZES)


def _cost(row: Row | None) -> str:
    if row is None:
        return "not measured"
    seconds = f"{row['seconds'] * 1000:.2f} ms" if row["seconds"] < 0.1 else f"{row['seconds']:.1f} s"
    return f"{seconds}, {row['peak_mib'] / 1024:.2f} GiB"


def _goals() -> Iterator[str]:
    """What was asked of the figures: the worst of each kind, and each goal that does not hold."""
    goals = [goal for goal in _result()["tables"]["Goals"] if "SHA-256" not in goal["goal"]]
    missed = [goal for goal in goals if not goal["held"]]
    slower = [goal for goal in goals if "over 100,000 documents" in goal["goal"]]
    worst = max(slower, key=lambda goal: float(goal["found"]))
    yield (
        f"Of {len(goals)} goals for memory and time {len(goals) - len(missed)} hold. From 100,000 to 10,000,000 documents the "
        f"time of a document, or of a mini-batch, grows by a factor of {worst['found']:.2f} at most (limit {worst['limit']:g})."
    )
    yield listed(f"**Does not hold**: {goal['goal']}: {goal['found']:.2f}, limit {goal['limit']:g}" for goal in missed)


def _places() -> Iterator[tuple[str, ...]]:
    cases = [("on disk, one thread", DISK, 1), ("in memory, one thread", MEMORY, 1), ("on disk, two threads", DISK, 2)]
    cases += [(place, place, 1) for place in ENGINES_OF]
    for size in SIZES:
        for title, place, threads in cases:
            if row := _row(ROUND, size, "lda", place, threads):
                speed = f"{row['tokens_per_second'] / 1e6:.1f}"
                yield title, f"{size:,}", speed, f"{row['peak_mib'] / 1024:.2f} GiB"


def _beside() -> Iterator[tuple[str, ...]]:
    sweeps = MODELS["lda"].passes
    yield "our LDA, a sweep", *(_per_pass(_row(ROUND, size, "lda"), sweeps) for size in SIZES)
    yield "tomotopy's LDA, a sweep", *(_of_peer("tomotopy", size) for size in SIZES)
    yield "our `lda-vi`", *(_per_pass(_row(ROUND, size, "lda-vi"), 1) for size in SIZES)
    yield "gensim's LDA", *(_of_peer("gensim", size) for size in SIZES)
    yield "scikit-learn's online LDA", *(_of_peer("scikit-learn", size) for size in SIZES)


def _per_pass(row: Row | None, passes: int) -> str:
    return "not measured" if row is None else _cost({**row, "seconds": row["seconds"] / passes})


def _of_peer(name: str, size: int) -> str:
    same = {"peer": name, "documents": size}
    return _cost(next((row for row in _result()["measured"] if same.items() <= row.items()), None))


def _conditions() -> str:
    rows = _result()["measured"]
    loads = [row["load"] for row in rows]
    peers = sorted({f"{row['peer']} {row['version']}" for row in rows if "peer" in row})
    priority = " and ".join(sorted({row["priority"] for row in rows}))
    return (
        f"{_result()['machine']}; {', '.join(peers)}. The machine had other work all the time, with a load of "
        f"{min(loads):.0f} to "
        f"{max(loads):.0f}; what was measured ran on one core, engines and two threads on both, at {priority} priority, so "
        f"that it "
        "hardly waited; the processor's clock stands beside the wall's. At 10^6 and 10^7 documents one round each was counted, "
        f"after a first one. `python -m lab bench scale --keep FILE` measures it again, and goes on where it was killed."
    )


if __name__ == "__main__":
    FILE.write_text(scale_page(), "utf-8")
