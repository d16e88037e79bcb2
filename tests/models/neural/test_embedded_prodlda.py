"""ProdLDA through frozen word vectors: its laws, its gradient, and that no document changes a bit of another one's row."""

import numpy as np
import pytest
import torch
from scipy import sparse

from securetm.models.neural.prodlda import ProdLDA
from securetm.models.public_knowledge import MOST_DIMENSIONS, VECTORS, public_knowledge
from securetm.testing.model_laws import ModelLaws

from .test_prodlda_clip import documents, length, summed

torch.set_num_threads(1)
SMALL = 40


def embedded(dtype="float64", **settings):
    return ProdLDA(n_topics=4, hidden=6, dtype=dtype, device="cpu", decoder="embedded", **settings)


def state_of(net, words, frequencies=True):
    rng = np.random.default_rng(3)
    known = public_knowledge(rng.normal(size=(words, 30)), 4, rng.dirichlet(np.full(words, 5.0)) if frequencies else None)
    return net.started(tuple(map(str, range(words))), known, rng)


def few(words=SMALL, count=9):
    return sparse.csr_array(np.random.default_rng(4).poisson(0.3, (count, words))), np.arange(count, dtype=np.uint64) * 977


class TestEmbeddedProdLDA(ModelLaws):
    @pytest.fixture
    def model(self):
        return embedded(dropout=0.0, theta_dropout=0.0)


def test_the_gradient_is_that_of_the_losses():
    net = embedded()
    state, (counts, keys) = state_of(net, SMALL), few()
    gradient = net.losses(state, counts, keys).gradient(np.ones(9))
    assert len(gradient) == len(state["weights"]) < SMALL + 2 * MOST_DIMENSIONS * 10
    for place in np.random.default_rng(0).choice(len(gradient), 60, replace=False):
        ends = []
        for step in (1e-5, -1e-5):
            weights = state["weights"].copy()
            weights[place] += step
            ends.append(float(net.losses({**state, "weights": weights}, counts, keys).values.sum()))
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=2e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_document_changes_a_bit_of_what_another_one_gives(dtype):
    net = embedded(dtype)
    state, (counts, keys) = state_of(net, 300), few(300, 30)
    for size in (2, 3, 8, 9, 17, 29):
        both, without = net.losses(state, counts[:size], keys[:size]), net.losses(state, counts[1:size], keys[1:size])
        np.testing.assert_array_equal(both.norms(np.arange(size))[1:], without.norms(np.arange(size - 1)))
        left_out = np.r_[0.0, np.ones(size - 1)].astype(dtype)
        np.testing.assert_array_equal(both.gradient(left_out), without.gradient(left_out[1:]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("factor", [1.0, 1e18])
def test_no_documents_row_is_longer_than_the_radius(dtype, factor):
    net, chosen = embedded(dtype), documents()
    state = state_of(net, len(chosen.vocabulary))
    with np.errstate(all="ignore"):
        state = {**state, "weights": (state["weights"] * factor).astype(dtype)}
        for row in range(len(chosen)):
            one = summed(net, state, chosen.select(np.array([row])), 0.5).vector()
            assert length(one) <= 0.5 * (1 + 1e-6)


def test_it_begins_at_public_topics_and_vectors_do_not_move():
    net, rng = embedded(), np.random.default_rng(0)
    groups = np.repeat(np.eye(4, 8), 10, axis=0) + 0.05 * rng.normal(size=(SMALL, 8))
    state = net.started(tuple(map(str, range(SMALL))), public_knowledge(groups, 4), rng)
    heaviest = {tuple(sorted(np.argsort(-topic)[:10] // 10)) for topic in net.topics(state)}
    assert heaviest == {(group,) * 10 for group in range(4)}
    total = {"gradient": np.ones_like(state["weights"]), "documents": np.ones(1)}
    after = net.advance(state, total, in_place=False)
    np.testing.assert_array_equal(after[VECTORS], state[VECTORS])
    assert np.any(after["weights"] != state["weights"])
