"""Scripts without spaces between words: text without spaces gives words that come back, text with spaces keeps its words."""

from __future__ import annotations

import pytest

from securetm.corpus.corpus import Corpus
from securetm.corpus.tokeniser import Tokeniser


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


def test_a_long_run_is_cut_between_letters_and_never_before_a_mark() -> None:
    (words,) = Tokeniser().sentences("ที่นี่มีน้ำดื่มสะอาดมาก")
    assert len(words) > 5
    assert not any(word[0] in "ิีึืุู่้๊๋" for word in words)


def test_an_own_pattern_replaces_the_rule() -> None:
    assert Tokeniser(pattern=r"\w+").sentences("机器学习是人工") == [["机器学习是人工"]]
    assert Tokeniser(pattern=r"(?=(\w\w\w))").sentences("机器学习是") == [["机器学", "器学习", "学习是"]]


def test_documents_about_the_same_have_words_in_common() -> None:
    shares = ["今天股市大幅上涨投资者非常高兴", "投资者担心股市明天会下跌"]
    sport = ["球队昨晚赢得了冠军比赛", "冠军比赛吸引了很多球迷观看"]
    counts = Corpus.from_strings([*shares, *sport]).counts.astype(bool).astype(int)
    common = (counts @ counts.T).toarray()
    assert common[0, 1] >= 3
    assert common[2, 3] >= 3
    assert common[0, 2] == 0


def test_texts_in_other_scripts_are_cut_as_ever() -> None:
    assert Tokeniser().sentences("Ääkköset, l'été. हिन्दी भाषा") == [["ääkköset", "l'été"], ["हिन्दी", "भाषा"]]
