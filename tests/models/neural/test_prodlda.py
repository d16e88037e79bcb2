from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Answer
from securetm.models.given_documents import as_documents
from securetm.models.neural.network import NetworkShape
from securetm.models.neural.prodlda import ProdLDA

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
    query = net.query(state)
    clipped_sum = ClippedRowSum(query.terms)
    query.answer(documents, clipped_sum, {}, np.random.default_rng(9))
    return clipped_sum.blocks()


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


def test_norms_follow_the_sorted_owners_when_each_has_one_document(setting):
    net, state, documents = setting
    losses = net.losses(state, documents.counts, documents.keys)
    owners = np.random.default_rng(4).permutation(len(documents))
    np.testing.assert_array_equal(losses.norms(owners), losses.norms(np.arange(len(documents)))[np.argsort(owners)])


def test_clipped_sum_is_the_sum_of_clipped_rows(setting):
    net, state, documents = setting
    rows, _ = autograd_rows(net, state, documents)
    whole = np.hstack([rows, np.ones((len(rows), 1))])
    radius = float(np.median(np.linalg.norm(whole, axis=1)))
    clipped_sum = ClippedRowSum(net.query(state).terms, radius=radius)
    net.query(state).answer(documents, clipped_sum, {}, np.random.default_rng(0))
    weights = np.minimum(1.0, radius / np.linalg.norm(whole, axis=1))
    assert (weights < 1).any()
    assert (weights == 1).any()
    np.testing.assert_allclose(clipped_sum.vector(), weights @ whole, atol=1e-9)


def test_a_hundred_steps_are_those_of_a_bare_torch_loop():
    net, documents = model(beta1=0.8), corpus()
    state = net.start(VOCABULARY, np.random.default_rng(1))
    flat = torch.from_numpy(state["weights"].copy()).requires_grad_()
    adam = torch.optim.Adam([flat], lr=net.learning_rate, betas=(0.8, 0.999))
    for step in range(100):
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
    assert state["step"][0] == 100
    np.testing.assert_allclose(state["weights"], flat.detach().numpy(), atol=1e-9)


def test_updating_leaves_the_old_state_alone_and_in_place_gives_the_same(setting):
    net, state, documents = setting
    before = {name: values.copy() for name, values in state.items()}
    total = asked(net, state, documents)
    after = net.update(state, Answer(total))
    for name, values in before.items():
        np.testing.assert_array_equal(state[name], values)
    inside = net.advance({name: values.copy() for name, values in state.items()}, total, in_place=True)
    for name, values in after.items():
        np.testing.assert_array_equal(inside[name], values)


def test_plain_sgd_is_equation_three():
    net, documents = model(optimiser="sgd", learning_rate=0.01), corpus()
    state = net.start(VOCABULARY, np.random.default_rng(1))
    assert set(state) == {"weights", "step", "seed"}
    total = asked(net, state, documents)
    after = net.update(state, Answer(total))["weights"]
    expected = state["weights"] - 0.01 * total["gradient"] / len(documents)
    shape = NetworkShape(WORDS, net.hidden, net.n_topics)
    ours, theirs = shape.views(after), shape.views(expected)
    np.testing.assert_allclose(ours["words"], theirs["words"], atol=1e-14)
    np.testing.assert_allclose(ours["background"], theirs["background"], atol=1e-14)


def test_no_word_spreads_over_the_topics_further_than_it_may(setting):
    net, state, documents = setting
    net = replace(net, word_spread=0.01)
    after = net.update(state, Answer(asked(net, state, documents)))
    topics = NetworkShape(WORDS, net.hidden, net.n_topics).views(after["weights"])["topics"]
    np.testing.assert_allclose(topics.mean(0), 0, atol=1e-12)
    assert topics.std(0).max() == pytest.approx(net.word_spread, rel=1e-6)


def test_no_optimiser_memory_travels(setting):
    net, state, documents = setting
    sent = net.for_party(state, "anybody")
    assert set(sent) == {"weights", "step", "seed"}
    np.testing.assert_array_equal(asked(net, sent, documents)["gradient"], asked(net, state, documents)["gradient"])


def test_at_relevance_one_topics_are_what_the_decoder_says(setting):
    net, state, _ = setting
    layer = NetworkShape(WORDS, net.hidden, net.n_topics).views(torch.from_numpy(state["weights"]))
    scores = net.gain * functional.layer_norm(layer["topics"], (WORDS,)) + layer["background"]
    np.testing.assert_allclose(model(relevance=1.0).topics(state), torch.softmax(scores, 1).numpy(), rtol=1e-10)


def test_log_likelihood_is_the_decoders(setting):
    net, state, documents = setting
    seen, unseen = documents, corpus(seed=8)
    layer = NetworkShape(WORDS, net.hidden, net.n_topics).views(torch.from_numpy(state["weights"]))
    logits = torch.from_numpy(net.infer(state, seen)) @ layer["topics"]
    scores = torch.log_softmax(net.gain * functional.layer_norm(logits, (WORDS,)) + layer["background"], 1).numpy()
    expected = (unseen.counts.toarray() * scores).sum(1)
    np.testing.assert_allclose(net.log_likelihood(state, seen, unseen), expected, rtol=1e-10)


def test_local_epochs_answer_with_one_row_of_the_party(setting):
    _, state, documents = setting
    net = model(local_epochs=2, batch=10)
    rng = np.random.default_rng(11)
    clipped_sum = ClippedRowSum(net.query(state).terms)
    net.query(state).answer(documents, clipped_sum, {}, rng)
    difference, count = clipped_sum.blocks()["difference"], clipped_sum.blocks()["documents"][0]
    assert count == len(documents)
    assert np.abs(difference).max() > 0
    clipped_sum = ClippedRowSum(net.query(state).terms)
    net.query(state).answer(documents, clipped_sum, {}, np.random.default_rng(11))
    np.testing.assert_array_equal(clipped_sum.blocks()["difference"], difference)


def test_federated_averaging_weighs_parties_by_documents():
    net, documents = model(local_epochs=1, batch=8), corpus()
    state = net.start(VOCABULARY, np.random.default_rng(1))
    parts = [asked(net, state, documents.select(rows)) for rows in (np.arange(16), np.arange(16, 24))]
    total = {name: parts[0][name] + parts[1][name] for name in parts[0]}
    after = net.update(state, Answer(total))["weights"]
    shape = NetworkShape(WORDS, net.hidden, net.n_topics)
    means = [state["weights"] + part["difference"] / part["documents"][0] for part in parts]
    expected = (16 * means[0] + 8 * means[1]) / 24
    np.testing.assert_allclose(shape.views(after)["head"], shape.views(expected)["head"], atol=1e-12)


def test_one_local_step_of_sgd_is_one_step_of_the_server():
    documents = corpus(8)
    local = model(local_epochs=1, batch=8, optimiser="sgd", theta_dropout=0.0, dropout=0.0)
    state = local.start(VOCABULARY, np.random.default_rng(1))
    query = local.query(state)
    noisy = {**state, "step": (state["step"] << 32) + 1}  # the local step's own noise
    gradient = local.losses(noisy, documents.counts, documents.keys).gradient(np.ones(8))
    clipped_sum = ClippedRowSum(query.terms)
    query.answer(documents, clipped_sum, {}, np.random.default_rng(0))
    weights, _ = local.stepped(state["weights"].copy(), gradient, 8, {}, 1, in_place=False)
    np.testing.assert_allclose(clipped_sum.blocks()["difference"] / 8, weights - state["weights"], atol=1e-13)


def test_single_precision_is_close_to_double(setting):
    net, state, documents = setting
    single = {**state, "weights": state["weights"].astype(np.float32)}
    coarse = model(dtype="float32").losses(single, documents.counts, documents.keys)
    fine = net.losses(state, documents.counts, documents.keys)
    ones = np.ones(len(documents), np.float32)
    assert coarse.gradient(ones).dtype == np.float32
    np.testing.assert_allclose(coarse.values, fine.values, rtol=1e-5)
    np.testing.assert_allclose(coarse.gradient(ones), fine.gradient(ones), atol=2e-4 * np.abs(fine.gradient(ones)).max())
    np.testing.assert_allclose(coarse.norms(np.arange(24)), fine.norms(np.arange(24)), rtol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_same_gradient(setting):
    net, state, documents = setting
    mine, theirs = (asked(n, state, documents)["gradient"] for n in (net, model(device="cuda")))
    np.testing.assert_allclose(theirs, mine, atol=1e-9)
