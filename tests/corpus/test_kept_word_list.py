"""A language's list is made once: then it comes from the user's cache, unless something that it is made of changed."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from securetm.corpus import public_words
from securetm.corpus.public_words import LANGUAGES, kept_list, ranked_words
from securetm.corpus.tokeniser import Tokeniser


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


def test_a_list_is_made_once(cache: Path) -> None:
    making = Making()
    assert [kept_list("en", Tokeniser(), making) for _ in range(3)] == [("en", "3é")] * 3
    assert making.made == 1
    (kept,) = cache.iterdir()
    assert (stat.filemode(kept.stat().st_mode), stat.filemode(cache.stat().st_mode)) == ("-rw-------", "drwx------")


def test_another_language_and_other_settings_have_lists_of_their_own(cache: Path) -> None:
    making = Making()
    asked = [("en", Tokeniser()), ("de", Tokeniser()), ("en", Tokeniser(min_length=2)), ("en", Tokeniser(stop_words=("a",)))]
    for _ in range(2):
        assert [kept_list(*each, making)[0] for each in asked] == ["en", "de", "en", "en"]
    assert (making.made, len(list(cache.iterdir()))) == (4, 4)


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


def test_words_of_a_users_own_function_are_not_kept(cache: Path) -> None:
    making = Making()
    for _ in range(2):
        kept_list("en", Tokeniser(words=str.split), making)
    assert making.made == 2
    assert not cache.exists()


def test_the_list_of_a_language_is_the_same_from_the_cache(cache: Path) -> None:
    assert "tamil" in LANGUAGES
    made = ranked_words("tamil", Tokeniser())
    ranked_words.cache_clear()
    assert len(list(cache.iterdir())) == 1
    assert ranked_words("tamil", Tokeniser()) == made
    assert len(made) > 1000
