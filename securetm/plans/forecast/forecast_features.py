"""What a forecast reads from a setting: how far the expected counts stand above the known noise, and how many words there are.

These few numbers, not the raw ones, make a rule that is fitted to some corpora hold on others. Nothing is fitted here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log, sqrt

from securetm.plans.forecast.forecast_setting import ForecastSetting
from securetm.plans.profiles import model_class
from securetm.plans.rules import noise_of_one_round, rounds_for

LDA_VI, MOMENTS = "lda-vi", "moments"
_CLEAR = 300.0  # a signal so far above the noise is as good as none of it
NOISE, WORDS_SEEN, LENGTH, TOPICS, WORDS = "signal over noise", "words of a kind", "length", "topics", "words"
SHORTNESS, GENERAL = "shortness", "general list"
_SHORT = 3.0  # words: of a text so short hardly anything can be told


def with_rounds(setting: ForecastSetting) -> ForecastSetting:
    """The setting with its number of rounds: as many as a run asks that is told how many documents and parties there are."""
    if setting.model == MOMENTS:
        return replace(setting, rounds=1)
    kind = model_class(setting.model)
    if setting.rounds or kind is None:
        return setting
    if not kind.budget_rounds:
        return replace(setting, rounds=kind.federated_rounds)
    noise = noise_of_one_round(setting.epsilon, setting.delta) * setting.noise_factor / sqrt(setting.for_rounds)
    return replace(
        setting, rounds=rounds_for(round(setting.units), setting.topics, setting.words, noise, plain=setting.said_plain)
    )


def deviation_of(setting: ForecastSetting) -> float:
    """The deviation of the noise on each number of an answer, in units of a row whose length is 1."""
    noise = setting.noise or noise_of_one_round(setting.epsilon, setting.delta) * sqrt(setting.rounds / setting.for_rounds)
    return noise * setting.noise_factor


def signal_over_noise(setting: ForecastSetting, deviation: float) -> float:
    """How far an answer stands above its noise: its expected sum over the length of the noise.

    A row of counts is as long as the root of its words, and is cut to the radius. A row of pairs has length 1, and its noise
    counts by its largest eigenvalue, which grows with the root of the words.
    """
    if setting.model == MOMENTS:
        return setting.units / (deviation * sqrt(setting.words))
    length = setting.length * setting.documents_per_person
    mass = min(length, setting.radius * sqrt(length)) / setting.radius
    return setting.units * mass / (deviation * sqrt(setting.words * setting.topics))


def features(setting: ForecastSetting, deviation: float) -> Mapping[str, float]:
    """The numbers that the rule reads, as logarithms; without noise the deviation is 0."""
    noise = 1.0 / signal_over_noise(setting, deviation) if deviation else 0.0
    return {
        NOISE: -log(noise + 1.0 / _CLEAR),
        WORDS_SEEN: log(setting.documents * setting.length / setting.words),
        LENGTH: log(setting.length),
        SHORTNESS: _SHORT / setting.length,
        TOPICS: log(setting.topics),
        WORDS: log(setting.words),
        GENERAL: float(setting.general_list),
    }
