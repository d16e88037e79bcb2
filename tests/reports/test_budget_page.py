"""The page and the terminal: all of the sheet, nothing from anywhere else, and no text that could become markup."""

from __future__ import annotations

from html.parser import HTMLParser

from securetm.reports.budget import page

from .sheets import SHEET, STATEMENT


class Seen(HTMLParser):
    """What a reader and a browser find in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def test_the_page_holds_all_of_the_sheet() -> None:
    seen = Seen(page(SHEET))
    text = " ".join(" ".join(seen.text).split())
    assert seen.open == []
    assert STATEMENT in text
    assert "epsilon = 1.829 per document" in text
    assert "Something <is> wrong." in text
    for said in (
        "PLD",
        "2.102",
        "Prices",
        "1,200",
        "A caption.",
        "A note.",
        "100,000",
        "tight & sound",
        "3 %",
    ):
        assert said in text
    assert "tokens" not in text  # was not asked


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    text = page(SHEET)
    seen = Seen(text)
    assert not {tag for tag, _ in seen.tags} & {"script", "link", "img", "iframe", "object", "embed", "a"}
    assert not [name for _, attrs in seen.tags for name in attrs if name in ("src", "href", "srcset") or name.startswith("on")]
    assert "url(" not in text
    assert "@import" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text
