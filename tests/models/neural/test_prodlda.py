import numpy as np
import pytest
import torch

from securetm.contracts import Answer
from securetm.models.given_documents import as_documents
from securetm.models.neural.network import NetworkShape
from securetm.models.neural.prodlda import ProdLDA
from tests.models.trained_by_hand import sum_of

from .spelled import autograd_rows, spelled_loss

torch.set_num_threads(1)
WORDS = 40
VOCABULARY = tuple(f"w{v}" for v in range(WORDS))


def corpus(documents=24, seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.3, 2.0, (documents, WORDS)))
    counts[:, 0] += 1
    return as_documents(counts.astype(np.int32), VOCABULARY)


def model(**settings):
    return ProdLDA(**{"n_topics": 5, "hidden": 7, "dtype": "float64", "theta_dropout": 0.1, "device": "cpu", **settings})


def asked(net, state, documents):
    return sum_of(net.query(state), documents, rng=np.random.default_rng(9)).blocks()


@pytest.fixture
def setting():
    net = model()
    documents = corpus()
    rng = np.random.default_rng(1)
    state = net.start(VOCABULARY, rng)
    weights = state["weights"] + rng.normal(0, 0.2, state["weights"].shape)  # so that no bias is zero
    return net, {**state, "weights": weights, "step": np.array([3])}, documents


def test_values_norms_and_gradients_are_those_of_autograd(setting):
    net, state, documents = setting
    losses = net.losses(state, documents.counts, documents.keys)
    rows, values = autograd_rows(net, state, documents)
    weights = np.random.default_rng(2).uniform(size=len(documents))
    np.testing.assert_allclose(losses.values, values, rtol=1e-11)
    np.testing.assert_allclose(losses.gradient(weights), weights @ rows, atol=1e-9)
    np.testing.assert_allclose(losses.gradient(np.ones(len(documents))), rows.sum(0), atol=1e-9)
    np.testing.assert_allclose(losses.norms(np.arange(len(documents))), np.linalg.norm(rows, axis=1), rtol=1e-9)


def test_norms_of_owners_with_several_documents_are_those_of_their_summed_rows(setting):
    net, state, documents = setting
    rows, _ = autograd_rows(net, state, documents)
    owners = np.random.default_rng(3).permutation(np.arange(len(documents)) % 7) * 10
    expected = [np.linalg.norm(rows[owners == owner].sum(0)) for owner in np.unique(owners)]
    norms = net.losses(state, documents.counts, documents.keys).norms(owners)
    np.testing.assert_allclose(norms, expected, rtol=1e-9)


def test_clipped_sum_is_the_sum_of_clipped_rows(setting):
    net, state, documents = setting
    rows, _ = autograd_rows(net, state, documents)
    whole = np.hstack([rows, np.ones((len(rows), 1))])
    radius = float(np.median(np.linalg.norm(whole, axis=1)))
    clipped_sum = sum_of(net.query(state), documents, radius=radius)
    weights = np.minimum(1.0, radius / np.linalg.norm(whole, axis=1))
    assert (weights < 1).any()
    assert (weights == 1).any()
    np.testing.assert_allclose(clipped_sum.vector(), weights @ whole, atol=1e-9)


def test_forty_steps_are_those_of_a_bare_torch_loop():
    net, documents = model(beta1=0.8), corpus()
    state = net.start(VOCABULARY, np.random.default_rng(1))
    flat = torch.from_numpy(state["weights"].copy()).requires_grad_()
    adam = torch.optim.Adam([flat], lr=net.learning_rate, betas=(0.8, 0.999))
    for step in range(40):
        rows = np.arange(step % 3, len(documents), 3)
        noise = net._noise({**state, "step": np.array([step])}, documents.keys[rows])
        draws = [torch.from_numpy(x) for x in (noise.hidden, noise.normal, noise.theta)]
        adam.zero_grad()
        spelled_loss(net, flat, documents.counts[rows].toarray(), *draws).mean().backward()
        adam.step()
        with torch.no_grad():
            topics = NetworkShape(WORDS, net.hidden, net.n_topics).views(flat)["topics"]
            topics -= topics.mean(0)
            topics *= (net.word_spread / torch.sqrt(topics.var(0, unbiased=False) + 1e-12)).clamp(max=1.0)
        state = net.update(state, Answer(asked(net, state, documents.select(rows))))
    np.testing.assert_allclose(state["weights"], flat.detach().numpy(), atol=1e-9)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_same_gradient(setting):
    net, state, documents = setting
    mine, theirs = (asked(n, state, documents)["gradient"] for n in (net, model(device="cuda")))
    np.testing.assert_allclose(theirs, mine, atol=1e-9)
