"""What a clip may believe: no owner's share of the sum is longer than the radius, through frozen word vectors too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Block, Terms
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.models.neural.network import NetworkShape
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.neural.torch_kernels import TorchKernels
from securetm.models.public_knowledge import MOST_DIMENSIONS, VECTORS, public_knowledge
from securetm.testing.model_laws import ModelLaws

torch.set_num_threads(1)
WORDS, TOPICS, HIDDEN = 1500, 20, 15
LEAST_ROOM = 2.0**-38  # what `norms` may be short of, less than half of what the clipped sum leaves


def documents():
    """Ordinary ones, one-word ones, an empty one, very long ones and twins."""
    rng = np.random.default_rng(5)
    counts = np.zeros((12, WORDS), dtype=np.int64)
    counts[0], counts[1] = rng.poisson(0.05, (2, WORDS))
    counts[2, 3], counts[3, 3], counts[8, 0], counts[11, WORDS - 1] = 1, 10**6, 3, 2
    counts[5], counts[6], counts[7, :7] = 1, rng.integers(0, 10**5, WORDS), 50
    counts[9, [0, 5]], counts[10] = (1, 10**9), counts[0]
    return Corpus(HeldDocuments(sparse.csr_array(counts), tuple(map(str, range(WORDS))), np.arange(12, dtype=np.uint64) * 977))


def setting(dtype, hostile=lambda parts, rng: None):
    net, rng = ProdLDA(n_topics=TOPICS, hidden=HIDDEN, dtype=dtype, device="cpu"), np.random.default_rng(5)
    state = net.start(documents().vocabulary, rng)
    with np.errstate(all="ignore"):
        hostile(NetworkShape(WORDS, HIDDEN, TOPICS).views(state["weights"]), rng)
    return net, state


def times(factor, *names):
    def change(parts, rng):
        for name in names or parts:
            parts[name][...] *= parts[name].dtype.type(factor)

    return change


def plus(scale, name, shape=lambda part: part.shape):
    def change(parts, rng):
        parts[name][...] += (scale * rng.normal(0, 1, shape(parts[name]))).astype(parts[name].dtype)

    return change


def fill(value, name, place=...):
    def change(parts, rng):
        parts[name][place] = value

    return change


def per_topic(part):
    return part.shape[0], 1


HOSTILE = {
    "ordinary": times(1.0),
    "no symmetry": plus(0.3, "background"),
    "all zero": times(0.0),
    "huge": times(1e18),
    "beyond float32": times(1e38),
    "one word is absurdly certain": fill(1e38, "background", 3),
    "logits that round away": plus(1e9, "topics", per_topic),
    "one level for all logits": plus(1e6, "topics", lambda part: (1, 1)),
    "constant huge logits": fill(1e20, "topics"),
    "large inside, small outside": lambda parts, rng: (times(1e15, "words")(parts, rng), times(1e-15, "head")(parts, rng)),
    "hidden overflow": fill(1e38, "inner_bias"),
    "not a number": fill(np.nan, "topics", (3, 4)),
    "infinite": fill(np.inf, "words", (3, 4)),
}


def summed(net, state, chosen, radius, persons=None):
    query = net.query(state)
    clipped_sum = ClippedRowSum(query.terms, radius=radius)
    if persons is None:
        query.answer(chosen, clipped_sum, {}, np.random.default_rng(0))
    else:
        losses = net.losses(state, chosen.counts, chosen.keys)
        clipped_sum.add_losses(losses, persons, np.ones((len(chosen), 1), dtype=state["weights"].dtype))
    return clipped_sum


def length(vector):
    return float(np.sqrt((vector.astype(np.float64) ** 2).sum()))


EVERY = [(name, "float32") for name in HOSTILE] + [(name, "float64") for name in ("ordinary", "huge", "logits that round away")]


@pytest.mark.parametrize(("name", "dtype"), EVERY)
def test_no_row_of_a_document_or_person_is_longer_than_the_radius(name, dtype):
    net, state = setting(dtype, HOSTILE[name])
    held = documents()
    for radius in (1e-3, 300.0):
        for i in range(12):
            assert length(summed(net, state, held.select(np.array([i])), radius).vector()) <= radius
        for rows in (np.arange(12), np.array([0, 10])):
            clipped_sum = summed(net, state, held.select(rows), radius, persons=np.zeros(len(rows), dtype=int))
            assert length(clipped_sum.vector()) <= radius


@pytest.mark.parametrize(("name", "dtype"), EVERY)
def test_norms_are_short_by_less_than_half_of_the_tallys_room(name, dtype):
    net, state = setting(dtype, HOSTILE[name])
    losses = net.losses(state, documents().counts, documents().keys)
    norms = losses.norms(np.arange(12))
    finite = np.flatnonzero(np.isfinite(norms))
    rows = [length(losses.gradient(np.eye(12)[i])) for i in finite]
    assert (np.array(rows) <= norms[finite] * (1 + LEAST_ROOM)).all()


@pytest.mark.parametrize("name", HOSTILE)
def test_the_way_of_a_gpu_is_bounded_alike(name):
    net, state = setting("float32", HOSTILE[name])
    net.__dict__["_kernels"] = TorchKernels(torch.device("cpu"))
    for i in range(12):
        assert length(summed(net, state, documents().select(np.array([i])), 1.0).vector()) <= 1.0
    assert length(summed(net, state, documents(), 1.0, persons=np.zeros(12, dtype=int)).vector()) <= 1.0


def test_ordinary_norms_are_not_overstated_either():
    net, state = setting("float32", HOSTILE["no symmetry"])
    losses = net.losses(state, documents().counts, documents().keys)
    rows = [length(losses.gradient(one)) for one in np.eye(12)]
    np.testing.assert_allclose(losses.norms(np.arange(12)), rows, rtol=1e-12)


@pytest.mark.parametrize("name", ["beyond float32", "huge", "not a number", "hidden overflow"])
def test_where_every_document_diverges_the_clipped_answer_is_exactly_nothing(name):
    net, state = setting("float32", HOSTILE[name])
    clipped_sum = summed(net, state, documents(), 1.0)
    assert not clipped_sum.vector().any()
    assert clipped_sum.loss == float("inf")  # the party's own figure says so


def test_a_document_that_diverges_changes_nothing_but_itself():
    net, state = setting("float32", fill(3e38, "words", 1499))  # only the last document has that word
    all_rows, finite = np.arange(12), np.flatnonzero(documents().counts.toarray()[:, 1499] == 0)
    losses = net.losses(state, documents().counts, documents().keys)
    assert np.isfinite(losses.norms(all_rows)).sum() == len(finite) < 11
    whole, others = (summed(net, state, documents().select(rows), 0.5) for rows in (all_rows, finite))
    np.testing.assert_allclose(whole.vector(), others.vector(), atol=1e-6)
    assert whole.vector().any()
    assert whole.loss == pytest.approx(others.loss)
    assert whole.vector()[-1] == pytest.approx(others.vector()[-1], rel=1e-6)  # nor is it counted


def test_a_person_with_one_document_that_diverges_gives_nothing():
    net, state = setting("float32", fill(3e38, "words", 1499))
    persons = np.array([0, 1, 1, 2, 3, 3, 3, 4, 4, 5, 6, 4])
    broken = np.isin(persons, persons[documents().counts.toarray()[:, 1499] > 0])
    assert 0 < broken.sum() < 12
    kept = np.flatnonzero(~broken)
    whole = summed(net, state, documents(), 0.5, persons)
    np.testing.assert_allclose(
        whole.vector(), summed(net, state, documents().select(kept), 0.5, persons[kept]).vector(), atol=1e-6
    )


def test_without_a_clip_too_what_diverges_counts_as_nothing_and_is_counted():
    net, state = setting("float32", HOSTILE["not a number"])
    clipped_sum = summed(net, state, documents(), float("inf"))
    assert not clipped_sum.vector().any()
    assert clipped_sum.lost == 12


def test_weight_zero_is_exactly_nothing_where_the_gradient_is_no_number():
    net, state = setting("float64", fill(np.inf, "words", 1499))
    losses = net.losses(state, documents().counts, documents().keys)
    weights = np.where(np.isfinite(losses.norms(np.arange(12))), 0.5, 0.0)
    assert (weights == 0).any()
    assert np.isfinite(losses.gradient(weights)).all()
    assert np.isnan(losses.gradient(np.ones(12))).any()


def test_documents_of_one_person_that_cancel_count_as_what_rounding_may_leave():
    net, state = setting("float32")
    rows = np.array([0, 10])  # twins
    losses = net.losses(state, documents().counts[rows], documents().keys[rows])
    sign, twice = torch.tensor([1.0, -1.0]), [0, 0]
    losses._words = losses._words[twice] * sign[:, None]
    losses._dense = {name: (a[twice], b[twice] * sign[:, None]) for name, (a, b) in losses._dense.items()}
    said = losses._decoded.only(twice)
    turned = replace(said.passed, back=said.passed.back * sign[:, None], after=said.passed.after * sign[:, None])
    losses._decoded = replace(said, passed=turned)
    assert length(losses.gradient(np.ones(2))) < 1e-2  # nothing but rounding
    alone, together = losses.norms(np.arange(2)), losses.norms(np.zeros(2, dtype=int))
    assert together[0] == pytest.approx(alone.sum() / 16, rel=1e-3)
    assert alone.sum() > 100


class Lengths:
    """Losses whose lengths are as given."""

    def __init__(self, *lengths):
        self.lengths = np.array(lengths)
        self.values = np.ones(len(lengths))
        self.seen = None

    def norms(self, owners):
        return self.lengths

    def gradient(self, weights):
        self.seen = weights
        return np.zeros(3, dtype=weights.dtype)


@pytest.mark.parametrize("bits", [32, 64])
def test_the_tally_aims_below_its_radius_by_the_room_for_rounding(bits):
    losses = Lengths(0.0, 0.5, 2.0, np.inf, np.nan, 1e100)
    clipped_sum = ClippedRowSum(Terms((Block("gradient", (3,)),), bits=bits), radius=1.0)
    clipped_sum.add_losses(losses, np.arange(6), np.ones((6, 0)))
    assert losses.seen.dtype == np.float64  # whatever the model is in
    np.testing.assert_allclose(losses.seen[:3], [1.0, 1.0, 0.5 / (1 + 2.0**-36)], rtol=1e-15)
    assert losses.seen[2] < 0.5
    assert not losses.seen[3:5].any()
    assert 0 < losses.seen[5] < 1.1e-100
    assert clipped_sum.loss == 1.0


# ---- through frozen word vectors -------------------------------------------------------------------------------------------


torch.set_num_threads(1)
SMALL = 40


def embedded(dtype="float64", **settings):
    return ProdLDA(n_topics=4, hidden=6, dtype=dtype, device="cpu", decoder="embedded", **settings)


def state_of(net, words, frequencies=True):
    rng = np.random.default_rng(3)
    known = public_knowledge(rng.normal(size=(words, 30)), 4, rng.dirichlet(np.full(words, 5.0)) if frequencies else None)
    return net.started(tuple(map(str, range(words))), known, rng)


def few(words=SMALL, count=9):
    return sparse.csr_array(np.random.default_rng(4).poisson(0.3, (count, words))), np.arange(count, dtype=np.uint64) * 977


class TestEmbeddedProdLDA(ModelLaws):
    @pytest.fixture
    def model(self):
        return embedded(dropout=0.0, theta_dropout=0.0)


def test_the_gradient_is_that_of_the_losses():
    net = embedded()
    state, (counts, keys) = state_of(net, SMALL), few()
    gradient = net.losses(state, counts, keys).gradient(np.ones(9))
    assert len(gradient) == len(state["weights"]) < SMALL + 2 * MOST_DIMENSIONS * 10
    for place in np.random.default_rng(0).choice(len(gradient), 60, replace=False):
        ends = []
        for step in (1e-5, -1e-5):
            weights = state["weights"].copy()
            weights[place] += step
            ends.append(float(net.losses({**state, "weights": weights}, counts, keys).values.sum()))
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=2e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_document_changes_a_bit_of_what_another_one_gives(dtype):
    net = embedded(dtype)
    state, (counts, keys) = state_of(net, 300), few(300, 30)
    for size in (2, 3, 8, 9, 17, 29):
        both, without = net.losses(state, counts[:size], keys[:size]), net.losses(state, counts[1:size], keys[1:size])
        np.testing.assert_array_equal(both.norms(np.arange(size))[1:], without.norms(np.arange(size - 1)))
        left_out = np.r_[0.0, np.ones(size - 1)].astype(dtype)
        np.testing.assert_array_equal(both.gradient(left_out), without.gradient(left_out[1:]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("factor", [1.0, 1e18])
def test_no_documents_row_is_longer_than_the_radius(dtype, factor):
    net, chosen = embedded(dtype), documents()
    state = state_of(net, len(chosen.vocabulary))
    with np.errstate(all="ignore"):
        state = {**state, "weights": (state["weights"] * factor).astype(dtype)}
        for row in range(len(chosen)):
            one = summed(net, state, chosen.select(np.array([row])), 0.5).vector()
            assert length(one) <= 0.5 * (1 + 1e-6)


def test_it_begins_at_public_topics_and_vectors_do_not_move():
    net, rng = embedded(), np.random.default_rng(0)
    groups = np.repeat(np.eye(4, 8), 10, axis=0) + 0.05 * rng.normal(size=(SMALL, 8))
    state = net.started(tuple(map(str, range(SMALL))), public_knowledge(groups, 4), rng)
    heaviest = {tuple(sorted(np.argsort(-topic)[:10] // 10)) for topic in net.topics(state)}
    assert heaviest == {(group,) * 10 for group in range(4)}
    total = {"gradient": np.ones_like(state["weights"]), "documents": np.ones(1)}
    after = net.advance(state, total, in_place=False)
    np.testing.assert_array_equal(after[VECTORS], state[VECTORS])
    assert np.any(after["weights"] != state["weights"])
