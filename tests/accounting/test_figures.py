"""The published and measured figures that every accountant here must reproduce; Opacus beside them as a cross-check only."""

import math
import warnings

import pytest
from dp_accounting.dp_event import DiscreteLaplaceDpEvent, GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent

from securetm.accounting.calculator.dp_sgd import least_epsilon_shuffled
from securetm.accounting.composition import by_accountant, total
from securetm.accounting.spends import Spend

DELTA = 1e-5


def sampled(rate, noise, count):
    return Spend(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), count=count)


def said_by(accountant, spends, delta=DELTA):
    return next(total.epsilon for total in by_accountant(spends, delta) if total.accountant == accountant)


@pytest.mark.parametrize(
    ("spends", "epsilon", "renyi"),
    [
        ([sampled(0.01, 1.0, 1_000)], 1.828, 2.101),
        ([sampled(0.01, 1.0, 10_000)], 6.188, 6.713),
        ([sampled(0.001, 0.8, 50_000)], 1.771, 2.067),
        ([Spend(LaplaceDpEvent(1.0), count=20)], 19.106, 19.314),
        ([Spend(DiscreteLaplaceDpEvent(1.0, 1), count=20)], 19.995, 19.995),
        ([Spend(LaplaceDpEvent(2.0)), sampled(0.01, 1.0, 1_000)], 2.244, 2.509),
        ([Spend(GaussianDpEvent(4.0), count=20)], 4.983, 5.378),
    ],
)
def test_loss_distributions_and_divergences_say_what_was_measured(spends, epsilon, renyi):
    assert total(spends, DELTA).accountant == "PLD"
    assert total(spends, DELTA).epsilon == pytest.approx(epsilon, rel=0.005)
    assert said_by("RDP", spends) == pytest.approx(renyi, rel=0.005)


def laplace_epsilon(parameter, count, delta):
    """The exact composition of `count` Laplace answers, by their loss's three parts, discretised so finely that it is exact."""
    import numpy as np

    step = 1 / 2_000
    cells = np.arange(-2_000, 2_001)
    edges = np.clip((cells + 0.5) * step, -1, 1)
    below = 0.5 * np.exp((edges - 1) / 2)  # the probability of a loss up to here, in (-1, 1)
    weights = np.diff(np.concatenate([[0.0], below]))
    weights[-1] += 1 - weights.sum()
    size = 1 << math.ceil(math.log2(len(cells) * count))
    together = np.maximum(np.fft.irfft(np.fft.rfft(weights, size) ** count, size), 0)
    losses = (np.arange(size) - 2_000 * count) * step
    low, high = 0.0, float(count)
    while high - low > 1e-6:
        middle = (low + high) / 2
        found = (together * np.maximum(-np.expm1(middle - losses), 0)).sum()
        low, high = (middle, high) if found > delta else (low, middle)
    return high * parameter


def test_twenty_laplace_answers_meet_the_analytic_bound():
    assert total([Spend(LaplaceDpEvent(1.0), count=20)], DELTA).epsilon == pytest.approx(
        laplace_epsilon(1.0, 20, DELTA), rel=2e-4
    )
    assert said_by("pure", [Spend(LaplaceDpEvent(1.0), count=20)]) == pytest.approx(20)
    assert total([Spend(LaplaceDpEvent(1.0), count=20)], 0.0).epsilon == pytest.approx(20)


def test_shuffled_batches_cost_what_was_proved_to_be_lost():
    assert least_epsilon_shuffled(1_000, 0.6, DELTA) == pytest.approx(7.99, rel=0.005)
    assert total([sampled(1 / 1_000, 0.6, 1_000)], DELTA).epsilon == pytest.approx(1.43, rel=0.005)


@pytest.mark.parametrize(("rate", "noise", "count"), [(0.01, 1.0, 1_000), (0.001, 0.8, 50_000), (0.1, 3.0, 200)])
def test_opacus_agrees_where_it_is_sound(rate, noise, count):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accountants = pytest.importorskip("opacus.accountants")
        renyi, losses = accountants.RDPAccountant(), accountants.PRVAccountant()
        for accountant in (renyi, losses):
            accountant.history = [(noise, rate, count)]
        by_renyi, by_losses = renyi.get_epsilon(DELTA), losses.get_epsilon(DELTA)
    spends = [sampled(rate, noise, count)]
    assert said_by("RDP", spends) == pytest.approx(by_renyi, rel=0.01)
    assert said_by("RDP", spends) <= by_renyi * (1 + 1e-4)
    assert said_by("PLD", spends) == pytest.approx(by_losses, rel=0.01)
