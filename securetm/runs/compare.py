"""Finished runs side by side: their settings, quality, privacy and cost; and which predicts the same documents better.

Runs whose settings are equal but for the seed are one group. A figure of a group is the mean over its seeds, with an interval
that holds the true mean in 95 of 100 cases if the figures of seeds are about normal (Student's t).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from securetm.contracts import Array
from securetm.federation.folder import RUN, RunFolder, check, reopen, result_of
from securetm.federation.party.alone import held_out_likelihood
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.simulation.simulation import documents_of
from securetm.federation.store import DamagedStore, read_json
from securetm.quality.evaluation import Difference, paired_difference
from securetm.runs.finished import FinishedRun

SEED = "seed"
_LOWER, _HIGHER = -1, 1


@dataclass(frozen=True)
class ComparedFigure:
    """A figure that runs are compared by."""

    name: str
    of: Callable[[Mapping[str, Any]], float | None]  # a run's result
    better: int = 0  # higher or lower; 0 where neither is better


def _quality(name: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda result: result["quality"].get(name)


def _epsilon(result: Mapping[str, Any]) -> float | None:
    return max((one["epsilon"] for one in result["spent"] if one["epsilon"] is not None), default=None)


def _better_off(result: Mapping[str, Any]) -> float | None:
    """How many parties' own documents the shared model predicts better than the party's own model."""
    alone, shared = result.get("alone") or {}, result.get("shared_at_party") or {}
    pairs = [(shared[name].get("held_out"), alone[name].get("held_out")) for name in alone if name in shared]
    known = [(ours, own) for ours, own in pairs if ours is not None and own is not None]
    return float(sum(ours < own for ours, own in known)) if known else None


COMPARED = (
    ComparedFigure("perplexity", _quality("held_out"), _LOWER),
    ComparedFigure("npmi", _quality("npmi"), _HIGHER),
    ComparedFigure("diversity", _quality("diversity"), _HIGHER),
    ComparedFigure("parties_better_than_alone", _better_off, _HIGHER),
    ComparedFigure("epsilon", _epsilon, _LOWER),
    ComparedFigure("rounds", lambda result: result["rounds"]),
    ComparedFigure("seconds", lambda result: result["seconds"], _LOWER),
    ComparedFigure("megabytes", lambda result: (result["bytes_up"] + result["bytes_down"]) / 1e6, _LOWER),
)


@dataclass(frozen=True)
class SeedFigure:
    """A figure over the runs of a group: all values that are known, their mean and its interval, where there are two."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        """None where no run knows the figure."""
        return float(np.mean(self.values)) if self.values else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """None for one value."""
        several = len(self.values)
        if several < 2:
            return None
        mean, spread = float(np.mean(self.values)), float(np.std(self.values, ddof=1))
        reach = float(stdtrit(several - 1, 0.975)) * spread / math.sqrt(several)
        return mean - reach, mean + reach

    def table(self) -> dict[str, Any]:
        """For JSON."""
        low, high = self.interval or (None, None)
        return {"mean": self.mean, "low": low, "high": high, "values": list(self.values)}


@dataclass(frozen=True)
class RunGroup:
    """Runs with the same settings but the seed."""

    settings: Mapping[str, Any]  # by dotted name
    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    figures: Mapping[str, SeedFigure]

    def table(self) -> dict[str, Any]:
        """For JSON."""
        figures = {name: figure.table() for name, figure in self.figures.items()}
        return {"runs": list(self.runs), "seeds": list(self.seeds), "settings": dict(self.settings), "figures": figures}


@dataclass(frozen=True)
class SideBySide:
    """All groups, and the settings that are not the same in all of them."""

    groups: tuple[RunGroup, ...]

    @property
    def differing(self) -> tuple[str, ...]:
        """The names of the settings in which groups differ."""
        names = dict.fromkeys(name for group in self.groups for name in group.settings)
        return tuple(name for name in names if len({repr(group.settings.get(name)) for group in self.groups}) > 1)

    def best(self, measure: ComparedFigure) -> int | None:
        """The number of the group with the best mean, where one is better and groups differ."""
        means = {place: group.figures[measure.name].mean for place, group in enumerate(self.groups)}
        known = {place: mean for place, mean in means.items() if mean is not None}
        if not measure.better or len(set(known.values())) < 2:
            return None
        return max(known, key=lambda place: measure.better * known[place])

    def table(self) -> dict[str, Any]:
        """What `securetm compare --json` prints."""
        differing = {name: [group.settings.get(name) for group in self.groups] for name in self.differing}
        return {"groups": [group.table() for group in self.groups], "differing": differing}


def side_by_side(paths: Sequence[Path]) -> SideBySide:
    """Reads finished runs and puts them into groups, in the order in which they were named."""
    groups: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for path in paths:
        settings, result = _settings(path), result_of(path)
        same = repr(sorted((name, value) for name, value in settings.items() if name != SEED))
        groups.setdefault(same, []).append((settings, result))
    return SideBySide(tuple(_group(each) for each in groups.values()))


def _group(runs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> RunGroup:
    settings = {name: value for name, value in runs[0][0].items() if name != SEED}
    results = [result for _, result in runs]
    figures = {one.name: SeedFigure(tuple(float(v) for r in results if (v := one.of(r)) is not None)) for one in COMPARED}
    return RunGroup(settings, tuple(r["run"] for r in results), tuple(int(s[SEED]) for s, _ in runs), figures)


def _settings(path: Path) -> dict[str, Any]:
    """The plan of a run by dotted names, and who took part."""
    result_of(path)  # refuses what is no finished run, and says so
    facts = read_json(path / RUN)
    check(path, path / RUN)
    try:
        return {**_dotted(facts["plan"]), "parties": len(facts["members"])}
    except (KeyError, TypeError, AttributeError) as problem:
        raise DamagedStore(str(path / RUN), "it is not the record of a run") from problem


def _dotted(tables: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in tables.items():
        found |= _dotted(value, f"{above}{name}.") if isinstance(value, dict) and value else {f"{above}{name}": value}
    return {name.replace("model.settings.", "model."): value for name, value in found.items()}


MOST_DOCUMENTS = 5_000  # held-out ones of all parties, drawn alike for every run


@dataclass(frozen=True, eq=False)
class PredictedDocuments:
    """The held-out documents of a run, and the log-likelihood of the unseen half of each."""

    vocabulary: tuple[str, ...]
    keys: Array
    found: Array
    words: Array


@dataclass(frozen=True)
class PairedRuns:
    """The second run's log-likelihood per word minus the first one's, over the same documents; or why there is none."""

    runs: tuple[str, str]
    documents: int = 0
    difference: Difference | None = None
    needs: str = ""

    def table(self) -> dict[str, Any]:
        """For JSON."""
        found = self.difference or Difference(*[float("nan")] * 4)
        apart = {"difference": found.value, "low": found.low, "high": found.high, "chance": found.chance}
        sure = None if self.difference is None else found.sure
        return {"runs": list(self.runs), "documents": self.documents, **apart, "sure": sure, "needs": self.needs or None}


def paired_runs(first: Path, others: Sequence[Path]) -> list[PairedRuns]:
    """The first run with each of the others."""
    mine = _held_out(first)
    return [_paired((first.name, other.name), mine, _held_out(other)) for other in others]


def _paired(names: tuple[str, str], mine: PredictedDocuments | str, other: PredictedDocuments | str) -> PairedRuns:
    if isinstance(mine, str) or isinstance(other, str):
        return PairedRuns(names, needs=mine if isinstance(mine, str) else str(other))
    if mine.vocabulary != other.vocabulary:
        return PairedRuns(names, needs="the same words: likelihoods over others cannot be compared")
    if not np.array_equal(mine.keys, other.keys):
        return PairedRuns(names, needs="the same held-out documents: the same corpus, seed and training.held_out")
    return PairedRuns(names, len(mine.keys), paired_difference(other.found, mine.found, mine.words))


def _held_out(path: Path) -> PredictedDocuments | str:
    """The likelihood of a run's held-out documents; or what is missing."""
    folder = reopen(path)
    if not all(folder.documents(name).is_file() for name in folder.members):
        return "documents: only the folder of a simulation holds any"
    run = FinishedRun.open(path)
    parts = [_of_party(folder, run, name) for name in folder.members]
    keys, found, words = (np.concatenate(column) for column in zip(*parts, strict=True))
    return PredictedDocuments(run.vocabulary, keys, found, words)


def _of_party(folder: RunFolder, run: FinishedRun, name: str) -> tuple[Array, Array, Array]:
    documents = PartyDocuments(documents_of(folder, name))
    documents.adopt(run.vocabulary, folder.agreement)
    assert documents.held_out is not None
    most = max(1, MOST_DOCUMENTS // len(folder.members))
    if len(documents.held_out) > most:
        drawn = np.sort(np.random.default_rng(0).choice(len(documents.held_out), most, replace=False))
        documents.held_out = documents.held_out.select(drawn)
    found, words = held_out_likelihood(run.model, run.state, documents, folder.agreement.plan.seed)
    return np.asarray(documents.held_out.keys), found, words
