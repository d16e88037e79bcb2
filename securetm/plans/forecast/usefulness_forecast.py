"""Forecasts whether a model under a budget will be of use: bands for held-out words and classification, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from math import exp
from typing import Any

from securetm.plans.forecast.fitted_rule import FittedCurve, FittedModel, fitted_rule
from securetm.plans.forecast.forecast_features import (
    GENERAL,
    LDA_VI,
    LENGTH,
    NOISE,
    SHORTNESS,
    TOPICS,
    WORDS,
    WORDS_SEEN,
    deviation_of,
    features,
    with_rounds,
)
from securetm.plans.forecast.forecast_setting import BY_MOMENTS, BY_MOMENTS_ALONE, PLAIN, PUBLIC, ForecastSetting

COVERS = 0.8  # how often an outcome lies in its band, as was tried on corpora that the rule was not fitted on
LENGTHS = (5.0, 30.0, 150.0)  # words of a document on the list: of short texts, middling and long ones
SLACK = 0.05  # of a feature beyond what was tried, in its logarithm
_FEWEST_DOCUMENTS, _MOST_DOCUMENTS = 100, 10**7
_COARSE, _FINE = 1.25, 1.05  # steps in which so many documents are sought
_MORE_IS_BETTER = (NOISE, WORDS_SEEN)  # beyond what was tried of these, the most that was tried counts
_NOT_SAID = (SHORTNESS,)  # the length says it
_STARTED = {
    PUBLIC: "lda-vi, public start",
    PLAIN: "lda-vi, plain start",
    BY_MOMENTS: "lda-vi, start by moments and vectors",
    BY_MOMENTS_ALONE: "lda-vi, start by moments",
}
ONE_CORPUS = {  # models whose committed results under a budget are too few to fit a rule to
    "prodlda": (
        "prodlda was tried under a budget on 18,820 documents of one corpus only: F1 of a classifier on its 20 topics was "
        "0.12 to 0.13 at epsilon 1 to 8, and 0.29 without noise (python -m lab reproduce privacy-utility)"
    )
}
_UNITS = {LENGTH: "words in a document", TOPICS: "topics", WORDS: "words on the list", WORDS_SEEN: "occurrences of a word"}


class Verdict(Enum):
    """What a forecast says of predicting held-out words.

    `OF_USE`: the whole band lies above what word frequencies predict, also if texts are as those of which it promised too much.
    """

    OF_USE = "of use"
    NOT_OF_USE = "not of use"
    CANNOT_SAY = "cannot say"


@dataclass(frozen=True)
class Band:
    """Between `low` and `high` the outcome lies four times of five; `middle` is the best single guess."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Forecast:
    """What to expect of a setting."""

    setting: ForecastSetting  # with the rounds that were counted with
    held_out: Band | None  # nats per held-out word more than word frequencies; None: the setting is too far from all tried
    classification: Band | None  # F1 of a classifier on the topics, over its F1 on topics of the same model without noise
    verdict: Verdict
    reasons: tuple[str, ...]  # why it cannot be said, sentence by sentence
    corpora: tuple[str, ...]  # that stand behind the figures
    chance: float | None = None  # which share of outcomes with such a forecast was of use

    def record(self) -> dict[str, Any]:
        """The forecast as plain data, for --json."""
        return {**asdict(self), "verdict": self.verdict.value, "covers": COVERS}


def forecast(setting: ForecastSetting) -> Forecast:
    """What to expect of a training with these public numbers. It reads no document and costs no privacy."""
    rule = fitted_rule()
    fitted = rule.models.get(tried_as(setting))
    if fitted is None:  # of such a model the rounds are not looked up: that imports it
        return _unknown(setting, (_untried(tried_as(setting)),))
    setting = with_rounds(setting)
    found = features(setting, deviation_of(setting))
    reasons = beyond(found, fitted)
    if reasons:
        return _unknown(setting, reasons)
    told = outlook(found, fitted)
    return Forecast(setting, told.held_out, told.classification, told.verdict, (), rule.corpora, told.chance)


@dataclass(frozen=True)
class Outlook:
    """What a fitted model says of some features."""

    held_out: Band
    classification: Band
    verdict: Verdict
    chance: float


def outlook(found: Mapping[str, float], fitted: FittedModel) -> Outlook:
    """Bands, verdict and chance. Where more is better than was tried, the most that was tried counts."""
    known = {name: min(value, fitted.tried[name][1]) if name in _MORE_IS_BETTER else value for name, value in found.items()}
    middle = fitted.held_out.middle(known)
    verdict = verdict_of(middle + fitted.held_out.surely, middle + fitted.held_out.hardly)
    share = _share(_band(fitted.classification.middle(known), fitted.classification))
    return Outlook(_band(middle, fitted.held_out), share, verdict, round(fitted.held_out.chance_above_zero(middle), 2))


def forecast_of_lengths(setting: ForecastSetting) -> Forecast:
    """The forecast where nobody says how long documents are: the band holds for short ones and for long ones."""
    each = [forecast(replace(setting, length=length)) for length in LENGTHS]
    held_out = [one.held_out for one in each if one.held_out is not None]
    classification = [one.classification for one in each if one.classification is not None]
    if not held_out:
        return _unknown(each[0].setting, each[0].reasons)
    both = _around(held_out)
    verdicts = {one.verdict for one in each if one.held_out is not None}
    verdict = verdicts.pop() if len(verdicts) == 1 else Verdict.CANNOT_SAY
    chances = [one.chance for one in each if one.chance is not None]
    chance = round(sum(chances) / len(chances), 2)
    return Forecast(each[0].setting, both, _around(classification), verdict, (), each[0].corpora, chance)


def _band(middle: float, curve: FittedCurve) -> Band:
    return Band(middle + curve.below, middle, middle + curve.above)


def _around(bands: Sequence[Band]) -> Band:
    """The band that holds all of these."""
    middles = [band.middle for band in bands]
    return Band(min(band.low for band in bands), sum(middles) / len(middles), max(band.high for band in bands))


def forecast_at(setting: ForecastSetting, lengths: Sequence[float]) -> Forecast:
    """The forecast for documents of one length, or where it is not said how long they are, of several."""
    return forecast(replace(setting, length=lengths[0])) if len(lengths) == 1 else forecast_of_lengths(setting)


def documents_needed(setting: ForecastSetting, lengths: Sequence[float] = ()) -> int | None:
    """The fewest documents with which the forecast is "of use", all else being equal; None where no number was found to do.

    To a twentieth; the rounds follow from the documents.
    """
    told = lengths or (setting.length,)

    def first(size: int, most: int, step: float) -> int | None:
        while size <= most:
            asked = replace(setting, documents=max(size, round(setting.documents_per_person)))
            if all(forecast(replace(asked, length=length)).verdict is Verdict.OF_USE for length in told):
                return size
            size = int(size * step) + 1
        return None

    coarse = first(_FEWEST_DOCUMENTS, _MOST_DOCUMENTS, _COARSE)
    if coarse is None:
        return None
    fine = first(max(int(coarse / _COARSE), _FEWEST_DOCUMENTS), coarse, _FINE) or coarse
    return max(fine, round(setting.documents_per_person))


def tried_as(setting: ForecastSetting) -> str:
    """The name under which the rule has this model."""
    return _STARTED[setting.start] if setting.model == LDA_VI else setting.model


def _untried(model: str) -> str:
    """Why nothing is forecast of a model."""
    known = "; ".join(sorted(fitted_rule().models))
    nothing = f"there is no committed result for {model} under a budget: it was not tried; tried were {known}"
    return ONE_CORPUS.get(model, nothing)


def _unknown(setting: ForecastSetting, reasons: tuple[str, ...]) -> Forecast:
    return Forecast(setting, None, None, Verdict.CANNOT_SAY, reasons, fitted_rule().corpora)


def verdict_of(surely: float, hardly: float) -> Verdict:
    """The verdict on a gain over word frequencies that is surely above the first number, and hardly above the second."""
    if surely > 0:
        return Verdict.OF_USE
    return Verdict.NOT_OF_USE if hardly <= 0 else Verdict.CANNOT_SAY


def _share(band: Band) -> Band:
    """A share of F1 is never negative."""
    return Band(max(band.low, 0.0), max(band.middle, 0.0), max(band.high, 0.0))


def beyond(found: Mapping[str, float], fitted: FittedModel) -> tuple[str, ...]:
    """Which features lie beyond all that was tried, in words."""
    reasons = []
    for name, value in found.items():
        if name in _NOT_SAID:
            continue
        low, high = fitted.tried[name]
        if value < low - SLACK or (value > high + SLACK and name not in _MORE_IS_BETTER):
            reasons.append(_said(name, value, low, high))
    return tuple(reasons)


def _said(name: str, value: float, low: float, high: float) -> str:
    if name == NOISE:
        return "so much noise for so few documents was not tried"
    if name == GENERAL:
        return f"a list of {'general language' if value else 'words of texts like these'} was not tried with this model"
    told, least, most = (_number(exp(one)) for one in (value, low, high))
    tried = least if least == most else f"{least} to {most}"
    return f"{told} {_UNITS[name]} were not tried, only {tried}"


def _number(value: float) -> str:
    """To three digits, and never with an exponent."""
    return f"{float(f'{value:.3g}'):,.6g}" if value < 1e5 else f"{float(f'{value:.3g}'):,.0f}"
