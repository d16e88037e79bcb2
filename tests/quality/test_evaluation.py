"""All figures of topics side by side: what is measured, what controls reach, and why the rest is not there."""

from __future__ import annotations

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.corpus.word_vectors import WordVectors
from securetm.models.lda.lda import LDA
from securetm.quality.evaluation import FIGURES, FREQUENCIES, RESAMPLES, Evaluation, Given, evaluate, paired_difference
from securetm.quality.judged_topics import CLUSTERS, RANDOM, JudgedTopics, topics_of

SUBJECTS = {
    "weather": "rain storm wind cloud snow sun frost hail fog ice",
    "kitchen": "bread butter salt soup oven pan flour egg milk rice",
}


@pytest.fixture(scope="module")
def documents() -> Corpus:
    rng, texts, labels = np.random.default_rng(0), [], []
    for number in range(120):
        name = list(SUBJECTS)[number % 2]
        texts.append(" ".join(rng.choice(SUBJECTS[name].split(), 12)))
        labels.append(name)
    return Corpus.from_strings(texts, labels=labels, name="made up")


@pytest.fixture(scope="module")
def learned(documents: Corpus) -> JudgedTopics:
    model = LDA(n_topics=2).fit(documents, epochs=20)
    return JudgedTopics.of_model("lda", model, model.learned.state, model.learned.vocabulary)


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    words = [word for subject in SUBJECTS.values() for word in subject.split()]
    rows = np.random.default_rng(1).normal(size=(20, 6)) + np.repeat([[4, 0, 0, 0, 0, 0], [0, 4, 0, 0, 0, 0]], 10, axis=0)
    return WordVectors.of("made up", words, rows)


@pytest.fixture(scope="module")
def everything(learned: JudgedTopics, documents: Corpus, vectors: WordVectors) -> Evaluation:
    truth = topics_of([dict.fromkeys(words.split(), 1.0) for words in SUBJECTS.values()], "truth", "truth")
    return evaluate(learned, Given(documents, np.arange(0, 120, 3), vectors, truth, (truth,)))


def value(found: Evaluation, name: str) -> float:
    row = next(one for one in found.rows if one.name == name)
    assert row.measured is not None, row.needs
    return row.measured.value


def test_every_figure_is_there_with_its_controls(everything: Evaluation) -> None:
    assert [row.name for row in everything.rows] == [*(one.name for one in FIGURES), "stability", "weight_stability"]
    for row in everything.rows:
        assert row.needs == ""
        assert {RANDOM, CLUSTERS} <= set(row.controls), row.name
        assert np.isfinite([row.measured.value, *row.controls.values()]).all(), row.name  # type: ignore[union-attr]


def test_topics_that_are_right_score_as_right(everything: Evaluation) -> None:
    assert value(everything, "accuracy") == value(everything, "macro_f1") == 1
    assert value(everything, "npmi_documents") > 0.2
    assert value(everything, "tss") > 1.9
    assert value(everything, "amwmd") < 0.2
    assert value(everything, "dss") < 2
    assert value(everything, "stability") > 0.5
    held_out = next(row for row in everything.rows if row.name == "held_out_folded")
    assert held_out.measured.value == pytest.approx(value(everything, "held_out"), rel=0.1)  # type: ignore[union-attr]
    assert 9 < held_out.measured.value < held_out.controls[FREQUENCIES]  # type: ignore[union-attr]  # 10 words are likely
    assert held_out.controls[FREQUENCIES] == pytest.approx(20, rel=0.1)


def test_clusters_of_good_vectors_find_the_topics_without_a_document(everything: Evaluation) -> None:
    row = next(one for one in everything.rows if one.name == "accuracy")
    assert row.controls[CLUSTERS] == 1
    assert row.controls[RANDOM] < 1


def test_what_is_not_given_is_said_by_name(learned: JudgedTopics) -> None:
    found = evaluate(learned, Given())
    said = {row.name: row.needs for row in found.rows}
    assert "--corpus FILE" in said["npmi_documents"]
    assert "--vectors glove" in said["embedding_coherence"]
    assert "--against" in said["tss"]
    assert "--other-seed" in said["stability"]
    assert said["diversity"] == ""
    assert found.compared == ()


def test_lists_of_words_have_no_weights_and_no_prediction(documents: Corpus, vectors: WordVectors) -> None:
    lists = topics_of([words.split() for words in SUBJECTS.values()], "lists", "lists")
    found = evaluate(lists, Given(documents, np.arange(120), vectors, lists))
    said = {row.name: row.needs for row in found.rows}
    assert {name for name, why in said.items() if "weights of words" in why} == {
        "held_out",
        "held_out_folded",
        "accuracy",
        "macro_f1",
        "tss",
        "dss",
    }
    assert value(found, "amwmd") == pytest.approx(0, abs=1e-9)
    assert [one.needs != "" for one in found.compared] == [True, True]


def test_a_better_model_is_surely_better(documents: Corpus, learned: JudgedTopics) -> None:
    same = np.full((2, len(learned.vocabulary)), 1.0)
    found = evaluate(
        learned, Given(documents, np.arange(120), against=JudgedTopics.of_weights("same", same, learned.vocabulary))
    )
    words, labels = found.compared
    assert words.difference.sure
    assert words.difference.value == pytest.approx(words.mine - words.other)
    assert words.difference.value > 0.4  # log 20 - log 10, nearly
    assert labels.difference.sure
    assert labels.mine == 1


def test_a_difference_in_every_document_is_sure_and_as_large() -> None:
    words = np.array([10.0, 20.0, 30.0] * 20)
    other = -7.0 * words
    found = paired_difference(other + 0.5 * words, other, words)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    assert found.sure
    assert found.chance == pytest.approx(2 / (RESAMPLES + 1))


def test_luck_is_not_sure_and_the_interval_holds_its_width() -> None:
    apart = np.tile([1.0, -1.0], 200)
    found = paired_difference(apart, np.zeros(400), np.ones(400))
    assert found.value == 0
    assert not found.sure
    assert found.chance > 0.5
    assert found.high - found.low == pytest.approx(2 * 1.96 / 20, rel=0.1)  # the normal interval of a mean of 400


def test_the_same_seed_gives_the_same_numbers_and_no_words_give_none() -> None:
    rng = np.random.default_rng(0)
    mine, other, words = rng.normal(size=50), rng.normal(size=50), np.full(50, 3.0)
    assert paired_difference(mine, other, words, 1) == paired_difference(mine, other, words, 1)
    assert np.isnan(paired_difference(mine, other, np.zeros(50)).value)
    assert not paired_difference(np.full(50, -np.inf), other, words).sure
