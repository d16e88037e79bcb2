"""The page of topics: what it holds, and what it does in a real browser by clicking and typing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.federation.topic_labels import TopicLabels
from securetm.reports.topic_page import (
    SHOWN,
    STEPS,
    DocumentsBehind,
    MappedDocument,
    candidates,
    distances,
    logarithms,
    overall,
    places,
    ranked,
    topic_page,
    write_topic_page,
)

from .browser import Tab
from .topics_shown import HOSTILE, made_up, shown


@pytest.mark.parametrize("words", [1, 21, 800])
def test_every_word_that_any_step_shows_is_a_candidate_and_no_other(words: int) -> None:
    topics = made_up(6, words)
    logs, everywhere = logarithms(topics), logarithms(overall(topics, None))
    for topic in logs:
        relevance = [STEPS * topic - (STEPS - step) * everywhere for step in range(STEPS + 1)]
        first = [sorted(range(words), key=lambda word: (-row[word], word))[:SHOWN] for row in relevance]
        assert candidates(topic, everywhere).tolist() == sorted({word for row in first for word in row})
        assert [ranked(topic, everywhere, step).tolist() for step in range(STEPS + 1)] == first


def test_all_documents_words_weigh_topics_by_their_shares() -> None:
    topics = np.array([[0.9, 0.1], [0.1, 0.9]])
    assert overall(topics, np.array([0.75, 0.25])) == pytest.approx([0.7, 0.3])
    assert overall(topics, None) == pytest.approx([0.5, 0.5])


def test_the_map_tells_alike_topics_and_is_the_same_each_time() -> None:
    alike = np.array([[0.5, 0.5, 0, 0], [0.4, 0.6, 0, 0], [0, 0, 0.5, 0.5]])
    away = distances(alike)
    assert away[0, 2] == pytest.approx(1)
    assert np.diag(away) == pytest.approx(0, abs=1e-7)
    assert away[0, 1] < 0.2
    at = places(alike)
    assert np.array_equal(at, places(alike))
    assert np.linalg.norm(at[0] - at[1]) < np.linalg.norm(at[0] - at[2]) / 3
    assert np.abs(at).max() == pytest.approx(1)


def test_nothing_in_the_page_ends_its_script() -> None:
    text = topic_page(shown())
    assert text.count("</script>") == 2
    assert text.count("<script") == 2
    assert "<img" not in text
    assert HOSTILE in json.loads(_data(text))["words"]


def test_marks_that_turn_a_line_around_are_spelt_out() -> None:
    words = ("tur\u202en", "nul\x00", *(f"word{number}" for number in range(2, 400)))
    text = topic_page(shown(vocabulary=words))
    assert "\u202e" not in text
    assert "\x00" not in text
    assert r"tur\u202en" in text


def test_a_page_of_the_model_alone_has_no_figure_of_a_party() -> None:
    text = topic_page(shown(shares=None, shares_of="", by_party={}, judged=""))
    assert "Topics by party" not in text
    assert "follows from the model alone" in text
    assert json.loads(_data(text))["shares"] is None


def test_a_policy_names_the_one_script_and_the_one_style() -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', topic_page(shown()))
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert policy[1].count("'sha256-") == 2


def test_words_that_do_not_stand_above_the_noise_are_marked_and_the_marks_explained() -> None:
    above = made_up() > np.quantile(made_up(), 0.99)
    text = topic_page(shown(above_noise=above, noised=True))
    lists = text[text.index('<table id="topics">') : text.index("</table>", text.index('<table id="topics">'))]
    listed = lists.count('class="unsure" role="img" aria-label="not above the noise"')
    assert 0 < listed < 8 * len(above)
    assert f"{above.sum()} of all {above.size:,} pairs" in text
    data = json.loads(_data(text))
    for topic, row in zip(data["topics"], above, strict=True):
        places = [0 if data["words"][word] == HOSTILE else int(data["words"][word][4:]) for word in topic["words"]]
        assert topic["unsure"] == "".join("0" if row[place] else "1" for place in places)


def test_a_page_says_where_nothing_was_tested_and_nothing_where_there_is_no_noise() -> None:
    assert "is not tested here" in topic_page(shown(noised=True))
    assert "the noise" not in re.sub(r"<script.*?</script>", "", topic_page(shown()), flags=re.S).replace("without noise", "")


def test_the_script_writes_no_markup() -> None:
    script = Path(__file__).parents[2] / "securetm" / "reports" / "static" / "topic_page.js"
    text = script.read_text("utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|XMLHttpRequest|import\(", text)
    assert text.count("\n") < 400


def _data(text: str) -> str:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found
    return found[1]


# ---- in a real browser -----------------------------------------------------------------------------------------------------


_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_WORDS = "[...document.querySelectorAll('#words tbody th')].map(e => e.firstChild.textContent)"
_TITLE = "document.getElementById('topic-title').textContent"
_LISTED = "[...document.querySelectorAll('#topics tbody tr')].filter(e => !e.hidden).map(e => Number(e.dataset.topic))"
_FOCUS = "document.activeElement.id || document.activeElement.ariaLabel || document.activeElement.tagName"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("page") / "topics.html")


def written(path: Path, **changed: Any) -> Path:
    write_topic_page(shown(**changed), path)
    return path


@pytest.fixture
def opened(tab: Tab, page: Path) -> Tab:
    """The page anew, on a wide screen."""
    tab.medium("screen")
    tab.wide(1280)
    tab.asks("window.onbeforeunload = null, state.unsaved = false")  # a label that was typed would ask before it goes
    tab.open(page)
    return tab


def failures(tab: Tab) -> list[str]:
    """What the browser refused, and what the page's script failed at."""
    return tab.complaints() + [str(event) for event in tab.events if event.get("method") == "Runtime.exceptionThrown"]


def click(tab: Tab, selector: str) -> None:
    """A click of the mouse in the middle of the first such element."""
    where = f"(e => (e.scrollIntoView({{block: 'center'}}), e.getBoundingClientRect()))(document.querySelector({selector!r}))"
    x, y, wide, high = json.loads(str(tab.asks(f"(r => JSON.stringify([r.x, r.y, r.width, r.height]))({where})")))
    for kind in ("mousePressed", "mouseReleased"):
        at = {"x": x + wide / 2, "y": y + high / 2, "button": "left", "clickCount": 1}
        tab.call("Input.dispatchMouseEvent", type=kind, **at)


def press(tab: Tab, key: str) -> None:
    """A key goes down and up again."""
    codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "PageDown": 34, "Home": 36, "End": 35}
    text = {"text": "\r"} if key == "Enter" else {}
    for kind in ("keyDown", "keyUp"):
        more = text if kind == "keyDown" else {}
        tab.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **more)


def typed(tab: Tab, selector: str, text: str) -> None:
    """The text is typed into the field."""
    click(tab, selector)
    tab.call("Input.insertText", text=text)


def load(tab: Tab, file: Path) -> None:
    """The file is chosen, and read."""
    tab.asks("document.getElementById('labels-said').textContent = ''")
    field = tab.call("Runtime.evaluate", expression="document.getElementById('load')")["result"]["objectId"]
    tab.call("DOM.setFileInputFiles", files=[str(file)], objectId=field)
    look = "const look = () => document.getElementById('labels-said').textContent ? done(1) : requestAnimationFrame(look);"
    tab.call("Runtime.evaluate", expression=f"new Promise(done => {{ {look} look(); }})", awaitPromise=True)


def until(tab: Tab, method: str, **wanted: Any) -> dict[str, Any]:
    """Waits for an event of the browser."""
    while True:
        for event in tab.events:
            if event.get("method") == method and wanted.items() <= event["params"].items():
                return dict(event["params"])
        tab.hear()


@pytest.mark.parametrize("width", [320, 700, 1280])
def test_it_asks_for_nothing_but_itself_and_fits(opened: Tab, page: Path, width: int) -> None:
    opened.wide(width)
    opened.open(page)
    assert opened.requested() == [page.as_uri()]
    assert failures(opened) == []
    assert opened.asks(_WIDE) == 0
    assert opened.asks("document.querySelectorAll('#map [role=option]').length") == len(shown().topics)
    assert len(opened.picture()) > 20_000


def test_words_and_names_are_no_markup(opened: Tab) -> None:
    assert opened.asks("document.querySelectorAll('img, td b, th b, h1 b').length") == 0
    assert opened.asks("window.hurt") is None
    assert str(opened.asks("document.body.innerText")).count(HOSTILE) >= 5


def test_no_script_and_no_style_but_its_own_may_run(opened: Tab) -> None:
    opened.asks("(e => (e.textContent = 'window.hurt = 1', document.body.append(e)))(document.createElement('script'))")
    opened.asks("document.body.setAttribute('style', 'opacity: 0.5')")
    assert opened.asks("window.hurt") is None
    assert opened.asks("getComputedStyle(document.body).opacity") == "1"


def test_the_slider_ranks_words_anew_as_the_formula_says(opened: Tab) -> None:
    click(opened, "#relevance")
    press(opened, "Home")
    own_words = opened.asks(_WORDS)
    press(opened, "End")
    frequent = opened.asks(_WORDS)
    one = shown()
    assert one.shares is not None
    chosen = int(np.argmax(one.shares))
    topic, everywhere = one.topics[chosen], one.shares @ one.topics
    for found, relevance in ((own_words, topic / everywhere), (frequent, topic)):
        values = [relevance[one.vocabulary.index(word)] for word in found]
        assert values == pytest.approx(sorted(relevance, reverse=True)[: len(found)], rel=2e-3)  # logarithms are rounded
    assert own_words != frequent


def test_all_of_it_can_be_reached_by_keyboard(opened: Tab) -> None:
    passed = []
    for _ in range(40):
        press(opened, "Tab")
        passed.append(opened.asks(_FOCUS))
    wanted = ["A", "map", "previous", "next", "label", "relevance", "search", "sort", "save", "load", "Show topic 1"]
    assert [one for one in passed if one in wanted][: len(wanted)] == wanted
    assert "parties-title" in str(
        opened.asks("document.querySelector('[tabindex=\"0\"].wide').getAttribute('aria-labelledby')")
    )


def test_search_and_order(opened: Tab) -> None:
    assert opened.asks(_LISTED) == list(range(8))
    opened.asks("(e => (e.value = 'share', e.dispatchEvent(new Event('change'))))(document.getElementById('sort'))")
    one = shown()
    assert one.shares is not None
    assert opened.asks(_LISTED) == np.argsort(-one.shares, kind="stable").tolist()
    typed(opened, "#search", "onerror")
    assert 1 in opened.asks(_LISTED)
    assert "of 8 topics" in str(opened.asks("document.getElementById('found').textContent"))
    typed(opened, "#search", "no such word")
    assert opened.asks(_LISTED) == []


def test_a_label_is_shown_saved_and_read_again(opened: Tab, page: Path, tmp_path: Path) -> None:
    opened.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    click(opened, "#topics tbody tr[data-topic='2'] button")
    typed(opened, "#label", "Weather <b>")
    assert opened.asks("document.querySelector('#topics tr[data-topic=\"2\"] .named').textContent") == "Weather <b>"
    assert "not saved" in str(opened.asks("document.getElementById('labels-said').textContent"))
    click(opened, "#save")
    until(opened, "Page.downloadProgress", state="completed")
    saved = TopicLabels.read(tmp_path / "labels.json", 8)
    assert saved.texts == {1: HOSTILE, 2: "Weather <b>"}
    opened.open(page)
    assert opened.asks("state.labels[2]") is None
    load(opened, tmp_path / "labels.json")
    assert opened.asks("document.getElementById('labels-said').textContent") == "2 labels read"
    assert opened.asks("document.querySelector('#topics tr[data-topic=\"2\"] .named').textContent") == "Weather <b>"
    assert failures(opened) == []


def test_words_that_noise_may_have_made_are_marked(tab: Tab, tmp_path: Path) -> None:
    sure = np.zeros((8, 400), dtype=bool)
    sure[:, 0] = True
    tab.open(written(tmp_path / "noised.html", above_noise=sure))
    assert tab.asks("document.querySelectorAll('#words .open').length") in (19, 20)
    assert "stand above the noise" in str(tab.asks("document.getElementById('noise').textContent"))


def test_documents_lie_between_their_topics(tab: Tab, tmp_path: Path) -> None:
    mapped = (MappedDocument(1, f"river {HOSTILE}", ((2, 1.0),)), MappedDocument(2, "court", ((2, 0.5), (3, 0.5))))
    behind = DocumentsBehind("north", shown().shares, True, ((),) * 8, mapped, 2)
    tab.open(written(tmp_path / "mapped.html", behind=behind))
    assert failures(tab) == []
    places = "[...document.querySelectorAll('{}')].map(c => [Number(c.getAttribute('cx')), Number(c.getAttribute('cy'))])"
    (one, other), ((third,), (fourth,)) = (
        tab.asks(places.format("#map .documents circle")),
        [tab.asks(places.format(f"#spot-{topic} circle")) for topic in (2, 3)],
    )
    assert one == pytest.approx(third, abs=0.1)
    assert other == pytest.approx(np.mean([third, fourth], axis=0), abs=0.1)
    assert tab.asks("window.hurt") is None


def test_a_screen_reader_finds_landmarks_tables_and_the_map(opened: Tab) -> None:
    wanted = ("main", "banner", "contentinfo", "table", "rowheader", "listbox", "option", "slider", "searchbox", "status")
    nodes = opened.accessible(*wanted)
    roles = {node["role"]["value"] for node in nodes}
    for role in wanted:
        assert role in roles, role
    for role in ("button", "slider", "textbox", "searchbox", "listbox", "option", "combobox"):
        assert all(node.get("name", {}).get("value") for node in nodes if node["role"]["value"] == role), role
