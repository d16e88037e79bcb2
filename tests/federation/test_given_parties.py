"""What `federate` is given for each party: texts are read as a run reads a file, in their language; a corpus stays as it is."""

from __future__ import annotations

import warnings

import pytest

from securetm.corpus.corpus import Corpus
from securetm.corpus.given_texts import OtherLanguage
from securetm.corpus.tokeniser import Tokeniser
from securetm.runs.given_parties import in_their_language

GERMAN = [
    "Die Katze ist nicht auf dem <b>Dach</b> und der Hund wird nicht im Haus sein, weil die Sonne mit dem Mond scheint.",
    "Der Arzt sagt, dass die Lunge nicht mit dem Husten und der Erkältung zusammenhängt.",
] * 4
ENGLISH = ["The cat is not on the roof &amp; the dog is in the house.", "A doctor says that the lungs are not well."] * 4
OPEN = {"profile": "open", "model.n_topics": 2}
BUDGET = {"profile": "dp-central", "model.n_topics": 2}


@pytest.mark.parametrize("settings", [OPEN, BUDGET])
def test_texts_have_the_stop_words_of_their_language_and_the_plan_says_so(settings: dict[str, object]) -> None:
    with pytest.warns(OtherLanguage, match="the texts read as German, so its stop words are taken"):
        plan, read = in_their_language({"a": GERMAN, "b": GERMAN}, settings, 1)
    assert plan.tokeniser.language == "de"
    assert list(read) == ["a", "b"]
    assert "katze" in read["a"].vocabulary
    assert not {"nicht", "der", "die"} & set(read["a"].vocabulary)
    assert not set(read["a"].keys.tolist()) & set(read["b"].keys.tolist())


def test_under_a_budget_no_single_text_decides_the_language() -> None:
    texts = [" ".join(GERMAN), *(["lake river boat"] * 3)]
    with pytest.warns(OtherLanguage, match="the plan takes stop words of another language"):
        plan, _ = in_their_language({"a": texts}, BUDGET, 1)
    assert plan.tokeniser.language == "en"


@pytest.mark.parametrize("stop_words", ["english", "de", "none"])
def test_a_language_that_is_named_stays(stop_words: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        plan, _ = in_their_language({"a": GERMAN}, {**OPEN, "tokeniser.stop_words": stop_words}, 1)
    assert plan.tokeniser.stop_words == stop_words
    assert len(told) == (stop_words == "english")


def test_english_texts_lose_their_markup_and_nothing_is_said(recwarn: pytest.WarningsRecorder) -> None:
    _, read = in_their_language({"a": ENGLISH}, OPEN, 1)
    assert "amp" not in read["a"].vocabulary
    assert not recwarn.list


def test_a_corpus_stays_and_is_told_of_the_stop_words_that_it_kept(recwarn: pytest.WarningsRecorder) -> None:
    usual, own = (
        Corpus.from_strings(GERMAN, tokeniser=Tokeniser()),
        Corpus.from_strings(GERMAN, tokeniser=Tokeniser(stop_words="de")),
    )
    plan, read = in_their_language({"a": own, "b": Corpus.from_strings(ENGLISH)}, OPEN, 1)
    assert read["a"] is own
    assert not recwarn.list
    with pytest.warns(OtherLanguage, match=r'give lists of texts instead, .*stop_words="de"'):
        plan, read = in_their_language({"a": usual}, OPEN, 1)
    assert read["a"] is usual
    assert plan.tokeniser.language == "en"
