"""The losses of our networks as torch spells them, and each document's gradient by autograd. It holds no tests."""

import numpy as np
import torch
from torch.nn import functional

from securetm.models.neural.network import NetworkShape, Prior
from securetm.models.neural.neural_lda import NeuralLDA


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


def spelled_loss(net, flat, counts, hidden, normal, theta):
    """The loss of ProdLDA or NeuralLDA in torch's own words."""
    layer = NetworkShape(counts.shape[1], net.hidden, net.n_topics).views(flat)
    counts = torch.from_numpy(counts.astype(float))
    rest = functional.normalize(torch.log1p(counts), dim=1)
    rest = functional.softplus(rest @ layer["words"] + layer["words_bias"])
    rest = functional.softplus(rest @ layer["inner"] + layer["inner_bias"]) * hidden
    head = rest @ layer["head"] + layer["head_bias"]
    k = net.n_topics
    mean, spread = (functional.layer_norm(x, (k,)) for x in (head[:, :k], head[:, k:]))
    share = torch.softmax(mean + torch.exp(0.5 * spread) * normal, 1) * theta
    if isinstance(net, NeuralLDA):
        likely = torch.softmax(net.gain / net.word_spread * layer["topics"] + layer["background"], 1)
        logs = torch.log(share @ likely)
    else:
        words = functional.layer_norm(share @ layer["topics"], (counts.shape[1],))
        logs = torch.log_softmax(net.gain * words + layer["background"], 1)
    prior = Prior.laplace(net.alpha, net.n_topics, net.prior_weight)
    apart = 0.5 * ((spread.exp() + mean**2) / prior.variance - 1 + np.log(prior.variance) - spread).sum(1)
    return -(counts * logs).sum(1) + prior.weight * apart
