"""Spends as data: what is refused, how they are written down, how equal ones are counted together."""

import math

import pytest
from dp_accounting.dp_event import (
    ComposedDpEvent,
    DiscreteLaplaceDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    MixtureOfGaussiansDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SelfComposedDpEvent,
    UnsupportedDpEvent,
    ZCDpEvent,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from securetm.accounting.spends import Spend, event_as_text, event_from_text, failure_probability_of, leaves_of
from securetm.contracts.events import SymmetricZCDpEvent
from securetm.errors import BadSetting, Mistake

noises = st.floats(min_value=1e-300, max_value=1e300)
simple = st.one_of(
    st.just(NoOpDpEvent()),
    st.just(NonPrivateDpEvent()),
    st.builds(GaussianDpEvent, st.floats(min_value=1e-150, max_value=1e300)),
    st.builds(LaplaceDpEvent, noises),
    st.builds(DiscreteLaplaceDpEvent, noises, st.integers(1, 10**20)),
    st.builds(RandomizedResponseDpEvent, st.floats(0.01, 1), st.integers(2, 99)),
    st.builds(ZCDpEvent, noises, noises),
    st.builds(SymmetricZCDpEvent, noises, noises),
)
events = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(PoissonSampledDpEvent, st.floats(min_value=1e-300, max_value=1), inner),
        st.builds(SelfComposedDpEvent, inner, st.integers(0, 10**12)),
        st.builds(ComposedDpEvent, st.lists(inner, max_size=3)),
    ),
    max_leaves=6,
)


@given(events)
@settings(max_examples=25)
def test_every_event_comes_back_from_its_text_to_the_last_bit(event):
    text = event_as_text(event)
    assert event_from_text(text) == event
    assert type(event_from_text(text)) is type(event)
    assert event_as_text(event_from_text(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "null",
        '{"event":"gaussian"}',
        '{"event":"opaque"}',
        '{"event":["gaussian"]}',
        '{"event":"gaussian","noise_multiplier":1}',
        '{"event":"gaussian","noise_multiplier":1.0,"x":1}',
        '{"event": "gaussian","noise_multiplier":1.0}',
        '{"event":"gaussian","noise_multiplier":2.0,"noise_multiplier":1.0}',
        '{"event":"composed","of":{}}',
        '{"event":"poisson sampled","sampling_probability":0.5}',
        '{"count":1,"event":"self composed","of":null}',
        '{"count":1,"event":"self composed","of":' * 30 + '{"event":"nothing"}' + "}" * 30,
        "[" * 100_000,
        '{"event":"laplace","noise_multiplier":1' + "0" * 5_000 + "}",
    ],
)
def test_a_changed_text_is_refused(text):
    with pytest.raises((Mistake, BadSetting)):
        event_from_text(text)


@given(st.text())
@settings(max_examples=30)
def test_any_text_is_an_event_or_refused(text):
    with pytest.raises(Mistake):
        event_from_text(text)


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", True])
def test_noise_that_is_none_is_refused(bad):
    for make in (GaussianDpEvent, LaplaceDpEvent, lambda noise: DiscreteLaplaceDpEvent(noise, 1)):
        with pytest.raises(BadSetting, match="finite number above 0"):
            Spend(make(bad))
    with pytest.raises(BadSetting):
        Spend(ZCDpEvent(1.0, -0.1))


@pytest.mark.parametrize("bad", [0, 1.0000001, math.nan])
def test_a_rate_outside_of_zero_and_one_is_refused(bad):
    with pytest.raises(BadSetting, match="sampling_probability"):
        Spend(PoissonSampledDpEvent(bad, GaussianDpEvent(1.0)))


@pytest.mark.parametrize("bad", [-1, 2.5, True])
def test_a_count_that_is_not_whole_is_refused(bad):
    with pytest.raises(BadSetting, match="count"):
        Spend(GaussianDpEvent(1.0), count=bad)
    with pytest.raises(BadSetting, match="count"):
        Spend(SelfComposedDpEvent(GaussianDpEvent(1.0), bad))


@pytest.mark.parametrize("bad", [-1e-9, 1.0, math.nan])
def test_a_slack_that_is_no_probability_is_refused(bad):
    with pytest.raises(BadSetting, match="failure_probability"):
        Spend(GaussianDpEvent(1.0), bad)


def test_an_event_that_no_accountant_knows_is_refused():
    for event in (UnsupportedDpEvent(), MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]), ComposedDpEvent([UnsupportedDpEvent()])):
        with pytest.raises(Mistake, match="no accountant here bounds"):
            Spend(event)
    both = ComposedDpEvent([GaussianDpEvent(1.0), LaplaceDpEvent(1.0)])
    with pytest.raises(Mistake, match="one sample"):
        leaves_of([Spend(PoissonSampledDpEvent(0.5, both))])


def test_equal_events_are_counted_together_however_they_are_nested():
    laplace, sampled = LaplaceDpEvent(1.0), PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))
    spends = [
        Spend(laplace, count=2),
        Spend(SelfComposedDpEvent(ComposedDpEvent([laplace, sampled, NoOpDpEvent()]), 3), count=5),
        Spend(PoissonSampledDpEvent(1, laplace)),
        Spend(sampled, count=0),
    ]
    assert dict(leaves_of(spends)) == {laplace: 18, sampled: 15}


def test_gaussians_are_one_gaussian_and_sampled_together_where_they_share_a_sample():
    spends = [Spend(GaussianDpEvent(2.0), count=3), Spend(GaussianDpEvent(2.0))]
    assert leaves_of(spends) == ((GaussianDpEvent(1.0), 1),)
    shared = PoissonSampledDpEvent(0.1, SelfComposedDpEvent(GaussianDpEvent(2.0), 4))
    assert leaves_of([Spend(shared, count=7)]) == ((PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0)), 7),)


def test_adaptive_answers_about_one_sample_lose_their_symmetry():
    shared = PoissonSampledDpEvent(0.1, SelfComposedDpEvent(SymmetricZCDpEvent(0.5, 0.1), 2))
    assert leaves_of([Spend(shared)]) == ((PoissonSampledDpEvent(0.1, ZCDpEvent(1.0, 0.2)), 1),)


def test_slack_adds_up_by_the_union_bound():
    assert failure_probability_of([Spend(GaussianDpEvent(1.0), 1e-9, 10), Spend(LaplaceDpEvent(1.0), 1e-8)]) == pytest.approx(
        2e-8
    )
