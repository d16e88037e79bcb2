import warnings

import numpy as np
import pytest
import torch
from scipy import sparse

from securetm.models.given_documents import NoKnownWords, UnfitDocuments
from securetm.models.neural.contextual import CombinedTM, ZeroShotTM

torch.set_num_threads(1)
WORDS, SIZE = 30, 12
KINDS = [CombinedTM, ZeroShotTM]


def planted(documents=120, seed=0):
    """Documents of three kinds, each with words of its own, and a fixed random projection of their counts."""
    rng = np.random.default_rng(seed)
    kind = np.arange(documents) % 3
    counts = np.array([rng.multinomial(12, np.repeat(np.where(np.arange(3) == k, 0.09, 0.005), 10)) for k in kind])
    return sparse.csr_array(counts), counts @ np.random.default_rng(1).normal(size=(WORDS, SIZE)), kind


@pytest.mark.parametrize("kind", KINDS)
def test_they_learn_from_counts_and_embeddings_and_infer_unseen_documents(kind):
    counts, embeddings, labels = planted()
    model = kind(n_topics=6, hidden=20, batch=20, embedding_size=SIZE, device="cpu", learning_rate=1e-2)
    shares = model.fit_transform((counts, embeddings), epochs=30, seed=2)
    of_each = np.array([shares[labels == k].mean(axis=0) for k in range(3)])
    unseen, beside, others = planted(60, seed=5)
    apart = np.linalg.norm(model.transform((unseen, beside))[:, None] - of_each, axis=2)
    assert (apart.argmin(axis=1) == others).mean() > 0.7  # the nearest mean; one in three by chance


def test_zeroshot_reads_no_word_and_combined_reads_both():
    counts, embeddings, _ = planted()
    others = counts[::-1]
    zero, both = (
        kind(n_topics=3, hidden=20, batch=20, embedding_size=SIZE, device="cpu").fit((counts, embeddings), epochs=2)
        for kind in (ZeroShotTM, CombinedTM)
    )
    np.testing.assert_array_equal(zero.transform((counts, embeddings)), zero.transform((others, embeddings)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no word is missed
        zero.transform((sparse.csr_array(counts.shape), embeddings))
    with pytest.warns(NoKnownWords):
        both.transform((sparse.csr_array(counts.shape), embeddings))
    assert np.abs(both.transform((counts, embeddings)) - both.transform((others, embeddings))).max() > 1e-3
    assert np.abs(both.transform((counts, embeddings)) - both.transform((counts, embeddings[::-1]))).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_embeddings_that_are_missing_or_of_another_size_are_refused_by_name(kind):
    counts, embeddings, _ = planted()
    model = kind(n_topics=3, embedding_size=SIZE, device="cpu")
    with pytest.raises(UnfitDocuments) as missing:
        model.fit(counts, epochs=1)
    assert "12 numbers" in str(missing.value)
    with pytest.raises(UnfitDocuments) as other:
        model.fit((counts, embeddings[:, :5]), epochs=1)
    assert "5 numbers" in str(other.value)
    assert other.value.facts()["found"] == 5
