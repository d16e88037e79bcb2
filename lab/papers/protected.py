"""What protection costs in the papers' own units: a paper's parties train real federations, with models that take a budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.federations import FederatedRun, federated
from lab.keeping import Key
from lab.measuring import Row
from lab.papers.experiment import Claim, curves, means, said, verdict
from securetm.corpus.corpus import Corpus

SEMANTIC, MOMENTS, MASKED, ENCRYPTED = "semantic", "moments", "masked", "bfv"
UNTRAINED = "nothing learned"  # stands in the place of a profile
PROFILES: Sequence[tuple[str, float | None]] = (
    (MASKED, None),
    (ENCRYPTED, None),
    *(("dp-distributed", epsilon) for epsilon in (8.0, 3.0, 1.0)),
)
_PLACE, _COST = ("model", "profile", "epsilon"), ("asked", "megabytes")
_NEAR, _MOST_LOST = 0.01, 0.9  # how far encrypted sums may be from masked ones; what a budget is to keep


@dataclass(frozen=True)
class Measure:
    """A figure of a paper, by which protection is judged."""

    name: str  # of its column
    title: str
    less: bool = False  # is better
    digits: int = 2
    note: str = ""  # on what it says under noise

    def kept(self, without: float, under: float) -> float:
        return without / under if self.less else under / without


def under_profiles(models: Sequence[str], seeds: Sequence[int]) -> Iterator[Row]:
    """Every model under every profile, seed by seed. Encrypted sums are tried once: they are the same as masked ones."""
    for seed in seeds:
        for model in models:
            for profile, epsilon in PROFILES:
                if profile != ENCRYPTED or seed == seeds[0]:
                    yield {"model": model, "profile": profile, "epsilon": epsilon, "seed": seed}


def trained(parties: Mapping[str, Corpus], words: Sequence[str], key: Key, rounds: int = 0) -> FederatedRun:
    """One federation of these parties under the profile of the case; rounds are the plan's where none are given."""
    training: dict[str, Any] = {"rounds": rounds} if rounds else {}
    tables: dict[str, Any] = {
        "profile": key["profile"],
        "seed": key["seed"],
        "model": {"name": key["model"], "n_topics": key["topics"]},
        "training": training | ({"vectors": "minilm"} if key["model"] == SEMANTIC else {}),
    }
    if key["epsilon"] is not None:
        tables["privacy"] = {"epsilon": key["epsilon"]}
    return federated(parties, words, tables)


def cost(run: FederatedRun) -> Row:
    """What the federation took, and what its first party's ledger says."""
    return {"megabytes": round(run.megabytes, 2), "asked": run.rounds, "spent": run.spent}


# ---- what follows from the rows ------------------------------------------------------------------------------------------


def _at(row: Row) -> str:
    return row["profile"] if row["epsilon"] is None else f"epsilon {row['epsilon']:g}"


def _averaged(rows: Sequence[Row], measures: Sequence[str]) -> list[Row]:
    """A row for each model and profile; where a model has no such measure, its cell is empty."""
    found: dict[tuple[Any, ...], Row] = {}
    for name in measures:
        for row in means([row for row in rows if row.get(name) is not None], _PLACE, (name,)):
            found.setdefault(tuple(row[field] for field in _PLACE), {}).update(row)
    columns = (*_PLACE, "repetitions", *(f"{name}{end}" for name in measures for end in ("", "_away")))
    return [{column: row.get(column) for column in columns} for row in found.values()]


def tables(rows: Sequence[Row], measures: Sequence[str], setting: str) -> dict[str, list[Row]]:
    return {f"Under a profile: {setting}": _averaged(rows, (*measures, *_COST))} if rows else {}


def claims(rows: Sequence[Row], measures: Sequence[Measure]) -> Iterator[Claim]:
    """What hiding single answers costs, and what a budget for each document costs, by each measure."""
    for measure in measures:
        found = {(row["model"], _at(row)): row for row in _averaged(rows, (measure.name,))}
        yield from _hidden(rows, measure)
        yield from _budget(found, measure)


def _hidden(rows: Sequence[Row], measure: Measure) -> Iterator[Claim]:
    of = {(row["model"], row["profile"], row["seed"]): row[measure.name] for row in rows if row.get(measure.name) is not None}
    apart = {m: abs(value - of[m, MASKED, seed]) for (m, at, seed), value in of.items() if at == ENCRYPTED}
    if apart:
        yield Claim(
            f"Hiding single answers costs no {measure.title} (not in the paper)",
            "",
            f"encrypted (`{ENCRYPTED}`) beside `{MASKED}`, apart by "
            + ", ".join(f"{gap:.4f} ({model})" for model, gap in apart.items()),
            verdict(gap <= _NEAR * abs(of[model, MASKED, min(seed for *_, seed in of)]) for model, gap in apart.items()),
            "Both open the same sum. Encrypted numbers are rounded in another way.",
        )


def _budget(found: Mapping[tuple[str, str], Row], measure: Measure) -> Iterator[Claim]:
    ours, kept = list[str](), dict[str, list[float]]()
    for model in dict.fromkeys(model for model, _ in found):
        without = found.get((model, MASKED))
        under = {at: row for (of, at), row in found.items() if of == model and row["epsilon"] is not None}
        if without is not None and under:
            told = ", ".join(f"{said(row, measure.name, measure.digits)} at {at}" for at, row in under.items())
            ours.append(f"{model}: {said(without, measure.name, measure.digits)} without a budget, {told}")
            kept[model] = [measure.kept(without[measure.name], row[measure.name]) for row in under.values()]
    if kept:
        yield Claim(
            f"A budget for each document (`dp-distributed`) keeps nine tenths of the {measure.title} (not in the paper)",
            "",
            "; ".join(ours),
            verdict(share >= _MOST_LOST for shares in kept.values() for share in shares),
            "Kept: "
            + "; ".join(f"{model} " + ", ".join(f"{100 * share:.0f} %" for share in shares) for model, shares in kept.items())
            + f". {_of_nothing(found, measure)}{measure.note}".rstrip(),
        )


def _of_nothing(found: Mapping[tuple[str, str], Row], measure: Measure) -> str:
    told = [f"{model} {said(row, measure.name, measure.digits)}" for (model, at), row in found.items() if at == UNTRAINED]
    return f"With {UNTRAINED}: {', '.join(told)}. " if told else ""


def plots(rows: Sequence[Row], measures: Sequence[Measure], setting: str) -> Iterator[Row]:
    named = [at if epsilon is None else f"epsilon {epsilon:g}" for at, epsilon in PROFILES]
    for measure in measures:
        found = [{**row, "at": _at(row)} for row in _averaged(rows, (measure.name,)) if row["profile"] != UNTRAINED]
        marks = [at for at in named if any(row["at"] == at for row in found)]
        placed = [{**row, "place": marks.index(row["at"]) + 1} for row in found]
        better = ", less is better" if measure.less else ""
        if placed:
            facts = {"figure": "Protection", "title": setting, "x": "protection", "y": f"{measure.title}{better}"}
            yield {**facts, "bars": True, "marks": marks, **curves(placed, "model", "place", measure.name)}
