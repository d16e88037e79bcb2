"""Which clip radius, words and topics of `lda-vi` predict best under a budget: rules of public numbers against constants.

Fitted on made-up documents; what the rule gives on corpora stands beside it. A word that is not on the list is predicted by its
frequency, so that lists of different lengths are judged on the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from lab.fits.forecast_trials import DOCSTRINGS, MANY, RADIUS, TITLES, TOPICS, WORDS, ForecastTrial, row, whole
from lab.keeping import KeptRows, Key, made
from lab.measuring import OnProgress, Row
from lab.reproduce.contenders import DELTA, PUBLIC
from securetm.plans.rules import WORDS_RULE, nearest, noise_of_one_round, signal

SIZES, EPSILONS = (1_000, 4_000, 12_000), (1.0, 8.0)
RADII, LISTS, COUNTS = (0.5, 1.0, 2.0, 4.0), (250, 500, 1_000, 2_000), (5, 10, 20, 50)
SETTINGS: Mapping[str, tuple[float, ...]] = {"radius": RADII, "words": LISTS, "topics": COUNTS}
USUAL = {"radius": RADIUS, "words": WORDS, "topics": TOPICS}
_TABLE = (WORDS_RULE.value["usual_topics"], WORDS_RULE.value["usual_words"])  # whose noise the signal is over
_LONGEST = 4_000  # words, on all of which lists are judged


def trials() -> list[ForecastTrial]:
    """One setting is varied at a time: words in every case, the others on middling numbers of documents."""
    cases = list(product((MANY, DOCSTRINGS, TITLES), SIZES, EPSILONS))
    found = [_trial(*case, "words", value) for case in cases for value in LISTS]
    few = [case for case in cases if case[0] != TITLES and case[1] == SIZES[1]]
    found += [_trial(*case, name, value) for case in few for name in ("radius", "topics") for value in SETTINGS[name]]
    return list(dict.fromkeys(one for one in found if one.corpus != DOCSTRINGS or one.documents < max(SIZES)))


def _trial(corpus: str, size: int, epsilon: float, name: str, value: float) -> ForecastTrial:
    one = {**USUAL, name: value}
    return ForecastTrial(corpus, size, PUBLIC, epsilon, int(one["words"]), int(one["topics"]), float(one["radius"]))


def reproduce(on_progress: OnProgress | None = None, keep: Path | None = None, workers: int = 1) -> Row:
    """Carries out every trial; rows in the file `keep` are not made again. Then what rules and constants give up."""
    return found(made([trial.key() for trial in trials()], judged_row, KeptRows(keep), workers, on_progress))


def judged_row(key: Key) -> Row:
    """One trial, and what its list of words holds of all words that the longest list holds."""
    return {**row(key), "covered": round(covered(key["corpus"], key["words"]), 4)}


@cache
def covered(corpus: str, words: int) -> float:
    """The share of occurrences of the longest list's words that fall on the most frequent of them."""
    totals = np.sort(np.asarray(whole(corpus).counts.sum(axis=0)).ravel())[::-1][:_LONGEST]
    return float(totals[:words].sum() / totals.sum())


def promise(one: Row) -> float:
    """The gain over word frequencies for each word of the longest list."""
    return float((one["held_out"] - one["frequencies"]) * one["covered"])


def signal_of(one: Row) -> float:
    """How far the documents stand above the noise of one round, with the usual words and topics."""
    return signal(one["documents"], *_TABLE, noise_of_one_round(one["epsilon"], DELTA))


def found(rows: Sequence[Row]) -> Row:
    """For each setting: what each constant gives up, and what a rule of the signal gives up that is fitted to made-up ones."""
    tables = {name: _compared(rows, name) for name in SETTINGS}
    return {"reproduction": "settings-rule", "model": PUBLIC, "delta": DELTA, "tables": tables, "rows": list(rows)}


def _cases(rows: Sequence[Row], setting: str) -> dict[tuple[str, int, float], dict[float, Row]]:
    """The rows in which only this setting differs from the usual ones, by corpus, documents and epsilon."""
    others = [name for name in USUAL if name != setting]
    mine = [one for one in rows if all(one[name] == USUAL[name] for name in others) and one[setting] in SETTINGS[setting]]
    cases: dict[tuple[str, int, float], dict[float, Row]] = {}
    for one in mine:
        cases.setdefault((one["corpus"], one["documents"], one["epsilon"]), {})[one[setting]] = one
    return cases


def _compared(rows: Sequence[Row], setting: str) -> list[Row]:
    cases, values = _cases(rows, setting), SETTINGS[setting]
    rules: dict[str, Callable[[Row], float]] = {f"always {value:g}": _always(value) for value in values}
    at_one, power = fitted(rows, setting)
    rules[f"{at_one:g} x signal^{power:g}, the nearest tried"] = by_signal(at_one, power, values)
    return [_given_up(cases, name, rule) for name, rule in rules.items()]


def _always(value: float) -> Callable[[Row], float]:
    return lambda _: value


def by_signal(at_one: float, power: float, values: Sequence[float]) -> Callable[[Row], float]:
    """A rule: a power of the signal, and of the values that were tried the nearest one."""
    return lambda one: nearest(signal_of(one), at_one, power, values)


def fitted(rows: Sequence[Row], setting: str) -> tuple[float, float]:
    """The rule that gives up least on made-up documents; of equal ones, the one that moves least."""
    cases = {key: case for key, case in _cases(rows, setting).items() if key[0] == MANY}
    values = SETTINGS[setting]
    starts = sorted({value * 2.0**step for value in values for step in range(-5, 1)})
    pairs = [(at_one, power) for power in (0.0, 0.25, 0.5, 0.75, 1.0) for at_one in starts]

    def cost(pair: tuple[float, float]) -> tuple[float, float, float]:
        lost: float = _given_up(cases, "", by_signal(*pair, values))["made_up"]
        return round(lost, 3), pair[1], pair[0]

    return min(pairs, key=cost)


def _given_up(cases: Mapping[tuple[str, int, float], Mapping[float, Row]], name: str, rule: Callable[[Row], float]) -> Row:
    """What a rule gives up against the best value of each case, in nats for each word: mean on made-up ones and on corpora."""
    lost: dict[str, list[float]] = {"made_up": [], "corpora": []}
    for key, case in cases.items():
        best, mine = max(map(promise, case.values())), case.get(rule(next(iter(case.values()))))
        if mine is not None:
            lost["made_up" if key[0] == MANY else "corpora"].append(best - promise(mine))
    return {"rule": name, **{part: round(float(np.mean(values)), 4) if values else None for part, values in lost.items()}}
