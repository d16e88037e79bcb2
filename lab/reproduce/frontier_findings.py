"""What follows from the rows of the frontier of privacy and utility: means over seeds, and curves. It trains nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lab.measuring import Row
from lab.reproduce.contenders import FREQUENCIES, MOMENTS, NEVER_PRIVATE, PLAIN, PUBLIC, SHIPPED, SPECTRAL
from lab.reproduce.frontier_cases import CENTRAL, DISTRIBUTED, HELD_OUT, NO_NOISE
from lab.reproduce.frontier_corpora import frontier_corpora
from lab.reproduce.frontier_goals import goals_of

SAME = ("corpus", "topics", "model", "profile", "epsilon", "judging")
JUDGED = ("f1", "held_out", "npmi_held_out", "diversity", "product", "npmi", "product_all")
RELEVANT = ("npmi_held_out_relevant", "diversity_relevant", "product_relevant", "npmi_relevant", "product_all_relevant")
FIGURES = (*JUDGED, *RELEVANT, "rounds", "seconds", "megabytes", "noise")
SHOWN = (*SAME[:5], *JUDGED[:5], "rounds", "seconds")  # in a terminal, which has no room for more
# More than a few lines nobody could tell apart.
DRAWN = (*((model, CENTRAL) for model in (PUBLIC, PLAIN, MOMENTS, SHIPPED, SPECTRAL)), (PUBLIC, DISTRIBUTED))
SPREAD = ("f1", "held_out")
PLOTTED = {"f1": "classification (macro F1)", "perplexity": "perplexity of held-out words", "product": "NPMI x diversity"}


def found(runs: Sequence[Row]) -> Row:
    """The result: means of each case over its seeds, goals, curves, and which corpora settings were chosen on."""
    rows = means(runs)
    corpora = [
        {
            "corpus": name,
            "words_from": corpus.words_from,
            "settings": "chosen on it" if corpus.settings_chosen else "judged on it",
        }
        for name, corpus in frontier_corpora().items()
        if any(row["corpus"] == name for row in rows)
    ]
    return {
        "reproduction": "private-frontier",
        "columns": list(SHOWN),
        "rows": rows,
        "runs": list(runs),
        "tables": {"Goals": goals_of(rows, runs), "Corpora": corpora},
        "plots": [plot for name in dict.fromkeys(row["corpus"] for row in rows) for plot in plots(rows, name)],
    }


def means(runs: Sequence[Row]) -> list[Row]:
    """One row for each case: means over the seeds, and how far apart the seeds are."""
    of_case: dict[tuple[Any, ...], list[Row]] = {}
    for run in runs:
        of_case.setdefault(tuple(run[name] for name in SAME), []).append(_with_products(run))
    return [_mean(each) for each in of_case.values()]


def _with_products(run: Row) -> Row:
    """Coherence alone is easy: the same coherent words in every topic have it too."""
    pairs = {"product": ("npmi_held_out", "diversity"), "product_all": ("npmi", "diversity")}
    there = {
        f"{name}{of}": run[one + of] * run[other + of]
        for name, (one, other) in pairs.items()
        for of in ("", "_relevant")
        if run.get(one + of) is not None
    }
    return {**run, **there}


def _mean(runs: Sequence[Row]) -> Row:
    same = {name: runs[0][name] for name in SAME}
    figures = {name: _average([run.get(name) for run in runs]) for name in FIGURES}
    spread = {f"{name}_spread": _range([run.get(name) for run in runs]) for name in SPREAD}
    return {**same, "seeds": len(runs), **figures, **spread}


def _average(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return round(float(np.mean(there)), 4) if there else None


def _range(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return round(float(np.ptp(there)), 4) if len(there) > 1 else None


# ---- curves ----------------------------------------------------------------------------------------------------------


def plots(rows: Sequence[Row], corpus: str) -> list[Row]:
    """Each measure against epsilon on one corpus with 20 topics, and what needs no epsilon as level lines."""
    mine = [row for row in rows if (row["corpus"], row["topics"], row["judging"]) == (corpus, 20, HELD_OUT)]
    drawn = []
    for measure, title in PLOTTED.items():
        lines = dict(_lines([row for row in mine if _value(row, measure) is not None], measure))
        if lines:
            drawn.append({"title": f"{title}, {corpus}", "x": "epsilon per document", "y": measure, "lines": lines})
    return drawn


def _lines(rows: Sequence[Row], measure: str) -> Iterator[tuple[str, list[tuple[float, Any]]]]:
    most = max((row["epsilon"] for row in rows if row["epsilon"]), default=8.0)
    for model, form in DRAWN:
        mine = [row for row in rows if (row["model"], row["profile"]) == (model, form)]
        if mine:
            yield f"{model}, {form.removeprefix('dp-')}", [(row["epsilon"], _value(row, measure)) for row in mine]
    for row in rows:
        if row["profile"] == NO_NOISE and row["model"] in (PUBLIC, *NEVER_PRIVATE):
            level = _value(row, measure)
            yield f"{row['model']}{', no noise' * (row['model'] == PUBLIC)}", [(0.0, level), (most, level)]


def _value(row: Row, measure: str) -> float | None:
    """A figure to draw, which is not below 0."""
    if measure == "perplexity":
        return None if row["held_out"] is None else math.exp(-row["held_out"])
    value = row[measure]
    return None if value is None or (row["model"] == FREQUENCIES) else max(value, 0.0)
