import numpy as np
import pytest
import torch
from scipy import sparse
from torch.nn import functional

from securetm.contracts import Answer
from securetm.models.estimator import BagOfWords, as_documents
from securetm.models.prodlda import ProdLDA
from securetm.models.prodlda_losses import Prior, Shape
from securetm.tally import SumTally

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
    query = net.query(state)
    tally = SumTally(query.terms)
    query.answer(documents, tally, {}, np.random.default_rng(9))
    return tally.blocks()


def autograd_rows(net, state, documents):
    """One gradient per document from torch's autograd over a network spelled in its own layers."""
    noise = net._noise(state, documents.keys)
    rows, values = [], []
    for i in range(len(documents)):
        flat = torch.from_numpy(state["weights"].copy()).requires_grad_()
        one = [torch.from_numpy(x[i : i + 1]) for x in (noise.hidden, noise.normal, noise.theta)]
        loss = spelled_loss(net, flat, documents.counts[[i]].toarray(), *one).sum()
        loss.backward()
        rows.append(flat.grad.numpy())
        values.append(loss.item())
    return np.array(rows), np.array(values)


def spelled_loss(net, flat, counts, hidden, normal, theta, decode=None):
    layer = Shape(WORDS, net.hidden, net.n_topics).views(flat)
    counts = torch.from_numpy(counts.astype(float))
    rest = functional.normalize(torch.log1p(counts), dim=1)
    rest = functional.softplus(rest @ layer["words"] + layer["words_bias"])
    rest = functional.softplus(rest @ layer["inner"] + layer["inner_bias"]) * hidden
    head = rest @ layer["head"] + layer["head_bias"]
    k = net.n_topics
    mean, spread = (functional.layer_norm(x, (k,)) for x in (head[:, :k], head[:, k:]))
    share = torch.softmax(mean + torch.exp(0.5 * spread) * normal, 1) * theta
    normal = (decode or (lambda x: functional.layer_norm(x, (WORDS,))))(share @ layer["topics"])
    logits = net.gain * normal + layer["background"]
    prior = Prior.laplace(net.alpha, net.n_topics, net.prior_weight)
    apart = 0.5 * ((spread.exp() + mean**2) / prior.variance - 1 + np.log(prior.variance) - spread).sum(1)
    return -(counts * torch.log_softmax(logits, 1)).sum(1) + prior.weight * apart


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
