"""The topics of a run as one HTML file that loads nothing. This module writes what `shown_topics` holds, and adds no fact.

Tables with all topics are in the file itself; `topic_page.js` makes them a map, bars and a search. Every word is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from string import Template

import numpy as np

from securetm.contracts import Array
from securetm.federation.topic_labels import LONGEST
from securetm.foreign_text import html_text, printable
from securetm.reports.noise_marks import MARK, NOT_TESTED, UNSURE, meaning
from securetm.reports.page import framed
from securetm.reports.topic_page.page_data import in_script, page_data
from securetm.reports.topic_page.relevance import START, STEPS, logarithms, overall, ranked
from securetm.reports.topic_page.shown_topics import ShownTopics
from securetm.reports.writing import write_report
from securetm.version import __version__

_MOST_CELLS = 4000  # of the table of topics by party: with more, only the largest topics are in it
_TINTS = 8  # of its cells
_FEW_PARTIES = 12  # by which the topics can be sorted
_IN_LIST = 8  # words of a topic

_NO_TEXT = "This page holds no document. All words in it are from the model's list of words."
_QUOTES = "This page shows words of documents in their order. It is for whoever may read these documents, and for nobody else."
_SHARES = (
    "Shares of topics, and how well the model predicts, were measured on documents, after the training and without noise. No "
    "privacy budget covers them. A page made with --model-only leaves them out."
)
_MODEL_ONLY = "Everything here follows from the model alone. Whoever has the model knows it already."
_SCALING = (
    "The map shows roots of Jensen-Shannon divergences in two dimensions (classical scaling); some distances are distorted."
)
_ALONE = "This page asks no server for anything. Labels that you give to topics are lost with it unless you save them."
_RELEVANCE = "Relevance is that of Sievert and Shirley (2014)."


def write_topic_page(shown: ShownTopics, path: Path) -> None:
    """Writes the page: for its owner alone, if anything in it was measured on documents or the model is secret."""
    write_report(path, topic_page(shown), private=shown.measured or shown.secret)


def topic_page(shown: ShownTopics) -> str:
    """The text of the page."""
    parts = (
        '<a class="skip" href="#topic">To the chosen topic</a>',
        _head(shown),
        "<main>",
        _bench(shown),
        _all_topics(shown),
        _heat(shown) if shown.by_party else "",
        "</main>",
        _foot(shown),
        f'<script type="application/json" id="data">{in_script(page_data(shown))}</script>',
    )
    return framed(f"Topics of {printable(shown.title)}", parts, _read("topic_page.css"), _read("topic_page.js"))


def shown_text(text: str) -> str:
    """A word or a name as it stands in the page: no markup, no control character, no mark that turns the line around."""
    return html_text(printable(text))


def _head(shown: ShownTopics) -> str:
    facts = "".join(f"<div><dt>{html_text(name)}</dt><dd>{shown_text(value)}</dd></div>" for name, value in shown.facts)
    quiet = "judged" if shown.of_use else "judged warning"
    judged = f'<p class="{quiet}">{html_text(shown.judged)}</p>' if shown.judged else ""
    warnings = [text for text in (shown.danger, _QUOTES if shown.behind else "") if text]
    said = "".join(f'<p class="warning" role="note"><b>Warning:</b> {shown_text(text)}</p>' for text in warnings)
    script = '<noscript><p class="note">Without scripts, the map and the bars are missing. The tables are whole.</p></noscript>'
    return f"<header><h1>Topics of {shown_text(shown.title)}</h1>\n<dl class=facts>{facts}</dl>{judged}{said}{script}</header>"


def _bench(shown: ShownTopics) -> str:
    """The map, and the chosen topic beside it. The script fills both."""
    size = "A large circle takes a large part of the documents" if shown.shares is not None else "Their sizes are not known"
    return Template(_read("topic_bench.html")).substitute(size=size, longest=LONGEST, steps=STEPS, start=START)


def _read(name: str) -> str:
    return (Path(__file__).parent / name).read_text("utf-8")


def _all_topics(shown: ShownTopics) -> str:
    words, logs = logarithms(overall(shown.topics, shown.shares)), logarithms(shown.topics)
    lines = "\n".join(_line(shown, topic, ranked(row, words, START, _IN_LIST)) for topic, row in enumerate(logs))
    noise = _of_noise(shown)
    share = '<th scope="col" class="long"></th><th scope="col" class="number">share</th>' if shown.shares is not None else ""
    return f"""<section class="later" aria-labelledby="all-title"><h2 id="all-title">All topics</h2>
{f'<p class="note judged">{html_text(noise)}</p>' if noise else ""}
<div class="tools" data-needs-script hidden>
<label>Search words and labels<input id="search" type="search" autocomplete="off"></label>
<label>Sort by<select id="sort">{_options(shown)}</select></label>
<button id="save" type="button">Save labels</button>
<label class="file">Read labels <input id="load" class="said" type="file" accept=".json,application/json"></label>
<span class="note" role="status" id="found"></span><span class="note" role="status" id="labels-said"></span></div>
<table id="topics"><caption class="said">All topics with their words</caption><thead><tr><th scope="col">topic</th>
<th scope="col">words</th>{share}</tr></thead>
<tbody>
{lines}
</tbody></table></section>"""


def _of_noise(shown: ShownTopics) -> str:
    """What the marks mean, or that nothing was tested; nothing where no noise was added."""
    if shown.above_noise is None:
        return NOT_TESTED if shown.noised else ""
    whole = f"{int(shown.above_noise.sum()):,} of all {shown.above_noise.size:,} pairs of a topic and a word"
    return f"{whole} stand above the noise. Words with a question mark do not. {meaning()}"


def _line(shown: ShownTopics, topic: int, first: Array) -> str:
    top = " ".join(_marked(shown, topic, word) for word in first)
    share = "" if shown.shares is None else f'<td class="long"></td><td class="number">{_percent(shown.shares[topic])}</td>'
    return (
        f'<tr data-topic="{topic}"><th scope="row">{_button(topic)}</th><td><span class="named">'
        f'{shown_text(shown.labels.get(topic, ""))}</span><span class="top">{top}</span></td>{share}</tr>'
    )


def _marked(shown: ShownTopics, topic: int, word: int) -> str:
    """A word, with a mark if it does not stand above the noise."""
    sure = shown.above_noise is None or shown.above_noise[topic, word]
    mark = "" if sure else f'<span class="unsure" role="img" aria-label="{UNSURE}" title="{UNSURE}">{MARK}</span>'
    return shown_text(shown.vocabulary[word]) + mark


def _button(topic: int) -> str:
    return f'<button type="button" aria-label="Show topic {topic + 1}" data-topic="{topic}">{topic + 1}</button>'


def _options(shown: ShownTopics) -> str:
    choices = [("number", "number"), *([("share", "share")] if shown.shares is not None else []), ("label", "label")]
    choices += [(f"party {at}", f"share at {name}") for at, name in enumerate(shown.by_party) if at < _FEW_PARTIES]
    return "".join(f'<option value="{value}">{shown_text(text)}</option>' for value, text in choices)


def _heat(shown: ShownTopics) -> str:
    """Topics by party, as a table with tinted cells. Of very many, the largest topics."""
    assert shown.shares is not None
    table = np.array(list(shown.by_party.values())).T
    most = max(1, _MOST_CELLS // table.shape[1])
    kept = np.sort(np.argsort(-shown.shares, kind="stable")[:most])
    left = f" These are the {len(kept)} largest of {len(table)} topics." if len(kept) < len(table) else ""
    head = "".join(f'<th scope="col">{shown_text(name)}</th>' for name in shown.by_party)
    body = "\n".join(_heat_row(shown, int(topic), table) for topic in kept)
    return f"""<section class="later" aria-labelledby="parties-title"><h2 id="parties-title">Topics by party</h2>
<p class="note">How much of its documents each party finds a topic takes.{left}</p>
<div class="wide" role="region" aria-labelledby="parties-title" tabindex="0"><table id="parties">
<thead><tr><th scope="col">topic</th><th scope="col"><span class="said">words</span></th>{head}</tr></thead>
<tbody>
{body}
</tbody></table></div></section>"""


def _heat_row(shown: ShownTopics, topic: int, table: Array) -> str:
    tints = np.ceil(_TINTS * table[topic] / max(float(table.max()), 1e-9) - 0.5).astype(int)
    cells = "".join(f'<td class="h{tint}">{_percent(share)}</td>' for tint, share in zip(tints, table[topic], strict=True))
    top = " ".join(shown_text(shown.vocabulary[word]) for word in _heaviest(shown.topics[topic]))
    named = f'<span class="named" data-topic="{topic}">{shown_text(shown.labels.get(topic, ""))}</span>'
    return f'<tr><th scope="row">{_button(topic)}</th><td class="words">{named} {top}</td>{cells}</tr>'


def _heaviest(topic: Array) -> Array:
    """Its three heaviest words."""
    few = np.argpartition(-topic, min(3, len(topic)) - 1)[:3]
    return np.asarray(few[np.argsort(-topic[few], kind="stable")])


def _foot(shown: ShownTopics) -> str:
    return f"<footer>{_paragraphs(_notes(shown))}</footer>"


def _notes(shown: ShownTopics) -> Iterable[str]:
    yield _SHARES if shown.measured else _MODEL_ONLY
    yield "" if shown.behind else _NO_TEXT
    yield f"{_SCALING} {_RELEVANCE}"
    yield f"{_ALONE} Made by securetm {__version__}."


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"<p>{html_text(text)}</p>" for text in texts if text)


def _percent(share: float) -> str:
    return f"{100 * share:.{1 if share < 0.0995 else 0}f}\N{NO-BREAK SPACE}%"
