"""Documents that hardly are any, over every model of the registry: finite topics whose rows sum to one, or a named error."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, Failed
from securetm.models import MODELS
from securetm.models.estimator import Estimator
from securetm.plans.profiles import make_model

from .small_models import EMBEDDED, OURS, small_settings

WORDS = ("boat", "judge", "lake", "river", "storm", "court", "law", "cell", "nerve", "blood")
LONG = " ".join(np.random.default_rng(0).choice(WORDS, 20_000))
DOCUMENTS: Mapping[str, list[str]] = {
    "no document": [],
    "one word": ["lake"],
    "the same word in every document": ["lake"] * 30,
    "a document without words": ["river lake", "zebra", "judge law"],
    "no document with a word": ["zebra", "giraffe"],
    "disjoint words": ["river lake boat"] * 20 + ["judge court law"] * 20 + ["cell nerve blood"] * 20,
    "a document of 20,000 words": [LONG, "river lake", "boat"],
}


def degenerate(name: str, words: tuple[str, ...] = WORDS) -> Corpus:
    """Those documents with embeddings, as models that read some need them."""
    texts = DOCUMENTS[name]
    corpus = Corpus.from_strings(texts or ["lake"]).project(words).select(np.arange(len(texts)))
    return corpus.replace(embeddings=np.random.default_rng(1).normal(size=(len(texts), EMBEDDED)).astype(np.float32))


def made(model: str, topics: int) -> Estimator:
    found = make_model(model, small_settings(model, topics))
    assert isinstance(found, Estimator)
    return found


def check(model: Estimator, corpus: Corpus) -> None:
    """Topics, shares of documents and likelihoods are finite; rows of the first two sum to one."""
    for rows in (model.components_, model.infer(model.learned.state, corpus)):
        assert np.isfinite(rows).all()
        assert (rows >= 0).all()
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-5)
    assert np.isfinite(model.log_likelihood(model.learned.state, *corpus.halves(0))).all()
    assert all(np.isfinite(array).all() for array in model.learned.state.values())


@pytest.mark.parametrize("documents", DOCUMENTS)
@pytest.mark.parametrize("model", OURS)
def test_more_topics_than_documents_and_words(model: str, documents: str) -> None:
    corpus = degenerate(documents)
    check(made(model, 40).fit(corpus, epochs=2), corpus)


@pytest.mark.parametrize("model", OURS)
def test_one_word_in_the_vocabulary(model: str) -> None:
    corpus = degenerate("the same word in every document", ("lake",))
    check(made(model, 3).fit(corpus, epochs=2), corpus)


@pytest.mark.parametrize("model", OURS)
def test_one_topic_is_learned_or_refused_by_name(model: str) -> None:
    if MODELS.load(model).__module__.startswith(("securetm.models.neural", "securetm.models.torch_module")):
        with pytest.raises(BadSetting, match="n_topics"):
            made(model, 1)
        return
    corpus = degenerate("disjoint words")
    check(made(model, 1).fit(corpus, epochs=2), corpus)


@pytest.mark.parametrize("model", OURS)
def test_a_vocabulary_without_a_word_is_refused_by_name(model: str) -> None:
    with pytest.raises(Failed):
        made(model, 3).fit(degenerate("one word", ()))
