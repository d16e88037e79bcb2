"""What holds for all our models alike: the laws, settings, threads, files, forged tables, and documents that hardly are any."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, BrokenPromise, CountsNotWhole, Failed
from securetm.models import MODELS
from securetm.models.estimator import Estimator
from securetm.plans.profiles import make_model
from securetm.testing.few_documents import some_documents
from securetm.testing.model_laws import VOCABULARY

from .small_models import EMBEDDED, OURS, small_settings
from .trained_by_hand import sum_of

DOCUMENTS = some_documents(60, seed=2)
FORMS = [(name, more) for name in ("lda", "sentence-lda") for more in ({"sampler": "gibbs"}, {"sampler": "mh"})]
TABLES = [*FORMS, ("lda-vi", {})]
WRONG: dict[str, tuple[tuple[str, Any], ...]] = {
    "lda": (
        ("n_topics", 0), ("n_topics", 1 << 17), ("alpha", 0.0), ("eta", float("inf")), ("sweeps", 0), ("threads", 0),
        ("sampler", "slice"), ("cycles", 0), ("priors", "flat"), ("alpha", float("nan")),
    ),
    "sentence-lda": (("longest", -1), ("sampler", "vb"), ("alpha", 0.0)),
    "lda-matched": (
        ("xi", -0.1), ("xi", 1.5), ("xi", float("nan")), ("top", 0), ("topics_at", {"a": 0}), ("priors", "learned"),
        ("topics_at", {"a": 1 << 17}), ("merged", "some"),
    ),
    "lda-vi": (
        ("passes", 0), ("batch_size", -1), ("forgetting", 0.0), ("forgetting", 1.5), ("repeats", -1), ("totals", -1.0),
        ("tempering", 0.0), ("shares_alpha", -1.0), ("eta", 0.0),
    ),
    "moments": (("n_topics", -1), ("alpha", 0.0), ("alone", 0.0), ("alone", 1.0), ("passes", 0), ("threads", 0)),
    "nmf": (("n_topics", 0), ("weighting", "idf"), ("passes", 0), ("background", 0.0), ("sweeps", 0), ("alone", -1.0)),
    "fednmf": (
        ("mutual_information", -1.0), ("tau", 0.0), ("local_epochs", 0), ("batch", 0), ("learning_rate", 0.0),
        ("critic_rate", 2.0), ("server", "sgd"), ("server_rate", -1.0),
    ),
    "prodlda": (
        ("n_topics", 1), ("dropout", 1.0), ("alpha", 0.0), ("optimiser", "adagrad"), ("dtype", "float16"), ("gain", 0.0),
        ("batch", 0), ("server", "adam"), ("device", "tpu"), ("decoder", "none"),
    ),
}  # fmt: skip


def made(name: str, topics: int = 3, **more: Any) -> Estimator:
    found = MODELS.load(name)(**{**small_settings(name, topics), **more})
    assert isinstance(found, Estimator)
    return found


@pytest.mark.parametrize(("name", "setting", "value"), [(name, *wrong) for name, some in WRONG.items() for wrong in some])
def test_a_setting_that_means_nothing_is_refused_by_name(name: str, setting: str, value: Any) -> None:
    with pytest.raises(BadSetting) as refusal:
        made(name, **{setting: value})
    assert refusal.value.name == setting


@pytest.mark.parametrize(("name", "more"), [*TABLES, ("lda-matched", {}), ("nmf", {}), ("moments", {})])
def test_threads_change_nothing(name: str, more: dict[str, Any]) -> None:
    one, two = (made(name, threads=threads, **more).fit(DOCUMENTS, epochs=2).learned.state for threads in (1, 3))
    for part, array in one.items():
        np.testing.assert_array_equal(array, two[part])


@pytest.mark.parametrize("name", OURS)
def test_what_was_saved_is_loaded(name: str, tmp_path: Path) -> None:
    fitted = made(name).fit(DOCUMENTS, epochs=2)
    fitted.save(tmp_path / "model.safetensors")
    again = type(fitted).load(tmp_path / "model.safetensors")
    assert again == fitted
    np.testing.assert_array_equal(again.transform(DOCUMENTS), fitted.transform(DOCUMENTS))


@pytest.mark.parametrize("number", [2.0**63, -1.0])
@pytest.mark.parametrize(("name", "more"), TABLES)
def test_a_table_that_makes_no_sense_still_gives_counts(name: str, more: dict[str, Any], number: float) -> None:
    """A coordinator may send anything of the right shape; what a party answers then are still its own words."""
    model = made(name, **more).fit(DOCUMENTS, epochs=1)
    state = model.learned.state
    forged = {**state, "counts": np.full_like(state["counts"], number)}
    clipped_sum = sum_of(model.query(forged), DOCUMENTS)
    np.testing.assert_allclose(clipped_sum.blocks()["counts"].sum(axis=0), DOCUMENTS.counts.sum(axis=0))
    assert np.isfinite(model.infer(forged, DOCUMENTS)).all()


@pytest.mark.parametrize("name", [name for name in OURS if not name.endswith("matched") and name != "torch-module"])
def test_a_state_of_another_size_is_refused(name: str) -> None:
    model, state = made(name), made(name, topics=4).start(VOCABULARY, np.random.default_rng(0))
    assert not model.fits(state, len(VOCABULARY))
    assert not made(name, topics=4).fits(state, len(VOCABULARY) - 1)
    with pytest.raises(BrokenPromise):
        model.topics(state)


@pytest.mark.parametrize("name", ["lda", "lda-vi", "nmf", "fednmf", "moments"])
@pytest.mark.parametrize("counts", [[[1.5, 2.0], [1.0, 1.0]]])
def test_counts_must_be_whole(name: str, counts: list[list[float]]) -> None:
    with pytest.raises(CountsNotWhole):
        made(name).fit(np.array(counts), epochs=1)


# ---- documents that hardly are any -----------------------------------------------------------------------------------------


WORDS = ("boat", "judge", "lake", "river", "storm", "court", "law", "cell", "nerve", "blood")
LONG = " ".join(np.random.default_rng(0).choice(WORDS, 20_000))
HARDLY_ANY: Mapping[str, list[str]] = {
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
    texts = HARDLY_ANY[name]
    corpus = Corpus.from_strings(texts or ["lake"]).project(words).select(np.arange(len(texts)))
    return corpus.replace(embeddings=np.random.default_rng(1).normal(size=(len(texts), EMBEDDED)).astype(np.float32))


def few(model: str, topics: int) -> Estimator:
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


@pytest.mark.parametrize("documents", HARDLY_ANY)
@pytest.mark.parametrize("model", OURS)
def test_more_topics_than_documents_and_words(model: str, documents: str) -> None:
    corpus = degenerate(documents)
    check(few(model, 40).fit(corpus, epochs=2), corpus)


@pytest.mark.parametrize("model", OURS)
def test_one_word_in_the_vocabulary(model: str) -> None:
    corpus = degenerate("the same word in every document", ("lake",))
    check(few(model, 3).fit(corpus, epochs=2), corpus)


@pytest.mark.parametrize("model", OURS)
def test_one_topic_is_learned_or_refused_by_name(model: str) -> None:
    if MODELS.load(model).__module__.startswith(("securetm.models.neural", "securetm.models.torch_module")):
        with pytest.raises(BadSetting, match="n_topics"):
            few(model, 1)
        return
    corpus = degenerate("disjoint words")
    check(few(model, 1).fit(corpus, epochs=2), corpus)


@pytest.mark.parametrize("model", OURS)
def test_a_vocabulary_without_a_word_is_refused_by_name(model: str) -> None:
    with pytest.raises(Failed):
        few(model, 3).fit(degenerate("one word", ()))
