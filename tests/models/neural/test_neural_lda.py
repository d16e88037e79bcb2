import numpy as np
import pytest
import torch

from securetm.contracts import Answer
from securetm.models.given_documents import as_documents
from securetm.models.neural.neural_lda import NeuralLDA
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.neural.torch_kernels import TorchKernels
from tests.models.trained_by_hand import sum_of

from .spelled import autograd_rows

torch.set_num_threads(1)
WORDS = 40
VOCABULARY = tuple(f"w{v}" for v in range(WORDS))


def model(**settings):
    return NeuralLDA(**{"n_topics": 5, "hidden": 7, "dtype": "float64", "theta_dropout": 0.2, "device": "cpu", **settings})


@pytest.fixture
def documents():
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(0.3, 2.0, (24, WORDS)))
    counts[:, 0] += 1
    return as_documents(counts.astype(np.int32), VOCABULARY)


@pytest.fixture
def state():
    rng = np.random.default_rng(1)
    fresh = model().start(VOCABULARY, rng)
    return {**fresh, "weights": fresh["weights"] + rng.normal(0, 0.2, fresh["weights"].shape), "step": np.array([3])}


@pytest.mark.parametrize("kernels", ["fixed order", "torch"])
def test_values_norms_and_gradients_are_those_of_autograd(kernels, state, documents):
    net = model()
    if kernels == "torch":
        net.__dict__["_kernels"] = TorchKernels(torch.device("cpu"))
    losses = net.losses(state, documents.counts, documents.keys)
    rows, values = autograd_rows(net, state, documents)
    weights = np.random.default_rng(2).uniform(size=len(documents))
    np.testing.assert_allclose(losses.values, values, rtol=1e-11)
    np.testing.assert_allclose(losses.gradient(weights), weights @ rows, atol=1e-9)
    np.testing.assert_allclose(losses.norms(np.arange(len(documents))), np.linalg.norm(rows, axis=1), rtol=1e-9)
    owners = np.random.default_rng(3).permutation(np.arange(len(documents)) % 7)
    together = [np.linalg.norm(rows[owners == owner].sum(0)) for owner in range(7)]
    np.testing.assert_allclose(losses.norms(owners), together, rtol=1e-9)


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e6), ("float64", 1.0)])
def test_a_norm_bounds_the_gradient_that_is_summed(dtype, size, documents):
    """Also where weights make probabilities of 0 and 1, so that the terms of a gradient cancel."""
    net, rng = model(dtype=dtype), np.random.default_rng(4)
    fresh = net.start(VOCABULARY, rng)
    weights = (size * rng.standard_normal(fresh["weights"].shape)).astype(dtype)
    losses = net.losses({**fresh, "weights": weights}, documents.counts, documents.keys)
    norms = losses.norms(np.arange(len(documents)))
    for row, norm in enumerate(norms):
        if np.isfinite(norm):
            gradient = losses.gradient((np.arange(len(documents)) == row).astype(np.float64))
            assert np.linalg.norm(gradient) <= norm * (1 + 2.0**-38)


def titles(count, seed):
    """Texts of four words of one of 6 subjects, among words of any subject. Words of a subject differ in frequency."""
    rng = np.random.default_rng(seed)
    shares = np.full((6, 300), 0.25 / 300)
    for subject in range(6):
        shares[subject, subject * 50 : (subject + 1) * 50] += 0.75 / np.arange(1, 51) / (1 / np.arange(1, 51)).sum()
    return rng.multinomial(4, shares[rng.integers(0, 6, count)]).astype(np.int32)


def gain_over_frequencies(net, state, known, held):
    """For each held-out word, with half of the words seen."""
    frequencies = known.sum(axis=0) + 0.5
    seen = np.random.default_rng(1).binomial(held, 0.5)
    given, asked = (as_documents(x, tuple(f"w{v}" for v in range(300))) for x in (seen, held - seen))
    alone = asked.counts @ np.log(frequencies / frequencies.sum())
    return (net.log_likelihood(state, given, asked) - alone).sum() / asked.counts.sum()


def test_few_titles_are_predicted_better_than_by_word_frequencies():
    known, held = titles(1_000, seed=0), titles(2_000, seed=1)
    net = NeuralLDA(n_topics=6, hidden=50, batch=160, learning_rate=5e-3, device="cpu").fit(known, epochs=30, seed=0)
    assert gain_over_frequencies(net, net.learned.state, known, held) > 0.3


def test_the_background_steps_further_than_other_weights(state):
    near, far = model(background_rate=1.0), model(background_rate=10.0)
    gradient = np.random.default_rng(5).standard_normal(state["weights"].shape)
    moved = [net.stepped(state["weights"], gradient, 7.0, {}, 1, in_place=False)[0] - state["weights"] for net in (near, far)]
    np.testing.assert_allclose(moved[1][-WORDS:], 10 * moved[0][-WORDS:], rtol=1e-9)
    np.testing.assert_array_equal(moved[1][:-WORDS], moved[0][:-WORDS])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param(NeuralLDA, marks=pytest.mark.slow), ProdLDA])
def test_settings_under_a_budget_learn_word_frequencies_beside_noise(kind):
    """Noise of five times the clip in each sum: what is usual without a budget ends further from word frequencies."""
    known, held = titles(4_000, seed=0), titles(2_000, seed=1)
    documents = as_documents(known, tuple(f"w{v}" for v in range(300)))

    def gain(**settings):
        net = kind(**{"hidden": 50, "device": "cpu", **kind.federated_defaults, "n_topics": 6, **settings})
        state, rng = net.start(documents.vocabulary, np.random.default_rng(0)), np.random.default_rng(1)
        for _ in range(200):
            summed = sum_of(net.query(state), documents.select(rng.choice(4_000, 200, replace=False)), radius=1.0, rng=rng)
            noised = {name: block + rng.normal(0, 5.0, block.shape) for name, block in summed.blocks().items()}
            state = net.update(state, Answer(noised, deviation=5.0))
        return gain_over_frequencies(net, state, known, held)

    assert gain(**kind.budget_defaults) > gain() + 0.02
