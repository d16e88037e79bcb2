"""Finished runs side by side: their settings, quality, privacy and cost; and which predicts the same documents better.

Runs whose settings are equal but for the seed are one group, in which a run that is another one again counts once. A figure of
a group is the mean over its seeds, with an interval that holds the true mean in 95 of 100 cases if the figures of seeds are
about normal (Student's t). Perplexities over different words say nothing of each other: what is compared is the ratio to word
frequencies over the same words, and F1 where documents have labels.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.data_classes import dataclass
from securetm.federation.folder import RUN, NotARun, RunFolder, check, reopen, result_of
from securetm.federation.party.alone import held_out_likelihood
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.simulation.simulation import documents_of
from securetm.federation.store import DamagedStore, read_json
from securetm.quality.evaluation import paired_difference
from securetm.quality.measures import TooFewLabels, classified
from securetm.runs.finished import FinishedRun, documents_of_run
from securetm.runs.kept_runs import epsilon_told, over_frequencies

SEED = "seed"
SO_FAR = "epsilon_so_far"  # of a sweep: what all its runs spent up to this one, as the ledgers say
_LOWER, _HIGHER = -1, 1


@dataclass(frozen=True)
class ComparedFigure:
    """A figure that runs are compared by."""

    name: str
    of: Callable[[Mapping[str, Any]], float | None]  # a run's result
    better: int = 0  # higher or lower; 0 where neither is better


def _quality(name: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda result: result["quality"].get(name)


def _better_off(result: Mapping[str, Any]) -> float | None:
    """How many parties' own documents the shared model predicts better than the party's own model."""
    alone, shared = result.get("alone") or {}, result.get("shared_at_party") or {}
    pairs = [(shared[name].get("held_out"), alone[name].get("held_out")) for name in alone if name in shared]
    known = [(ours, own) for ours, own in pairs if ours is not None and own is not None]
    return float(sum(ours < own for ours, own in known)) if known else None


F1, PERPLEXITY = "macro_f1", "perplexity"
COMPARED = (
    ComparedFigure("perplexity_over_frequencies", over_frequencies, _LOWER),
    ComparedFigure(F1, lambda result: result[F1], _HIGHER),
    ComparedFigure(PERPLEXITY, _quality("held_out"), _LOWER),
    ComparedFigure("npmi", _quality("npmi"), _HIGHER),
    ComparedFigure("diversity", _quality("diversity"), _HIGHER),
    ComparedFigure("parties_better_than_alone", _better_off, _HIGHER),
    ComparedFigure("epsilon", lambda result: epsilon_told(result["spent"]), _LOWER),
    ComparedFigure("rounds", lambda result: result["rounds"]),
    ComparedFigure("seconds", lambda result: result["seconds"], _LOWER),
    ComparedFigure("megabytes", lambda result: (result["bytes_up"] + result["bytes_down"]) / 1e6, _LOWER),
)


def side_by_side(runs: Mapping[str, Path]) -> dict[str, Any]:
    """Finished runs in groups, in the order in which they were named, and the settings that are not the same in all groups.

    Each is called as it was named: two folders may have the same last name.
    """
    by_settings: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    once: dict[Path, str] = {}
    for name, path in runs.items():
        once.setdefault(path.resolve(), name)
    for path, name in once.items():
        settings, result = _settings(path), result_of(path)
        same = repr(sorted((each, value) for each, value in settings.items() if each != SEED))
        listed = reopen(path).words
        words = hashlib.sha256(listed.read_bytes()).hexdigest() if listed.is_file() else ""
        found = {**result, "run": name, F1: _macro_f1(path), "words": words}
        by_settings.setdefault(same, []).append((settings, found))
    groups = [_group(each) for each in by_settings.values()]
    names = dict.fromkeys(name for group in groups for name in group["settings"])
    values = {name: [group["settings"].get(name) for group in groups] for name in names}
    return {"groups": groups, "differing": {name: each for name, each in values.items() if len(set(map(repr, each))) > 1}}


def swept(paths: Sequence[Path]) -> dict[str, Any]:
    """The figures of runs of which each has another value of a setting, one list for each figure, and what they spent."""
    groups = [side_by_side({str(path): path})["groups"][0] for path in paths]
    figures = {one.name: [group["figures"][one.name]["mean"] for group in groups] for one in COMPARED}
    spent = [[one for one in result_of(path)["spent"] if one["epsilon"] is not None] for path in paths]
    # That a run reads the words of the first one adds nothing to what their common ledger says, so its own share stands here.
    figures["epsilon"] = [max((one.get("own", one)["epsilon"] for one in run), default=None) for run in spent]
    bounds = [[one["all_runs"] for one in run] for run in spent]  # no most of these, where one has no bound or there is none
    figures[SO_FAR] = [max(each) if each and None not in each else None for each in bounds]
    known = [epsilon for epsilon in figures[SO_FAR] if epsilon is not None]
    together = max(known) if len(known) == len(spent) else None
    return {"runs": [str(path) for path in paths], "figures": figures, "epsilon_together": together}


def best_of(groups: Sequence[Mapping[str, Any]], measure: ComparedFigure) -> int | None:
    """The number of the group with the best mean, where one is better and groups differ."""
    return best_value([group["figures"][measure.name]["mean"] for group in groups], measure.better)


def best_value(means: Sequence[float | None], better: int) -> int | None:
    """The number of the best of these, where one is better and they differ."""
    known = {place: mean for place, mean in enumerate(means) if mean is not None}
    if not better or len(set(known.values())) < 2:
        return None
    return max(known, key=lambda place: better * known[place])


def _group(runs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> dict[str, Any]:
    """Runs with the same settings but the seed. The same seed without noise gives the same model, which counts once."""
    first: dict[str, str] = {}
    same: dict[str, list[str]] = {}
    for settings, result in runs:
        known = first.setdefault(repr([settings[SEED], result["topics"], result["quality"]]), result["run"])
        same.setdefault(known, []).append(result["run"])
    runs = [(settings, result) for settings, result in runs if result["run"] in same]
    results = [result for _, result in runs]
    started = {result["run"]: [one for one in result["spent"] if one.get("from_origins")] for result in results}
    return {
        "runs": [result["run"] for result in results],
        "seeds": [int(settings[SEED]) for settings, _ in runs],
        "identical": [names for names in same.values() if len(names) > 1],
        "own_epsilon": {run: max(one["own"]["epsilon"] for one in spent) for run, spent in started.items() if spent},
        "words": sorted({result["words"] for result in results}),
        "settings": {name: value for name, value in runs[0][0].items() if name != SEED},
        "figures": {one.name: _over_seeds([float(v) for r in results if (v := one.of(r)) is not None]) for one in COMPARED},
    }


def _over_seeds(values: list[float]) -> dict[str, Any]:
    """All values that are known, their mean, and its interval where there are two."""
    mean = float(np.mean(values)) if values else None
    if mean is None or len(values) < 2:
        return {"mean": mean, "low": None, "high": None, "values": values}
    from scipy.special import stdtrit  # takes long to import, and a party that joins compares nothing

    reach = float(stdtrit(len(values) - 1, 0.975)) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return {"mean": mean, "low": mean - reach, "high": mean + reach, "values": values}


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


def _macro_f1(path: Path) -> float | None:
    """The macro F1 of a classifier on the topics of documents, drawn alike for every run; None where they have no labels."""
    try:
        run = FinishedRun.open(path)
        documents = documents_of_run(run)
        if documents is None or documents.labels is None:
            return None
        documents = documents.project(run.vocabulary)
        if len(documents) > MOST_DOCUMENTS:
            documents = documents.select(np.sort(np.argsort(documents.keys, kind="stable")[:MOST_DOCUMENTS]))
        return classified(run.model.infer(run.state, documents), documents.labels).macro_f1
    except (TooFewLabels, NotARun):  # no round was trained
        return None


MOST_DOCUMENTS = 5_000  # held-out ones of all parties, drawn alike for every run


Predicted = tuple[tuple[str, ...], Array, Array, Array]  # words; by held-out document key, log-likelihood, unseen words


def paired_runs(runs: Mapping[str, Path]) -> list[dict[str, Any]]:
    """The log-likelihood per word of each of the others minus that of the first run, over the same documents.

    Where there is none, it says what that needs.
    """
    (first, path), *others = runs.items()
    mine = _held_out(path)
    return [{"runs": [first, name], **_paired(mine, _held_out(other))} for name, other in others]


def _paired(mine: Predicted | str, other: Predicted | str) -> dict[str, Any]:
    if isinstance(mine, str) or isinstance(other, str):
        needs = mine if isinstance(mine, str) else str(other)
    elif mine[0] != other[0]:
        needs = "the same words: likelihoods over others cannot be compared"
    elif not np.array_equal(mine[1], other[1]):
        needs = "the same held-out documents: the same corpus, seed and training.held_out"
    else:
        found = paired_difference(other[2], mine[2], mine[3])
        apart = {"difference": found.value, "low": found.low, "high": found.high, "chance": found.chance, "sure": found.sure}
        return {"documents": len(mine[1]), **apart, "needs": None}
    return {"documents": 0, **dict.fromkeys(("difference", "low", "high", "chance", "sure")), "needs": needs}


def _held_out(path: Path) -> Predicted | str:
    """The likelihood of a run's held-out documents; or what is missing."""
    folder = reopen(path)
    if not all(folder.documents(name).is_file() for name in folder.members):
        return "documents: only the folder of a simulation holds any"
    run = FinishedRun.open(path)
    parts = [_of_party(folder, run, name) for name in folder.members]
    keys, found, words = (np.concatenate(column) for column in zip(*parts, strict=True))
    return run.vocabulary, keys, found, words


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
