"""An experiment of a paper: cases that are made one by one and kept, and what they say of the paper's claims.

A paper's own module says which cases each scale has, how one is made, and what follows from the rows. Whatever a row depends on
stands in its case: cases are kept in a file, and the same command goes on where it was stopped.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import securetm.models
from lab.keeping import KeptRows, Key, fits, made
from lab.measuring import OnProgress, Row, machine, mean_with_interval, timed
from securetm.errors import BadSetting, NotFound
from securetm.resources import user_cache

SMALL, MEDIUM, PAPER = "small", "medium", "paper"
HOLDS, IN_PART, NOT_HERE = "holds", "holds in part", "does not hold here"


@dataclass(frozen=True)
class Scale:
    """How large an experiment is; `reductions` are sentences on what is smaller than in the paper."""

    name: str
    seeds: tuple[int, ...]
    sizes: Mapping[str, Any]
    reductions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """What a paper claims, its figure and ours, whether it holds here, and why."""

    claim: str
    theirs: str
    ours: str
    verdict: str
    why: str


@dataclass(frozen=True)
class Findings:
    claims: Sequence[Claim]
    tables: Mapping[str, Sequence[Row]]
    plots: Sequence[Row] = ()


@dataclass(frozen=True)
class Experiment:
    """The experiments of one paper. `make` is a function of a module, so that worker processes find it."""

    name: str  # of the command
    paper: str
    about: str  # what is done, in two or three sentences
    scales: Mapping[str, Scale]
    cases: Callable[[Scale], Sequence[Key]]
    make: Callable[[Key], Row]
    findings: Callable[[Scale, Sequence[Row]], Findings]
    corpora: Callable[[Scale], Sequence[Row]]
    some: tuple[str, ...]  # FIELD=VALUE: an example of rows that are made alone
    packages: tuple[str, ...] = field(default=("numpy", "torch"))  # whose versions are told


def reproduced(
    experiment: Experiment,
    scale: str,
    keep: Path | None = None,
    workers: int = 1,
    on_progress: OnProgress | None = None,
    only: Sequence[str] = (),
) -> Row:
    """Makes all cases of the scale that are not kept yet. Without `keep` they are kept in the user's cache.

    Of `only`, every FIELD=VALUE has to fit: such rows are made alone, and nothing follows from them.
    """
    if scale not in experiment.scales:
        raise NotFound(f"scale of {experiment.name}", scale, tuple(experiment.scales))
    size = experiment.scales[scale]
    cases, source = experiment.cases(size), source_of(experiment.make)
    if only:
        where = f"reproduce {experiment.name}"
        absent: Row = dict.fromkeys(field for case in cases for field in case)  # a field that a case lacks is `none`
        cases = [case for case in cases if fits({**absent, **case}, only, where)]
        if not cases:
            raise BadSetting(where, "--only", " ".join(only), "fits no case of this scale")
    corpora = list(experiment.corpora(size))  # refuses before anything is made
    keys = [{"paper": experiment.name, **case, "source": source} for case in cases]
    if keep is None:
        keep = user_cache() / "papers" / f"{experiment.name}-{scale}.jsonl"
        keep.parent.mkdir(parents=True, exist_ok=True)
    rows = made(keys, partial(_row, experiment.make), KeptRows(keep), workers, on_progress)
    rows = [{**case, **row} for case, row in zip(cases, rows, strict=True)]
    if only:
        return {"reproduction": experiment.name, "scale": scale, "only": list(only), "plots": [], "rows": rows}
    found = experiment.findings(size, rows)
    command = f"python -m lab reproduce {experiment.name} --scale {scale}"
    several = f" --workers {workers}" if workers > 1 else ""
    return {
        "reproduction": experiment.name,
        "paper": experiment.paper,
        "about": experiment.about,
        "scale": scale,
        "command": f"{command}{several}",
        "command_of_some": " ".join(
            [command, *(f"--only '{one}'" if " " in one else f"--only {one}" for one in experiment.some)]
        ),
        "seeds": list(size.seeds),
        "version": securetm.__version__,
        "machine": machine(experiment.packages),
        "workers": workers,
        "case_seconds": round(sum(row["seconds"] for row in rows), 1),  # of all cases, as if one came after the other
        "reductions": list(size.reductions),
        "corpora": corpora,
        "claims": [asdict(claim) for claim in found.claims],
        "tables": {title: list(lines) for title, lines in found.tables.items()},
        "plots": list(found.plots),
        "rows": rows,
    }


def _row(make: Callable[[Key], Row], key: Key) -> Row:
    took, row = timed(lambda: make(key))
    return {**row, "seconds": round(took, 2)}


@cache
def source_of(make: Callable[[Key], Row]) -> str:
    """Says which source the models and the experiment have: a kept row of another one is made anew."""
    found = hashlib.sha256()
    for file in (*sorted(Path(str(securetm.models.__file__)).parent.rglob("*.py")), Path(str(inspect.getsourcefile(make)))):
        found.update(file.read_bytes())
    return found.hexdigest()[:16]


# ---- what papers' modules make of their rows -----------------------------------------------------------------------------


def verdict(held: Iterable[bool]) -> str:
    """Holds where every comparison holds, and in part where some do."""
    found = list(held)
    return HOLDS if all(found) else IN_PART if any(found) else NOT_HERE


def means(rows: Iterable[Row], by: Sequence[str], of: Sequence[str], digits: int = 4) -> list[Row]:
    """One row for each combination of the fields `by`: how many repetitions, and of each measure its mean.

    Beside it, as `NAME_away`, is half of the interval that holds 95 of 100 such means (Student's t).
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    found = []
    for place, group in groups.items():
        mean: Row = {**dict(zip(by, place, strict=True)), "repetitions": len(group)}
        for name in of:
            value, away = mean_with_interval([row[name] for row in group if row.get(name) is not None])
            mean |= {name: round(value, digits), f"{name}_away": None if away is None else round(away, digits)}
        found.append(mean)
    return found


def curves(of: Iterable[Row], by: str, x: str, y: str) -> Row:
    """The `lines` of a plot, one for each value of the field `by`, and how far their intervals reach (`away`)."""
    lines: dict[str, list[list[float]]] = {}
    away: dict[str, list[float | None]] = {}
    for row in of:
        lines.setdefault(row[by], []).append([row[x], row[y]])
        away.setdefault(row[by], []).append(row.get(f"{y}_away"))
    return {"lines": lines, "away": away}


def pivoted(of: Iterable[Row], by: Sequence[str], column: str, value: str) -> list[Row]:
    """A row for each combination of the fields `by`, with a column for each value of `column`."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in of:
        line = found.setdefault(tuple(row[name] for name in by), {name: row[name] for name in by})
        line |= {f"{row[column]:g}": row[value], f"{row[column]:g}_away": row.get(f"{value}_away")}
    return list(found.values())


def said(row: Row, name: str, digits: int = 2) -> str:
    """A mean with its interval, in words: `1.24 ± 0.03`."""
    away = row.get(f"{name}_away")
    return f"{row[name]:.{digits}f}" + ("" if away is None else f" ± {away:.{digits}f}")
