import numpy as np
import pytest
from scipy import stats

from securetm.models.document_noise import normals, starts_of, survival, uniform

KEYS = np.arange(4000, dtype=np.uint64)  # consecutive keys: the hash, not the keys, must do the spreading


def uniforms(seed, step, keys, stream, width):
    """One row per document of what its normals and its dropout are made of."""
    return np.array([[uniform(start, j) for j in range(width)] for start in starts_of(seed, step, keys, stream)])


def test_uniforms_and_normals_have_their_distribution():
    """Seeds, steps and keys are fixed, so no limit here is passed by luck."""
    for draw, law in ((uniforms, "uniform"), (normals, "norm")):
        values = draw(7, 3, KEYS, 0, 25)
        assert stats.kstest(values.ravel(), law).pvalue > 1e-3
        assert stats.kstest(values[:, 0], law).pvalue > 1e-3
        assert stats.kstest(values[5], law).pvalue > 1e-3
    assert abs(values.mean()) < 5 / np.sqrt(values.size)
    assert abs(values.var() - 1) < 5 * np.sqrt(2 / values.size)
    assert uniforms(7, 3, KEYS, 0, 25).min() > 0
    assert uniforms(7, 3, KEYS, 0, 25).max() < 1


@pytest.mark.parametrize(
    "other",
    [
        lambda draw: draw(8, 3, KEYS, 1, 10),  # seed
        lambda draw: draw(7, 4, KEYS, 1, 10),  # step
        lambda draw: draw(7, 3, KEYS + np.uint64(1), 1, 10),  # key
        lambda draw: draw(7, 3, KEYS, 2, 10),  # stream
        lambda draw: draw(7, 3, KEYS ^ np.uint64(1 << 63), 1, 10),
        lambda draw: draw(7 + 2**63, 3, KEYS, 1, 10),
        lambda draw: draw(3, 7, KEYS, 1, 10),  # seed and step change places
        lambda draw: np.roll(draw(7, 3, KEYS, 1, 10), 1, axis=1),  # neighbours in one document
    ],
)
def test_draws_under_another_name_are_independent(other):
    mine, theirs = normals(7, 3, KEYS, 1, 10), other(normals)
    bound = 5 / np.sqrt(mine.size)
    assert abs(np.mean(mine * theirs)) < bound
    assert abs(np.mean((mine**2 - 1) * (theirs**2 - 1)) / 2) < bound
    assert np.intersect1d(mine.ravel(), np.asarray(other(uniforms)).ravel()).size == 0


def test_a_documents_noise_does_not_depend_on_its_batch():
    whole = normals(1, 2, KEYS, 0, 11)
    chosen = np.array([17, 3, 3999])
    np.testing.assert_array_equal(normals(1, 2, KEYS[chosen], 0, 11), whole[chosen])
    np.testing.assert_array_equal(normals(1, 2, KEYS[chosen], 0, 4), whole[chosen, :4])


def test_noise_stays_as_it_was():
    """A change here would make resumed and federated runs diverge from those of an older version."""
    np.testing.assert_allclose(
        uniforms(1, 2, np.array([3], dtype=np.uint64), 0, 2), [[0.3528827856177131, 0.8273025801965301]], rtol=1e-15
    )


def test_dropout_keeps_the_mean():
    kept = survival(1, 2, KEYS, 0, 50, 0.3)
    assert set(np.unique(kept)) == {0.0, 1 / 0.7}
    assert abs((kept == 0).mean() - 0.3) < 5 * np.sqrt(0.21 / kept.size)
    assert (survival(1, 2, KEYS, 0, 50, 0.0) == 1).all()
