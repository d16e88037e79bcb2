"""A forecast of how useful a model under a privacy budget will be, from public numbers alone. It reads no document.

The rule is the lesser of two lines, of what noise allows and of what so many words allow, with a band around it. Its numbers
(`fitted_usefulness.json`) are fitted to committed results by `python -m lab reproduce usefulness-forecast`. The few features
that it reads, not the raw numbers, make a rule that is fitted to some corpora hold on others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from importlib import resources
from itertools import product
from math import exp, inf, log, log2, sqrt
from typing import Annotated, Any, Self

import numpy as np

from securetm.contracts import Array, Profile
from securetm.data_classes import asdict, dataclass, replace
from securetm.errors import BadSetting
from securetm.plans.profiles import count_of_parties, model_class, noise_in_sum, read_profile
from securetm.plans.rules import LISTS, USUAL_START, asks_first, noise_of_one_round, rounds_for
from securetm.settings import Limit, check_limits, one_of, require, within

# ---- a setting: public numbers of a training -------------------------------------------------------------------------

_WHERE = "forecast"
PUBLIC, PLAIN, BY_MOMENTS, BY_MOMENTS_ALONE = "public", "plain", "moments", "moments without vectors"
STARTS = (PUBLIC, PLAIN, BY_MOMENTS, BY_MOMENTS_ALONE)
WORDS_SHARE = 0.25  # of epsilon, that words cost which are found behind noise
LENGTHS = (5.0, 30.0, 150.0)  # words of a document on the list: of short texts, middling and long ones
_POSITIVE = Limit(lambda value: 0 < value < 1e6, "must be above 0 and below 1,000,000")
_FROM_ZERO = Limit(lambda value: 0 <= value < 1e6, "must be from 0 to 1,000,000")


@dataclass(frozen=True)
class ForecastSetting:
    """A training, by public numbers. The defaults are those of a run under a budget; 0 rounds: as many as the rule says."""

    documents: Annotated[int, within(1, 10**9)]  # of all parties together
    epsilon: Annotated[float, _POSITIVE]  # of each document, or of each person where persons have several documents
    delta: Annotated[float, Limit(lambda delta: 0 < delta < 1, "must lie between 0 and 1")] = 1e-5
    model: str = "lda-vi"
    start: Annotated[str, one_of(*STARTS)] = (
        PUBLIC  # of lda-vi: at topics of public word vectors, plain, or at topics that `moments` finds first
    )
    start_said: bool = True  # by the plan: rounds follow from it; else they are those from public topics
    words: Annotated[int, within(2, 10**9)] = 1_000
    topics: Annotated[int, within(1, 10**9)] = 20
    rounds: Annotated[int, within(0, 10**9)] = 0
    length: Annotated[float, _FROM_ZERO] = 50.0  # words of a document that are on the list; 0: nobody says how many
    written: Annotated[float, _FROM_ZERO] = 0.0  # words of a document, on the list or not; 0: nobody says more than `length`
    general_list: bool = False  # whether the words are those of general language, and not of texts like these
    documents_per_person: float = 1.0  # on average; above 1 the budget is each person's
    noise_factor: Annotated[float, _POSITIVE] = (
        1.0  # the noise in the sum, over that of one curator with all documents (`under_profile`)
    )
    noise: Annotated[float, _FROM_ZERO] = (
        0.0  # multiplier of the noise of one round; 0: the least with which the budget lasts for all rounds
    )
    radius: Annotated[float, _POSITIVE] = 1.0  # of the clip of a row of counts, as in the profiles
    found_from: Annotated[float, _FROM_ZERO] = 0.0  # documents that a word needs to be found behind noise; 0: a public list
    found_together: bool = True  # in sums of rows, where a word of a short text weighs more; else by each party, which counts
    listed: Annotated[int, within(0, 10**9)] = 0  # words of a public list, beside which those stand that are found

    def __post_init__(self) -> None:
        """Refuses numbers that no training has."""
        check_limits(self, _WHERE)
        least_each = 1 <= self.documents_per_person <= self.documents
        problem = "must be at least 1, and at most the number of documents"
        require(least_each, _WHERE, "documents_per_person", self.documents_per_person, problem)

    @property
    def for_rounds(self) -> float:
        """The share of the budget, in squares of noise, that the rounds have: what words and a question of moments leave."""
        words = 0.0
        if self.found_from:
            whole, part = (noise_of_one_round(self.epsilon * share, self.delta) for share in (1.0, WORDS_SHARE))
            words = (whole / part) ** 2
        return (1.0 - words) * (1.0 - USUAL_START if self.start in (BY_MOMENTS, BY_MOMENTS_ALONE) else 1.0)

    @property
    def units(self) -> float:
        """How many documents or persons have the budget."""
        return self.documents / self.documents_per_person

    def of_each_length(self) -> tuple[ForecastSetting, ...]:
        """The setting, or where nobody says how long documents are, the same with short, middling and long ones."""
        return (self,) if self.length else tuple(replace(self, length=length) for length in LENGTHS)


def under_profile(profile: Profile, parties: int) -> float:
    """The noise in a sum under this profile over that of one curator. A profile without a budget is refused."""
    if profile.budget is None:
        problem = "spends no privacy budget, so there is nothing to forecast"
        raise BadSetting(_WHERE, "profile", profile.name, problem)
    return noise_in_sum(profile, parties)


def setting_under(
    name: str, documents: int, parties: int | None = None, *, vectors: bool = True, **known: Any
) -> ForecastSetting:
    """A setting under the profile of that name, with its budget where none is given; `known` are further fields.

    `vectors` says whether any are installed: without them a run whose plan leaves its start open begins plainly.
    """
    profile = read_profile(name)
    factor = under_profile(profile, count_of_parties(profile, parties))
    assert profile.budget is not None  # as `under_profile` refuses
    stated = {"epsilon": profile.budget.epsilon, "delta": profile.budget.delta}
    given = {field: value for field, value in known.items() if value is not None}
    setting = ForecastSetting(documents, **{**stated, **given, "noise_factor": factor})
    return setting if "start" in given else replace(setting, start=_usual_start(setting, vectors), start_said=False)


def _usual_start(setting: ForecastSetting, vectors: bool) -> str:
    """How a run begins whose plan leaves that open, but says how many documents there are, and how long."""
    noise = noise_of_one_round(setting.epsilon, setting.delta) * setting.noise_factor
    first = asks_first(round(setting.units), setting.length, setting.topics, setting.words, noise)
    if first:
        return BY_MOMENTS if vectors else BY_MOMENTS_ALONE
    return PUBLIC if vectors else PLAIN


# ---- how many words a selection behind noise finds --------------------------------------------------------------------

WORDS_A_TOPIC = 5  # below so many words for each topic, topics repeat each other, and nothing is trained
_PLACES = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)  # of a word by its frequency in general English
_SHARES = (4.8e-3, 4.4e-3, 2.2e-3, 1.3e-3, 7.8e-4, 4.4e-4, 2.0e-4, 6.6e-5, 1.3e-5, 2.1e-6)  # of all words but stop words
USUAL_WORDS = 64  # words of the documents in which a threshold counts: in a shorter one each word weighs more
_OF_NEEDED = 0.34  # of the documents that are said to be needed, in which a word was found: fitted on six corpora
FOUND_APART = 1.7  # four times of five no fewer words than the expected ones over this are found, and no more than times this
_WORTH_FINDING = 35  # words: for fewer no budget is spent beside a public list
_UNLISTED = 0.35  # of those found, that are not on a public list: 3 to 53 % on four corpora
_OF_A_SUBJECT = 4.0  # so many times more were found where texts are short and on one subject, and hardly a word is expected


def words_expected(documents: float, length: float, found_from: float) -> float:
    """How many words are in so many of these documents, if they draw their words as general texts do."""
    if found_from >= documents:
        return 0.0
    share = 1.0 - (1.0 - found_from / documents) ** (1.0 / length)
    return 0.0 if share > _SHARES[0] else float(np.exp(np.interp(-log(share), -np.log(_SHARES), np.log(_PLACES))))


def words_found(setting: ForecastSetting) -> float:
    """How many words are expected to be found behind noise in documents of so many words.

    `found_from` is how many documents of a usual length a word has to be in. In sums a word of n words weighs as one over
    the root of n, and the more, the more of its other words are settled.
    """
    length = setting.written or setting.length or LENGTHS[1]
    part = _OF_NEEDED * sqrt(length / USUAL_WORDS) if setting.found_together else 1.0
    return words_expected(setting.units, length, part * setting.found_from)


def words_counted(setting: ForecastSetting, times: float = 1.0) -> int:
    """How many words the run will have: as many as are asked for, or as the noise leaves; or so many times as many.

    Beside a public list only those are further words that are not on it.
    """
    if not setting.found_from:
        return setting.words
    about = times * words_found(setting)
    further = _UNLISTED * about if setting.listed else about
    return max(min(setting.words, setting.listed + round(further)), 2)


def least_words(topics: int) -> int:
    """The fewest words with which so many topics are trained."""
    return WORDS_A_TOPIC * topics


# ---- what the rule reads of a setting --------------------------------------------------------------------------------

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
        setting,
        rounds=rounds_for(
            round(setting.units), setting.topics, setting.words, noise, plain=setting.start_said and setting.start == PLAIN
        ),
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


# ---- the fitted rule -------------------------------------------------------------------------------------------------

FILE = "fitted_usefulness.json"
OF_NOISE = (NOISE, LENGTH, SHORTNESS, TOPICS, WORDS, GENERAL)  # what each line reads
OF_WORDS = (WORDS_SEEN, LENGTH, SHORTNESS, TOPICS, WORDS, GENERAL)


def tables(rows: Sequence[Mapping[str, float]]) -> tuple[Array, Array]:
    """The features that each line reads, row by row, behind a one for the line's level."""
    return _table(rows, OF_NOISE), _table(rows, OF_WORDS)


def _table(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Array:
    return np.array([[1.0, *(row[name] for name in names)] for row in rows]).reshape(len(rows), 1 + len(names))


def lesser_of_lines(numbers: Array, noise: Array, words: Array) -> Array:
    """The rule itself: a line in the features of noise, a line in those of words, and smoothly the lesser of both."""
    split, sharp = noise.shape[1], np.exp(numbers[-1])
    both = np.logaddexp(-(noise @ numbers[:split]) / sharp, -(words @ numbers[split:-1]) / sharp)
    found: Array = -sharp * both
    return found


@dataclass(frozen=True)
class FittedCurve:
    """One outcome of one model: the rule's numbers, and how far outcomes lay from it on corpora that it was not fitted on.

    Each corpus was left out in turn. All distances are from the rule's middle; each corpus weighs alike.
    """

    numbers: tuple[float, ...]
    below: float  # the lower end of the band
    above: float
    surely: float  # how far outcomes lie above the rule at least: none lay lower, on any corpus left out
    hardly: float  # of an outcome, which at most one in ten exceeds
    apart: tuple[float, ...]  # quantiles of the distances, at equal steps from the least to the most

    def middle(self, row: Mapping[str, float]) -> float:
        """The best single guess for a setting with these features."""
        return float(lesser_of_lines(np.array(self.numbers), *tables([row]))[0])

    def chance_above_zero(self, middle: float) -> float:
        """Which share of the outcomes with this middle lay above zero."""
        levels = np.linspace(0.0, 1.0, len(self.apart))
        return 1.0 - float(np.interp(-middle, self.apart, levels))

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """The curve as it stands in the file."""
        known = {name: table[name] for name in ("below", "above", "surely", "hardly")}
        return cls(tuple(table["numbers"]), **known, apart=tuple(table["apart"]))


@dataclass(frozen=True)
class FittedModel:
    """What the rule knows of one model: its curves, and between which features it was tried."""

    held_out: FittedCurve
    classification: FittedCurve
    tried: Mapping[str, tuple[float, float]]
    f1: tuple[float, ...]  # the level of its F1 among all models, and the slopes in noise, topics and what a list covers

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """The model as it stands in the file."""
        curves = {name: FittedCurve.of(table[name]) for name in ("held_out", "classification")}
        tried = {name: (low, high) for name, (low, high) in table["tried"].items()}
        return cls(**curves, tried=tried, f1=tuple(table["f1"]))


@dataclass(frozen=True)
class FittedRule:
    """The rule for every model, by its name, and the corpora that it was fitted to."""

    models: Mapping[str, FittedModel]
    corpora: tuple[str, ...]

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """The rule as it stands in a file."""
        return cls({name: FittedModel.of(one) for name, one in table["models"].items()}, tuple(table["corpora"]))


@cache
def fitted_rule() -> FittedRule:
    """The rule that is shipped."""
    return FittedRule.of(json.loads(resources.files("securetm.plans").joinpath(FILE).read_text("utf-8")))


# ---- the order of settings -------------------------------------------------------------------------------------------

# Of all words of texts without stop words: by one word, each doubling of them, and each time that texts are e times as long.
# Own words cover 22 to 56 % with 250 and 56 to 100 % with 2,000, those of general English 10 to 25 % and 35 to 55 %.
_OWN_WORDS, _GENERAL_WORDS = (-0.32, 0.122, -0.089), (-0.695, 0.104, 0.0)
_OF_THE_REST = 0.5  # of what a public list leaves: words that are found cover .2 to .85 of what they cover without it
_USUAL_TOPICS = 20


def covered(words: float, *, general: bool, written: float = 0.0, found: float = 0.0) -> float:
    """Which share of the words of texts is on a list of so many, be they frequent in such texts or in general English.

    The texts have so many `written` words; 0: nobody says it. Beside the list may stand so many that were `found` in them.
    """
    by_one, by_each_doubling, by_length = _GENERAL_WORDS if general else _OWN_WORDS
    share = min(max(by_one + by_each_doubling * log2(words) + by_length * log(written or LENGTHS[1]), 0.05), 1.0)
    return share + _OF_THE_REST * (1.0 - share) * covered(found, general=False, written=written) if found >= 1 else share


def length_on_list(setting: ForecastSetting, times: float = 1.0) -> float:
    """How many of the `written` words of a text are on the list, with so many times as many found as are expected."""
    words, found = words_counted(setting, times), 0.0
    if setting.listed:
        words, found = setting.listed, times * words_found(setting)
    share = covered(words, general=setting.general_list, written=setting.written, found=found)
    return round(setting.written * share, 1)


def length_asked(setting: ForecastSetting) -> float:
    """The same of a list that is as long as the plan says, however many words the noise leaves: what a plan tells."""
    return length_on_list(setting if setting.listed else replace(setting, found_from=0.0))


def written_for(setting: ForecastSetting) -> float:
    """How many words texts have of which a plan tells this length."""
    written = setting.length
    for _ in range(_STEPS if written else 0):
        written *= setting.length / max(length_asked(replace(setting, written=written)), _LEAST_LENGTH)
    return round(written, 1)


def written_with(length: float, words: float, *, general: bool) -> float:
    """How many words texts have that have so many of a list's."""
    written = length
    for _ in range(_STEPS):
        written = length / covered(words, general=general, written=written)
    return written


_STEPS = 8  # each comes ten times nearer
_LEAST_LENGTH = 0.1  # to which lengths are rounded


def of_f1(found: Mapping[str, float], written: float = 0.0) -> tuple[float, ...]:
    """What the order of settings by F1 reads of these features: one, noise, topics, and what the list covers of texts.

    These have so many `written` words; 0: as many as such texts have where the list holds so many of them.
    """
    length, general = exp(found[LENGTH]), bool(found[GENERAL])
    share = length / (written or written_with(length, exp(found[WORDS]), general=general))
    return 1.0, found[NOISE], found[TOPICS] - log(_USUAL_TOPICS), log(share)


# In its logarithm: words of general texts tell .05 to .1 less than others of their cover, but what own words cover varies more.
_OF_GENERAL_WORDS = -0.04


def expected_f1(found: Mapping[str, float], fitted: FittedModel, written: float = 0.0) -> float:
    """The F1 of a classifier on the topics of all documents, over what the best model without noise has on the same texts.

    Of a document without a listed word nothing is told.
    """
    known = {**found, NOISE: min(found[NOISE], fitted.tried[NOISE][1])}
    told = exp(sum(number * value for number, value in zip(fitted.f1, of_f1(known, written), strict=True)))
    told *= exp(_OF_GENERAL_WORDS * found[GENERAL])
    return told * (1.0 - exp(-exp(found[LENGTH])))


# ---- the forecast ----------------------------------------------------------------------------------------------------

COVERS = 0.8  # how often an outcome lies in its band, as was tried on corpora that the rule was not fitted on
SLACK = 0.05  # of a feature beyond what was tried, in its logarithm
_FURTHER_WORDS = 0.15  # of words: those found beside 2,000 listed ones, tried on three corpora (lab reproduce word-sources)
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
    f1: float | None = None  # of a classifier on the topics, over the best without noise on the same texts: for an order alone
    lengths: int = 0  # of documents, of which something can be said

    def record(self) -> dict[str, Any]:
        """The forecast as plain data, for --json."""
        return {**asdict(self), "verdict": self.verdict.value, "covers": COVERS}


def forecast(setting: ForecastSetting, rule: FittedRule | None = None) -> Forecast:
    """What to expect of a training with these public numbers, by the rule that is shipped or by another one.

    It reads no document and costs no privacy. Where nobody says how long documents are, the band holds for short ones and for
    long ones.
    """
    each = [_of_one_length(one, rule) for one in setting.of_each_length()]
    held_out = [one.held_out for one in each if one.held_out is not None]
    if len(each) == 1 or not held_out:
        return each[0] if len({one.verdict for one in each}) == 1 else replace(each[0], verdict=Verdict.CANNOT_SAY)
    classification = [one.classification for one in each if one.classification is not None]
    verdicts = {one.verdict for one in each}
    chances = [one.chance for one in each if one.chance is not None]
    orders = [one.f1 for one in each if one.f1 is not None]
    return replace(
        next(one for one in each if one.held_out is not None),
        held_out=_around(held_out),
        classification=_around(classification),
        verdict=verdicts.pop() if len(verdicts) == 1 else Verdict.CANNOT_SAY,
        reasons=(),
        chance=round(sum(chances) / len(chances), 2),
        f1=round(sum(orders) / len(orders), 3),
        lengths=len(held_out),
    )


def _of_one_length(setting: ForecastSetting, rule: FittedRule | None = None) -> Forecast:
    rule = rule or fitted_rule()
    fitted = rule.models.get(tried_as(setting))
    if fitted is None:  # of such a model the rounds are not looked up: that imports it
        return _unknown(setting, (_untried(tried_as(setting)),))
    if setting.found_from and not setting.listed:
        about = words_found(setting)
        if about < least_words(setting.topics):
            unknown = _unknown(setting, (_too_few(setting, about),))
            surely = _OF_A_SUBJECT * about < least_words(setting.topics)
            return replace(unknown, verdict=Verdict.NOT_OF_USE, chance=0.0) if surely else unknown
    setting = with_rounds(setting)
    each = tuple(dict.fromkeys(with_words(setting, times) for times in (1.0, 1.0 / FOUND_APART, FOUND_APART)))
    found = [features(one, deviation_of(one)) for one in each]
    reasons = beyond(found[0], fitted)
    if reasons:
        return _unknown(setting, reasons)
    told = [outlook(one, fitted) for one in found]
    held_out, classification = (
        replace(_around([getattr(one, name) for one in told]), middle=getattr(told[0], name).middle)
        for name in ("held_out", "classification")
    )
    verdict = told[0].verdict if len({one.verdict for one in told}) == 1 else Verdict.CANNOT_SAY
    f1 = round(expected_f1(found[0], fitted, setting.written), 3)
    return Forecast(setting, held_out, classification, verdict, (), rule.corpora, told[0].chance, f1, 1)


def with_words(setting: ForecastSetting, times: float) -> ForecastSetting:
    """The setting with as many words as the run will have, or so many times as many, and what these hold of a document."""
    words = words_counted(setting, times)
    length = length_on_list(setting, times) if setting.written and setting.found_from else setting.length
    return replace(setting, words=words, length=length)


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


def _band(middle: float, curve: FittedCurve) -> Band:
    return Band(middle + curve.below, middle, middle + curve.above)


def _around(bands: Sequence[Band]) -> Band:
    """The band that holds all of these."""
    middles = [band.middle for band in bands]
    return Band(min(band.low for band in bands), sum(middles) / len(middles), max(band.high for band in bands))


def documents_needed(setting: ForecastSetting) -> int | None:
    """The fewest documents with which the forecast is "of use", all else being equal; None where no number was found to do.

    To a twentieth; the rounds follow from the documents.
    """

    def first(size: int, most: int, step: float) -> int | None:
        while size <= most:
            asked = replace(setting, documents=max(size, round(setting.documents_per_person)))
            if all(_of_one_length(one).verdict is Verdict.OF_USE for one in asked.of_each_length()):
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
        above = _FURTHER_WORDS if name == WORDS else SLACK
        if value < low - SLACK or (value > high + above and name not in _MORE_IS_BETTER):
            reasons.append(_said(name, value, low, high))
    return tuple(reasons)


def _too_few(setting: ForecastSetting, about: float) -> str:
    passing, need = f"{setting.found_from:,.0f} documents", f"{setting.topics} topics need {least_words(setting.topics)}"
    return (
        f"About {about:,.0f} words would be found behind the noise, which those pass that are in {passing}, and {need}: "
        "take a public list of words (--vocabulary english), or fewer topics"
    )


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


# ---- of many settings the best ---------------------------------------------------------------------------------------

MODELS = (*((LDA_VI, start) for start in (PUBLIC, PLAIN, BY_MOMENTS, BY_MOMENTS_ALONE)), (MOMENTS, PUBLIC))
OTHERS = (("lda", PLAIN), ("nmf", PLAIN), ("prodlda", PLAIN))  # which are shown beside them, and never best under a budget
_LIKELY = 0.9
ALIKE = 0.03  # of F1, over the best without noise: so near, the rule tells two models apart no better than a coin
WORDS_TRIED, TOPICS_TRIED = LISTS, (5, 10, 20, 30, 50)


@dataclass(frozen=True)
class ForecastChoice:
    """What was asked about, every model in its place, and the setting that promises most."""

    asked: Forecast
    each: tuple[Forecast, ...]  # the same setting with each model
    best: Forecast | None  # None: nothing can be said of any
    needed: int | None  # documents with which the setting asked about is "of use"
    by_length: tuple[tuple[float, Verdict], ...] = ()  # of documents so long, where nobody says how long they are

    def record(self) -> dict[str, Any]:
        """All of it as plain data, for --json."""
        best = self.best.record() if self.best else None
        each = [one.record() for one in self.each]
        by_length = [{"length": length, "verdict": verdict.value} for length, verdict in self.by_length]
        found = {**self.asked.record(), "models": each, "best": best, "documents_needed": self.needed}
        return {**found, **({"by_length": by_length} if by_length else {})}


def choose_settings(
    setting: ForecastSetting,
    words: tuple[int, ...] = (),
    topics: tuple[int, ...] = (),
    *,
    vectors: bool = True,
    open_to_best: bool = False,
) -> ForecastChoice:
    """The forecast of a setting, beside those of other models, and the best of all numbers of words and topics.

    `words` and `topics` are those to choose from; without any, the setting's own are kept. Without `vectors`, no start that
    reads some is best. A setting that is `open_to_best` is the best one, if there is any.
    """
    best = best_settings(setting, words=words, topics=topics, vectors=vectors)
    if open_to_best and best is not None:
        setting = replace(best.setting, length=setting.length, rounds=0)
    each = tuple(forecast(replace(setting, model=model, start=start, start_said=True)) for model, start in (*MODELS, *OTHERS))
    by_length = tuple((one.length, _of_one_length(one).verdict) for one in setting.of_each_length() if not setting.length)
    return ForecastChoice(forecast(setting), each, best, documents_needed(setting), by_length)


def best_settings(
    setting: ForecastSetting,
    *,
    words: tuple[int, ...] = WORDS_TRIED,
    topics: tuple[int, ...] = TOPICS_TRIED,
    vectors: bool = True,
    written: float = 0.0,
    surest: bool = False,
) -> Forecast | None:
    """The forecast of the best model, start, words and topics for such documents; None where none can be forecast.

    Documents of so many `written` words have fewer on a list, the fewer the shorter it is. Where nobody says how long they are,
    the best is the one that gives up least in its worst case, be they short or long.

    The best is the one whose topics tell most of what documents are about (`order_of`), or the `surest`, of those that are of
    use. With `vectors`, it reads them: on six corpora other starts were rarely better, and often much worse.
    """
    told = list[Forecast]()
    sizes = words or (setting.words,)
    there = words_counted(replace(setting, words=max(sizes), written=written))
    if setting.listed and words_found(replace(setting, written=written or LENGTHS[0])) < _WORTH_FINDING:
        return None
    sizes = tuple(size for size in sizes if not any(there <= other < size for other in sizes))  # longer ones have no more
    for (model, start), size, count in product(MODELS, sizes, topics or (setting.topics,)):
        if vectors is (model == LDA_VI and start in (PLAIN, BY_MOMENTS_ALONE)):
            continue
        size, listed = (2 * size, size) if setting.listed else (size, 0)
        one = replace(setting, model=model, start=start, start_said=True, words=size, topics=count, rounds=0, listed=listed)
        if written:
            one = replace(one, written=written)
            one = replace(one, length=length_asked(one))
        told.append(forecast(one))
    if not setting.length and not written:
        told = _worth_at_each_length(told)
    best = max(told, key=lambda one: (surest and one.verdict is Verdict.OF_USE, order_of(one)), default=None)
    if best is None or best.held_out is None:
        return None
    return _better_at_words(best, told) if setting.length or written else forecast(replace(best.setting, length=0.0))


def _worth_at_each_length(told: Sequence[Forecast]) -> list[Forecast]:
    """The forecasts, with what each gives up beside the best one where it gives up most, be documents short or long."""
    each = [[_of_one_length(replace(one.setting, length=length)).f1 for length in LENGTHS] for one in told]
    most = [max((f1 for f1 in column if f1 is not None), default=0.0) for column in zip(*each, strict=True)]
    pairs = [[(f1, best) for f1, best in zip(row, most, strict=True) if f1 is not None and best] for row in each]
    worst = [min((f1 / best for f1, best in row), default=0.0) for row in pairs]
    return [replace(one, f1=f1) for one, f1 in zip(told, worst, strict=True)]


def _better_at_words(best: Forecast, told: Sequence[Forecast]) -> Forecast:
    """Of the models whose topics tell alike with these words and topics, the one that predicts words best.

    That was the one whose topics told more on four corpora of six left out, where the words are the documents' own. How well
    those of a general list are predicted says less of what documents are about (`lab reproduce usefulness-forecast`).
    """
    if best.setting.general_list:
        return best

    def same(one: Forecast) -> bool:
        sizes = [(each.setting.words, each.setting.topics, each.setting.general_list) for each in (one, best)]
        near = one.f1 is not None and best.f1 is not None and best.f1 - one.f1 <= ALIKE
        return near and sizes[0] == sizes[1] and one.lengths == best.lengths and one.verdict is best.verdict

    better = max(filter(same, told), key=lambda one: one.held_out.middle if one.held_out else -inf)
    return replace(better, f1=best.f1)  # beside other sources of words they count as alike


def order_of(one: Forecast) -> tuple[int, float, float, int, float]:
    """Where a forecast stands among others: the last is the best. Of two that are alike to a hundredth the longer list is.

    Without vectors, topics are nothing but what stands out of the noise: there it comes first that they are likely of use.
    """
    alone = one.setting.model == LDA_VI and one.setting.start in (PLAIN, BY_MOMENTS_ALONE)
    likely = min(one.chance or 0.0, _LIKELY) if alone else _LIKELY
    f1 = one.f1 or 0.0
    return one.lengths, likely, round(f1, 2), one.setting.words, f1
