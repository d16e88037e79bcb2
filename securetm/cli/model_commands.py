"""`securetm topics` and `securetm transform`: the topics of a finished run, and the topics of new documents."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli.json_output import Json, print_json
from securetm.toml_settings import require

if TYPE_CHECKING:
    from securetm.corpus.corpus import Corpus
    from securetm.federation.finished import FinishedRun
    from securetm.federation.topic_labels import TopicLabels
    from securetm.federation.topics_by_date import TopicsByDate

Run = Annotated[Path, typer.Argument(help="The folder of a finished run.")]


def topics(
    run: Run,
    words: Annotated[int, typer.Option(min=1, max=1000, help="Words per topic.")] = 10,
    label: Annotated[
        list[str] | None, typer.Option(metavar="NUMBER=TEXT", help="Label a topic; it is kept in the run's folder.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="A file of labels that takes the place of the run's own.")] = None,
    by_date: Annotated[
        str | None, typer.Option(metavar="PERIOD", help="Show each topic's share of the documents of every year, month or day.")
    ] = None,
    party: Annotated[str | None, typer.Option(help="With --by-date: only the documents of this party of a simulation.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="With --by-date: a file of documents that is not in the run.")] = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the text, unless it is called so.")] = None,
    date: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the date, unless it is called so.")] = None,
    json: Json = False,
) -> None:
    """Shows the topics of a finished run, heaviest words first. Labels that people gave to topics stand beside them."""
    from securetm.reports.terminal import results, topics_table

    finished = _opened(run)
    over_time = _over_time(finished, by_date, party, (corpus, text, date))
    found, named = finished.topics(words), _labelled(finished, label or [], labels)
    results(json).print(topics_table(found, named.texts))
    if over_time is not None:
        _show_over_time(over_time, found, named, json)
    if json:
        more = {"by_date": over_time.table()} if over_time else {}
        print_json({"run": finished.name, "model": finished.plan.model.name, "topics": found, **named.table(), **more})


def transform(
    run: Run,
    file: Annotated[Path, typer.Argument(help="New documents: .jsonl, .csv, .tsv, .parquet or a folder of .txt.")],
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the text, unless it is called so.")] = None,
    best: Annotated[int, typer.Option(min=1, help="How many topics to name per document.")] = 3,
    json: Json = False,
) -> None:
    """Finds the topics of new documents with the model of a finished run."""
    from securetm.reports.terminal import documents_table, results

    finished = _opened(run)
    documents = finished.read(file, text)
    shares, known = _transformed(finished, documents)
    unknown = [row for row, words in enumerate(known) if not words]
    named = finished.labels()
    results(json).print(documents_table(shares, finished.topics(4), best, unknown, labels=named.texts))
    if json:
        rows = _rows(finished.name, str(file), shares)
        print_json({**rows, "known_words": known, "without_known_words": unknown, **named.table()})


def _opened(run: Path) -> FinishedRun:
    """The run, with a note where it keeps no digests of its files."""
    from securetm.federation.finished import FinishedRun
    from securetm.reports.terminal import screen

    finished = FinishedRun.open(run)
    if not finished.bound:
        screen().print("This run is of an earlier version, which wrote no digests, so changes of its files cannot be detected.")
    return finished


def _labelled(finished: FinishedRun, given: list[str], file: Path | None) -> TopicLabels:
    """The labels of the run's topics, after those that were given are kept in its folder."""
    from securetm.federation.topic_labels import TopicLabels

    topics = len(finished.components_)
    labels = finished.labels() if file is None else TopicLabels.read(file, topics)
    for one in given:
        labels = labels.with_given(one, topics)
    if given or file is not None:
        labels.write(finished.folder)
    return labels


def _over_time(
    finished: FinishedRun, period: str | None, party: str | None, given: tuple[Path | None, str | None, str | None]
) -> TopicsByDate | None:
    """The topics by date, of the documents in the run's folder or of a file; nothing where they are not asked for."""
    from securetm.corpus.dates import PERIODS
    from securetm.federation.topics_by_date import documents_in, topics_by_date

    file, text, date = given
    if period is None:
        needed = "is of use with --by-date only"
        for name, value in (("--party", party), ("--corpus", file), ("--text", text), ("--date", date)):
            require(value is None, "securetm topics", name, value, needed)
        return None
    require(period in PERIODS, "", "--by-date", period, known=PERIODS)
    require(file is None or party is None, "", "--party", party, "names a party of the run, and --corpus other documents")
    held = documents_in(finished, party) if file is None else {str(file): finished.read(file, text, date)}
    return topics_by_date(finished, held, period)


def _show_over_time(over_time: TopicsByDate, topics: list[list[str]], labels: TopicLabels, json: bool) -> None:
    """A table with a line of bars for each topic."""
    from securetm.reports.terminal import results
    from securetm.reports.topics_over_time import over_time_table

    to = results(json)
    to.print(over_time_table(over_time, topics, labels.texts, to.width))


def _transformed(finished: FinishedRun, documents: Corpus) -> tuple[Any, list[int]]:
    """Topic shares, and how many words of each document are known; documents without one are counted on standard error."""
    from securetm.models.model_errors import NoKnownWords
    from securetm.reports.terminal import screen

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NoKnownWords)
        shares = finished.transform(documents)
    for warning in caught:
        screen().print(f"{warning.message}.", style="yellow", markup=False)
    return shares, finished.known_words(documents).tolist()


def _rows(run: str, file: str, shares: Any) -> dict[str, Any]:
    return {"run": run, "file": file, "documents": [[round(float(share), 6) for share in row] for row in shares]}
