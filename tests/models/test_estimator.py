import numpy as np
import pytest
import torch
from scipy import sparse

from securetm.contracts import Answer
from securetm.contracts.origin import Origin, OriginKind
from securetm.errors import BadSetting
from securetm.models.estimator import held_back
from securetm.models.given_documents import UnfitDocuments, as_documents
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.stored_model import StoredModel
from tests.models.trained_by_hand import VOCABULARY, planted, sum_of

torch.set_num_threads(1)


def model(**settings):
    return ProdLDA(**{"n_topics": 3, "hidden": 16, "batch": 24, "learning_rate": 0.01, "device": "cpu", **settings})


@pytest.fixture(scope="module")
def fitted():
    documents, _ = planted()
    return model().fit(documents, epochs=60)


def test_fit_is_the_federations_own_path():
    """A centralised epoch is a series of queries, tallies and updates; nothing in fit is faster by being other."""
    documents, _ = planted(48)
    net = model(dtype="float64")
    learned = net.fit(documents, epochs=1, seed=5).learned.state
    rng = np.random.default_rng(5)
    state = net.start(VOCABULARY, rng)
    for rows in np.array_split(rng.permutation(48), 2):
        total = []
        for part in np.array_split(rows, 3):
            clipped_sum = sum_of(net.query(net.for_party(state, "any")), documents.select(part), rng=rng)
            total.append(clipped_sum.blocks())
        state = net.update(state, Answer({name: sum(part[name] for part in total) for name in total[0]}))
    np.testing.assert_allclose(learned["weights"], state["weights"], atol=1e-10)


def test_early_stopping_keeps_the_best_epoch():
    documents, _ = planted(96)
    seen = []
    eager = model(learning_rate=0.05)
    learned = eager.fit(documents, epochs=200, early_stopping=0.25, patience=3, on_progress=seen.append).learned
    scores = [progress.held_out for progress in seen]
    assert len(seen) < 200
    assert len(seen) == int(np.argmax(scores)) + 1 + 3
    assert learned.history == tuple(seen[: len(learned.history)])
    assert learned.history[-1].held_out == max(scores)
    held = documents.select(np.flatnonzero(held_back(documents.keys, 0.25)))
    assert eager.score(held) == pytest.approx(max(scores))


def test_the_split_follows_the_keys_alone():
    keys = np.random.default_rng(0).integers(0, 2**64, 20000, dtype=np.uint64)
    back = held_back(keys, 0.25)
    assert abs(back.mean() - 0.25) < 5 * np.sqrt(0.1875 / keys.size)
    np.testing.assert_array_equal(held_back(keys[::-3], 0.25), back[::-3])
    assert not held_back(keys, 0.0).any()


def test_documents_over_other_words_are_refused(fitted):
    documents = as_documents(planted(12)[0].counts, VOCABULARY[::-1])
    with pytest.raises(UnfitDocuments) as refusal:
        fitted.transform(documents)
    assert "w1" not in str(refusal.value) + refusal.value.advice()


def test_a_matrix_with_repeated_cells_is_summed_and_left_alone():
    cells = (np.array([1.0, 2.0, 4.0]), np.array([3, 3, 1]), np.array([0, 3]))
    given = sparse.csr_array(cells, shape=(1, 5))
    ours = as_documents(given).counts
    np.testing.assert_array_equal(ours.toarray(), [[0, 4, 0, 3, 0]])
    assert given.nnz == 3


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_counts_that_are_no_counts_are_refused(bad):
    with pytest.raises(BadSetting):
        as_documents(np.array([[1.0, bad]]))


# ---- save and load -------------------------------------------------------------------------------------------------


def test_a_saved_model_says_where_it_comes_from_only_if_somebody_said_it(fitted, tmp_path):
    fitted.save(tmp_path / "silent")
    assert StoredModel.open(tmp_path / "silent").origin is None
    fitted.save(tmp_path / "public", public="trained on an encyclopedia")
    assert StoredModel.open(tmp_path / "public").origin == Origin.public("trained on an encyclopedia")
    again = ProdLDA.load(tmp_path / "public")
    again.save(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "public").read_bytes()
    with pytest.raises(BadSetting, match="an origin is known"):
        again.save(tmp_path / "copy", public="for another reason")
    documents, _ = planted(24, seed=2)
    again.partial_fit(documents, epochs=1).save(tmp_path / "further")
    assert StoredModel.open(tmp_path / "further").origin.kind is OriginKind.UNBOUNDED
    again.fit(documents, epochs=1).save(tmp_path / "anew")
    assert StoredModel.open(tmp_path / "anew").origin is None
