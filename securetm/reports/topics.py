"""Topics in the terminal, in CSV and in Parquet: their words, shares, dates, and how far they moved."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.foreign_text import csv_text
from securetm.reports.document import Cell, Table, Words
from securetm.reports.files import StandardOutput, write_report
from securetm.runs.finished import MergedTopics, TopicsByDate, TopicsByLabel
from securetm.wording import counted

MARK = "?"
UNSURE = "not above the noise"  # what the mark means, where it is read aloud
NOT_TESTED = "Which words stand above the noise is not tested here: that needs the noised counts of words in topics."
Marks = Sequence[Sequence[bool]]


def with_marks(words: Sequence[str], above: Sequence[bool] | None) -> tuple[Words, ...]:
    """Words of a topic; those that do not stand above the noise are dim and have a question mark."""
    stands = [True] * len(words) if above is None else above
    return tuple(
        part
        for place, (word, sure) in enumerate(zip(words, stands, strict=False))
        for part in (Words(" " if place else ""), Words(word if sure else f"{word}{MARK}", "" if sure else "note"))
    )


def meaning() -> str:
    """What it means that a word stands above the noise."""
    from securetm.models.noisy_counts import RATE

    return (
        "Above the noise: without noise, the topic has the word more often than the totals of topic and word say. Of all words "
        f"said to stand above it, {RATE:.0%} at most are expected not to. This is about this training: another one may find "
        "other topics."
    )


def noise_said(above: Marks | None, noised: bool) -> str:
    """What the marks of a table mean; nothing where no noise was added."""
    if above is None:
        return NOT_TESTED if noised else ""
    shown = sum(map(len, above))
    return f"{sum(map(sum, above))} of {shown} words stand above the noise; those with a question mark do not. {meaning()}"


_EIGHTHS = " ▏▎▍▌▋▊▉█"
_WIDE = 8  # characters of the longest bar


def topics_table(
    topics: Sequence[Sequence[str]],
    labels: Mapping[int, str],
    shares: Array | None = None,
    shares_of: str = "",
    *,
    above_noise: Marks | None = None,
    noised: bool = False,
) -> Table:
    """Numbered topics. A label stands above a topic's words. Where shares are known, bars show them.

    Words that do not stand above the noise are marked, where that was tested.
    """
    known = shares is not None
    caption = f"Share: how much of {shares_of} a topic takes. " if known else ""
    most = float(shares.max()) if shares is not None else 0.0
    rows: list[tuple[Cell, ...]] = []
    for place, words in enumerate(topics):
        label = (Words(f"{labels[place]}\n", "strong"),) if place in labels else ()
        marked = with_marks(words, None if above_noise is None else above_noise[place])
        share = () if shares is None else (f"{bar(float(shares[place]), most)} {shares[place]:5.1%}",)
        rows.append((str(place + 1), ((*label, *marked),), *share))
    columns = ("", "label, and top words" if labels else "top words", *(("share",) if known else ()))
    return Table(columns, tuple(rows), caption + noise_said(above_noise, noised), numeric=(0,), whole=(2,))


def bar(share: float, most: float) -> str:
    """A bar of blocks, as long as the share is of the largest one, to an eighth of a character."""
    eighths = round(8 * _WIDE * share / max(most, 1e-9))
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(_WIDE)


def groups_table(groups: Sequence[Sequence[int]], topics: Sequence[Sequence[str]], labels: Mapping[int, str]) -> Table:
    """A row for each group of like topics, and a line for each of its topics: its label, or its first words."""
    rows = tuple(
        (str(number), "\n".join(f"{topic + 1}: {labels.get(topic) or ' '.join(topics[topic][:5])}" for topic in group))
        for number, group in enumerate(groups, 1)
    )
    return Table(("", "topics"), rows, title=f"Like topics in {counted(len(groups), 'group')}", numeric=(0,))


def merged_table(merged: MergedTopics, words: int, labels: Mapping[int, str]) -> Table:
    """A row for each topic after those that are nearly the same were made one, with the numbers of these."""
    rows = tuple(
        (", ".join(str(topic + 1) for topic in group), f"{labels[place]}\n{said}" if place in labels else said)
        for place, (group, found) in enumerate(zip(merged.groups, merged.words(words), strict=True))
        for said in [" ".join(found)]
    )
    before = sum(map(len, merged.groups))
    title = f"{counted(len(rows), 'topic')} of {before}, after those that are nearly the same were made one"
    return Table(("topics", "top words"), rows, title=title)


_BARS = "▁▂▃▄▅▆▇█"
_NO_DOCUMENT = " "
_LEAST, _BESIDE = 12, 46  # characters of a line of bars at least, and of all else in the table


def over_time_table(
    over_time: TopicsByDate, topics: Sequence[Sequence[str]], labels: Mapping[int, str], width: int = 80
) -> Table:
    """A row for each topic: its line of bars, from its least to its largest share, and when that is."""
    each = merged_periods(over_time, max(_LEAST, width - _BESIDE))
    documents = counted(int(over_time.documents.sum()), "document")
    if not len(each):
        return Table((), (), title=f"Topics by {over_time.period}: no document has a known word")
    ends = f"{over_time.periods[0]} to {over_time.periods[-1]}"
    several = -(-len(over_time.periods) // len(each))
    merged = f" A bar stands for {counted(several, over_time.period)}." if several > 1 else ""
    caption = f"A bar is a topic's share of the documents at that time; the highest is its most. No bar: no document.{merged}"
    rows = []
    for place, words in enumerate(topics):
        peak = int(np.nanargmax(over_time.shares[:, place]))
        most = f"{over_time.shares[peak, place]:.0%}"
        named = labels.get(place) or " ".join(words[:3])
        rows.append((str(place + 1), named, line_of_bars(each[:, place]), most, over_time.periods[peak]))
    columns, title = ("", "topic", ends, "most", "in"), f"Topics by {over_time.period}, {documents}"
    return Table(columns, tuple(rows), caption, title, numeric=(0, 3), whole=(2, 3, 4))


_MOST_LABELS, _TOPICS_OF_LABEL = 100, 3


def labels_table(by_label: TopicsByLabel, topics: Sequence[Sequence[str]], labels: Mapping[int, str]) -> Table:
    """A row for each label: how many documents have it, and what they are mostly about."""
    rows, kept = [], np.sort(np.argsort(-by_label.documents, kind="stable")[:_MOST_LABELS])
    for place in kept.tolist():
        name, documents, shares = by_label.labels[place], by_label.documents[place], by_label.shares[place]
        first = np.argsort(-shares, kind="stable")[:_TOPICS_OF_LABEL]
        said = [f"{shares[topic]:.0%} {labels.get(int(topic)) or ' '.join(topics[topic][:3])}" for topic in first]
        rows.append((name, f"{documents:,}", " · ".join(said)))
    left_out = len(by_label.labels) - len(kept)
    more = f" {counted(left_out, 'label')} with fewer documents are left out here." if left_out else ""
    caption = f"The mean topic shares of the documents of each label, the largest first.{more}"
    return Table(("label", "documents", "topics"), tuple(rows), caption, "Topics by label", numeric=(1,), whole=(1,))


def merged_periods(over_time: TopicsByDate, most: int) -> Array:
    """The shares of at most so many stretches of time, by topic: neighbouring periods are averaged over their documents."""
    several = -(-len(over_time.periods) // most) or 1
    starts = np.arange(0, len(over_time.periods), several)
    weights = over_time.documents[:, None]
    sums = np.add.reduceat(np.nan_to_num(over_time.shares) * weights, starts) if len(starts) else over_time.shares
    counts = np.add.reduceat(over_time.documents, starts)[:, None] if len(starts) else weights
    means: Array = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means


def line_of_bars(shares: Array) -> str:
    """One character for each share, from none to the largest of them."""
    most = max(float(np.nanmax(shares)), 1e-12)
    heights = np.rint(np.nan_to_num(shares) / most * (len(_BARS) - 1)).astype(int)
    return "".join(_NO_DOCUMENT if share != share else _BARS[height] for share, height in zip(shares, heights, strict=True))


_CAPTION = (
    "Moved: the Hellinger distance between a topic's words then and now, from 0 (the same) to 1 (no word in common). Words "
    "are those that came into its ten heaviest, or left them."
)


def moved_table(moved: Sequence[Mapping[str, Any]], topics: Sequence[Sequence[str]], labels: Mapping[int, str]) -> Table:
    """A row for each topic: how far it moved, and which words came and went."""
    rows = tuple(
        (
            str(row["topic"] + 1),
            labels.get(row["topic"]) or " ".join(topics[row["topic"]][:3]),
            "new" if row["distance"] is None else f"{row['distance']:.2f}",
            " ".join(row["came"]),
            " ".join(row["gone"]),
        )
        for row in moved
    )
    title = "Since the model that this run went on from"
    return Table(("", "topic", "moved", "came", "gone"), rows, _CAPTION, title, numeric=(0, 2))


_NO_LABELS: Mapping[int, str] = {}


def documents_table(
    shares: Any,
    topics: Sequence[Sequence[str]],
    best: int,
    none: Mapping[int, str] = _NO_LABELS,
    most: int = 20,
    labels: Mapping[int, str] = _NO_LABELS,
) -> Table:
    """The strongest topics of the first documents; `none` says why some have none."""
    rows = []
    for number, row in enumerate(shares[:most]):
        order = sorted(range(len(row)), key=lambda topic: -row[topic])[:best]
        named = (f"{row[topic]:5.1%}  {topic + 1}: {labels.get(topic) or ' '.join(topics[topic])}" for topic in order)
        rows.append((str(number + 1), none.get(number) or "\n".join(named)))
    more = f"the first {most}; all of them with --json" if len(shares) > most else ""
    return Table(("", "strongest topics"), tuple(rows), more, f"Topics of {counted(len(shares), 'document')}", numeric=(0,))


STANDARD_OUTPUT = "-"  # as the name of a file


def topics_csv(words: Iterable[tuple[int, int, str, float]], labels: Mapping[int, str], to: str, *, private: bool) -> None:
    """A line for each of a topic's heaviest words: topic (from 0), label, rank (from 1), word, weight."""
    lines = [(topic, labels.get(topic, ""), rank, word, f"{weight:.8g}") for topic, rank, word, weight in words]
    _write(csv_text(("topic", "label", "rank", "word", "weight"), lines), to, private=private)


def mean_shares_csv(found: TopicsByDate | TopicsByLabel, labels: Mapping[int, str], to: str) -> None:
    """A line for each topic in the documents of each period, or label: how many these are, topic (from 0), label, share."""
    table = found.table()
    head, groups = ("period", table["periods"]) if "periods" in table else ("of", table["labels"])
    lines = [
        (group, documents, topic, labels.get(topic, ""), f"{share:.6f}")
        for group, documents, row in zip(groups, table["documents"], table["shares"], strict=True)
        for topic, share in enumerate(row or ())
    ]
    _write(csv_text((head, "documents", "topic", "label", "share"), lines), to, private=True)


def shares_csv(shares: Array, known: Sequence[int], to: str) -> None:
    """A line for each document: its number (from 1), its known words, and the share of each topic."""
    lines = [(*facts, *(f"{share:.6f}" for share in row)) for facts, row in zip(enumerate(known, 1), shares, strict=True)]
    _write(csv_text(_columns(shares), lines), to, private=True)


def shares_parquet(shares: Array, known: Sequence[int], to: Path) -> None:
    """The same columns as an Arrow table, in a Parquet file that its owner alone can read."""
    import pyarrow
    from pyarrow import parquet

    columns: list[Any] = [range(1, len(known) + 1), known, *shares.T]
    table = pyarrow.table([pyarrow.array(column) for column in columns], names=list(_columns(shares)))
    whole = io.BytesIO()
    parquet.write_table(table, whole)
    write_report(to, whole.getvalue(), private=True)


def _columns(shares: Array) -> tuple[str, ...]:
    return "document", "known_words", *(f"topic_{topic}" for topic in range(shares.shape[1]))


def _write(text: str, to: str, private: bool) -> None:
    if to == STANDARD_OUTPUT:
        StandardOutput().write(text)
    else:
        write_report(Path(to), text, private=private)
