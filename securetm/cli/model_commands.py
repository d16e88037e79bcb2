"""`securetm topics` and `securetm transform`: the topics of a finished run, and the topics of new documents."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli import completion
from securetm.cli.json_output import Json, print_json
from securetm.settings import require

if TYPE_CHECKING:
    from securetm.corpus.corpus import Corpus
    from securetm.federation.topic_labels import TopicLabels
    from securetm.runs.finished import FinishedRun, TopicsByDate

Run = Annotated[Path, typer.Argument(help="The folder of a finished run.", autocompletion=completion.run_folders)]


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
    html: Annotated[Path | None, typer.Option(help="Write one page with map, bars and search to this file.")] = None,
    documents: Annotated[
        bool, typer.Option("--documents", help="With --html: show documents behind the topics, of --party or of --corpus.")
    ] = False,
    model_only: Annotated[bool, typer.Option("--model-only", help="With --html: only what follows from the model.")] = False,
    party: Annotated[
        str | None, typer.Option(help="With --by-date or --documents: the documents of this party of a simulation.")
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="With --by-date or --documents: a file of documents that is not in the run.")
    ] = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the text, unless it is called so.")] = None,
    date: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the date, unless it is called so.")] = None,
    csv: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write topics, words and weights as CSV; - for standard output.")
    ] = None,
    json: Json = False,
) -> None:
    """Shows the topics of a finished run, heaviest words first. Labels that people gave to topics stand beside them."""
    from securetm.reports.terminal import results
    from securetm.reports.topic_page import shares_everywhere
    from securetm.reports.topics import STANDARD_OUTPUT, moved_table, topics_csv, topics_table

    _check_files(json, csv)
    finished = _opened(run)
    _check_page(html, documents, model_only, (by_date, party, corpus))
    held = _held(finished, by_date, documents, party, (corpus, text, date))
    over_time = _over_time(finished, held, by_date)
    found, named = finished.topics(words), _labelled(finished, label or [], labels)
    above = finished.above_noise(words)
    marks: dict[str, Any] = {"above_noise": above, "noised": finished.spent_a_budget()}
    results(json or csv == STANDARD_OUTPUT).print(topics_table(found, named.texts, *shares_everywhere(finished), **marks))
    if moved := finished.moved():
        results(json or csv == STANDARD_OUTPUT).print(moved_table(moved, found, named.texts))
    if csv is not None:
        topics_csv(finished.heaviest_words(words), named.texts, csv, private=finished.is_adapted())
    if over_time is not None:
        _show_over_time(over_time, found, named, json)
    if html is not None:
        of_documents = {"documents": held, "quoted": documents, "over_time": over_time}
        _write_page(finished, html, labels=named.texts, model_only=model_only, **of_documents)
    if json:
        more: dict[str, Any] = {"by_date": over_time.table()} if over_time else {}
        more |= {"moved": moved} if moved else {}
        print_json(
            {
                "run": finished.name,
                "model": finished.plan.model.name,
                "topics": found,
                "above_noise": above,
                **named.table(),
                **more,
            }
        )


def transform(
    run: Run,
    file: Annotated[Path, typer.Argument(help="New documents: .jsonl, .csv, .tsv, .parquet or a folder of .txt.")],
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the text, unless it is called so.")] = None,
    best: Annotated[int, typer.Option(min=1, help="How many topics to name per document.")] = 3,
    csv: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the topic shares as CSV; - for standard output.")
    ] = None,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the topic shares as Parquet (Arrow).")] = None,
    json: Json = False,
) -> None:
    """Finds the topics of new documents with the model of a finished run."""
    from securetm.reports.terminal import LateBars, results, screen
    from securetm.reports.topics import STANDARD_OUTPUT, documents_table, shares_csv, shares_parquet

    _check_files(json, csv, parquet)
    finished = _opened(run)
    with LateBars(screen()) as bars:
        documents = finished.read(file, text, stages=bars)
    shares, known = _transformed(finished, documents)
    unknown = [row for row, words in enumerate(known) if not words]
    named = finished.labels()
    if csv is not None:
        shares_csv(shares, known, csv)
    if parquet is not None:
        shares_parquet(shares, known, parquet)
    results(json or csv == STANDARD_OUTPUT).print(
        documents_table(shares, finished.topics(4), best, unknown, labels=named.texts)
    )
    if json:
        rows = _rows(finished.name, str(file), shares)
        print_json({**rows, "known_words": known, "without_known_words": unknown, **named.table()})


def _check_files(json: bool, csv: str | None, parquet: Path | None = None) -> None:
    """Refuses files that could not be written, and two documents on standard output, before anything is read."""
    from securetm.reports.files import check_writable
    from securetm.reports.topics import STANDARD_OUTPUT

    require(not (json and csv == STANDARD_OUTPUT), "", "--csv", csv, "cannot share standard output with --json")
    for place in (Path(csv) if csv not in (None, STANDARD_OUTPUT) else None, parquet):
        if place is not None:
            check_writable(place)


def _opened(run: Path) -> FinishedRun:
    from securetm.runs.finished import FinishedRun

    return FinishedRun.open(run)


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


def _check_page(
    html: Path | None, documents: bool, model_only: bool, given: tuple[str | None, str | None, Path | None]
) -> None:
    """Refuses options of a page that do not go together, before anything is read."""
    from securetm.reports.files import check_writable

    by_date, party, corpus = given
    whose = party or corpus
    require(html is not None or not documents, "", "--documents", documents, "is of use with --html only")
    require(html is not None or not model_only, "", "--model-only", model_only, "is of use with --html only")
    require(
        not documents or whose is not None, "", "--documents", documents, "needs --party or --corpus, which say whose they are"
    )
    require(
        not model_only or not (documents or by_date), "", "--model-only", model_only, "leaves no room for documents or dates"
    )
    if html is not None:
        check_writable(html)


def _held(
    finished: FinishedRun,
    period: str | None,
    documents: bool,
    party: str | None,
    given: tuple[Path | None, str | None, str | None],
) -> dict[str, Corpus]:
    """The documents in the run's folder or of a file, by whose they are; none where they are not asked for."""
    from securetm.runs.finished import documents_in

    file, text, date = given
    if period is None and not documents:
        needed = "is of use with --by-date or --documents only"
        for name, value in (("--party", party), ("--corpus", file), ("--text", text), ("--date", date)):
            require(value is None, "securetm topics", name, value, needed)
        return {}
    require(file is None or party is None, "", "--party", party, "names a party of the run, and --corpus other documents")
    return documents_in(finished, party) if file is None else {str(file): finished.read(file, text, date)}


def _over_time(finished: FinishedRun, held: dict[str, Corpus], period: str | None) -> TopicsByDate | None:
    """The topics by date, of these documents; nothing where they are not asked for."""
    from securetm.corpus.dates import PERIODS
    from securetm.runs.finished import topics_by_date

    if period is None:
        return None
    require(period in PERIODS, "", "--by-date", period, known=PERIODS)
    return topics_by_date(finished, held, period)


def _write_page(finished: FinishedRun, html: Path, **choices: Any) -> None:
    """Writes the page of topics, and says where it is."""
    from securetm.reports.terminal import screen
    from securetm.reports.topic_page import shown_topics, write_topic_page

    to = screen()
    with to.status("writing the page") if to.is_terminal else nullcontext():
        write_topic_page(shown_topics(finished, **choices), html)
    to.print(f"Written: {html}", markup=False)


def _show_over_time(over_time: TopicsByDate, topics: list[list[str]], labels: TopicLabels, json: bool) -> None:
    """A table with a line of bars for each topic."""
    from securetm.reports.terminal import results
    from securetm.reports.topics import over_time_table

    to = results(json)
    to.print(over_time_table(over_time, topics, labels.texts, to.width))


def _transformed(finished: FinishedRun, documents: Corpus) -> tuple[Any, list[int]]:
    """Topic shares, and how many words of each document are known; documents without one are counted on standard error."""
    from securetm.models.given_documents import NoKnownWords
    from securetm.reports.terminal import screen

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NoKnownWords)
        shares = finished.transform(documents)
    for warning in caught:
        screen().print(f"{warning.message}.", style="yellow", markup=False)
    return shares, finished.known_words(documents).tolist()


def _rows(run: str, file: str, shares: Any) -> dict[str, Any]:
    return {"run": run, "file": file, "documents": [[round(float(share), 6) for share in row] for row in shares]}
