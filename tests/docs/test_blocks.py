"""Every code block of the pages runs, each page in a folder of its own with the documents that they speak of."""

from __future__ import annotations

from pathlib import Path

import pytest

from .blocks import DOCS, LANGUAGES, ROOT, blocks, commands, matches, run_page

WRITTEN = sorted(DOCS.rglob("*.md"))
# They train federation after federation, or start process after process.
LONG = (
    *("models.md", "five-processes.md", "embeddings.md", "topics-of-meaning.md", "compare-runs.md"),
    *("audit-a-run.md", "add-a-model.md", "look-at-topics.md", "several-processes.md", "choose-epsilon.md"),
    *("go-on.md", "sign-a-report.md", "corpus-beyond-memory.md", "plan-runs-over-years.md", "judge-topics.md"),
    *(
        "audit-foreign-models.md",
        "flower.md",
        "run-a-coordinator.md",
        "your-corpus.md",
        "which-profile.md",
        "your-own-module.md",
    ),
)
PAGES = [pytest.param(page, marks=pytest.mark.slow if page.name in LONG else ()) for page in WRITTEN if blocks(page)]
SLOW = [page for page in WRITTEN if blocks(page, slow=True)]


@pytest.mark.usefixtures("clinics")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_block_of_a_page_runs(page: Path) -> None:
    run_page(page)


@pytest.mark.slow
@pytest.mark.usefixtures("clinics")
@pytest.mark.parametrize("page", SLOW, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_slow_block_of_a_page_runs(page: Path) -> None:
    run_page(page, slow=True)


def test_every_block_says_what_it_is() -> None:
    for page in (ROOT / "README.md", *WRITTEN):
        assert {block.language for block in blocks(page)} <= LANGUAGES, page


def test_what_the_readme_runs_is_run_with_the_quickstart() -> None:
    quickstart = blocks(DOCS / "tutorials" / "quickstart.md")
    assert [block for block in blocks(ROOT / "README.md") if block.language != "sh" and block not in quickstart] == []
    assert {"console", "python"} <= {block.language for block in blocks(ROOT / "README.md")}


def test_an_output_is_compared_line_by_line() -> None:
    ((_, shown),) = commands("$ securetm x\nfirst\n...\nlast of ... lines\n")
    assert matches(shown, "before\nfirst  \nsecond\nlast of 3 lines\nafter\n")
    assert matches(shown, "first\nlast of 3 lines\n")
    assert not matches(shown, "first\nlast of 3 words\n")
    assert not matches("one\ntwo", "one\nand\ntwo")
    assert matches("a.b (c)", "a.b (c)")
    assert not matches("a.b", "acb")
