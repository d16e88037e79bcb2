"""A forecast follows from public numbers: more documents never make it worse, and what was not tried cannot be said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from securetm.contracts import NoiseBy
from securetm.errors import BadSetting
from securetm.plans.forecast import (
    MODELS,
    ForecastSetting,
    Verdict,
    best_settings,
    documents_needed,
    forecast,
    length_asked,
    length_on_list,
    under_profile,
    words_counted,
    words_expected,
    words_found,
    written_for,
)
from securetm.plans.profiles import read_profile

SETTING = ForecastSetting(documents=20_000, epsilon=3.0, length=30.0)


@pytest.mark.parametrize(("model", "start"), MODELS)
def test_more_documents_and_a_larger_budget_promise_more(model: str, start: str) -> None:
    few = forecast(replace(SETTING, model=model, start=start, documents=2_000, rounds=1))
    many = forecast(replace(SETTING, model=model, start=start, documents=20_000, rounds=1))
    free = forecast(replace(SETTING, model=model, start=start, documents=2_000, epsilon=8.0, rounds=1))
    assert few.held_out is not None
    assert many.held_out is not None
    assert free.held_out is not None
    assert few.held_out.low < few.held_out.middle < few.held_out.high
    assert few.held_out.middle < min(many.held_out.middle, free.held_out.middle)


def test_of_use_is_said_only_where_the_whole_band_lies_above_word_frequencies() -> None:
    for size in (500, 2_000, 5_000, 20_000):
        one = forecast(replace(SETTING, documents=size))
        assert one.held_out is None or one.verdict is not Verdict.OF_USE or one.held_out.low > 0
        assert one.held_out is None or one.verdict is Verdict.NOT_OF_USE or one.held_out.high > 0
    needed = documents_needed(SETTING)
    assert needed is None or forecast(replace(SETTING, documents=needed)).verdict is Verdict.OF_USE


@pytest.mark.parametrize(
    "far", [{"length": 5_000.0}, {"topics": 900}, {"words": 90_000}, {"model": "combined-tm"}, {"model": "prodlda"}]
)
def test_what_is_far_from_all_that_was_tried_cannot_be_said(far: dict[str, object]) -> None:
    one = forecast(replace(SETTING, **far))  # type: ignore[arg-type]
    assert (one.verdict, one.held_out, one.classification) == (Verdict.CANNOT_SAY, None, None)
    assert "not tried" in one.reasons[0] or "of one corpus only" in one.reasons[0]


def test_a_person_with_many_documents_costs_as_if_there_were_fewer() -> None:
    documents, persons = forecast(SETTING), forecast(replace(SETTING, documents_per_person=5.0))
    assert documents.held_out is not None
    assert persons.held_out is not None
    assert persons.held_out.middle < documents.held_out.middle


def test_shares_of_noise_are_longer_than_what_a_curator_adds() -> None:
    factors = {name: under_profile(read_profile(name), 5) for name in ("dp-central", "dp-distributed", "dp-local")}
    assert factors["dp-central"] == 1
    assert factors["dp-distributed"] == pytest.approx((5 / 2) ** 0.5)
    assert factors["dp-local"] == pytest.approx(5**0.5)
    with pytest.raises(BadSetting, match="no privacy budget"):
        under_profile(read_profile("masked"), 5)
    assert NoiseBy.SHARES in {part.noise_by for part in read_profile("dp-distributed").mechanisms}


@pytest.mark.parametrize(
    "bad", [{"documents": 0}, {"start": "elsewhere"}, {"epsilon": 0.0}, {"delta": 1.0}, {"documents_per_person": 0.5}]
)
def test_numbers_that_no_training_has_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(BadSetting, match=next(iter(bad))):
        replace(SETTING, **bad)  # type: ignore[arg-type]


def test_beside_a_public_list_words_that_are_found_add_to_what_it_covers() -> None:
    listed = replace(SETTING, general_list=True, words=2_000, written=20.0, documents=7_600)
    both = replace(listed, words=4_000, listed=2_000, found_from=200.0)
    assert 2_000 < words_counted(both) < 2_000 + words_found(both)
    assert length_on_list(both) > length_on_list(listed)
    assert written_for(replace(both, length=length_asked(both))) == pytest.approx(20.0, abs=0.5)
    hardly = replace(both, found_from=7_000.0)  # a list never has too few words
    assert words_found(hardly) < 5
    assert forecast(hardly).held_out is not None
    assert best_settings(hardly, written=20.0) is None  # of which finding them is not worth its budget
    assert best_settings(both, written=20.0) is not None


def test_words_decide_between_models_that_are_alike_only_where_the_words_are_the_documents_own() -> None:
    news = ForecastSetting(11_328, 8.0, found_from=116.0)
    own = best_settings(news, written=20.0)
    assert own is not None
    assert (own.setting.model, own.setting.words, own.setting.topics) == ("lda-vi", 2_000, 50)
    pairs = forecast(replace(own.setting, model="moments", length=length_asked(own.setting), rounds=1))
    assert own.held_out is not None
    assert pairs.held_out is not None
    assert own.held_out.middle > pairs.held_out.middle
    messages = ForecastSetting(3_983, 3.0, found_from=283.0, general_list=True, listed=1_000)
    both = best_settings(messages, written=7.0)
    assert both is not None
    assert (both.setting.model, both.setting.listed) == ("moments", 2_000)  # F1 was .92, and .90 with lda-vi


def test_without_vectors_settings_that_are_likely_of_use_come_first() -> None:
    few = replace(SETTING, documents=4_662, epsilon=4.0, general_list=True, written=14.0)
    plain, public = (best_settings(few, vectors=vectors, written=14.0) for vectors in (False, True))
    assert plain is not None
    assert public is not None
    assert (plain.setting.start, plain.chance) == ("plain", pytest.approx(0.85, abs=0.05))
    assert plain.setting.topics < public.setting.topics  # whose topics public vectors make readable, whatever the noise


def test_a_forecast_knows_how_many_words_the_noise_leaves() -> None:
    """Tweets of two parties: hardly a word is in so many of them that noise does not drown it."""
    tweets = replace(SETTING, documents=6_444, length=8.0, topics=50, words=1_000, found_from=552.0)
    told = forecast(tweets)
    assert (told.verdict, told.held_out, told.chance) == (Verdict.NOT_OF_USE, None, 0.0)
    assert "50 topics need 250: take a public list" in told.reasons[0]
    assert forecast(replace(tweets, found_from=0.0)).held_out is not None
    plenty, listed = forecast(replace(SETTING, found_from=100.0)).held_out, forecast(SETTING).held_out
    assert plenty is not None
    assert listed is not None
    assert listed.middle - 0.02 < plenty.middle < listed.middle  # more words are found than are asked for, and cost a little
    some = forecast(replace(SETTING, documents=7_600, length=20.0, topics=10, found_from=780.0))
    assert (some.verdict, some.held_out) == (Verdict.CANNOT_SAY, None)  # perhaps enough
    assert [round(words_expected(12_828, 20.0, least)) for least in (60, 250, 12_828)] == [785, 58, 0]
