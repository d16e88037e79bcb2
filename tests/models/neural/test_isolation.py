"""What couples documents is refused by name, also where Opacus lets it pass; what keeps them apart is not."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from lab.peers.prodlda import DenseProdLDA, TorchProdLDA, drawn
from securetm.contracts import Block, Terms, Unit
from securetm.models.model_errors import CouplesDocuments
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.trials import check_additive, trial_documents
from tests.laws.toys import Mixture
from tests.models.neural.coupling_trials import check_module

torch.set_num_threads(1)


class Applied(nn.Module):
    """A layer, then any function of the batch, then a layer."""

    def __init__(self, function):
        super().__init__()
        self.before, self.function, self.after = nn.Linear(7, 5), function, nn.Linear(5, 4)

    def forward(self, x):
        return self.after(self.function(self.before(x)))


def through(*layers):
    return nn.Sequential(nn.Linear(7, 6), *layers, nn.Linear(6, 4))


class WhileLearning(nn.Module):
    """Noise as variational networks draw it, in the middle of a forward pass."""

    def __init__(self):
        super().__init__()
        self.inside = nn.Linear(7, 5)

    def forward(self, x):
        out = functional.dropout(self.inside(x), 0.3, self.training)
        return out + torch.randn_like(out) if self.training else out


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside, self.last = nn.Linear(7, 5), None

    def forward(self, x):
        out = self.inside(x)
        kept = out if self.last is None else out + 0.1 * self.last
        self.last = out.detach().mean(0)
        return kept


class CoupledBackward(torch.autograd.Function):
    """The identity, whose way back centres gradients over the batch."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, back):
        return back - back.mean(0)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = nn.Linear(7, 5)
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, x):
        out = self.inside(x)
        self.mean = 0.9 * self.mean + 0.1 * out.detach().mean(0)
        return out


COUPLING = {
    "batch norm": through(nn.BatchNorm1d(6)),
    "batch norm without affine": through(nn.BatchNorm1d(6, affine=False)),
    "batch norm without memory": through(nn.BatchNorm1d(6, track_running_stats=False)),
    "synchronised batch norm": through(nn.SyncBatchNorm(6)),
    "lazy batch norm": through(nn.LazyBatchNorm1d()),
    "instance norm with memory": nn.Sequential(nn.Linear(7, 6), nn.InstanceNorm1d(6, track_running_stats=True)),
    "centred over the batch": Applied(lambda x: x - x.mean(0)),
    "softmax over the batch": Applied(lambda x: torch.softmax(x, dim=0)),
    "scaled by the batch's maximum": Applied(lambda x: x / x.abs().max()),
    "clamped at the batch's least": Applied(lambda x: x - x.amin(0)),
    "functional batch norm": Applied(lambda x: functional.batch_norm(x, None, None, training=True)),
    "sorted": Applied(lambda x: x.sort(0).values),
    "shifted by a row": Applied(lambda x: x + x.roll(1, 0)),
    "divided by how many": Applied(lambda x: x / len(x)),
    "divided by how many, behind dropout": nn.Sequential(nn.Linear(7, 7), nn.Dropout(0.5), Applied(lambda x: x / len(x))),
    "noise that nothing holds still": Applied(lambda x: x + torch.randn_like(x)),
    "an average": Applied(lambda x: x.mean(0, keepdim=True)),
    "coupled on the way back only": Applied(CoupledBackward.apply),
    "memory in an attribute": Recurrent(),
    "memory in a buffer": Counter(),
    "dense ProdLDA": DenseProdLDA(30, topics=4, hidden=6),
}

APART = {
    "linear": through(),
    "layer norm": through(nn.LayerNorm(6)),
    "group norm": through(nn.GroupNorm(2, 6)),
    "dropout": through(nn.Dropout(0.5)),
    "layer norm and dropout": through(nn.LayerNorm(6), nn.Softplus(), nn.Dropout(0.3), nn.LayerNorm(6)),
    "functional dropout and noise": WhileLearning(),
    "softmax over words": Applied(lambda x: torch.softmax(x, dim=1)),
    "double": through(nn.LayerNorm(6)).double(),
}


@pytest.mark.parametrize("name", COUPLING)
def test_what_couples_is_refused(name):
    with pytest.raises(CouplesDocuments):
        check_module(COUPLING[name])


@pytest.mark.parametrize("name", APART)
def test_what_keeps_documents_apart_is_accepted(name):
    check_module(APART[name])


def test_it_says_where_and_what():
    with pytest.raises(CouplesDocuments) as refused:
        check_module(COUPLING["batch norm without affine"])
    assert refused.value.where == "Sequential.1"
    assert "BatchNorm1d" in refused.value.kind
    with pytest.raises(CouplesDocuments) as refused:
        check_module(nn.Sequential(nn.Linear(7, 7), Applied(lambda x: x - x.mean(0))))
    assert refused.value.where == "Sequential.1.after"  # the first whole layer that shows it
    assert "Sequential.1.after" in str(refused.value)


def test_opacus_lets_batch_normalisation_without_affine_pass():
    validators = pytest.importorskip("opacus.validators")
    network = through(nn.BatchNorm1d(6, affine=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert validators.ModuleValidator.is_valid(network)
    with pytest.raises(CouplesDocuments):
        check_module(network)


def test_what_is_tried_stays_as_it_was():
    network = through(nn.Dropout(0.5)).eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    random_state = torch.get_rng_state()
    check_module(network)
    assert not network.training
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert all(p.grad is None for p in network.parameters())
    assert torch.equal(random_state, torch.get_rng_state())


def test_inputs_may_be_given_where_no_layer_says_what_they_are():
    words = nn.EmbeddingBag(9, 5)
    with pytest.raises(ValueError, match="takes as input"):
        check_module(words)
    check_module(words, (torch.randint(0, 9, (8, 4)),))


def test_our_network_in_torch_is_accepted():
    net, documents = ProdLDA(n_topics=4, hidden=6, dtype="float64", device="cpu"), trial_documents()
    state = net.start(documents.vocabulary, np.random.default_rng(0))
    counts = torch.from_numpy(documents.counts.toarray().astype(float))
    check_module(TorchProdLDA(net, state), (counts, *drawn(net._noise(state, documents.keys))))


# ---- models ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("epochs", [0, 1])
def test_prodlda_is_additive(dtype, epochs):
    check_additive(ProdLDA(n_topics=4, hidden=6, dtype=dtype, device="cpu", local_epochs=epochs))


def test_a_model_of_counts_is_additive():
    check_additive(Mixture())


class Query:
    def __init__(self, rows, terms=None):
        self.rows, self.terms = rows, terms or Terms((Block("words", (30,)),), bits=64)

    def answer(self, documents, clipped_sum, memory, rng):
        clipped_sum.add(self.rows(documents, rng), np.arange(len(documents)))


class Toy:
    embedding_size = 0

    def __init__(self, rows):
        self.rows = rows

    def start(self, vocabulary, rng):
        return {}

    def query(self, state):
        return Query(self.rows)


def dense(documents):
    return documents.counts.toarray().astype(float)


COUPLED_ROWS = {
    "batch normalised": lambda d, rng: (dense(d) - dense(d).mean(0)) / (dense(d).std(0) + 1e-3),
    "averaged": lambda d, rng: dense(d) / len(d),
    "noise by place": lambda d, rng: dense(d) * (rng.random((len(d), 30)) < 0.5),
    "scaled by the longest": lambda d, rng: dense(d) / dense(d).sum(1).max(),
    "one more": lambda d, rng: dense(d) + (np.arange(len(d)) == 0)[:, None],
}


@pytest.mark.parametrize("name", COUPLED_ROWS)
def test_a_model_that_couples_is_refused(name):
    with pytest.raises(CouplesDocuments):
        check_additive(Toy(COUPLED_ROWS[name]))


def test_the_toy_itself_is_additive():
    check_additive(Toy(lambda d, rng: dense(d)))


class Usual:
    """ProdLDA as it is usually written, answering with the gradient of its batch, under any normalisation."""

    embedding_size = 0

    def __init__(self, norm):
        torch.manual_seed(0)
        self.network = DenseProdLDA(30, topics=4, hidden=6, keep=1.0)
        self.network.mean_norm, self.network.spread_norm, self.network.word_norm = norm(4), norm(4), norm(30)
        self.terms = Terms((Block("gradient", (sum(p.numel() for p in self.network.parameters()),)),))

    def start(self, vocabulary, rng):
        return {}

    def query(self, state):
        return self

    def answer(self, documents, clipped_sum, memory, rng):
        loss = self.network(torch.from_numpy(dense(documents).astype(np.float32))) * len(documents)
        found = torch.autograd.grad(loss, list(self.network.parameters()))
        clipped_sum._vector += torch.cat([x.flatten() for x in found]).numpy()


def test_batch_normalised_prodlda_is_refused_and_layer_normalised_is_not(monkeypatch):
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)  # so that nothing but the normalisation couples
    check_additive(Usual(lambda width: nn.LayerNorm(width, elementwise_affine=False)))
    with pytest.raises(CouplesDocuments):
        check_additive(Usual(lambda width: nn.BatchNorm1d(width, affine=False)))


def test_answers_of_a_whole_party_are_not_sums_over_documents():
    toy = Toy(COUPLED_ROWS["averaged"])
    toy.query = lambda state: Query(toy.rows, Terms((Block("words", (30,)),), unit=Unit.PARTY))
    check_additive(toy)
