"""ProdLDA: its definition, its gradients, and where it computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from securetm.contracts import Answer
from securetm.errors import Failed
from securetm.models.given_documents import as_documents
from securetm.models.neural.cpu_kernels import FusedKernels, bags
from securetm.models.neural.network import NetworkShape
from securetm.models.neural.neural_model import standardise
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.neural.torch_kernels import TorchKernels
from securetm.models.trials import RowsDepend, check_rows
from securetm.testing.few_documents import some_documents

from ..trained_by_hand import sum_of
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


# ---- kernels ---------------------------------------------------------------------------------------------------------------


torch.set_num_threads(1)
MANY, HIDDEN = 300, 9


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


def batch_of(dtype, documents=12):
    counts = np.random.default_rng(0).poisson(0.1, (documents, MANY))
    counts[3] = 0  # an empty document must not spoil its neighbours
    return bags(sparse.csr_array(counts), dtype)


def drawn(dtype, *shape, scale=1.0):
    return torch.from_numpy(np.random.default_rng(1).normal(0, scale, shape).astype(dtype))


def test_fused_and_spelled_embeddings_agree(dtype):
    batch, weights, back, bias = batch_of(dtype), drawn(dtype, MANY, HIDDEN), drawn(dtype, 12, HIDDEN), drawn(dtype, HIDDEN)
    spelled = TorchKernels(torch.device("cpu"))
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-11, "atol": 1e-12}
    np.testing.assert_allclose(FusedKernels().embed(batch, weights, bias), spelled.embed(batch, weights, bias), **close)
    ours, theirs = torch.zeros_like(weights), torch.zeros_like(weights)
    FusedKernels().embed_gradient(batch, back, ours)
    spelled.embed_gradient(batch, back, theirs)
    np.testing.assert_allclose(ours, theirs, **close)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0])
def test_fused_and_spelled_reconstructions_agree(dtype, scale):
    batch, background = batch_of(dtype), drawn(dtype, MANY)
    close = {"rtol": 2e-4, "atol": 2e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-9}
    logits = drawn(dtype, 12, MANY, scale=scale)
    logits[5, 7] = 200 * scale  # a row that is nearly one word
    theirs = TorchKernels(torch.device("cpu")).reconstruct(batch, logits.clone(), background, 1.7)
    ours = FusedKernels().reconstruct(batch, logits.clone(), background, 1.7)
    for part in ("losses", "after", "after_squares"):
        theirs_part = getattr(theirs, part)
        np.testing.assert_allclose(getattr(ours, part), theirs_part, err_msg=part, **close)
    np.testing.assert_allclose(ours.back / scale, theirs.back / scale, **close)
    assert ours.losses[3] == pytest.approx(0, abs=1e-5)


def test_divergence_is_seen():
    batch, logits = batch_of("float32"), drawn("float32", 12, MANY)
    logits[2, 5] = float("nan")
    losses = FusedKernels().reconstruct(batch, logits, drawn("float32", MANY), 1.0).losses
    assert torch.isnan(losses[2])
    assert not torch.isnan(losses[[0, 1, 4]]).any()


def test_standardising_centres_and_scales_each_word(dtype):
    topics = drawn(dtype, 6, MANY).numpy()
    topics[:, 4] = 3.0  # a word that all topics say alike stays out of all
    expected = topics - topics.mean(0)
    expected[:, np.arange(MANY) != 4] *= 0.1 / np.delete(topics.std(0), 4)
    standardise(topics, 0.1, True)
    np.testing.assert_allclose(topics, expected, atol=1e-6 if dtype == "float32" else 1e-10)


# ---- devices ---------------------------------------------------------------------------------------------------------------


DOCUMENTS = some_documents(60, 12, seed=4)


def learned(device: str) -> np.ndarray:
    model = ProdLDA(n_topics=3, hidden=8, batch=20, dtype="float64", device=device)
    return model.fit(DOCUMENTS, epochs=2, seed=1).components_


def test_a_gpu_that_is_not_there_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Failed, match="device = cuda"):
        learned("cuda")


def test_without_a_gpu_auto_is_the_cpu_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert np.array_equal(learned("auto"), learned("cpu"))
    assert ProdLDA(device="auto").in_fixed_order


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_auto_learns_there_and_no_budget_admits_it() -> None:
    np.testing.assert_allclose(learned("auto"), learned("cpu"), atol=1e-6)
    with pytest.raises(RowsDepend, match="GPU"):
        check_rows(ProdLDA(n_topics=3, hidden=8))
