"""Lengths and clipped sums of ours beside Opacus's per-sample gradients of the same network."""

import warnings

import numpy as np
import pytest
import torch
from scipy import sparse

from lab.peers.prodlda import TorchProdLDA, drawn
from securetm.clipped_sum import ClippedRowSum
from securetm.models.given_documents import BagOfWords
from securetm.models.neural.prodlda import ProdLDA

torch.set_num_threads(1)
WORDS = 60
CLOSE = {"float32": 1e-4, "float64": 1e-9}


@pytest.fixture(params=["float32", "float64"])
def setting(request):
    rng = np.random.default_rng(0)
    net = ProdLDA(n_topics=6, hidden=9, dtype=request.param, device="cpu")
    counts = rng.poisson(rng.gamma(0.3, 2.0, (17, WORDS)))
    counts[4], counts[5] = 0, 0
    counts[5, 3] = 900
    documents = BagOfWords(sparse.csr_array(counts), tuple(map(str, range(WORDS))), np.arange(17, dtype=np.uint64) * 99)
    state = net.start(documents.vocabulary, rng)
    weights = state["weights"] + rng.normal(0, 0.2, state["weights"].shape).astype(request.param)
    return net, {**state, "weights": weights}, documents


@pytest.fixture
def opacus():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield pytest.importorskip("opacus.grad_sample")


def inputs(net, state, documents):
    counts = torch.from_numpy(documents.counts.toarray().astype(net.dtype))
    return counts, *drawn(net._noise(state, documents.keys))


def per_sample(opacus, net, state, documents):
    """Opacus's own row of each document, in the order of our weights."""
    network = opacus.GradSampleModule(TorchProdLDA(net, state), loss_reduction="sum")
    network(*inputs(net, state, documents)).sum().backward()
    return np.array([network._module.flat(lambda p, i=i: p.grad_sample[i]) for i in range(len(documents))])


def test_rows_and_their_lengths_are_those_of_opacus(opacus, setting):
    net, state, documents = setting
    theirs = per_sample(opacus, net, state, documents)
    losses = net.losses(state, documents.counts, documents.keys)
    ours = np.array([losses.gradient(one) for one in np.eye(len(documents), dtype=net.dtype)])
    lengths = np.linalg.norm(theirs.astype(float), axis=1)
    assert (np.linalg.norm((ours - theirs).astype(float), axis=1) <= CLOSE[net.dtype] * lengths).all()
    np.testing.assert_allclose(losses.norms(np.arange(len(documents))), lengths, rtol=CLOSE[net.dtype])


def test_lengths_of_persons_are_those_of_opacus(opacus, setting):
    net, state, documents = setting
    theirs = per_sample(opacus, net, state, documents).astype(float)
    owners = np.arange(len(documents)) % 5
    lengths = [np.linalg.norm(theirs[owners == owner].sum(axis=0)) for owner in range(5)]
    np.testing.assert_allclose(
        net.losses(state, documents.counts, documents.keys).norms(owners), lengths, rtol=CLOSE[net.dtype]
    )


def test_lengths_are_those_of_opacus_ghost_clipping(opacus, setting):
    net, state, documents = setting
    ghost = opacus.GradSampleModuleFastGradientClipping(TorchProdLDA(net, state), loss_reduction="sum")
    ghost(*inputs(net, state, documents)).sum().backward()
    lengths = ghost.get_norm_sample().detach().numpy()
    np.testing.assert_allclose(
        net.losses(state, documents.counts, documents.keys).norms(np.arange(len(documents))), lengths, rtol=CLOSE[net.dtype]
    )


def test_the_clipped_sum_is_opacus_clipped_sum(opacus, setting):
    net, state, documents = setting
    theirs = per_sample(opacus, net, state, documents)
    whole = np.hstack([theirs, np.ones((len(theirs), 1))]).astype(float)  # ours counts the document within the radius
    radius = float(np.median(np.linalg.norm(whole, axis=1)))
    clipped_sum = ClippedRowSum(net.query(state).terms, radius=radius)
    net.query(state).answer(documents, clipped_sum, {}, np.random.default_rng(0))
    expected = np.minimum(1.0, radius / np.linalg.norm(whole, axis=1)) @ whole
    room = 2.0**-10 if net.dtype == "float32" else CLOSE[net.dtype]
    assert np.linalg.norm(clipped_sum.vector() - expected) <= 2 * room * np.linalg.norm(expected)
