"""The topics of a run as one HTML file: tables in the file itself, which `topic_page.js` makes a map, bars and a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from securetm.contracts import Array, Unit, unit_name
from securetm.corpus.corpus import Corpus
from securetm.data_classes import dataclass, field
from securetm.federation.folder import RESULT, RUN, result_of
from securetm.federation.party.result import REPORT
from securetm.federation.store import DamagedStore, read_json
from securetm.federation.topic_labels import LONGEST
from securetm.foreign_text import printable
from securetm.plans.profiles import read_profile
from securetm.reports.document import Table
from securetm.reports.files import write_report
from securetm.reports.pages import page
from securetm.reports.runs import of_use
from securetm.reports.topics import MARK, NOT_TESTED, UNSURE, meaning
from securetm.runs.finished import FinishedRun, TopicsByDate, readable_rows
from securetm.version import __version__
from securetm.wording import counted, upward, upward_figure


@dataclass(frozen=True)
class TopicDocument:
    """A document that takes much of a topic. Its text was dropped after tokenising."""

    number: int  # in the order in which they were read, from 1
    share: float  # of the document that the topic takes
    words: str  # the agreed words of it, in reading order where it is known; else the commonest first
    label: str = ""
    date: str = ""


class MappedDocument(NamedTuple):
    """A document on the map of topics: between those that it has more of than an even share."""

    number: int  # in the order in which they were read, from 1
    words: str
    pulls: tuple[tuple[int, float], ...]  # topics and parts of the whole, the largest first


@dataclass(frozen=True)
class DocumentsBehind:
    whose: str
    shares: Array  # of each topic in all of these documents
    in_order: bool  # whether words are in reading order
    topics: tuple[tuple[TopicDocument, ...], ...]
    mapped: tuple[MappedDocument, ...]
    documents: int  # whose topics the model can tell


@dataclass(frozen=True)
class ShownTopics:
    """Everything that the page shows of a run. What is None is not known here, and the page leaves it out."""

    title: str
    facts: tuple[tuple[str, str], ...]  # name and value, for the head of the page
    topics: Array  # topics x words, rows sum to one
    vocabulary: tuple[str, ...]
    judged: str = ""  # whether the model is of use, in a sentence
    of_use: bool = True
    danger: str = ""
    shares: Array | None = None  # of each topic in all documents
    shares_of: str = ""  # whose documents these are
    by_party: Mapping[str, Array] = field(default_factory=dict)
    above_noise: Array | None = None  # topics x words: whether a word stands above the noise in a topic; None: not tested
    noised: bool = False  # whether noise was added for a privacy budget
    labels: Mapping[int, str] = field(default_factory=dict)
    behind: DocumentsBehind | None = None
    over_time: TopicsByDate | None = None
    over_time_of: str = "all parties"  # whose documents those are
    secret: bool = False  # the model itself is for its owner alone

    @property
    def measured(self) -> bool:
        """Whether anything here was measured on documents, and so does not follow from the model."""
        return bool(self.judged) or any(one is not None for one in (self.shares, self.over_time, self.behind))


STEPS = 20  # from l = 0 to l = 1
START = 12  # l = 0.6, which Sievert and Shirley's readers interpreted best
SHOWN = 20  # words of a topic, at any step
_FINENESS = 1000  # of a logarithm: a tenth of a per cent
_LEAST = 1e-12  # a share below it counts as zero, and its word comes after all others
_ZERO = -1_000_000


def logarithms(shares: Array) -> Array:
    """Natural logarithms in whole thousandths, as the page has them."""
    found = np.rint(_FINENESS * np.log(np.maximum(shares, _LEAST))).astype(np.int64)
    return np.where(shares < _LEAST, _ZERO, found)


def overall(topics: Array, shares: Array | None) -> Array:
    """The share of each word in all documents as the model sees them: its share in each topic, times the topic's share.

    Where no share of a topic is known, all topics count alike.
    """
    weights = np.full(len(topics), 1.0) if shares is None else np.maximum(shares, 1e-4)
    found: Array = weights / weights.sum() @ topics
    return found


def ranked(topic: Array, words: Array, step: int, shown: int = SHOWN) -> Array:
    """The first words at this step, by the logarithms of one topic and of all documents; of equals the first word."""
    relevance = STEPS * topic - (STEPS - step) * words
    keys = relevance * len(topic) - np.arange(len(topic))
    first = np.argpartition(-keys, min(shown, len(keys)) - 1)[:shown]
    found: Array = first[np.argsort(-keys[first])]
    return found


def candidates(topic: Array, words: Array, shown: int = SHOWN) -> Array:
    """All words that are among the first ones at some step, in the order of the vocabulary."""
    middle = ranked(topic, words, STEPS // 2, shown)
    rare = topic - words
    # Relevance is linear in l: a word that is behind all of these words at both ends is behind them everywhere.
    near = np.flatnonzero((topic >= topic[middle].min()) | (rare >= rare[middle].min()))
    found = [near[ranked(topic[near], words[near], step, shown)] for step in range(STEPS + 1)]
    return np.unique(np.concatenate(found))


_MOST_WORDS, _LEAST_WORDS = 2000, 400  # of a large vocabulary, the commonest ones; all others count as one word
_MOST_TERMS = 4 * 10**8  # of all divergences together: many topics are compared by fewer words


def distances(topics: Array) -> Array:
    """The distance of each topic to each: from 0, if they use all words alike, to 1, if they share none."""
    few, most = topics, max(_LEAST_WORDS, min(_MOST_WORDS, _MOST_TERMS // len(topics) ** 2))
    if topics.shape[1] > most:
        order = np.argsort(-topics.sum(axis=0), kind="stable")
        few = np.column_stack([topics[:, order[:most]], topics[:, order[most:]].sum(axis=1)])
    own = xlogy(few, few).sum(axis=1)
    found = np.zeros((len(few), len(few)))
    for number, topic in enumerate(few):
        mean = (few[number:] + topic) / 2
        found[number, number:] = (own[number:] + own[number]) / 2 - xlogy(mean, mean).sum(axis=1)
    roots: Array = np.sqrt(np.maximum(found + found.T, 0) / np.log(2))
    return roots


def places(topics: Array) -> Array:
    """Two coordinates of each topic, from -1 to 1. The map keeps its proportions."""
    square = np.square(distances(topics))
    inner = square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean()
    values, vectors = np.linalg.eigh(-inner / 2)
    axes = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0))
    axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))
    upward = np.sign(axes[np.argmax(np.abs(axes), axis=0), [0, 1]])  # an eigenvector may as well have the other sign
    middled = axes * upward - (axes.max(axis=0) + axes.min(axis=0)) / 2 * upward
    found: Array = middled / max(float(np.abs(middled).max()), 1e-12)
    return found


MOST = 5  # documents of a topic
_MOST_MAPPED = 2000  # documents on the map, spread evenly over all
_LEAST_PULL = 0.01
_PULLS = 3  # topics between which a document lies
_WORDS, _WORDS_ON_MAP = 30, 8  # of a document
_LEAST_SHARE = 0.1  # of a document: below, a topic is not what it is about


def documents_behind(finished: FinishedRun, corpus: Corpus, whose: str) -> DocumentsBehind:
    """The strongest documents of each topic. Of two with the same share, the longer one comes first."""
    documents = corpus.project(finished.vocabulary)
    lengths = documents.lengths()
    known = readable_rows(finished.model, documents)
    shares = np.zeros((len(documents), len(finished.components_)))
    shares[known] = finished.model.infer(finished.state, documents.select(known))
    topics = []
    for column in shares.T:
        order = np.lexsort((-lengths, -column.round(3)))[:MOST]
        topics.append(tuple(_document(documents, int(row), float(column[row])) for row in order if column[row] >= _LEAST_SHARE))
    spots = []
    evenly = np.unique(np.linspace(0, len(known), _MOST_MAPPED, endpoint=False, dtype=np.int64))
    for row in (known[evenly] if len(known) else known).tolist():
        first = np.argsort(-shares[row], kind="stable")[:_PULLS]
        above = np.sqrt(np.maximum(shares[row][first] - 1 / len(shares[row]), 0))  # the root spreads them over more of the map
        above[0] += not above.any()  # all shares are alike
        parts = zip(first, above / above.sum(), strict=True)
        pulls = tuple((int(topic), float(part)) for topic, part in parts if part >= _LEAST_PULL)
        spots.append(MappedDocument(row + 1, _words_of(documents, row, _WORDS_ON_MAP), pulls))
    everywhere = shares.sum(axis=0) / max(len(known), 1)
    return DocumentsBehind(whose, everywhere, documents.tokens is not None, tuple(topics), tuple(spots), len(known))


def _document(documents: Corpus, row: int, share: float) -> TopicDocument:
    label, date = ("" if column is None else str(column[row]) for column in (documents.labels, documents.dates))
    return TopicDocument(row + 1, share, _words_of(documents, row, _WORDS), label, date)


def _words_of(documents: Corpus, row: int, most: int) -> str:
    """The first words of a document in reading order; the commonest where the order is not known."""
    if documents.tokens is not None and documents.token_ends is not None:
        begin = documents.token_ends[row - 1] if row else 0
        words = documents.tokens[begin : documents.token_ends[row]]
    else:
        counts = documents.counts[[row]]
        words = counts.indices[np.argsort(-counts.data, kind="stable")]
    return " ".join(documents.vocabulary[word] for word in words[:most]) + " …" * (len(words) > most)


_IN_TERMINAL = 3  # documents of a topic


def documents_of_topics(behind: DocumentsBehind, topics: Sequence[Sequence[str]], labels: Mapping[int, str]) -> Table:
    """The documents in which each topic is strongest, with how much of each it takes and its first words."""
    rows = tuple(
        (str(place + 1), labels.get(place) or " ".join(topics[place][:3]), str(one.number), f"{one.share:.0%}", one.words)
        for place, several in enumerate(behind.topics)
        for one in several[:_IN_TERMINAL]
    )
    title = f"Documents of {behind.whose} that topics are strongest in; their words stay with whoever holds them"
    return Table(("", "topic", "document", "share", "words"), rows, title=title, numeric=(0, 2, 3), whole=(0, 2, 3))


_UNPROTECTED = "No budget: the model may tell who is in it"


def shown_topics(
    finished: FinishedRun,
    *,
    labels: Mapping[int, str] | None = None,
    model_only: bool = False,
    documents: Mapping[str, Corpus] | None = None,
    quoted: bool = False,
    over_time: TopicsByDate | None = None,
) -> ShownTopics:
    """What the page of this run shows. With `model_only`, nothing but what whoever has the model knows.

    `documents`, by whose they are, are those of `over_time`. Only if they are `quoted`, the page shows their words.
    """
    result, profile = _result(finished.folder), read_profile(finished.plan.profile)
    by_party = {} if model_only else _by_party(result)
    given = documents or {}
    behind = next((documents_behind(finished, held, whose) for whose, held in given.items()), None) if quoted else None
    shares, shares_of = _everywhere(result, by_party)
    if behind is not None and shares is None:
        shares, shares_of = behind.shares, f"the documents of {behind.whose}"
    size = f"{counted(len(finished.components_), 'topic')}, {counted(len(finished.vocabulary), 'word')}"
    if "parties" in result:
        held = {} if model_only else result.get("documents", {})  # a coordinator has none
        trained_on = f" with {counted(sum(one['all'] for one in held.values()), 'document')}" if held else ""
        trained_by = f"{counted(len(result['parties']), 'party', 'parties')}{trained_on}"
    else:  # a party's own report
        trained_by = f"{result['party']} in federation {result['federation']}"
    privacy, told = _UNPROTECTED, result["spent"]
    if spends := [one for one in (told if isinstance(told, list) else [told]) if one and one["epsilon"] is not None]:
        most = max(spends, key=lambda one: one["epsilon"])  # the most that this run spent of any party's budget
        unit = unit_name(Unit(most["unit"]))
        privacy = f"Epsilon {upward(most['epsilon'])} per {unit} at delta {upward_figure(most['delta'])}"
    facts = (
        ("Model", f"{finished.plan.model.name}, {size}"),
        ("Trained by", f"{trained_by}, {counted(result['rounds'], 'round')}"),
        ("Profile", f"{profile.name}: {profile.title}"),
        ("Privacy", privacy),
    )
    return ShownTopics(
        title=finished.name,
        facts=facts,
        topics=finished.components_,
        vocabulary=finished.vocabulary,
        judged="" if model_only or result.get("useful") is None else of_use(result),
        of_use=result.get("useful") is not False,
        danger=profile.danger,
        shares=shares,
        shares_of=shares_of,
        by_party=by_party,
        above_noise=finished.model.above_noise(finished.state),
        noised=finished.spent_a_budget(),
        labels=labels or {},
        behind=behind,
        over_time=over_time,
        over_time_of=next(iter(given)) if len(given) == 1 else "all parties",
        secret=finished.is_adapted(),
    )


def _result(run: Path) -> dict[str, Any]:
    """The result of a run, or what a party reports of it."""
    if (run / RUN).is_file():
        return result_of(run)
    report = read_json(run / REPORT)
    if missing := [name for name in ("party", "federation", "rounds", "spent") if name not in report]:
        raise DamagedStore(str(run / REPORT), f"it does not say `{missing[0]}`")
    return report


def _by_party(result: Mapping[str, Any]) -> dict[str, Array]:
    return {name: np.asarray(shares, dtype=float) for name, shares in (result.get("prevalence") or {}).items()}


def _everywhere(result: Mapping[str, Any], by_party: Mapping[str, Array]) -> tuple[Array | None, str]:
    """The share of each topic in all documents, and whose these are."""
    if not by_party:
        return None, ""
    documents = np.array([result["documents"][name]["with_agreed_words"] for name in by_party], dtype=float)
    every = f"all {counted(int(documents.sum()), 'document')} of {counted(len(by_party), 'party', 'parties')}"
    return documents / max(documents.sum(), 1) @ np.array(list(by_party.values())), every


def shares_everywhere(finished: FinishedRun) -> tuple[Array | None, str]:
    """The share of each topic in all documents, and whose these are; None where this folder does not know it."""
    if not (finished.folder / RESULT).is_file():
        return None, ""
    result = result_of(finished.folder)
    return _everywhere(result, _by_party(result))


def page_data(shown: ShownTopics) -> dict[str, Any]:
    """What the script of the page reads."""
    all_words = logarithms(overall(shown.topics, shown.shares))
    logs = logarithms(shown.topics)
    wanted = [candidates(topic, all_words) for topic in logs]
    kept = np.unique(np.concatenate(wanted))
    at = places(shown.topics)
    weights = np.full(len(logs), 1 / len(logs)) if shown.shares is None else shown.shares
    above, behind, documents = shown.above_noise, shown.behind, None
    if behind is not None:
        strongest = [
            [(one.number, float(f"{one.share:.3g}"), *map(printable, (one.label, one.date, one.words))) for one in several]
            for several in behind.topics
        ]
        mapped = [
            (one.number, printable(one.words), [(topic, float(f"{part:.3g}")) for topic, part in one.pulls])
            for one in behind.mapped
        ]
        whose = {"whose": printable(behind.whose), "in_order": behind.in_order}
        documents = {**whose, "topics": strongest, "mapped": mapped}
    return {
        "steps": STEPS,
        "start": START,
        "unsure": UNSURE,
        "shown": min(SHOWN, len(shown.vocabulary)),
        "first": int(np.argmax(weights)),
        "longest_label": LONGEST,
        "words": [printable(shown.vocabulary[word]) for word in kept],
        "overall": all_words[kept].tolist(),
        "topics": [
            {
                "words": np.searchsorted(kept, words).tolist(),
                "logs": row[words].tolist(),
                "at": at[topic].round(4).tolist(),
                # a 1 for each word that does not stand above the noise
                **({} if above is None else {"unsure": "".join("0" if stands else "1" for stands in above[topic, words])}),
            }
            for topic, (row, words) in enumerate(zip(logs, wanted, strict=True))
        ],
        "weights": _rounded(weights),
        "shares": None if shown.shares is None else _rounded(shown.shares),
        "shares_of": printable(shown.shares_of),
        "parties": [printable(name) for name in shown.by_party],
        "by_party": [_rounded(shares) for shares in shown.by_party.values()],
        "labels": {str(topic): printable(label) for topic, label in shown.labels.items()},
        "over_time": (
            {**shown.over_time.table(), "whose": printable(shown.over_time_of)}
            if shown.over_time is not None and shown.over_time.periods
            else None
        ),
        "behind": documents,
    }


def _rounded(shares: Array) -> list[float]:
    return [float(f"{share:.4g}") for share in shares]


_MOST_CELLS = 4000  # of the table of topics by party: with more, only the largest topics are in it
_TINTS = 8  # of its cells
_FEW_PARTIES = 12  # by which the topics can be sorted
_IN_LIST = 8  # words of a topic


def write_topic_page(shown: ShownTopics, path: Path) -> None:
    """Writes the page: for its owner alone, if anything in it was measured on documents or the model is secret."""
    write_report(path, topic_page(shown), private=shown.measured or shown.secret)


def topic_page(shown: ShownTopics) -> str:
    everywhere, logs = logarithms(overall(shown.topics, shown.shares)), logarithms(shown.topics)
    heat, left_out = _heat(shown) if shown.by_party else ([], "")
    parties = [(f"party {at}", f"share at {name}") for at, name in enumerate(shown.by_party) if at < _FEW_PARTIES]
    share = [("share", "share")] if shown.shares is not None else []
    above, noise = shown.above_noise, NOT_TESTED if shown.noised else ""
    if above is not None:
        whole = f"{int(above.sum()):,} of all {above.size:,} pairs of a topic and a word"
        noise = f"{whole} stand above the noise. Words with a question mark do not. {meaning()}"
    lines = [
        [
            (shown.vocabulary[word], above is None or bool(above[topic, word]))
            for word in ranked(row, everywhere, START, _IN_LIST)
        ]
        for topic, row in enumerate(logs)
    ]
    return page(
        "topics.html",
        f"Topics of {printable(shown.title)}",
        ("page", "topic_page"),
        "topic_page",
        shown=shown,
        longest=LONGEST,
        steps=STEPS,
        start=START,
        noise=noise,
        mark=MARK,
        unsure=UNSURE,
        orders=[("number", "number"), *share, ("label", "label"), *parties],
        lines=lines,
        shares=None if shown.shares is None else [_percent(share) for share in shown.shares],
        heat=heat,
        left_out=left_out,
        version=__version__,
        data=page_data(shown),
    )


def _heat(shown: ShownTopics) -> tuple[list[tuple[int, str, list[tuple[int, str]]]], str]:
    """Of each topic its three heaviest words, and for each party a tint and a share; of very many, the largest topics."""
    assert shown.shares is not None
    table = np.array(list(shown.by_party.values())).T
    most = max(1, _MOST_CELLS // table.shape[1])
    kept = np.sort(np.argsort(-shown.shares, kind="stable")[:most])
    left_out = f" These are the {len(kept)} largest of {len(table)} topics." if len(kept) < len(table) else ""
    tints = np.ceil(_TINTS * table / max(float(table.max()), 1e-9) - 0.5).astype(int)
    rows = [
        (
            int(topic),
            " ".join(shown.vocabulary[word] for word in np.argsort(-shown.topics[topic], kind="stable")[:3]),
            [(int(tint), _percent(share)) for tint, share in zip(tints[topic], table[topic], strict=True)],
        )
        for topic in kept
    ]
    return rows, left_out


def _percent(share: float) -> str:
    return f"{100 * share:.{1 if share < 0.0995 else 0}f}\N{NO-BREAK SPACE}%"
