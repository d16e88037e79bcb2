"""Checks a built site: every link inside it leads to a page and an anchor, and nothing is loaded from elsewhere.

Links to other sites are checked for their form only: the check needs no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
_NOT_LOADED = {"canonical", "prev", "next", "alternate"}  # of <link>
_EXTERNAL = re.compile(r"https://[\w.-]+\.[a-z]{2,}(/\S*)?$|mailto:\S+@\S+$")
_REMOTE = re.compile(r"(?:https?:)?//")


@dataclass
class _Page(HTMLParser):
    """What a page links to, what it loads, and which anchors it has."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes one tag."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        loaded = given.get(_LOADED.get(tag, ""))
        if loaded and given.get("rel") not in _NOT_LOADED:
            self.loads.append(loaded)


@cache
def _read(page: Path) -> _Page:
    parsed = _Page()
    parsed.feed(page.read_text("utf-8"))
    return parsed


def faults(site: Path) -> list[str]:
    """Every fault of the site, as `page: what is wrong`."""
    site = site.resolve()
    for kept in (_read, _target, _known):
        kept.cache_clear()
    pages = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    return [f"{page.relative_to(site)}: {fault}" for page in pages for fault in _faults_of(page, site)]


def _faults_of(page: Path, site: Path) -> Iterator[str]:
    parsed = _read(page)
    for loaded in parsed.loads:
        if _REMOTE.match(loaded):
            yield f"loads {loaded} from the network"
        elif fault := _inside(loaded, page, site):
            yield fault
    for link in parsed.links:
        if fault := _outside(link) if urlsplit(link).scheme or _REMOTE.match(link) else _inside(link, page, site):
            yield fault


def _outside(link: str) -> str:
    return "" if _EXTERNAL.match(link) or link.startswith("javascript:") else f"{link} is no well-formed https address"


def _inside(link: str, page: Path, site: Path) -> str:
    parts = urlsplit(link)
    target = _target(page.parent, parts.path) if parts.path else page
    return _known(link, target, unquote(parts.fragment), site)


@cache
def _target(folder: Path, path: str) -> Path:
    return Path(normpath(folder / unquote(path)))


@cache
def _known(link: str, target: Path, anchor: str, site: Path) -> str:
    """What is wrong with a link that most pages have, as they share their navigation."""
    if not target.is_relative_to(site) or not target.is_file():
        return f"{link} leads to no file of the site"
    known = target.suffix != ".html" or not anchor or anchor in _read(target).anchors
    return "" if known else f"{link} leads to no anchor of its page"
