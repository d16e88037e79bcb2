"""Texts become the same words at every party, in every script, in linear time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securetm.corpus.corpus import Corpus
from securetm.corpus.tokeniser import ENGLISH, Tokeniser, _own_pattern, prune
from securetm.errors import BadSetting
from tests.corpus.generated import check, sentences_of
from tests.effort import worked

ALL = Tokeniser(stop_words="none", min_length=1)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "Dr. Smith left the U.S. embassy. It closed!",
            [["dr", "smith", "left", "the", "u", "s", "embassy"], ["it", "closed"]],
        ),
        ("One two...three. Wait… What?! (Yes.) No", [["one", "two", "three"], ["wait"], ["what"], ["yes"], ["no"]]),
        ("wrapped\nline\n \nparagraph", [["wrapped", "line"], ["paragraph"]]),
        ("naïve CAFÉ’s don't rock'n'roll", [["naïve", "café", "don't", "rock'n'roll"]]),
        ("cafe\u0301", [["café"]]),  # two ways to write one word
        ("हिन्दी भाषा। नमस्ते दुनिया", [["हिन्दी", "भाषा"], ["नमस्ते", "दुनिया"]]),
        ("日本語です。良い", [["日本", "本語", "語で", "です"], ["良い"]]),  # a long run without spaces is cut
        ("Привет, МИР! Straße", [["привет", "мир"], ["straße"]]),
        ("snake_case x-ray 42 3d b2b 1.5", [["snake", "case", "x", "ray", "b2b"]]),
        ("... !!! \n\n", []),
        ("", []),
    ],
)
def test_words_and_sentences(text: str, sentences: list[list[str]]) -> None:
    assert ALL.sentences(text) == sentences


def test_settings() -> None:
    assert Tokeniser(lower=False).sentences("Big Wings and THE tail") == [["Big", "Wings", "tail"]]
    assert Tokeniser(min_length=5, max_length=6).sentences("wing wings winging") == [["wings"]]
    assert Tokeniser(numbers=True).sentences("1914 war 3d") == [["1914", "war"]]
    assert Tokeniser(stop_words=("Wing",)).sentences("wing the wing's tail") == [["the", "tail"]]
    assert Tokeniser(ngrams=3).sentences("red wing tail. hoof") == [
        ["red", "wing", "red_wing", "tail", "wing_tail", "red_wing_tail"],
        ["hoof"],
    ]
    assert Tokeniser(pattern=r"#(\w+)").sentences("a #Tag. b #other_one") == [["tag"], ["other_one"]]
    assert Tokeniser() == Tokeniser()


def test_stop_words_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("flügel\nschwanz\n", encoding="utf-8")
    assert Tokeniser(stop_words=tmp_path / "words.txt").sentences("Flügel the Huf") == [["the", "huf"]]
    assert len(ENGLISH) > 300
    assert all(word == word.lower() for word in ENGLISH)


def test_your_own_function() -> None:
    flat = Corpus.from_strings(["b a b", "c"], tokeniser=Tokeniser(words=str.split))
    check(flat)
    assert sentences_of(flat) == [[["b", "a", "b"]], [["c"]]]
    nested = Tokeniser(words=lambda text: [part.split() for part in text.split("|")])
    assert sentences_of(Corpus.from_strings(["b a|b", "|c"], tokeniser=nested)) == [[["b", "a"], ["b"]], [["c"]]]


@given(st.lists(st.text(alphabet="ab. \n!'é\u0301_1", max_size=30), min_size=1), st.integers(1, 3))
def test_the_fast_path_finds_what_the_plain_one_finds(texts: list[str], ngrams: int) -> None:
    tokeniser = Tokeniser(stop_words=("b",), min_length=1, ngrams=ngrams)
    wanted = [s for s in (tokeniser.sentences(text) for text in texts) if s]
    if wanted:
        corpus = Corpus.from_strings(texts, tokeniser=tokeniser)
        check(corpus)
        assert sentences_of(corpus) == wanted
        assert corpus.skipped == len(texts) - len(wanted)


@given(st.text(alphabet=[chr(c) for c in range(128)]))
def test_ascii_texts_take_a_shorter_way_to_the_same_words(text: str) -> None:
    assert ALL.pieces(text) == _own_pattern().findall(text)


@pytest.mark.parametrize(
    "text",
    [
        *("." * 200_000 + "x", "?!" * 100_000 + "x", "." + ")" * 200_000, "\n" + " " * 200_000, "a'" * 100_000),
        *("<a " * 70_000, "<a" + " " * 200_000, "[quote " * 30_000, "&amp;" * 40_000, "http://" * 30_000, "#" * 200_000),
        *(
            "[quote]" * 30_000,
            "<blockquote " * 20_000,
            "wrote " * 40_000,
            "On 1 wrote:\n" * 20_000,
            "#_" * 100_000,
            "-" * 200_000,
        ),
        *("@a." * 70_000, "\n\nFrom: a\nSent: b" * 10_000, "> a\n" * 50_000),
    ],
)
def test_no_text_takes_long(text: str) -> None:
    clean = Tokeniser(markup="dropped", hashtags="none", names="none", quotes="dropped")
    whole = Tokeniser(hashtags="whole", names="whole")
    read = [(ALL, text), (ALL, text + "é"), (clean, text), (whole, text), (whole, text + "é")]
    assert worked(lambda: [by.pieces(one) for by, one in read]) < 20  # quadratic rules took minutes


@pytest.mark.parametrize(
    "wrong",
    [
        {"ngrams": 0},
        {"min_length": 0},
        {"min_length": 50},
        {"stop_words": "klingon"},
        {"pattern": "("},
        {"pattern": "(a)(b)"},
        {"names": "all"},
    ],
)
def test_bad_settings(wrong: dict[str, object]) -> None:
    with pytest.raises(BadSetting):
        Tokeniser(**wrong)  # type: ignore[arg-type]


def test_prune() -> None:
    corpus = Corpus.from_strings(["ant bee cow", "ant bee", "ant dog", "ant dog dog"])
    assert prune(corpus) == ("ant", "bee", "cow", "dog")
    assert prune(corpus, min_df=2) == ("ant", "bee", "dog")
    assert prune(corpus, max_df=0.5) == ("bee", "cow", "dog")
    assert prune(corpus, min_df=0.5, max_df=3) == ("bee", "dog")
    assert prune(corpus, max_words=2) == ("ant", "bee")  # a tie with dog goes to the alphabet
    many = Corpus.from_strings([*["ant bee"] * 29, *["bee"] * 71])
    assert prune(many, max_df=0.29) == ("ant",)  # in more than that share is left out, as floats multiply too
    assert prune(many, min_df=0.29) == ("ant", "bee")
    for wrong in ({"min_df": -1}, {"max_df": 1.5}):
        with pytest.raises(BadSetting):
            prune(corpus, **wrong)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("机器学习是人工", "机器 器学 学习 习是 是人 人工"),
        ("人工 智能 的 方法", "人工 智能 方法"),  # one character is no word
        ("コンピュータを使って", "コンピュータ を使って"),
        ("東京都で作られた", "東京 京都 都で で作 作ら られ れた"),
        ("ภาษา ไทย สวยงาม", "ภาษา ไทย สวยงาม"),
        ("一个 三星", "一个 三星"),  # a Chinese numeral is a letter
        ("iPhone手机 café", "iphone 手机 café"),
        ("한국어 문장은 좋다", "한국어 문장은"),  # Korean has spaces, and the usual shortest word
    ],
)
def test_words(text: str, words: str) -> None:
    assert [word for sentence in Tokeniser().sentences(text) for word in sentence] == words.split()


POST = (
    '&quot;R&amp;amp;D&quot; <b>grows</b>&nbsp;&lt;p class="x"&gt;fast</p> [fullquote]no word[/fullquote] #rain @anna '
    "https://t.co/x1y?a=b www.site.org x < y a > z anna@mail.org"
)


@pytest.mark.parametrize(
    ("settings", "sentences"),
    [
        ({"markup": "dropped"}, [["grows"], ["fast"], ["word", "rain", "anna", "anna", "mail", "org"]]),
        (
            {"markup": "dropped", "hashtags": "whole", "names": "none"},
            [["grows"], ["fast"], ["word", "#rain", "anna", "mail", "org"]],
        ),
        (
            {"markup": "dropped", "hashtags": "none", "names": "whole"},
            [["grows"], ["fast"], ["word", "@anna", "anna", "mail", "org"]],
        ),
    ],
)
def test_markup_is_no_word_and_signs_are_by_choice(settings: dict[str, str], sentences: list[list[str]]) -> None:
    assert Tokeniser(**settings).sentences(POST) == sentences  # type: ignore[arg-type]
    older = {word for one in Tokeniser().sentences(POST) for word in one}
    assert {"amp", "quot", "nbsp", "fullquote", "https"} <= older


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#big_data and #covid-19 by @anna_k and @joe.doe. Mail a_b@c.org", "#big_data #covid-19 @anna_k @joe.doe mail org"),
        ("Größe: #größe_wahn, @žiga_k; #हिन्दी_भाषा", "größe #größe_wahn @žiga_k #हिन्दी_भाषा"),
        ("#東京オリンピック 東京都で", "#東京オリンピック 東京都で"),
        ("##double #___ #2020", "#double"),
    ],
)
def test_hashtags_and_names_that_are_kept_are_whole(text: str, words: str) -> None:
    found = Tokeniser(hashtags="whole", names="whole").sentences(text)
    assert [word for one in found for word in one] == words.split()


QUOTED = {
    "of a mail": "Fine.\n\nOn Mon, Mar 3, 2020 at 10:15 AM John <john@x.org>\nwrote:\n> old words\n>> older\nBelow.",
    "of news": "In article <1@x.org> j@x.org (Jim) writes:\n>old words\nFine. Below.",
    "below a German mail": "Fine. Below.\n\n-----Ursprüngliche Nachricht-----\nVon: Max\nalte Worte",
    "below a mail of Outlook": "Fine. Below.\n\n____\nFrom: Max\nSent: Monday\nTo: Ann\nSubject: old\nold words",
    "in Slovenian": "Fine.\n\nDne 3. 3. 2020 je Žan <z@x.si> napisal/a:\n> staro\nBelow.",
    "in Spanish": "Fine. Below.\nEl mar, 3 mar 2020, Ana escribió:\n> viejo",
    "of a forum": "[quote=ann;1]old [quote]older[/quote] old[/quote]Fine. [fullquote]old[/fullquote] Below.",
    "in HTML": "<p>Fine.</p><blockquote type='cite'>old<blockquote>older</blockquote>old</blockquote>Below.<br>&gt; old",
    "with ends of lines as mails have": "Fine.\r\n\r\nOn 3 Mar 2020 John wrote:\r\n> old\r\nBelow.",
    "on some day": "Fine.\nOn 3 March John wrote:\n\n> old\nBelow.",
    "beside an open one": "[quote=ann]Fine. [quote]old[/quote]Below.",
}


@pytest.mark.parametrize("case", QUOTED)
def test_what_a_mail_or_a_post_quotes_is_not_of_it(case: str) -> None:
    read = Tokeniser(markup="dropped", quotes="dropped").sentences(QUOTED[case])
    assert [word for one in read for word in one] == ["fine"]  # "below" is a stop word
    kept = {word for one in Tokeniser(markup="dropped").sentences(QUOTED[case]) for word in one}
    assert kept & {"old", "alte", "staro", "viejo"}


@pytest.mark.parametrize(
    "text",
    [
        "> nothing but a quote\n> of two lines",
        "-----Original Message-----\nFrom: Max\na mail that somebody passes on",
        "Subject: wind\nFrom: Max\nSent: Monday\nTo: Ann\nthe mail itself",
        "On the third day he wrote:\na letter. If rain > wind then she said: [quote] is open",
        "<blockquote>a page quotes a poem</blockquote>",
        "patients with a mass\n> 30 kg or\n<p>&gt;5 mg daily</p>\n>= 2 times",
        ">>> import os\nfirst line of code",
        "On page 3 the author wrote as follows:\nwind. On 5 May we met.\nHe wrote:\na letter",
        '<a href="x"\n>link</a> to more words',
    ],
)
def test_what_may_be_no_quote_stays(text: str) -> None:
    assert Tokeniser(markup="dropped", quotes="dropped").sentences(text) == Tokeniser(markup="dropped").sentences(text)


def test_stop_words_of_a_language_go_by_its_name_and_are_written_down_as_words() -> None:
    for name in ("sl", "slovenian", "Slovenian"):
        assert Tokeniser(stop_words=name).sentences("Kot tudi ali kaj samo je šola") == [["šola"]]
    written = Tokeniser(stop_words="de").settings()
    assert written is not None
    assert {"und", "nicht"} <= set(written["stop_words"])  # another version of the word lists changes no model
    assert Tokeniser.of_settings(written).sentences("Die Schule und nicht der Hund") == [["schule", "hund"]]
    assert not {"markup", "quotes"} & set(Tokeniser().settings() or {})  # as in files that are older
