"""Every relative link of every committed page leads to a file, and an anchor, that a clone has: no site has to be built."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from docs.generate.source_links import linked_in_site, place_of

from .blocks import ROOT

_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(<?([^)>\s]+)>?(?:\s\"[^\"]*\")?\)|(?:src|href)=\"([^\"]+)\"|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:")


@cache
def tracked() -> frozenset[str]:
    """The files of a clone, and their folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [name for name in listed.stdout.split("\0") if name]
    return frozenset(files) | {str(folder) for name in files for folder in Path(name).parents}


def pages() -> list[str]:
    return sorted(name for name in tracked() if name.endswith(".md"))


def links(text: str) -> list[str]:
    """The relative links and pictures of a page, those in code left out."""
    found = ("".join(parts) for parts in _LINK.findall(_CODE.sub("", text)))
    return [link for link in found if not _ELSEWHERE.match(link)]


@cache
def anchors(page: str) -> frozenset[str]:
    """The anchors of a page by the rule that hosts of clones share: letters, digits, hyphens; a repeated one is numbered."""
    text = re.sub(r"^(```|~~~).*?^\1", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    known: dict[str, int] = {}
    for heading in _HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        known[slug] = known.get(slug, -1) + 1
    numbered = {f"{slug}-{again}" for slug, times in known.items() for again in range(1, times + 1)}
    return frozenset(known) | numbered | set(re.findall(r"(?:id|name)=\"([^\"]+)\"", text))


def fault(page: str, link: str) -> str:
    """What is wrong with a link; nothing where it leads somewhere."""
    path, _, anchor = link.partition("#")
    place = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if place not in tracked():
        return f"{page}: {link} leads to no file of a clone"
    if anchor and place.endswith(".md") and anchor not in anchors(place):
        return f"{page}: {link} leads to no anchor of {place}"
    return ""


def test_every_link_of_every_page_leads_somewhere_in_a_clone() -> None:
    faults = [said for page in pages() for link in links((ROOT / page).read_text("utf-8")) if (said := fault(page, link))]
    assert faults == []
    assert len(pages()) > 40


@pytest.mark.parametrize("link", ["gone.md", "reference/errors/NotFound.md", "#gone", "index.md#gone", "../site/index.html"])
def test_a_dead_link_is_found(link: str) -> None:
    assert links(f"see [there]({link})") == [link]
    assert fault("docs/concepts.md", link)


def test_links_of_a_clone_lead_to_pages_of_the_site() -> None:
    page = "see [`NotFound`](../../securetm/errors.py), [it](../../protocols/masked_sum.md#x) and [a](keys.md)"
    shown = "see [`NotFound`](../reference/errors/NotFound.md), [it](../protocols/masked_sum.md#x) and [a](keys.md)"
    assert linked_in_site(page, "how-to/page.md") == shown
    assert place_of("protocols/profiles/masked.toml", "`masked`") == "profiles/masked.md"
    assert place_of("README.md", "it") == ""
