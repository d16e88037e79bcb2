"""The fit of the forecast of usefulness, and how it does: each corpus is judged by a rule that was fitted without it.

Outcomes are those of trials (`forecast_trials.py`) and of the committed frontier. It trains nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from lab.measuring import Row
from lab.reproduce.contenders import FREQUENCIES, MOMENTS, PLAIN, PUBLIC, RADIUS, STARTED, STARTED_PLAIN
from lab.reproduce.frontier_cases import NEWS, NEWS_FEW, NO_NOISE, PARTIES, SNIPPETS, SNIPPETS_FEW, TITLES
from lab.reproduce.frontier_cases import WORDS as FRONTIER_WORDS
from securetm.contracts import Array
from securetm.plans.forecast import (
    COVERS,
    GENERAL,
    LDA_VI,
    OF_NOISE,
    OF_WORDS,
    SHORTNESS,
    SLACK,
    TOPICS,
    WORDS,
    FittedModel,
    ForecastSetting,
    Verdict,
    beyond,
    features,
    lesser_of_lines,
    of_f1,
    outlook,
    tables,
    under_profile,
)
from securetm.plans.profiles import read_profile

# ---- outcomes ------------------------------------------------------------------------------------------------------------

GENERAL_WORDS = ", words of general English"  # a list that no document of the corpus chose
MADE_UP = "made-up documents"
JUDGING = 0.1  # the share of the documents of the frontier that nobody trained on
_OF_LDA_VI = (PUBLIC, PLAIN, STARTED, STARTED_PLAIN)
_SIZES = {
    NEWS: (18_728, 33.5),
    SNIPPETS: (12_703, 5.8),
    TITLES: (17_653, 3.7),
    NEWS_FEW: (1_992, 33.3),
    SNIPPETS_FEW: (1_986, 5.8),
}


@dataclass(frozen=True)
class Point:
    corpus: str
    model: str
    features: Mapping[str, float]
    held_out: float  # gain over word frequencies
    classification: float | None  # F1 over that of the same model without noise
    row: Row

    @property
    def family(self) -> str:
        """The corpus that it is a part of."""
        return _family(self.corpus)

    @property
    def noised(self) -> bool:
        return self.row["epsilon"] is not None


def _family(corpus: str) -> str:
    return corpus.removeprefix("2,000 of ").partition(",")[0]


def points_of_trials(rows: Sequence[Row]) -> list[Point]:
    """The outcomes of trials, each beside the same model without noise."""
    settled = {_alike(row): row["f1"] for row in rows if row["epsilon"] is None}
    points = []
    for row in rows:
        radius = 1.0 if row["model"] == MOMENTS else row["radius"]
        found = _features(row, row["documents"], row["words"], row["length"], row["deviation"] / radius, row["radius"])
        without = settled.get(_alike(row))
        share = row["f1"] / without if without else None
        points.append(Point(row["corpus"], row["model"], found, row["held_out"] - row["frequencies"], share, row))
    return points


def _alike(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("corpus", "documents", "model", "words", "topics", "radius", "seed"))


def points_of_frontier(rows: Sequence[Row]) -> list[Point]:
    """The outcomes of the committed frontier: whole federations, over words that no document chose."""
    judged = [row for row in rows if row["judging"] == JUDGING]
    frequencies = {row["corpus"]: row["held_out"] for row in judged if row["model"] == FREQUENCIES}
    settled = {(r["corpus"], r["topics"], r["model"]): r["f1"] for r in judged if r["profile"] == NO_NOISE}
    points = []
    for row in (row for row in judged if row["model"] in (*_OF_LDA_VI, MOMENTS)):
        documents, length = _SIZES[row["corpus"]]
        factor = 0.0 if row["profile"] == NO_NOISE else under_profile(read_profile(row["profile"]), PARTIES)
        found = _features(row, round((1 - JUDGING) * documents), FRONTIER_WORDS, length, row["noise"] * factor, RADIUS)
        without = settled.get((row["corpus"], row["topics"], row["model"]))
        share = row["f1"] / without if without else None
        points.append(Point(row["corpus"], row["model"], found, row["held_out"] - frequencies[row["corpus"]], share, row))
    return points


def _features(row: Row, documents: int, words: int, length: float, deviation: float, radius: float) -> Mapping[str, float]:
    """What the rule reads of an outcome; `deviation` is over the radius."""
    model = LDA_VI if row["model"] in _OF_LDA_VI else row["model"]
    general = row["corpus"].endswith(GENERAL_WORDS)
    setting = ForecastSetting(
        documents, 1.0, model=model, general_list=general, words=words, topics=row["topics"], length=length, radius=radius
    )
    return features(setting, deviation)


# ---- the fit -----------------------------------------------------------------------------------------------------------

HELD_OUT, CLASSIFICATION = "held_out", "classification"
TAKEN_IN = 0.9  # of the outcomes on corpora left out: few corpora differ less than a new one will, which shall be in COVERS
FEWEST, FEWEST_CORPORA = 20, 4  # outcomes and corpora of a model; of fewer nothing is forecast
_FAR = (1 - COVERS) / 2
_STEPS = 20  # between quantiles that are kept
_MOST_STEPS = 200  # of the search for the numbers
_LINES = (*OF_NOISE, *OF_WORDS)
_BEGIN = {  # a line's level and slopes, of noise and of words, then how sharply the lesser of both counts
    HELD_OUT: (-0.8, 0.25, *[0.0] * 5, -0.3, 0.1, 0.05, *[0.0] * 4, -2.3),
    CLASSIFICATION: (0.2, 0.2, *[0.0] * 5, 1.0, *[0.0] * 6, -2.3),
}
_FREELY, _FIRMLY, _HARDLY, _NOT_AT_ALL = 0.02, 0.3, 3.0, 1e4  # how the numbers are held to those that the search begins at
# Few corpora were tried with other numbers of these: what they change is said by noise and by how often a word occurs.
_SELDOM_VARIED = (TOPICS, WORDS)


@dataclass(frozen=True)
class Form:
    """Which features the lines read. Which form a rule has is chosen by the corpora that are left out in turn."""

    without: tuple[str, ...] = ()

    @property
    def held(self) -> Array:
        """How firmly each number is held."""
        slopes = [_NOT_AT_ALL if name in self.without else _HARDLY if name in _SELDOM_VARIED else _FIRMLY for name in _LINES]
        split = len(OF_NOISE)
        return np.array([_FREELY, *slopes[:split], _FREELY, *slopes[split:], 0.2])


FORMS = (Form(without=(SHORTNESS,)), Form())


def fitted(points: Sequence[Point], outcome: str, form: Form) -> Array:
    """The rule's numbers that come nearest to the outcomes; each family of corpora weighs alike.

    Held-out likelihood never falls with a clearer signal.
    """
    read, values = tables([point.features for point in points]), np.array([getattr(point, outcome) for point in points])
    families = [point.family for point in points]
    weights = np.array([families.count(one) for one in families]) ** -0.5
    weights *= (len(points) / np.square(weights).sum()) ** 0.5
    begin, held = np.array(_BEGIN[outcome]), form.held
    least = np.full(len(begin), -np.inf)
    if outcome == HELD_OUT:
        least[[1, 2 + len(OF_NOISE)]] = 0.0

    def away(numbers: Array) -> Array:
        off: Array = np.concatenate([weights * (lesser_of_lines(numbers, *read) - values), held * (numbers - begin)])
        return off

    found: Array = least_squares(away, begin, bounds=(least, np.inf), max_nfev=_MOST_STEPS).x
    return found


# ---- corpora left out --------------------------------------------------------------------------------------------------


def left_out(points: Sequence[Point], outcome: str, form: Form) -> dict[str, Array]:
    """How far each outcome under a budget lies above the rule that was fitted without its family, by family."""
    apart = {}
    for family in dict.fromkeys(point.family for point in points):
        others = [point for point in points if point.family != family]
        mine = []  # for which a forecast would be made at all: it is not where a feature lies beyond what was tried
        for point in (point for point in points if point.family == family and point.noised):
            spans = {name: [f(other.features[name] for other in others) for f in (min, max)] for name in point.features}
            if all(low - SLACK <= point.features[name] <= high + SLACK for name, (low, high) in spans.items()):
                mine.append(point)
        if mine and others:
            values = np.array([getattr(point, outcome) for point in mine])
            read = tables([point.features for point in mine])
            apart[family] = values - lesser_of_lines(fitted(others, outcome, form), *read)
    return apart


def of_texts(apart: Mapping[str, Array]) -> list[Array]:
    """Those of texts only: made-up documents shape the curve, and differ from each other as texts do not."""
    return [one for family, one in apart.items() if not family.startswith(MADE_UP)]


def ends(apart: Sequence[Array]) -> Row:
    """The ends of the band, what is sure and what hardly is, and quantiles of all: each family weighs alike."""
    tails = (1 - TAKEN_IN) / 2
    below, above, hardly = _quantiles(apart, (tails, 1 - tails, 1 - _FAR))
    surely = min(below, *(float(one.min()) for one in apart))
    kept = _quantiles(apart, np.linspace(0, 1, _STEPS + 1))
    named = {"below": below, "above": above, "surely": surely, "hardly": hardly}
    return {**{name: round(value, 4) for name, value in named.items()}, "apart": [round(value, 4) for value in kept]}


def _quantiles(apart: Sequence[Array], at: Sequence[float] | Array) -> list[float]:
    values, weights = np.concatenate(apart), np.concatenate([np.full(len(one), 1 / len(one)) for one in apart])
    order = np.argsort(values)
    reached = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    return [float(one) for one in np.interp(at, reached, values[order])]


# ---- the rule ----------------------------------------------------------------------------------------------------------


def fit(points: Sequence[Point]) -> Row:
    """The rule for these points: for each model the numbers of both outcomes, their bands, and what was tried."""
    models = dict[str, Row]()
    for model in dict.fromkeys(point.model for point in points):
        mine = [point for point in points if point.model == model]
        noised = [point for point in mine if point.noised and not point.family.startswith(MADE_UP)]
        if len(noised) >= FEWEST and len({point.family for point in noised}) >= FEWEST_CORPORA:
            names = [name for name in mine[0].features if name != SHORTNESS]
            spans = {name: [f(point.features[name] for point in mine) for f in (min, max)] for name in names}
            tried = {name: [round(low, 4), round(high, 4)] for name, (low, high) in spans.items()}
            models[model] = {outcome: _curve(mine, outcome) for outcome in (HELD_OUT, CLASSIFICATION)} | {"tried": tried}
    numbers = fitted_f1([point for point in points if point.model in models])
    models = {name: {**one, "f1": numbers[name]} for name, one in models.items()}
    return {"corpora": sorted({point.family for point in points}), "covers": COVERS, "models": models}


def _curve(points: Sequence[Point], outcome: str) -> Row:
    told = [point for point in points if getattr(point, outcome) is not None]
    known = [point for point in told if point.noised or outcome != HELD_OUT]  # words are predicted otherwise without noise
    each = {form: of_texts(left_out(known, outcome, form)) for form in FORMS}
    missed = {form: np.mean([np.sqrt(np.mean(np.square(one))) for one in apart]) for form, apart in each.items()}
    form = min(FORMS, key=lambda one: float(missed[one]))  # the mean over corpora of the root of the mean square of each
    numbers = [round(float(one), 4) for one in fitted(known, outcome, form)]
    return {"numbers": numbers, **ends(each[form]), "without": list(form.without), "outcomes": len(known)}


# ---- the order of settings by F1 -----------------------------------------------------------------------------------------

PROFILE_RADIUS = 1.0
_SHRUNK = 1.0  # how firmly numbers are held to 0, and those of a model to those that all have


def fitted_f1(points: Sequence[Point]) -> Mapping[str, list[float]]:
    """For each model the numbers of `of_f1`, by ridge regression of the logarithm of F1; each corpus weighs alike.

    What a corpus allows is no question of the setting: it is the best F1 on it, with noise or without. Trials with the clip of
    the profiles are left out: they are of few topics from a plain start only, and would bend what all models have in common.
    """
    points = [point for point in points if point.row.get("radius") != PROFILE_RADIUS]
    names = list(dict.fromkeys(point.model for point in points))
    known = [point for point in points if point.row["f1"] and point.noised and not point.family.startswith(MADE_UP)]
    most = {name: max(one.row["f1"] for one in points if one.family == name) for name in {one.family for one in known}}
    values = np.array([np.log(max(one.row["f1"], _LEAST_F1) / most[one.family]) for one in known])
    read = np.array([of_f1(one.features) for one in known])
    own = [np.where(np.array([[one.model == name] for one in known]), read[:, :-1], 0.0) for name in names]
    table, families = np.hstack([read, *own]), [one.family for one in known]
    weights = np.array([families.count(one) for one in families]) ** -0.5
    weights *= (len(known) / np.square(weights).sum()) ** 0.5
    scaled = table * weights[:, None]
    found = np.linalg.solve(scaled.T @ scaled + _SHRUNK * np.eye(table.shape[1]), scaled.T @ (weights * values))
    common, each = found[: read.shape[1]], found[read.shape[1] :].reshape(len(names), -1)
    return {
        name: [round(float(one), 4) for one in common + np.append(mine, 0.0)] for name, mine in zip(names, each, strict=True)
    }


_LEAST_F1 = 0.02


WITH_VECTORS = (PUBLIC, MOMENTS, STARTED)  # which `choose` ranks where word vectors are installed


def ranked(points: Sequence[Point]) -> list[Row]:
    """The F1 of the setting that is ranked first over the best of all that were tried, by corpus, which was left out.

    Settings are ranked where documents and epsilon are the same; beside them, what each model alone reaches.
    """
    texts = sorted({point.family for point in points if not point.family.startswith(MADE_UP)})
    return [_ranked(points, family) for family in texts]


def _ranked(points: Sequence[Point], family: str) -> Row:
    numbers = fitted_f1([point for point in points if point.family != family])
    cases: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        if point.family == family and point.noised and point.model in numbers and point.row["f1"]:
            alike = tuple(point.row.get(name) for name in ("documents", "profile", "epsilon", "radius"))
            cases.setdefault(alike, []).append(point)
    shares = dict[str, list[float]]()
    for case in (one for one in cases.values() if {point.model for point in one} & {*WITH_VECTORS} and len(one) > 1):
        best = max(point.row["f1"] for point in case)
        first = max(
            (one for one in case if one.model in WITH_VECTORS),
            key=lambda one: float(np.dot(numbers[one.model], of_f1(one.features))),
        )
        shares.setdefault("ranked first", []).append(first.row["f1"] / best)
        for name in dict.fromkeys(point.model for point in case):
            own = max((point for point in case if point.model == name), key=lambda one: one.features[TOPICS])
            shares.setdefault(name, []).append(own.row["f1"] / best)
    cases_of = len(shares.get("ranked first", ()))
    return {"corpus": family, "cases": cases_of, **{name: round(float(np.mean(each)), 3) for name, each in shares.items()}}


_NEAR = (0.0, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06)


def decided_by_words(points: Sequence[Point], told: Sequence[Row]) -> list[Row]:
    """What it is worth to take, of `lda-vi` and `moments` that are alike by F1, the one that is forecast to predict words best.

    The F1 of the one that is taken over that of the better, the corpus being left out; by how near they have to be. It is told
    of lists of the documents' own words, and of those of general English.
    """
    two, middles = (PUBLIC, MOMENTS), {(*_whole_case(row), row["model"]): row[HELD_OUT][1] for row in told if HELD_OUT in row}
    pairs: dict[str, list[tuple[bool, list[tuple[float, float, float]]]]] = {}
    for family in sorted({point.family for point in points if not point.family.startswith(MADE_UP)}):
        numbers, cases = fitted_f1([point for point in points if point.family != family]), dict[Any, list[Point]]()
        for point in points:
            known = (*_whole_case(point.row), point.model) in middles
            if point.family == family and point.noised and point.model in two and known:
                cases.setdefault(_whole_case(point.row), []).append(point)
        for case, both in ((case, both) for case, both in cases.items() if len(both) == len(two)):
            each = [
                (
                    float(np.exp(np.dot(numbers[one.model], of_f1(one.features)))),
                    middles[(*case, one.model)],
                    one.row["f1"] / max(other.row["f1"] for other in both),
                )
                for one in both
            ]
            pairs.setdefault(family, []).append((bool(both[0].features[GENERAL]), each))
    return [
        {"alike": near, "own words": _taken(pairs, near, general=False), "general words": _taken(pairs, near, general=True)}
        for near in _NEAR
    ]


def _whole_case(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("corpus", "documents", "profile", "epsilon", "words", "topics"))


def _taken(
    pairs: Mapping[str, Sequence[tuple[bool, Sequence[tuple[float, float, float]]]]], near: float, *, general: bool
) -> float | None:
    """The share of the better one's F1 that is reached on average; each corpus weighs alike; None without pairs."""
    means = []
    for each in pairs.values():
        reached = []
        for of_general, both in each:
            apart = abs(both[0][0] - both[1][0])
            if of_general is general:
                reached.append(max(both, key=lambda one: one[1] if apart <= near else one[0])[2])
        means += [float(np.mean(reached))] if reached else []
    return round(float(np.mean(means)), 4) if means else None


# ---- how it does -------------------------------------------------------------------------------------------------------

_CHANCES = (0.0, 0.1, 0.3, 0.7, 0.9, 1.0)
_FACTS = ("corpus", "documents", "model", "profile", "epsilon", "words", "topics")


def judged(points: Sequence[Point]) -> list[Row]:
    """What was forecast and what came, for every outcome under a budget on texts.

    Everything that the forecast has was found without the corpus that it is judged on: numbers, features, bands and verdicts.
    """
    texts = sorted({point.family for point in points if not point.family.startswith(MADE_UP)})
    told = list[Row]()
    for family in texts:
        models = fit([point for point in points if point.family != family])["models"]
        mine = [point for point in points if point.family == family and point.noised and point.model in models]
        told += [_judged(FittedModel.of(models[point.model]), point) for point in mine]
    return told


def _judged(model: FittedModel, point: Point) -> Row:
    facts = {name: point.row.get(name) for name in _FACTS}
    came = {HELD_OUT: point.held_out, CLASSIFICATION: point.classification}
    kept = {f"{name}_came": None if value is None else round(value, 3) for name, value in came.items()}
    if beyond(point.features, model):
        nothing = {f"{name}_inside": None for name in came}
        return {**facts, **kept, **nothing, "verdict": Verdict.CANNOT_SAY.value, "chance": None, "wrongly_of_use": False}
    told = outlook(point.features, model)
    wrong = told.verdict is Verdict.OF_USE and point.held_out <= 0
    said = {"verdict": told.verdict.value, "chance": told.chance, "wrongly_of_use": wrong}
    found = dict[str, Any]()
    for name, value in came.items():
        band = getattr(told, name)
        found[name] = [round(one, 3) for one in (band.low, band.middle, band.high)]
        found[f"{name}_inside"] = None if value is None else bool(band.low <= value <= band.high)
    return {**facts, **kept, **found, **said}


# ---- tables ------------------------------------------------------------------------------------------------------------


def family_of(row: Row) -> str:
    """The corpus that a judged row's is a part of."""
    return _family(str(row["corpus"]))


def summary(rows: Sequence[Row]) -> list[Row]:
    """By corpus, and over all of them: how often the outcome lay in its band, and how often "of use" was wrong."""
    parts = {name: [row for row in rows if family_of(row) == name] for name in dict.fromkeys(map(family_of, rows))}
    return [{"corpus": name, **_summed(part)} for name, part in {**parts, "all": list(rows)}.items()]


def by_model(rows: Sequence[Row]) -> list[Row]:
    """The same by model."""
    names = dict.fromkeys(row["model"] for row in rows)
    return [{"model": name, **_summed([row for row in rows if row["model"] == name])} for name in names]


def _summed(rows: Sequence[Row]) -> Row:
    def share(outcome: str) -> float | None:
        known = [row[f"{outcome}_inside"] for row in rows if row[f"{outcome}_inside"] is not None]
        return round(float(np.mean(known)), 3) if known else None

    verdicts = {one.value: sum(row["verdict"] == one.value for row in rows) for one in Verdict}
    wrong = {
        "wrongly_of_use": sum(row["wrongly_of_use"] for row in rows),
        "wrongly_not_of_use": sum(row["verdict"] == Verdict.NOT_OF_USE.value and row["held_out_came"] > 0 for row in rows),
    }
    inside = {f"{outcome}_inside": share(outcome) for outcome in (HELD_OUT, CLASSIFICATION)}
    beyond_tried = sum(row["chance"] is None for row in rows)
    return {"outcomes": len(rows), **inside, **verdicts, **wrong, "not_tried": beyond_tried}


def by_chance(rows: Sequence[Row]) -> list[Row]:
    """Which share of models was of use, by the chance that the forecast gave them."""
    found = []
    for low, high in pairwise(_CHANCES):
        mine = [row for row in rows if row["chance"] is not None and low <= min(row["chance"], 0.99) < high]
        if mine:
            chance = round(float(np.mean([row["chance"] for row in mine])), 2)
            useful = round(float(np.mean([row["held_out_came"] > 0 for row in mine])), 2)
            found.append({"chance": chance, "of_use": useful, "outcomes": len(mine)})
    return found
