"""Models within scikit-learn's tools, on texts, matrices and data frames."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import securetm
from securetm.errors import BadSetting, Mistake, NeedsSum, NotFound
from securetm.models import MODELS
from securetm.models.estimator import NotFitted
from securetm.models.given_documents import NoKnownWords, UnfitDocuments
from securetm.models.lda.matched import MatchedLDA

from ..quick_part import quick

SUBJECTS = ("river lake water boat shore fish", "goal match team score player ball", "law court judge trial jury witness")
draw = random.Random(0)
ABOUT = [number % 3 for number in range(120)]
TEXTS = [f"The {' '.join(draw.choices(SUBJECTS[about].split(), k=12))}." for about in ABOUT]
NEURAL = {"hidden": 16, "batch": 30, "learning_rate": 0.02}
SMALL: dict[Any, dict[str, Any]] = {securetm.ProdLDA: {**NEURAL, "batch": 10}, securetm.NeuralLDA: NEURAL}
KINDS = (securetm.LDA, securetm.SentenceLDA, securetm.VariationalLDA, securetm.NMF, *SMALL)


def model(kind: Any, **settings: Any) -> Any:
    return kind(n_topics=3, **SMALL.get(kind, {}), **settings)


def purity(shares: Any) -> float:
    """The share of documents in the commonest subject of their heaviest topic."""
    heaviest = np.asarray(shares).argmax(axis=1)
    return sum(max(np.bincount(np.array(ABOUT)[heaviest == topic], minlength=3)) for topic in range(3)) / len(ABOUT)


@pytest.mark.parametrize("kind", quick([securetm.LDA, securetm.NMF, securetm.ProdLDA], securetm.LDA, securetm.NMF))
def test_texts_are_learned_and_new_texts_transformed(kind: Any) -> None:
    fitted = model(kind).fit(TEXTS, epochs=80)
    assert purity(fitted.transform(TEXTS)) > 0.9
    new = fitted.transform(["a boat on the lake", "the judge and the jury"])
    assert new.shape == (2, 3)
    assert new[0].argmax() != new[1].argmax()
    assert "the" not in fitted.feature_names_in_


def test_a_text_without_a_word_keeps_its_row() -> None:
    fitted = model(securetm.LDA)
    with pytest.warns(NoKnownWords, match="2 of 122"):
        shares = fitted.fit_transform(["", *TEXTS, "of the"], epochs=2)
    assert shares.shape == (122, 3)
    np.testing.assert_array_equal(shares[1:-1], model(securetm.LDA).fit_transform(["", *TEXTS], epochs=2)[1:])


@pytest.mark.parametrize("stop_words", ["none", ("river", "Lake"), "file"])
def test_a_saved_model_reads_texts_as_it_learned_to(tmp_path: Path, stop_words: Any) -> None:
    (tmp_path / "stop").write_text("river\nlake")
    tokeniser = securetm.Tokeniser(ngrams=2, stop_words=tmp_path / "stop" if stop_words == "file" else stop_words)
    fitted = model(securetm.LDA).fit(TEXTS, epochs=2, tokeniser=tokeniser)
    fitted.save(tmp_path / "model")
    (tmp_path / "stop").unlink()
    for again in (securetm.LDA.load(tmp_path / "model"), securetm.load(tmp_path / "model")):
        np.testing.assert_array_equal(again.transform(TEXTS), fitted.transform(TEXTS))
        again.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_function_that_finds_words_is_in_no_file(tmp_path: Path) -> None:
    fitted = model(securetm.LDA).fit(TEXTS, epochs=1, tokeniser=securetm.Tokeniser(words=str.split))
    fitted.save(tmp_path / "model")
    with pytest.raises(Mistake):
        securetm.LDA.load(tmp_path / "model").transform(TEXTS)


def test_a_data_frame_of_counts_names_its_words() -> None:
    counts = CountVectorizer().fit(TEXTS)
    frame = pd.DataFrame(counts.transform(TEXTS).toarray(), columns=counts.get_feature_names_out())
    fitted = model(securetm.LDA).fit(frame, epochs=2)
    assert list(fitted.feature_names_in_) == list(frame.columns)
    assert fitted.n_features_in_ == frame.shape[1]
    np.testing.assert_array_equal(fitted.transform(frame), fitted.transform(sparse.csr_matrix(frame.to_numpy())))
    with pytest.raises(UnfitDocuments):
        fitted.transform(frame[frame.columns[::-1]])
    bare = model(securetm.LDA).fit(frame.to_numpy(), epochs=1)
    with pytest.raises(AttributeError, match="feature_names_in_"):
        _ = bare.feature_names_in_


def test_a_pipeline_with_a_search_over_settings() -> None:
    pipeline = Pipeline(
        [("words", CountVectorizer(stop_words="english")), ("topics", securetm.LDA()), ("said", LogisticRegression())]
    )
    search = GridSearchCV(pipeline, {"topics__n_topics": [1, 3], "topics__alpha": [0.1]}, cv=3)
    search.fit(TEXTS, ABOUT, topics__epochs=30)
    assert search.best_params_["topics__n_topics"] == 3
    assert search.best_score_ > 0.8
    assert search.predict(["a boat on the lake", "the judge of the court"]).tolist() == [0, 2]


def test_topics_are_columns_of_a_data_frame() -> None:
    notes = pd.Series(TEXTS, index=[f"note {number}" for number in range(len(TEXTS))])
    frame = model(securetm.LDA).set_output(transform="pandas").fit_transform(notes, epochs=2)
    assert list(frame.columns) == ["lda0", "lda1", "lda2"]
    assert list(frame.index) == list(notes.index)
    two = ColumnTransformer([("topics", model(securetm.LDA), "note"), ("rest", "passthrough", ["size"])])
    table = two.set_output(transform="pandas").fit_transform(pd.DataFrame({"note": TEXTS, "size": range(len(TEXTS))}))
    assert list(table.columns) == ["topics__lda0", "topics__lda1", "topics__lda2", "rest__size"]


@pytest.mark.parametrize("kind", [securetm.LDA, securetm.ProdLDA])
def test_a_clone_has_the_settings_and_nothing_else(kind: Any) -> None:
    fitted = model(kind).set_output(transform="pandas").fit(TEXTS, epochs=1)
    again = clone(fitted)
    assert again == fitted
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    assert isinstance(again.fit_transform(TEXTS, epochs=1), pd.DataFrame)
    carried = pickle.loads(pickle.dumps(fitted))
    pd.testing.assert_frame_equal(carried.transform(TEXTS), fitted.transform(TEXTS))


@pytest.mark.parametrize("name", [name for name in MODELS.names() if name != "torch-module"])  # it needs the name of a class
def test_every_model_of_the_registry_has_settings_that_a_search_can_replace(name: str) -> None:
    fresh = MODELS.load(name)(n_topics=7)
    assert clone(fresh) == fresh
    assert fresh.set_params(n_topics=5).get_params() == {**type(fresh)().get_params(), "n_topics": 5}
    assert get_tags(fresh).input_tags.positive_only
    fresh._noted = 1  # as scikit-learn's tools do
    del fresh._noted
    with pytest.raises(AttributeError):
        fresh.n_topics = 3


def test_set_params_checks_and_forgets() -> None:
    fitted = model(securetm.LDA).fit(TEXTS, epochs=1)
    with pytest.raises(NotFound, match="topics"):
        fitted.set_params(topics=4)
    with pytest.raises(BadSetting):
        fitted.set_params(alpha=0.5, n_topics=0)
    assert (fitted.alpha, fitted.n_topics) == (0.1, 3)  # a refusal changes nothing
    assert fitted.set_params() is fitted
    assert fitted.transform(TEXTS).shape == (120, 3)
    assert fitted.set_params(n_topics=4, alpha=1).get_params()["alpha"] == 1.0
    with pytest.raises(NotFitted):
        fitted.transform(TEXTS)
    with pytest.raises(AttributeError):
        fitted.n_topics = 5


# ---- a part at a time ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_part_is_learned_as_fit_learns_it(kind: Any) -> None:
    whole, part = model(kind).fit(TEXTS, epochs=3, seed=4), model(kind).partial_fit(TEXTS, epochs=3, seed=4)
    assert all(part.learned.state[name].tobytes() == values.tobytes() for name, values in whole.learned.state.items())


def test_sums_of_parts_count_every_word_once() -> None:
    fitted, corpus = model(securetm.LDA), securetm.Corpus.from_strings(TEXTS)
    for part in range(3):
        fitted.partial_fit(corpus.select(np.arange(40 * part, 40 * (part + 1))))
    np.testing.assert_array_equal(fitted.learned.state["counts"].sum(axis=0), corpus.counts.sum(axis=0))
    assert [one.epoch for one in fitted.learned.history] == list(range(1, 16))


def test_what_cannot_be_added_to_is_refused(tmp_path: Path) -> None:
    model(securetm.LDA).fit(TEXTS, epochs=1).save(tmp_path / "model")
    with pytest.raises(Mistake):
        securetm.LDA.load(tmp_path / "model").partial_fit(TEXTS)
    with pytest.raises(NeedsSum, match="partial_fit"):
        MatchedLDA(n_topics=3).partial_fit(TEXTS)


def test_scikit_learn_is_imported_only_when_it_asks() -> None:
    code = (
        "import sys, securetm\n"
        f"fitted = securetm.LDA(n_topics=2).fit({TEXTS[:20]!r}, epochs=1)\n"
        f"fitted.set_params(alpha=0.2).fit({TEXTS[:20]!r}, epochs=1).transform(['the boat'])\n"
        "assert not {'sklearn', 'pandas', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
