"""Public lists of words: what a tokeniser makes of a language's frequent words, what to expect of them, how they are kept."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pytest
import wordfreq

from securetm.corpus import public_words
from securetm.corpus.corpus import Corpus
from securetm.corpus.languages import LANGUAGES, language_code, language_of
from securetm.corpus.public_words import (
    READ,
    expected,
    frequent_words,
    kept_list,
    public_shares,
    words_and_phrases,
)
from securetm.corpus.tokeniser import Tokeniser
from securetm.corpus.word_vectors import read_vectors
from securetm.federation.budget.forecast import expected_in_words, expected_words
from securetm.models.public_knowledge import public_knowledge
from securetm.plans.schema import TokeniserChoice, VocabularyChoice

from ..cli.conftest import securetm


def test_every_language_has_a_list() -> None:
    assert set(LANGUAGES.values()) == set(wordfreq.available_languages("best"))
    assert (language_code("English"), language_code("de"), language_code("words.txt"), language_code("")) == (
        "en",
        "de",
        None,
        None,
    )


def test_the_words_are_those_that_the_tokeniser_makes() -> None:
    tokeniser = Tokeniser()
    words = frequent_words("en", 500, tokeniser)
    assert len(words) == 500
    assert list(words) == sorted(words)
    assert {"time", "people", "school"} <= set(words)
    assert not {"the", "don't", "john's", "00"} & set(words)
    assert all(tokeniser.sentences(word) == [[word]] for word in words)
    assert all(len(word) >= 5 for word in frequent_words("en", 50, Tokeniser(min_length=5)))
    assert set(frequent_words("en", 100, tokeniser)) < set(words)


def test_scripts_without_spaces_give_the_parts_that_a_long_run_gives() -> None:
    words, tokeniser = frequent_words("zh", 300, Tokeniser()), Tokeniser()
    assert all(len(word) == 2 for word in words)
    assert sum(word in words for word in tokeniser.sentences("我们可以学习中国历史和世界经济问题")[0]) >= 4


def test_public_shares_are_the_lists_frequencies() -> None:
    shares = public_shares(("people", "qqzx", "river"), "en", Tokeniser())
    assert shares[0] == pytest.approx(wordfreq.word_frequency("people", "en"), rel=0.1)  # `people's` counts as `people`
    assert shares[1] == 0
    assert 0 < shares[2] < shares[0]
    assert public_shares(frequent_words("en", READ // 3, Tokeniser()), "en", Tokeniser()).sum() < 1


def test_what_is_expected_is_what_such_documents_hold() -> None:
    """Six deviations of the mean over twenty corpora."""
    rng, shares = np.random.default_rng(3), np.array([0.05, 0.01, 2e-3, 1e-4, 1e-5])
    found = []
    for _ in range(20):
        held = (rng.poisson(10 * shares, (400, 5)) > 0).sum(axis=0)
        found.append([(held > 0).sum(), (held >= 5).sum()])
    said = expected(shares, 400, 10, 5)
    assert np.mean(found, axis=0) == pytest.approx([said.occurring, said.frequent], abs=6 * 0.6 / np.sqrt(20))
    assert expected(shares, 1, 1e-6, 5).occurring < 1e-4


def test_what_is_expected_is_said_once_and_of_documents_as_long_as_the_plan_says() -> None:
    listed = VocabularyChoice(source="file", file="english", max_words=2_000)
    many, few = (expected_words(listed, TokeniserChoice(), documents) for documents in (500_000, 300))
    assert many is not None
    assert few is not None
    assert "All 2,000 frequent words of the language english can be expected in 5 documents" in expected_in_words(
        many, "english"
    )
    assert "of them in 5 documents or more; " in expected_in_words(few, "english")
    short = expected_words(listed, TokeniserChoice(), 300, on_list=8)
    assert short is not None
    assert 8 < short.length < 100
    assert short.frequent < few.frequent


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the lists that are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "securetm" / "word-lists"


class Making:
    """Makes a list of two words, and counts how often it did."""

    __module__ = __name__

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, code: str, by: Tokeniser) -> tuple[str, ...]:
        self.made += 1
        return (code, f"{by.min_length}é")


@pytest.mark.parametrize("damage", [b"", b"x" * 40, "shorter"])
def test_a_damaged_list_is_made_again(cache: Path, damage: bytes | str) -> None:
    making = Making()
    before = kept_list("en", Tokeniser(), making)
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes()[:-1] if isinstance(damage, str) else damage)
    assert kept_list("en", Tokeniser(), making) == before
    assert kept_list("en", Tokeniser(), making) == before
    assert making.made == 2


def test_a_list_that_others_could_have_changed_is_not_read(cache: Path) -> None:
    making = Making()
    kept_list("en", Tokeniser(), making)
    (kept,) = cache.iterdir()
    kept.chmod(0o666)
    kept_list("en", Tokeniser(), making)
    assert making.made == 2
    assert stat.filemode(kept.stat().st_mode) == "-rw-------"


def test_other_code_makes_another_list(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    making, changed = Making(), tmp_path / "changed.py"
    kept_list("en", Tokeniser(), making)
    changed.write_text("# another tokeniser\n")
    monkeypatch.setattr(public_words.words_of_texts, "__file__", str(changed))
    kept_list("en", Tokeniser(), making)
    assert making.made == 2


SPOKEN = {
    "en": "The council will repair the road between the school and the library, which is in a very bad state.",
    "sl": "Občina bo letos obnovila cesto med šolo in knjižnico, ki je že zelo poškodovana, zato se bo ta zaprla.",
    "sh": "Općina će ove godine obnoviti cestu između škole i knjižnice, koja je već jako oštećena, pa će biti zatvorena.",
    "de": "Die Stadt wird in diesem Jahr die Straße zwischen der Schule und dem Museum erneuern, weil sie kaputt ist.",
    "nl": "De gemeente gaat dit jaar de weg tussen de school en de bibliotheek herstellen, omdat die in slechte staat is.",
    "es": "El ayuntamiento va a arreglar este año la calle entre la escuela y la biblioteca, que está en muy mal estado.",
    "ru": "Город в этом году отремонтирует дорогу между школой и библиотекой, которая уже в очень плохом состоянии.",
    "zh": "今年市政府将修复学校和图书馆之间的道路，因为它的状况非常糟糕。",
    "ja": "市は今年、学校と図書館の間の道路を修理します。とても悪い状態だからです。",
}


@pytest.mark.parametrize("code", SPOKEN)
def test_texts_tell_their_language(code: str) -> None:
    assert language_of(Tokeniser(stop_words="none").pieces(SPOKEN[code])) == code


def test_keywords_tell_no_language() -> None:
    assert language_of("protein folding molecular kinetics neural network classifier".split()) is None


def test_a_list_of_a_public_corpus_has_phrases_and_no_word_of_too_many_documents() -> None:
    """New and york are neighbours far more often than chance; the lake is beside everything, and every text says news."""
    others = [["lake", f"word{n}"] for n in range(30)]
    of_new_york = [["news", "new", "york"]] * 20 + [["news", "york"], ["news", "new"]] * 5
    texts = of_new_york + [["news", *each] for each in others]
    corpus = Corpus.from_strings([" ".join(text) for text in texts], tokeniser=Tokeniser(ngrams=2, numbers=True))
    found = words_and_phrases(corpus, 50, 50, 0.9, 2)
    assert found == ("lake", "new", "new_york", "york")  # news_new is as frequent as its words make it
    assert words_and_phrases(corpus, 1, 0, 0.9, 2) == ("lake",)
    assert "news" in words_and_phrases(corpus, 50, 0, 1.0, 2)


def test_the_command_writes_the_list_that_a_training_counts(tmp_path: Path) -> None:
    source, out = tmp_path / "public.jsonl", tmp_path / "words.txt"
    texts = ["heart valve surgery", "heart valve repair", "lung repair", "lung surgery"] * 5
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
    said = securetm("corpus", "words", str(source), "--out", str(out), "--phrases", "9", "--json")
    assert said.code == 0, said.err
    assert said.json == {"file": str(out), "words": 5, "phrases": 1}
    read = TokeniserChoice(ngrams=2).make()
    words = VocabularyChoice(source="file", file=str(out)).public_words(read)
    assert words is not None
    assert "heart_valve" in words
    assert set(words) & set(read.sentences("Heart valve.")[0]) == {"heart", "valve", "heart_valve"}
    assert securetm("corpus", "words", str(source), "--out", str(out), "--min-documents", "50").code == 2


def test_each_line_of_seed_words_is_the_beginning_of_a_topic(tmp_path: Path) -> None:
    """Also where the vectors alone would put the seeds of one line apart; other words go with the seeds that they are near."""
    spread = {"valve": (1, 0, 0), "heart": (0.9, 0.4, 0), "artery": (0.95, 0.1, 0), "bone": (0, 1, 0), "hip": (0, 0.9, 0.1)}
    spread |= {"rash": (0, 0, 1), "itch": (0.1, 0, 1), "skin": (0, 0.1, 1)}
    vectors = tmp_path / "plain.vec"
    vectors.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in spread.items()), "utf-8")
    (tmp_path / "words.txt").write_text("\n".join(sorted(spread)), "utf-8")
    (tmp_path / "seeds.txt").write_text("valve rash\nhip unheard\n", "utf-8")
    given = ("--vectors", str(vectors), "--vocabulary", str(tmp_path / "words.txt"), "--out", str(tmp_path / "seeded.vec"))
    said = securetm("corpus", "seeds", str(tmp_path / "seeds.txt"), *given, "--topics", "2", "--json")
    assert said.code == 0, said.err
    assert (said.json["words"], said.json["unknown"]) == (len(spread), ["unheard"])
    seeded = read_vectors(str(tmp_path / "seeded.vec"), spread)
    topic = dict(zip(spread, public_knowledge(seeded.matrix(spread), 2).topics.argmax(axis=0), strict=True))
    assert topic["valve"] == topic["rash"] != topic["hip"] == topic["bone"]
    assert {topic[word] for word in ("artery", "itch", "skin")} == {topic["valve"]}
    (tmp_path / "seeds.txt").write_text("valve\nrash\nhip\n", "utf-8")
    few = securetm("corpus", "seeds", str(tmp_path / "seeds.txt"), *given, "--topics", "2").err
    assert "must be 3 at least, as each line of seeds has a topic of its own" in " ".join(few.split())
    (tmp_path / "seeds.txt").write_text("hip\n", "utf-8")
    one = securetm("corpus", "seeds", str(tmp_path / "seeds.txt"), *given, "--topics", "2").err
    assert "must hold two lines of seeds or more, and holds 1" in " ".join(one.split())
    (tmp_path / "seeds.txt").write_text("unheard\nhip\n", "utf-8")
    assert securetm("corpus", "seeds", str(tmp_path / "seeds.txt"), *given, "--topics", "2").code == 2
    assert securetm("corpus", "seeds", str(tmp_path / "absent.txt"), *given).code == 2
