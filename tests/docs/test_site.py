"""The site is built without a warning, every link of it leads somewhere, and it loads nothing from the network.

Building it takes half a minute, so the tests of what was built are slow ones; links of a clone are tested with each run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mkdocs.exceptions import PluginError

from docs.generate import cluster_page, paper_pages, scale_page, semantic_page
from docs.generate.choice_page import FILE as FILE_OF_CHOICE
from docs.generate.choice_page import PICTURE, USE, USE_NARROW, USE_ROWS, choice_page, picture, use_picture, use_rows
from docs.generate.command_page import FILE, command_page
from docs.generate.error_pages import error_pages
from docs.generate.folder_pages import profiles
from docs.generate.hook import on_post_build
from docs.generate.site_links import faults
from securetm.errors import error_classes

from ..reports.browser import BROWSER, Tab, browser
from .blocks import ROOT

_SEARCHED = """new Promise(found => {
  const list = document.querySelector('.md-search-result__list'), field = document.querySelector('.md-search__input');
  new MutationObserver(() => list.children.length && found(list.innerText)).observe(list, {childList: true});
  field.focus(); field.value = 'ledger'; field.dispatchEvent(new Event('keyup'));
  setTimeout(() => found('nothing was found in a minute'), 60_000);
})"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; building it checks all links and fails on a warning."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return folder


@pytest.mark.slow
def test_the_site_is_built_and_its_links_lead_somewhere(site: Path) -> None:
    for name in ("index", "tutorials/quickstart", "reference/errors/BadSetting", "profiles/masked", "protocols/masked_sum"):
        assert (site / f"{name}.html").is_file()


@pytest.mark.slow
def test_the_search_works_without_a_server(site: Path) -> None:
    assert (site / "search" / "search_index.js").is_file()
    assert "assets/iframe-worker.js" in (site / "index.html").read_text("utf-8")


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A browser, where there is one."""
    if BROWSER is None:
        pytest.skip("no browser is installed")
    with browser(tmp_path_factory.mktemp("browser")) as pipes:
        yield Tab(*pipes)


@pytest.mark.slow
def test_a_browser_finds_words_and_asks_the_network_for_nothing(site: Path, tab: Tab) -> None:
    tab.open(site / "index.html")
    shown = tab.call("Runtime.evaluate", expression=_SEARCHED, awaitPromise=True, returnByValue=True)["result"]["value"]
    assert "ledger" in shown.lower()
    assert all(url.startswith((site.as_uri(), "data:", "blob:")) for url in tab.requested())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index", "tutorials/quickstart", "which-profile", "reference/commands", "profiles/masked"])
def test_a_page_fits_a_phone(site: Path, tab: Tab, name: str) -> None:
    tab.wide(390)
    tab.open(site / f"{name}.html")
    assert tab.asks("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ('<a href="gone.html">x</a>', "leads to no file"),
        ('<a href="#gone">x</a>', "leads to no anchor"),
        ('<a href="../outside.html">x</a>', "leads to no file"),
        ('<a href="http://example.org/">x</a>', "no well-formed https address"),
        ('<a href="https://example">x</a>', "no well-formed https address"),
        ('<script src="https://example.org/a.js"></script>', "from the network"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "from the network"),
        ('<img src="gone.png">', "leads to no file"),
    ],
)
def test_a_fault_of_a_page_is_found(tmp_path: Path, written: str, fault: str) -> None:
    (tmp_path / "page.html").write_text(f'<p id="here">{written}</p>', "utf-8")
    (found,) = faults(tmp_path)
    assert fault in found


def test_a_site_with_a_fault_is_not_built(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('<a href="gone.html">x</a>', "utf-8")
    with pytest.raises(PluginError, match=r"gone\.html leads to no file"):
        on_post_build({"site_dir": str(tmp_path)})


def test_what_is_right_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('<p id="a"><a href="#a">a</a><a href="https://example.org/b">b</a></p>', "utf-8")
    assert faults(tmp_path) == []


def test_the_command_reference_is_what_the_commands_say() -> None:
    assert FILE.read_text("utf-8") == command_page(), "run: python -m docs.generate.command_page"


@pytest.mark.slow
def test_every_error_has_a_page_of_its_own() -> None:
    pages = error_pages()
    for name in error_classes():
        page = pages[f"reference/errors/{name}.md"]
        assert page.startswith(f"# {name}\n")
        for anchor in ("when", "what-to-do", "exit", "wire"):
            assert f"{{#{anchor}}}" in page, (name, anchor)


def test_the_decision_path_is_that_of_the_command() -> None:
    told = "run: python -m docs.generate.choice_page"
    page = FILE_OF_CHOICE.read_text("utf-8")
    assert page == choice_page(), told
    assert PICTURE.read_text("utf-8") == picture(), told
    assert USE.read_text("utf-8") == use_picture(), told
    assert USE_NARROW.read_text("utf-8") == use_picture(1), told
    assert USE_ROWS.read_text("utf-8") == use_rows(), told
    for name in profiles():
        assert f"| [`{name}`](../protocols/profiles/{name}.toml) |" in page, name  # in the table of costs


def test_the_page_of_semantic_topics_has_the_committed_figures() -> None:
    told = "run: python -m docs.generate.semantic_page"
    assert semantic_page.FILE.read_text("utf-8") == semantic_page.semantic_page(), told


@pytest.mark.slow
def test_the_pages_of_papers_have_the_committed_figures() -> None:
    for file, text in paper_pages.paper_pages().items():
        assert file.read_text("utf-8") == text, "run: python -m docs.generate.paper_pages"


@pytest.mark.slow  # thousands of rounds are played for them
def test_pages_of_large_corpora_have_the_committed_figures() -> None:
    assert scale_page.FILE.read_text("utf-8") == scale_page.scale_page(), "run: python -m docs.generate.scale_page"
    told = "run: python -m docs.generate.cluster_page"
    assert cluster_page.FILE.read_text("utf-8") == cluster_page.cluster_page(), told
    assert cluster_page.PICTURE.read_text("utf-8") == cluster_page.picture(), told
