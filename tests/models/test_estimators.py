"""Models within scikit-learn's tools: its checks, its conventions, what is fitted, and what a first-time user gets wrong."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

import securetm
from securetm.contracts import Answer
from securetm.contracts.origin import Origin, OriginKind
from securetm.corpus.given_texts import OtherLanguage
from securetm.errors import BadSetting, CannotWrite, Mistake, NeedsSum, NotFound
from securetm.models import MODELS
from securetm.models import MODELS as REGISTRY
from securetm.models.estimator import NotFitted, held_back
from securetm.models.given_documents import NoKnownWords, TextsLeftOut, UnfitDocuments, as_documents
from securetm.models.lda.matched import MatchedLDA
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.stored_model import StoredModel

from ..quick_part import quick
from .trained_by_hand import VOCABULARY, planted, sum_of

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


# ---- scikit-learn's own checks ---------------------------------------------------------------------------------------------


OWN_SENTENCE = "it is refused with a ValueError, whose sentence is securetm's own"
NOT_PASSED = {  # docs/tutorials/scikit-learn.md lists them too
    "check_do_not_raise_errors_in_init_or_set_params": "a setting that cannot be is refused when it is given, not by fit",
    "check_complex_data": OWN_SENTENCE,
    "check_estimators_empty_data_messages": "no documents give even topics, as from a party that has none; they are no error",
    "check_fit2d_predict1d": OWN_SENTENCE,
    "check_n_features_in_after_fitting": OWN_SENTENCE,
    "check_positive_only_tag_during_fit": OWN_SENTENCE,
}


def whole(documents: Any) -> Any:
    """scikit-learn's tables of fractions as whole counts; what is no table of finite numbers stays as it is."""
    if sparse.issparse(documents):
        table = documents.tocsr().astype(np.float64)
        return table.ceil() if np.isfinite(table.data).all() else documents
    try:
        table = np.asarray(documents)
        table = table.astype(np.float64, casting="unsafe" if table.dtype.kind == "O" else "same_kind")
    except (TypeError, ValueError):
        return documents
    return np.ceil(table) if np.isfinite(table).all() else documents


class WholeCounts:
    """A model that counts, given whole counts by every check: fractions it refuses (CountsNotWhole)."""

    def fit(self, documents: Any, y: Any = None, **options: Any) -> Any:
        return super().fit(whole(documents), y, **options)

    def partial_fit(self, documents: Any, y: Any = None, **options: Any) -> Any:
        return super().partial_fit(whole(documents), y, **options)

    def transform(self, documents: Any) -> Any:
        return super().transform(whole(documents))

    def score(self, documents: Any, y: Any = None) -> float:
        return super().score(whole(documents), y)


@dataclass(frozen=True)
class WholeLDA(WholeCounts, securetm.LDA):
    pass


@dataclass(frozen=True)
class WholeVariationalLDA(WholeCounts, securetm.VariationalLDA):
    pass


@dataclass(frozen=True)
class WholeNMF(WholeCounts, securetm.NMF):
    pass


@dataclass(frozen=True)
class WholeFedNMF(WholeCounts, REGISTRY.load("fednmf")):
    pass


CHECKED = [
    WholeLDA(n_topics=3),
    pytest.param(WholeVariationalLDA(n_topics=3), marks=pytest.mark.slow),  # the same code asks it
    pytest.param(WholeNMF(n_topics=3), marks=pytest.mark.slow),
    pytest.param(securetm.ProdLDA(n_topics=3, hidden=8, batch=32), marks=pytest.mark.slow),
    pytest.param(securetm.NeuralLDA(n_topics=3, hidden=8, batch=32), marks=pytest.mark.slow),  # a network as ProdLDA
    pytest.param(WholeFedNMF(n_topics=3), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("model", CHECKED, ids=lambda model: type(model).__name__)
def test_scikit_learn_checks_the_model(model: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no model derives from BaseEstimator, and what checks say of their own data
        results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {one["check_name"]: repr(one["exception"]) for one in results if one["status"] == "failed"}
    assert {name: problem for name, problem in failed.items() if name not in NOT_PASSED} == {}, failed
    assert set(NOT_PASSED) <= set(failed)  # what passes is not listed
    assert len(results) > 40


# ---- conventions -----------------------------------------------------------------------------------------------------------


SUBJECTS = ("river lake water boat shore fish", "goal match team score player ball", "law court judge trial jury witness")
draw = random.Random(0)
ABOUT = [number % 3 for number in range(120)]
TEXTS = [f"The {' '.join(draw.choices(SUBJECTS[about].split(), k=12))}." for about in ABOUT]
NEURAL = {"hidden": 16, "batch": 30, "learning_rate": 0.02}
SMALL: dict[Any, dict[str, Any]] = {securetm.ProdLDA: {**NEURAL, "batch": 10}, securetm.NeuralLDA: NEURAL}
CONVENTIONAL = (securetm.LDA, securetm.SentenceLDA, securetm.VariationalLDA, securetm.NMF, *SMALL)


def small_model(kind: Any, **settings: Any) -> Any:
    return kind(n_topics=3, **SMALL.get(kind, {}), **settings)


def purity(shares: Any) -> float:
    """The share of documents in the commonest subject of their heaviest topic."""
    heaviest = np.asarray(shares).argmax(axis=1)
    return sum(max(np.bincount(np.array(ABOUT)[heaviest == topic], minlength=3)) for topic in range(3)) / len(ABOUT)


@pytest.mark.parametrize("kind", quick([securetm.LDA, securetm.NMF, securetm.ProdLDA], securetm.LDA, securetm.NMF))
def test_texts_are_learned_and_new_texts_transformed(kind: Any) -> None:
    fitted = small_model(kind).fit(TEXTS, epochs=80)
    assert purity(fitted.transform(TEXTS)) > 0.9
    new = fitted.transform(["a boat on the lake", "the judge and the jury"])
    assert new.shape == (2, 3)
    assert new[0].argmax() != new[1].argmax()
    assert "the" not in fitted.feature_names_in_


def test_a_text_without_a_word_keeps_its_row() -> None:
    fitted = small_model(securetm.LDA)
    with pytest.warns(NoKnownWords, match="2 of 122"):
        shares = fitted.fit_transform(["", *TEXTS, "of the"], epochs=2)
    assert shares.shape == (122, 3)
    np.testing.assert_array_equal(shares[1:-1], small_model(securetm.LDA).fit_transform(["", *TEXTS], epochs=2)[1:])


def test_a_corpus_that_left_texts_out_is_told_of(tmp_path: Path) -> None:
    fitted = small_model(securetm.LDA).fit(TEXTS, epochs=1)
    fitted.save(tmp_path / "model")
    new = ["the lake", "", "of the"]
    corpus = securetm.Corpus.from_strings(new).project(fitted.learned.vocabulary)
    for learned in (fitted, securetm.load(tmp_path / "model")):
        with pytest.warns(TextsLeftOut, match=r"^2 of its texts have no word, and the corpus has no row for them: give"):
            assert len(learned.transform(corpus)) == 1
        assert len(learned.transform(new)) == 3


@pytest.mark.parametrize("stop_words", ["none", ("river", "Lake"), "file"])
def test_a_saved_model_reads_texts_as_it_learned_to(tmp_path: Path, stop_words: Any) -> None:
    (tmp_path / "stop").write_text("river\nlake")
    tokeniser = securetm.Tokeniser(ngrams=2, stop_words=tmp_path / "stop" if stop_words == "file" else stop_words)
    fitted = small_model(securetm.LDA).fit(TEXTS, epochs=2, tokeniser=tokeniser)
    fitted.save(tmp_path / "model")
    (tmp_path / "stop").unlink()
    for again in (securetm.LDA.load(tmp_path / "model"), securetm.load(tmp_path / "model")):
        np.testing.assert_array_equal(again.transform(TEXTS), fitted.transform(TEXTS))
        again.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


GERMAN = [
    "Die Katze ist nicht auf dem Dach und der Hund wird nicht im Haus sein, weil die Sonne mit dem Mond scheint.",
    "Der Arzt sagt, dass die Lunge nicht mit dem Husten und der Erkältung zusammenhängt.",
] * 6


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_texts_have_the_stop_words_of_their_language(tmp_path: Path, learn: str) -> None:
    with pytest.warns(OtherLanguage, match=r"the texts read as German, so its stop words are taken"):
        fitted = getattr(small_model(securetm.LDA), learn)(GERMAN, epochs=2)
    assert not {"die", "der", "nicht", "und"} & set(fitted.feature_names_in_)
    assert {"katze", "lunge"} <= set(fitted.feature_names_in_)
    fitted.save(tmp_path / "model")
    assert securetm.LDA.load(tmp_path / "model").known_words(["die Katze und der Hund"]).tolist() == [2]


def test_a_tokeniser_that_is_given_stays(recwarn: pytest.WarningsRecorder) -> None:
    fitted = small_model(securetm.LDA).fit(GERMAN, epochs=1, tokeniser=securetm.Tokeniser())
    assert "nicht" in fitted.feature_names_in_
    assert not recwarn.list


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "an empty list"),
        (None, r"nothing \(None\)"),
        ("one text", "a single text"),
        (3, "a single int"),
        ([1, 2], "numbers, 2"),
        ([["a", "b"]], "texts or other things, 1 x 2"),
    ],
)
def test_what_is_no_documents_is_named(given: Any, said: str) -> None:
    with pytest.raises(UnfitDocuments, match=f"but {said}$"):
        small_model(securetm.LDA).fit(given)


def test_markup_is_no_word() -> None:
    texts = ["AT&amp;T &lt;b&gt; <div class=foo>word</div>&nbsp;http://t.co/xyz", "the good news"] * 3
    assert small_model(securetm.LDA).fit(texts, epochs=1).feature_names_in_.tolist() == ["good", "news", "word"]


def test_a_function_that_finds_words_is_in_no_file(tmp_path: Path) -> None:
    fitted = small_model(securetm.LDA).fit(TEXTS, epochs=1, tokeniser=securetm.Tokeniser(words=str.split))
    fitted.save(tmp_path / "model")
    with pytest.raises(Mistake):
        securetm.LDA.load(tmp_path / "model").transform(TEXTS)


def test_a_data_frame_of_counts_names_its_words() -> None:
    counts = CountVectorizer().fit(TEXTS)
    frame = pd.DataFrame(counts.transform(TEXTS).toarray(), columns=counts.get_feature_names_out())
    fitted = small_model(securetm.LDA).fit(frame, epochs=2)
    assert list(fitted.feature_names_in_) == list(frame.columns)
    assert fitted.n_features_in_ == frame.shape[1]
    np.testing.assert_array_equal(fitted.transform(frame), fitted.transform(sparse.csr_matrix(frame.to_numpy())))
    with pytest.raises(UnfitDocuments):
        fitted.transform(frame[frame.columns[::-1]])
    bare = small_model(securetm.LDA).fit(frame.to_numpy(), epochs=1)
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
    frame = small_model(securetm.LDA).set_output(transform="pandas").fit_transform(notes, epochs=2)
    assert list(frame.columns) == ["lda0", "lda1", "lda2"]
    assert list(frame.index) == list(notes.index)
    two = ColumnTransformer([("topics", small_model(securetm.LDA), "note"), ("rest", "passthrough", ["size"])])
    table = two.set_output(transform="pandas").fit_transform(pd.DataFrame({"note": TEXTS, "size": range(len(TEXTS))}))
    assert list(table.columns) == ["topics__lda0", "topics__lda1", "topics__lda2", "rest__size"]


@pytest.mark.parametrize("kind", [securetm.LDA, securetm.ProdLDA])
def test_a_clone_has_the_settings_and_nothing_else(kind: Any) -> None:
    fitted = small_model(kind).set_output(transform="pandas").fit(TEXTS, epochs=1)
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
    fitted = small_model(securetm.LDA).fit(TEXTS, epochs=1)
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


@pytest.mark.parametrize("kind", CONVENTIONAL)
def test_the_first_part_is_learned_as_fit_learns_it(kind: Any) -> None:
    whole, part = small_model(kind).fit(TEXTS, epochs=3, seed=4), small_model(kind).partial_fit(TEXTS, epochs=3, seed=4)
    assert all(part.learned.state[name].tobytes() == values.tobytes() for name, values in whole.learned.state.items())


def test_sums_of_parts_count_every_word_once() -> None:
    fitted, corpus = small_model(securetm.LDA), securetm.Corpus.from_strings(TEXTS)
    for part in range(3):
        fitted.partial_fit(corpus.select(np.arange(40 * part, 40 * (part + 1))))
    np.testing.assert_array_equal(fitted.learned.state["counts"].sum(axis=0), corpus.counts.sum(axis=0))
    assert [one.epoch for one in fitted.learned.history] == list(range(1, 16))


def test_what_cannot_be_added_to_is_refused(tmp_path: Path) -> None:
    small_model(securetm.LDA).fit(TEXTS, epochs=1).save(tmp_path / "model")
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


# ---- what is handed over by mistake ----------------------------------------------------------------------------------------


KINDS = (securetm.LDA, securetm.SentenceLDA)
COUNTS = np.array([[2, 1, 0], [0, 1, 3]] * 5)


@pytest.mark.parametrize(
    "documents",
    ["the river", [["a", "b"]], np.ones(4), np.ones((2, 2, 2)), np.zeros((5, 0)), 3, None],
    ids=["one text", "a table of texts", "one row", "a cube", "no words", "a number", "nothing"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_matrix_of_counts(kind: Any, documents: Any) -> None:
    with pytest.raises(UnfitDocuments) as refused:
        kind(n_topics=2).fit(documents, epochs=1)
    assert "Corpus.from_strings" in refused.value.advice()


@pytest.mark.parametrize(
    "matrix", [COUNTS, COUNTS.tolist(), COUNTS.astype(bool), sparse.coo_array(COUNTS), COUNTS.astype(float)]
)
def test_a_matrix_may_come_in_many_forms(matrix: Any) -> None:
    assert securetm.LDA(n_topics=2).fit(matrix, epochs=2).transform(matrix).shape == (10, 2)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    model = securetm.LDA(n_topics=np.int64(2), alpha=np.float32(0.5), eta=1).fit(COUNTS, epochs=1)
    model.save(tmp_path / "model.safetensors")  # as JSON can carry them
    assert securetm.LDA.load(tmp_path / "model.safetensors") == model == securetm.LDA(n_topics=2, alpha=0.5, eta=1.0)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite):
        securetm.LDA(n_topics=2).fit(COUNTS, epochs=1).save(tmp_path / "absent" / "model.safetensors")
