"""The published and measured figures that every accountant here must reproduce; Opacus beside them as a cross-check only."""

import warnings

import pytest
from dp_accounting.dp_event import DiscreteLaplaceDpEvent, GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent

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


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "noise", "count"), [(0.1, 3.0, 200)])
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
