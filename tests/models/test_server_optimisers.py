"""Steps along the parties' mean difference of weights, compared with the formulas of Reddi et al. (2021), number by number."""

import math

import numpy as np
import pytest

from securetm.contracts import Answer
from securetm.models.gradients import SERVER_STEPS, ServerOptimiser
from securetm.models.neural.prodlda import ProdLDA

DIFFERENCES = ([0.5, -0.25, 0.0], [-0.1, -0.3, 2.0], [0.0, 1e-4, -1.0])
WORDS = tuple(f"w{i}" for i in range(6))


class Toy(ServerOptimiser):
    """Weights without a model."""

    def __post_init__(self):
        pass


def by_hand(server, rate, beta1, beta2, tau, differences):
    """One weight after another, as the paper's algorithm 2 has it."""
    m, v, x = 0.0, tau**2, 1.0
    for d in differences:
        if server == "average":
            x += rate * d
            continue
        m = beta1 * m + (1 - beta1) * d
        if server == "adagrad":
            v = v + d * d
        elif server == "yogi":
            v = v - (1 - beta2) * d * d * float(np.sign(v - d * d))
        else:
            v = beta2 * v + (1 - beta2) * d * d
        x += rate * m / (math.sqrt(v) + tau)
    return x


@pytest.mark.parametrize("server", SERVER_STEPS)
def test_each_weight_moves_as_the_paper_says(server):
    toy = Toy(server=server, server_rate=0.3, server_beta1=0.8, server_beta2=0.95, server_tau=0.01)
    weights = np.ones(3)
    state = {"weights": weights, **toy.server_moments(weights)}
    for difference in DIFFERENCES:
        state = {**state, **toy.server_step(state, np.array(difference))}
    expected = [by_hand(server, 0.3, 0.8, 0.95, 0.01, column) for column in zip(*DIFFERENCES, strict=True)]
    np.testing.assert_allclose(state["weights"], expected, rtol=1e-12)
    np.testing.assert_array_equal(weights, 1.0)


@pytest.mark.parametrize("server", SERVER_STEPS)
def test_a_huge_difference_leaves_finite_weights(server):
    toy, weights = Toy(server=server), np.zeros(2, np.float32)
    state = {"weights": weights, **toy.server_moments(weights)}
    for _ in range(3):
        state = {**state, **toy.server_step(state, np.array([1e38, -1e30]) if server != "average" else np.array([1e30, -1e30]))}
    assert all(np.isfinite(values).all() and values.dtype == np.float32 for values in state.values())


@pytest.mark.parametrize("server", SERVER_STEPS[1:])
def test_the_moments_stay_with_the_holder_of_the_state(server):
    model = ProdLDA(n_topics=2, hidden=3, local_epochs=1, server=server)
    state = model.start(WORDS, np.random.default_rng(0))
    total = {"difference": np.full(len(state["weights"]), 0.5, np.float32), "documents": np.ones(1, np.float32)}
    after = model.update(state, Answer(total))
    assert model.fits(after, len(WORDS))
    assert np.any(after["server_first"] != state["server_first"])
    assert set(model.for_party(after, "one")) == {"weights", "step", "seed"}
