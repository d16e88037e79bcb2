import numpy as np
import pytest
import torch
from scipy import sparse

from securetm.models.neural.cpu_kernels import FusedKernels, bags
from securetm.models.neural.neural_model import standardise
from securetm.models.neural.torch_kernels import TorchKernels

torch.set_num_threads(1)
WORDS, HIDDEN = 300, 9


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


def batch_of(dtype, documents=12):
    counts = np.random.default_rng(0).poisson(0.1, (documents, WORDS))
    counts[3] = 0  # an empty document must not spoil its neighbours
    return bags(sparse.csr_array(counts), dtype)


def drawn(dtype, *shape, scale=1.0):
    return torch.from_numpy(np.random.default_rng(1).normal(0, scale, shape).astype(dtype))


def test_fused_and_spelled_embeddings_agree(dtype):
    batch, weights, back, bias = batch_of(dtype), drawn(dtype, WORDS, HIDDEN), drawn(dtype, 12, HIDDEN), drawn(dtype, HIDDEN)
    spelled = TorchKernels(torch.device("cpu"))
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-11, "atol": 1e-12}
    np.testing.assert_allclose(FusedKernels().embed(batch, weights, bias), spelled.embed(batch, weights, bias), **close)
    ours, theirs = torch.zeros_like(weights), torch.zeros_like(weights)
    FusedKernels().embed_gradient(batch, back, ours)
    spelled.embed_gradient(batch, back, theirs)
    np.testing.assert_allclose(ours, theirs, **close)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0])
def test_fused_and_spelled_reconstructions_agree(dtype, scale):
    batch, background = batch_of(dtype), drawn(dtype, WORDS)
    close = {"rtol": 2e-4, "atol": 2e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-9}
    logits = drawn(dtype, 12, WORDS, scale=scale)
    logits[5, 7] = 200 * scale  # a row that is nearly one word
    theirs = TorchKernels(torch.device("cpu")).reconstruct(batch, logits.clone(), background, 1.7)
    ours = FusedKernels().reconstruct(batch, logits.clone(), background, 1.7)
    for part in ("losses", "after", "after_squares"):
        theirs_part = getattr(theirs, part)
        np.testing.assert_allclose(getattr(ours, part), theirs_part, err_msg=part, **close)
    np.testing.assert_allclose(ours.back / scale, theirs.back / scale, **close)
    assert ours.losses[3] == pytest.approx(0, abs=1e-5)


def test_divergence_is_seen():
    batch, logits = batch_of("float32"), drawn("float32", 12, WORDS)
    logits[2, 5] = float("nan")
    losses = FusedKernels().reconstruct(batch, logits, drawn("float32", WORDS), 1.0).losses
    assert torch.isnan(losses[2])
    assert not torch.isnan(losses[[0, 1, 4]]).any()


def test_standardising_centres_and_scales_each_word(dtype):
    topics = drawn(dtype, 6, WORDS).numpy()
    topics[:, 4] = 3.0  # a word that all topics say alike stays out of all
    expected = topics - topics.mean(0)
    expected[:, np.arange(WORDS) != 4] *= 0.1 / np.delete(topics.std(0), 4)
    standardise(topics, 0.1, True)
    np.testing.assert_allclose(topics, expected, atol=1e-6 if dtype == "float32" else 1e-10)
