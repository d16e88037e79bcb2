"""What a document gives is the same to the last bit wherever it stands, and neighbouring sums are as far apart as terms say."""

import numpy as np
import pytest
import torch
from scipy import sparse

from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.models.neural.network import NetworkShape
from securetm.models.neural.prodlda import ProdLDA
from tests.models.trained_by_hand import sum_of

WORDS, DOCUMENTS = 117, 33  # no multiples of what a processor takes at once


def cancelling(parts, rng):
    """Sums of large numbers that cancel: the last bit of each sum decides the row."""
    hidden = len(parts["inner"])
    parts["words"][...], parts["words_bias"][...] = 0, rng.uniform(0, 3, hidden)
    inward, inner = np.log1p(np.exp(parts["words_bias"].astype(float))), rng.standard_normal((hidden, hidden))
    parts["inner"][...] = 1e8 * (inner - np.outer(inward, inward @ inner) / (inward @ inward))
    parts["head"][...] = rng.standard_normal(parts["head"].shape)


def lifted(parts, rng):
    """Logits of one level for each topic, far above what sets words apart."""
    parts["topics"][...] += 1e7 * rng.standard_normal((len(parts["topics"]), 1))


WEIGHTS = {"ordinary": lambda parts, rng: None, "cancelling": cancelling, "lifted": lifted}


def setting(name, dtype, hidden=15):
    rng = np.random.default_rng(1)
    net = ProdLDA(n_topics=11, hidden=hidden, dtype=dtype, device="cpu", dropout=0.0)
    words = tuple(map(str, range(WORDS)))
    state = net.start(words, rng)
    WEIGHTS[name](NetworkShape(WORDS, hidden, 11).views(state["weights"]), rng)
    counts = sparse.csr_array(rng.poisson(0.1, (DOCUMENTS, WORDS)))
    return net, state, Corpus(HeldDocuments(counts, words, np.arange(DOCUMENTS, dtype=np.uint64) * 977))


def rows_of(net, state, documents, order):
    """Each document's length and its whole row, in 64 bits, as they come out among these."""
    chosen = documents.select(np.asarray(order))
    losses = net.losses(state, chosen.counts, chosen.keys)
    return losses.norms(np.arange(len(order))), np.array([losses.gradient(one) for one in np.eye(len(order))])


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_row_is_the_same_to_the_last_bit_wherever_it_stands(name, dtype, threads):
    net, state, documents = setting(name, dtype)
    lengths, rows = rows_of(net, state, documents, range(DOCUMENTS))
    assert np.isfinite(lengths).all()
    shuffled = np.random.default_rng(2).permutation(DOCUMENTS)
    for order in (shuffled, shuffled[:7], [3], np.repeat(shuffled[:2], 3)):
        some_lengths, some_rows = rows_of(net, state, documents, order)
        assert np.array_equal(some_lengths, lengths[order])
        assert np.array_equal(some_rows, rows[order])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nor_does_a_person_change_a_bit_of_another_one(dtype, threads):
    net, state, documents = setting("cancelling", dtype)
    persons = np.repeat(np.arange(11), 3)
    lengths = net.losses(state, documents.counts, documents.keys).norms(persons)
    for gone in (0, 4, 10):
        kept = np.flatnonzero(persons != gone)
        chosen = documents.select(kept)
        assert np.array_equal(net.losses(state, chosen.counts, chosen.keys).norms(persons[kept]), np.delete(lengths, gone))


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neighbouring_sums_are_a_radius_apart_and_hardly_more(name, dtype):
    """Rounding included, in a sum that grows long before it is asked about one document more."""
    net, state, documents = setting(name, dtype)

    def total(rows):
        return sum_of(net.query(state), documents.select(rows), radius=1.0).vector().astype(np.float64)

    everybody = np.arange(DOCUMENTS)
    whole = total(everybody)
    for gone in range(0, DOCUMENTS, 4):
        assert np.linalg.norm(whole - total(np.delete(everybody, gone))) <= 1.0 + 1e-9
