"""Pages for people who do something are short, and no folder of pages is a long list."""

from __future__ import annotations

from .blocks import DOCS

FEWER_WORDS, MOST_FILES = 600, 20


def test_tutorials_and_how_tos_are_read_in_three_minutes() -> None:
    pages = [page for folder in ("tutorials", "how-to", "operate") for page in (DOCS / folder).glob("*.md")]
    words = {page.name: len(page.read_text("utf-8").split()) for page in pages}
    assert {name: count for name, count in words.items() if count >= FEWER_WORDS} == {}
    assert len(words) > 20


def test_a_folder_shows_few_files() -> None:
    folders = [DOCS, *(one for one in DOCS.rglob("*") if one.is_dir() and one.name != "__pycache__")]
    files = {str(folder.relative_to(DOCS)): sum(one.is_file() for one in folder.iterdir()) for folder in folders}
    assert {name: count for name, count in files.items() if count > MOST_FILES} == {}
