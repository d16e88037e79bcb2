"""What the README and its neighbours say of the tree is so: files exist, targets are in the Makefile, and it stays short.

Its code blocks are the quickstart's: tests/docs/test_blocks.py runs them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generate.folder_pages import profiles

from .docs.blocks import ROOT, blocks, check_shell

README = (ROOT / "README.md").read_text("utf-8")


def test_every_file_that_is_linked_or_named_exists() -> None:
    named = re.findall(r"\]\((?!https:)([^)#]+)|`([A-Z]+\.md|[a-z_/]+/)`|src=\"([^\"]+)\"", README)
    for name in (name for names in named for name in names if name and name != "site/"):
        assert (ROOT / name).exists(), name


PAGES = [
    *ROOT.glob("*.md"),
    *(page for folder in ("docs", "protocols", "audits", "threat_models") for page in (ROOT / folder).rglob("*.md")),
]


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_of_the_tree_names_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    for name in re.findall(r"`((?:securetm|protocols|threat_models|audits|docs|tests)/[\w./-]*)`", text):
        assert (ROOT / name).exists(), name


def test_it_names_every_profile() -> None:
    for name in profiles():
        assert f"`{name}`" in README, name


def test_its_commands_of_the_shell_are_there() -> None:
    for block in blocks(ROOT / "README.md"):
        if block.language == "sh":
            check_shell(block.text)


def test_it_is_read_in_a_few_minutes() -> None:
    assert len(README.splitlines()) <= 120
    assert len(README.split()) <= 1200
