"""Writes what profiles and ways to a list of words cost by committed results, as the product shows it.

`python -m lab.fits.committed_figures FOLDER`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import exp
from pathlib import Path
from typing import Any

from lab.measuring import committed
from securetm.contracts import Unit
from securetm.plans.profiles import profile_names, read_profile
from securetm.reports.committed_costs import ProfileCost

FRONTIER, BENCH, WORDS, HE = "reproduce-private-frontier", "bench-private", "reproduce-matched-topics", "bench-he"
LISTS, _BEHIND_NOISE, _BY_PARTIES = "bench-word-lists", ", epsilon 3", ", opened by the parties"
CORPUS, TOPICS, JUDGING, DOCUMENTS, PARTIES = "20 Newsgroups", 20, 0.1, 18_820, 5
MODEL, CONTROL, FREQUENCIES, _NO_NOISE = "lda-vi, public start", "public start, no document", "word frequencies", "masked"
# profiles that the frontier did not try, and the one that has their noise
_AS = {"fortress": "dp-distributed", "open": _NO_NOISE, "masked_strict": _NO_NOISE, "bfv": _NO_NOISE, "ckks": _NO_NOISE}


def shown() -> list[dict[str, Any]]:
    costs: list[ProfileCost] = []
    for name in profile_names():
        budget = read_profile(name).budget
        if budget is not None and budget.unit is Unit.WORD:
            costs.append(_of_words(name, budget.epsilon))
        else:
            measured = (MODEL, _AS.get(name, name))
            costs += [_of_frontier(name, epsilon) for model, profile, epsilon in _frontier() if (model, profile) == measured]
    return [{**asdict(cost), "sources": list(cost.sources)} for cost in costs]


def lists() -> list[dict[str, Any]]:
    figures = {row["case"]: row["ours"] for row in _rows(LISTS)}
    cases = [case.partition(":")[0] for case in figures if case.endswith(": words") and "parties of" not in case]
    return [
        {
            "list": case.removesuffix(_BEHIND_NOISE).removesuffix(_BY_PARTIES),
            "noised": case.endswith(_BEHIND_NOISE),
            "by_parties": case.endswith(_BY_PARTIES),
            "words": figures[f"{case}: words"],
            "seconds": figures[f"{case}: until all have the list"],
            "megabytes": figures[f"{case}: from each party"],
        }
        for case in cases
    ]


def _of_frontier(name: str, epsilon: float | None) -> ProfileCost:
    """Figures of the frontier of private models.

    Seconds of noise in shares are those of the bench, which ran alone, for as many rounds.
    """
    measured, beside = _AS.get(name, name), _frontier()
    row = beside[MODEL, measured, epsilon]
    without, vectors = beside[MODEL, _NO_NOISE, None], beside[CONTROL, _NO_NOISE, None]
    rows = (row for row in _rows(BENCH) if str(row["case"]).startswith(MODEL))
    benched = next(rows) if measured == "dp-distributed" else None
    up, down = _encrypted(name)
    return ProfileCost(
        profile=name,
        measured_under=measured,
        epsilon=epsilon,
        setting=f"{MODEL}, {TOPICS} topics, 1,000 public words, {DOCUMENTS:,} documents of {CORPUS}, five parties",
        perplexity=exp(-row["held_out"]),
        perplexity_without_noise=exp(-without["held_out"]),
        perplexity_of_frequencies=exp(-beside[FREQUENCIES, _NO_NOISE, None]["held_out"]),
        f1=row["f1"],
        f1_without_noise=without["f1"],
        f1_without_documents=vectors["f1"],
        rounds=int(row["rounds"]),
        seconds=benched["ours"] * row["rounds"] / benched["rounds"] if benched else row["seconds"],
        megabytes=row["megabytes"],
        counted="all messages",
        bytes_up=up,
        bytes_down=down,
        sources=tuple(_command(one) for one in (FRONTIER, *((BENCH,) if benched else ()), *((HE,) if up != 1 else ()))),
        model="lda-vi",
        documents=DOCUMENTS,
        parties=PARTIES,
        topics=TOPICS,
        words=1_000,
    )


def _of_words(name: str, epsilon: float) -> ProfileCost:
    """Figures of matched LDA over documents with noise in the place of words, beside the same without noise."""
    rows = {row["form"]: row for row in _rows(WORDS) if row["model"] == "lda"}
    row, without = rows[f"matched, epsilon {epsilon:g} per word"], rows["matched"]
    return ProfileCost(
        profile=name,
        measured_under=name,
        epsilon=epsilon,
        setting=f"matched lda, 20 topics of each party, 2,000 words, {DOCUMENTS:,} documents of {CORPUS}, five parties",
        perplexity=row["held_out"],
        perplexity_without_noise=without["held_out"],
        perplexity_of_frequencies=None,
        f1=None,
        f1_without_noise=None,
        f1_without_documents=None,
        rounds=row["rounds"],
        seconds=row["seconds"],
        megabytes=row["megabytes_up"],
        counted="messages of the parties",
        bytes_up=1,
        bytes_down=1,
        sources=(_command(WORDS),),
        model="lda",
        documents=DOCUMENTS,
        parties=PARTIES,
        topics=TOPICS,
        words=2_000,
    )


def _frontier() -> Mapping[tuple[str, str, float | None], Mapping[str, Any]]:
    """The rows of the frontier in one frame, by model, profile and epsilon."""
    rows = (row for row in _rows(FRONTIER) if (row["corpus"], row["topics"], row["judging"]) == (CORPUS, TOPICS, JUDGING))
    return {(row["model"], row["profile"], row["epsilon"]): row for row in rows}


def _encrypted(name: str) -> tuple[float, float]:
    """How many times the bytes of 32-bit numbers one party's encrypted answer and the sum take, if they are encrypted."""
    rows = {row["case"]: row["times_float32"] for row in _rows(HE) if "times_float32" in row}
    up, down = (
        next((times for case, times in rows.items() if case.startswith(f"bytes {way} for one party: {name},")), 1.0)
        for way in ("up", "down")
    )
    return up, down


def _command(result: str) -> str:
    """The command that makes a result again."""
    kind, _, name = result.partition("-")
    return f"python -m lab {kind} {name}"


def _rows(result: str) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = committed(result)["rows"]
    return rows


if __name__ == "__main__":
    for file, rows in (("committed_figures.json", shown()), ("committed_lists.json", lists())):
        text = ",\n  ".join(map(json.dumps, rows))
        (Path(sys.argv[1]) / file).write_text(f"[\n  {text}\n]\n", encoding="utf-8")
