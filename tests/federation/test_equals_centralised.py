"""A federation over plain sums is centralised training: the same parameters, step by step, on the concatenated batches.

The reference is a bare torch loop: dense inputs, autograd, torch's own Adam. It imports nothing from `federation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from lab.synthetic_documents import LdaNodes, lda_nodes
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import read_arrays
from securetm.mechanisms.sampling import batch_rows
from securetm.models.document_noise import normals, survival
from securetm.models.neural.network import NetworkShape
from securetm.models.neural.prodlda import ProdLDA
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from .conftest import small_plan

STEPS = 100
SETTINGS = {"n_topics": 4, "hidden": 12, "batch": 16, "dtype": "float64", "dropout": 0.2, "theta_dropout": 0.1}


def layer_norm(x: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[1:])


class Reference:
    """ProdLDA as torch's textbook would write it, one dense batch at a time."""

    def __init__(self, start: Mapping[str, np.ndarray], model: ProdLDA, vocabulary: int) -> None:
        self.model, self.seed = model, int(start["seed"][0])
        layers = NetworkShape(vocabulary, model.hidden, model.n_topics).views(torch.from_numpy(start["weights"].copy()))
        self.layers = {name: layer.clone().requires_grad_() for name, layer in layers.items()}
        self.optimiser = torch.optim.Adam(self.layers.values(), lr=model.learning_rate, betas=(model.beta1, 0.999), eps=1e-8)

    def losses(self, counts: Tensor, keys: np.ndarray, step: int, normalise=layer_norm) -> Tensor:
        layers, model = self.layers, self.model
        inputs = functional.normalize(torch.log1p(counts), dim=1)
        one = functional.softplus(inputs @ layers["words"] + layers["words_bias"])
        mask = torch.from_numpy(survival(self.seed, step, keys, 0, model.hidden, model.dropout))
        two = functional.softplus(one @ layers["inner"] + layers["inner_bias"]) * mask
        head = two @ layers["head"] + layers["head_bias"]
        mean, log_variance = normalise(head[:, : model.n_topics]), normalise(head[:, model.n_topics :])
        noise = torch.from_numpy(normals(self.seed, step, keys, 1, model.n_topics))
        theta = torch.softmax(mean + torch.exp(log_variance / 2) * noise, dim=1)
        kept = theta * torch.from_numpy(survival(self.seed, step, keys, 2, model.n_topics, model.theta_dropout))
        logits = model.gain * normalise(kept @ layers["topics"]) + layers["background"]
        said = -(counts * torch.log_softmax(logits, dim=1)).sum(dim=1)
        return said + model.prior_weight * self.divergence(mean, log_variance)

    def divergence(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        """KL from the Gaussian to Laplace's approximation of a symmetric Dirichlet."""
        k, alpha = self.model.n_topics, self.model.alpha
        prior = torch.distributions.Normal(0.0, ((1 - 2 / k) / alpha + 1 / (k * alpha)) ** 0.5)
        own = torch.distributions.Normal(mean, torch.exp(log_variance / 2))
        return torch.distributions.kl_divergence(own, prior).sum(dim=1)

    def step(self, counts: Tensor, keys: np.ndarray, number: int) -> None:
        self.optimiser.zero_grad()
        self.losses(counts, keys, number).mean().backward()
        self.optimiser.step()
        with torch.no_grad():  # every word keeps its mean and a bounded deviation over the topics: parameters only, no document
            topics = self.layers["topics"]
            centred = topics - topics.mean(dim=0)
            rates = self.model.word_spread / centred.square().mean(dim=0).add(1e-12).sqrt()
            topics.copy_(centred * rates.clamp(max=1.0))

    def flat(self) -> np.ndarray:
        return np.concatenate([layer.detach().numpy().ravel() for layer in self.layers.values()])


def batches(parties: Mapping[str, Corpus], plan: Plan, vocabulary: tuple[str, ...]) -> Iterator[tuple[Tensor, np.ndarray]]:
    """The batches of all parties end to end, step by step."""
    trained = []
    for corpus in parties.values():
        agreed = corpus.project(vocabulary)
        trained.append(agreed.select(agreed.lengths() > 0).split(1 - plan.training.held_out, plan.seed)[0])
    for step in range(STEPS):
        drawn = [part.select(batch_rows(part.keys, SETTINGS["batch"], step, plan.seed)) for part in trained]
        counts = np.concatenate([part.counts.toarray() for part in drawn]).astype(np.float64)
        yield torch.from_numpy(counts), np.concatenate([part.keys for part in drawn])


def five_parties() -> dict[str, Corpus]:
    """gFedNTM's synthetic nodes, small: five, of unequal sizes."""
    nodes = lda_nodes(LdaNodes(topics=10, words=120, documents=60, validation_documents=1), seed=3)
    return {name: corpus.select(np.arange(20 + 10 * n)) for n, (name, corpus) in enumerate(nodes.train.items())}


@pytest.mark.slow
def test_a_hundred_steps_end_at_the_same_parameters(tmp_path: Path) -> None:
    parties = five_parties()
    plan = small_plan(training__rounds=STEPS, **{f"model__{name}": value for name, value in SETTINGS.items()})
    execute(begin(tmp_path / "run", plan, parties), Unwatched(), comparison=False)
    vocabulary = tuple((tmp_path / "run/coordinator/vocabulary.txt").read_text("utf-8").split("\n"))
    model = agree(plan).model
    assert isinstance(model, ProdLDA)
    start = model.start(vocabulary, np.random.default_rng(plan.seed))
    reference = Reference(start, model, len(vocabulary))
    for number, (counts, keys) in enumerate(batches(parties, plan, vocabulary)):
        reference.step(counts, keys, number)
    federated = read_arrays(tmp_path / "run/release/model.safetensors", bare=True)[0]["weights"]
    assert np.abs(federated - start["weights"]).max() > 0.05  # it moved
    assert np.abs(federated - reference.flat()).max() < 1e-7  # measured: 2e-9
