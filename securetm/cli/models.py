"""What is done with the model of a finished run: its topics shown, new documents transformed, adapted to, or judged by it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli import options
from securetm.cli.command import Output, command
from securetm.cli.options import Run, Text
from securetm.settings import require

if TYPE_CHECKING:
    from securetm.contracts import Array
    from securetm.corpus.corpus import Corpus
    from securetm.federation.topic_labels import TopicLabels
    from securetm.quality.evaluation import Evaluation, Given
    from securetm.reports.terminal import Screen
    from securetm.runs.finished import FinishedRun, MergedTopics, TopicsByDate
    from securetm.stages import Stages


# ---- topics ----------------------------------------------------------------------------------------------------------


@command("Show the topics of a finished run.", "runs/demo --words 8")
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
    by_label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Show the topics of the documents of every label, as this column says.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write one page with map, bars and search to this file.")] = None,
    documents: Annotated[
        bool, typer.Option("--documents", help="Show the documents that each topic is strongest in, of --party or of --corpus.")
    ] = False,
    model_only: Annotated[bool, typer.Option("--model-only", help="With --html: only what follows from the model.")] = False,
    party: Annotated[
        str | None, typer.Option(help="With --by-date, --by-label or --documents: those of this party of a simulation.")
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="With --by-date, --by-label or --documents: a file that is not in the run.")
    ] = None,
    text: Text = None,
    date: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the date, unless it is called so.")] = None,
    under: Annotated[int | None, typer.Option(metavar="GROUPS", help="Show like topics together, in so many groups.")] = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="Show topics that are nearly the same as one; --csv then writes these.")
    ] = False,
    csv: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write topics, words and weights as CSV, or shares by date or label; - for standard output."
        ),
    ] = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Shows the topics of a finished run, heaviest words first. Labels that people gave to topics stand beside them."""
    from securetm.reports.topic_page import shares_everywhere
    from securetm.reports.topics import (
        groups_table,
        labels_table,
        mean_shares_csv,
        moved_table,
        over_time_table,
        topics_csv,
        topics_table,
    )
    from securetm.runs.finished import topics_by_label

    to = _results_beside(csv, out)
    finished = _opened(run)
    _check_page(html, documents, model_only, (by_date or by_label, party, corpus))
    asked = documents or by_date is not None or by_label is not None
    held = _held(finished, asked, party, corpus, (text, date, by_label))
    over_time = _over_time(finished, held, by_date)
    of_labels = None if by_label is None else topics_by_label(finished, held)
    groups = None if under is None else finished.under(under)
    found, named = finished.topics(words), _labelled(finished, label or [], labels)
    above = finished.above_noise(words)
    marks: dict[str, Any] = {"above_noise": above, "noised": finished.spent_a_budget()}
    to.print(topics_table(found, named.texts, *shares_everywhere(finished), **marks))
    merged = _merged(finished, words, named, to) if merge else None
    if groups is not None:
        to.print(groups_table(groups, found, named.texts))
    if moved := finished.moved():
        to.print(moved_table(moved, found, named.texts))
    if csv is not None:
        of_first = named.texts if merged is None else _of_merged(merged, named)
        if (of_groups := over_time or of_labels) is not None:
            mean_shares_csv(of_groups, named.texts, csv)
        else:
            topics_csv((merged or finished).heaviest_words(words), of_first, csv, private=finished.is_adapted())
    alike = _show_alike(finished, to)
    _show_documents(finished, held if documents and html is None else {}, named, to)
    if over_time is not None:
        to.print(over_time_table(over_time, found, named.texts, to.width))
    if of_labels is not None:
        to.print(labels_table(of_labels, found, named.texts))
    if html is not None:
        of_documents = {"documents": held, "quoted": documents, "over_time": over_time}
        _write_page(finished, html, out, labels=named.texts, model_only=model_only, **of_documents)
    more: dict[str, Any] = {"by_date": over_time.table()} if over_time else {}
    more |= {"by_label": of_labels.table()} if of_labels else {}
    more |= {"moved": moved} if moved else {}
    more |= alike
    more |= {} if merged is None else {"merged": _merged_facts(merged, words)}
    more |= {} if groups is None else {"under": groups}
    facts = {"run": finished.name, "model": finished.plan.model.name, "topics": found, "above_noise": above}
    return {**facts, **named.table(), **more}


def _show_alike(finished: FinishedRun, to: Screen) -> dict[str, Any]:
    """Names topics that are nearly the same."""
    alike = finished.alike()
    for one, other, common in alike:
        to.print(f"Topics {one + 1} and {other + 1} are nearly the same: {common:.0%} of their words' weight is common.")
    return {"alike": [[one, other] for one, other, _ in alike]} if alike else {}


def _merged(finished: FinishedRun, words: int, named: TopicLabels, to: Screen) -> MergedTopics:
    """Shows topics with those made one that are nearly the same."""
    from securetm.reports.topic_page import shares_everywhere
    from securetm.reports.topics import merged_table

    merged = finished.merged(shares_everywhere(finished)[0])
    to.print(merged_table(merged, words, _of_merged(merged, named)))
    return merged


def _of_merged(merged: MergedTopics, named: TopicLabels) -> dict[int, str]:
    """The labels of merged topics: all that people gave to those of one."""
    each = [[named.texts[topic] for topic in group if topic in named.texts] for group in merged.groups]
    return {place: " / ".join(dict.fromkeys(labels)) for place, labels in enumerate(each) if labels}


def _merged_facts(merged: MergedTopics, words: int) -> list[dict[str, Any]]:
    return [{"topics": list(group), "words": found} for group, found in zip(merged.groups, merged.words(words), strict=True)]


def _show_documents(finished: FinishedRun, held: dict[str, Corpus], named: TopicLabels, to: Screen) -> None:
    """Shows the strongest documents of each topic."""
    from securetm.reports.topic_page import documents_behind, documents_of_topics

    for whose, documents in held.items():
        to.print(documents_of_topics(documents_behind(finished, documents, whose), finished.topics(3), named.texts))


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

    by_group, party, corpus = given
    whose = party or corpus
    require(html is not None or not model_only, "", "--model-only", model_only, "is of use with --html only")
    require(
        not documents or whose is not None, "", "--documents", documents, "needs --party or --corpus, which say whose they are"
    )
    require(
        not model_only or not (documents or by_group),
        "",
        "--model-only",
        model_only,
        "leaves no room for documents, dates or labels",
    )
    if html is not None:
        check_writable(html)


def _held(
    finished: FinishedRun,
    asked: bool,
    party: str | None,
    file: Path | None,
    columns: tuple[str | None, str | None, str | None],
) -> dict[str, Corpus]:
    """The documents in the run's folder or of a file, by whose they are; none where they are not asked for."""
    from securetm.runs.finished import documents_in

    text, date, label = columns
    if not asked:
        needed = "is of use with --by-date, --by-label or --documents only"
        given = {"--party": party, "--corpus": file, "--text": text, "--date": date}
        for name, value in given.items():
            require(value is None, "securetm topics", name, value, needed)
        return {}
    require(file is None or party is None, "", "--party", party, "names a party of the run, and --corpus other documents")
    own = finished.plan.corpus.label or "label"
    needed = f"names a column of --corpus FILE; the documents of the run have the labels of {own}"
    require(file is not None or label in (None, own), "", "--by-label", label, needed)
    return documents_in(finished, party) if file is None else {str(file): finished.read(file, text, date, label=label)}


def _over_time(finished: FinishedRun, held: dict[str, Corpus], period: str | None) -> TopicsByDate | None:
    """The topics by date, of these documents; nothing where they are not asked for."""
    from securetm.corpus.dates import PERIODS
    from securetm.runs.finished import topics_by_date

    if period is None:
        return None
    require(period in PERIODS, "", "--by-date", period, known=PERIODS)
    return topics_by_date(finished, held, period)


def _write_page(finished: FinishedRun, html: Path, out: Output, **choices: Any) -> None:
    """Writes the page of topics, and says where it is."""
    from securetm.reports.topic_page import shown_topics, write_topic_page

    with out.busy("writing the page"):
        write_topic_page(shown_topics(finished, **choices), html)
    out.note(f"Written: {html}")


def _results_beside(csv: str | None, out: Output, parquet: Path | None = None) -> Screen:
    """Where results are shown beside a table in CSV. What could not be written is refused, before anything is read."""
    from securetm.reports.files import check_writable
    from securetm.reports.terminal import results
    from securetm.reports.topics import STANDARD_OUTPUT

    to_output = csv == STANDARD_OUTPUT
    require(not (out.json and to_output), "", "--csv", csv, "cannot share standard output with --json")
    for place in (None if csv is None or to_output else Path(csv), parquet):
        if place is not None:
            check_writable(place)
    return results(out.json or to_output)


# ---- transform -------------------------------------------------------------------------------------------------------


@command("Find the topics of new documents.", "runs/demo new.jsonl --json")
def transform(
    run: Run,
    file: Annotated[Path, typer.Argument(help="New documents: .jsonl, .csv, .tsv, .parquet or a folder of .txt.")],
    text: Text = None,
    best: Annotated[int, typer.Option(min=1, help="How many topics to name per document.")] = 3,
    outliers: Annotated[
        float | None,
        typer.Option(metavar="COSINE", min=-1, max=1, help="Mark documents that no topic is so near to (--model semantic)."),
    ] = None,
    csv: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the topic shares as CSV; - for standard output.")
    ] = None,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the topic shares as Parquet (Arrow).")] = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Finds the topics of new documents with the model of a finished run."""
    from securetm.models.given_documents import NoKnownWords
    from securetm.reports.topics import documents_table, shares_csv, shares_parquet

    to = _results_beside(csv, out, parquet)
    finished = _opened(run)
    with out.late_bars() as bars:
        documents = finished.read(file, text, stages=bars)
    far = None if outliers is None else [row for row, near in enumerate(finished.nearness(documents)) if near < outliers]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NoKnownWords)
        shares = finished.transform(documents)
    for warning in caught:
        out.screen.print(f"{warning.message}.", style="yellow", markup=False)
    known = finished.known_words(documents).tolist()  # how many words of each; one without any is warned of
    unknown = [row for row, words in enumerate(known) if not words]
    none = dict.fromkeys(unknown if finished.model.reads_words else (), "none: it has no word that the model knows")
    none |= dict.fromkeys(far or (), "none: every topic's centre is far from it")
    named = finished.labels()
    if csv is not None:
        shares_csv(shares, known, csv)
    if parquet is not None:
        shares_parquet(shares, known, parquet)
    to.print(documents_table(shares, finished.topics(4), best, none, labels=named.texts))
    rows = [[round(float(share), 6) for share in row] for row in shares]
    facts = {"run": finished.name, "file": str(file), "documents": rows, "known_words": known}
    marked = {} if far is None else {"outliers": far}
    return {**facts, "without_known_words": unknown, **marked, **named.table()}


# ---- adapt -----------------------------------------------------------------------------------------------------------


@command("Adapt a model to your own documents.", "runs/demo --corpus mine.jsonl --out mine")
def adapt(
    run: Annotated[
        Path,
        typer.Argument(help="The folder of a finished run, or in which its model landed.", autocompletion=options.run_folders),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the adapted model; must not hold one yet.")],
    corpus: Annotated[Path | None, typer.Option(help="The party's own documents.")] = None,
    text: Text = None,
    party: Annotated[str | None, typer.Option(help="A party of a simulation, instead of --corpus.")] = None,
    own_topics: Annotated[
        int | None, typer.Option(min=0, max=1000, help="Topics of the party's own; without it, as many as there are.")
    ] = None,
    *,
    shown: Output,
) -> dict[str, Any]:
    """Adapts the model of a finished run to your own documents, and adds topics of your own. Nothing is sent.

    The shared topics keep their numbers and labels. `securetm topics` and `securetm transform` take the new folder.
    """
    from securetm.reports.topics import moved_table
    from securetm.runs.adapted import adapted_to, check_free_folder, write_adapted
    from securetm.runs.finished import FinishedRun, documents_in

    require((corpus is None) != (party is None), "securetm adapt", "--corpus", None, "give --corpus FILE or --party NAME")
    require(text is None or corpus is not None, "securetm adapt", "--text", text, "is of use with --corpus only")
    check_free_folder(out)
    finished = FinishedRun.open(run)
    with shown.late_bars() as bars:
        if corpus is not None:
            documents = finished.read(corpus, text, stages=bars)
        else:
            (documents,) = documents_in(finished, party).values()
        adapted, figures = adapted_to(finished, documents, own_topics, bars)
    told = write_adapted(out, finished, adapted, figures)
    to = shown.results
    to.print(moved_table(told["moved"], told["topics"], finished.labels().texts))
    to.print(_gain_in_words(told["adapted"]))
    to.print(f"Kept in [bold]{out}[/bold]; next: securetm topics {out}")
    return {name: value for name, value in told.items() if name != "plan"}


def _gain_in_words(told: Mapping[str, Any]) -> str:
    """What adapting gave, on documents that were not learned from."""
    from securetm.wording import counted

    documents, figures = told["documents"], told["held_out"]
    if (worse := figures.get("not_kept")) is not None:
        return (
            f"Adapting made it worse (perplexity {worse['held_out']:,.0f} instead of {figures['shared']['held_out']:,.0f} on "
            "documents that were not learned from), so the shared model was kept unchanged."
        )
    if not told["stages"]:
        return "The shared model predicts your documents best as it is, so it was kept unchanged."
    shared, adapted = (figures[name]["held_out"] for name in ("shared", "adapted"))
    if shared is None or adapted is None:
        return "There are too few documents to say how well the adapted model predicts."
    held_out = counted(documents["held_out"], "document")
    own = f", with {counted(told['own_topics'], 'topic')} of your own" if told["own_topics"] else ""
    return f"Perplexity of {held_out} that were not learned from: shared {shared:,.0f}, adapted {adapted:,.0f}{own}."


_SHOWN_ABSENT = 10  # words of topics that occur in no document

# ---- evaluate --------------------------------------------------------------------------------------------------------


@command("Measure the quality of topics.", "runs/demo --json")
def evaluate(
    run: Annotated[
        Path | None,
        typer.Argument(help="The folder of a finished run, or with --topics none.", autocompletion=options.run_folders),
    ] = None,
    topics: Annotated[
        Path | None, typer.Option(help="A file of topics from anywhere: words, or words with weights, in JSON or CSV.")
    ] = None,
    corpus: Annotated[Path | None, typer.Option(help="Documents to judge by, instead of those in the run's folder.")] = None,
    text: Text = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the label, unless called so.")] = None,
    vectors: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="Word vectors: glove, minilm, a file, or a sentence model's folder.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Another run, or a file of topics, to compare with.", autocompletion=options.run_folders),
    ] = None,
    other_seed: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="RUN",
            help="A run of another seed, for stability; may be given several times.",
            autocompletion=options.run_folders,
        ),
    ] = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Measures the quality of topics: coherence, diversity, prediction, classification, agreement and stability.

    Beside each figure stands what topics reach that saw no document. A figure that needs more than is given says what.
    """
    from securetm.reports.evaluation import show_evaluation
    from securetm.wording import counted

    where = "securetm evaluate"
    both = "cannot be given beside RUN; compare the two with --against"
    require(run is not None or topics is not None, where, "RUN", None, "or give --topics FILE")
    require(run is None or topics is None, where, "--topics", str(topics), both)
    for name, value in (("--text", text), ("--label", label)):
        needed = "names a column of --corpus FILE; labels of a run are those that its documents were read with"
        require(value is None or corpus is not None, where, name, value, needed)
    with out.late_bars() as bars:
        found, given = _evaluated(run or topics, corpus, (text, label), vectors, (against, other_seed or []), bars)
    documents, held_out = (0 if one is None else len(one) for one in (given.documents, given.held_out))
    judged = "without documents" if given.documents is None else f"by {documents:,} documents, {held_out:,} of them held out"
    show_evaluation(found, judged, out.results)
    absent = found.topics.never_in(given.documents)
    if absent:
        said = f"Of {counted(len(found.topics.words), 'word')} of the topics {len(absent):,} occur in no document"
        out.results.print(f"{said}: {', '.join(absent[:_SHOWN_ABSENT])}{' …' * (len(absent) > _SHOWN_ABSENT)}.", markup=False)
    return {
        "words_in_no_document": absent,
        "name": found.topics.name,
        "topics": len(found.topics),
        "documents": documents,
        "held_out_documents": held_out,
        "vectors": None if given.vectors is None else given.vectors.name,
        "against": None if against is None else str(against),
        "other_seeds": [one.name for one in given.other_seeds],
        "rows": [row.table() for row in found.rows],
        "compared": [one.table() for one in found.compared],
    }


def _evaluated(
    judged: Path | None,
    corpus: Path | None,
    columns: tuple[str | None, str | None],
    source: str | None,
    others: tuple[Path | None, list[Path]],
    bars: Stages,
) -> tuple[Evaluation, Given]:
    from securetm.corpus.word_vectors import read_vectors
    from securetm.quality.evaluation import Given
    from securetm.quality.evaluation import evaluate as judge
    from securetm.quality.judged_topics import read_topics
    from securetm.runs.finished import FinishedRun, judged_run

    assert judged is not None
    paths = (judged, *([others[0]] if others[0] else []), *others[1])
    opened = [FinishedRun.open(path) if path.is_dir() else path for path in paths]
    topics = [read_topics(one) if isinstance(one, Path) else judged_run(one) for one in opened]
    against = topics[1] if others[0] else None
    documents, held_out, lacking = _judging_documents(opened[: 2 if others[0] else 1], corpus, columns, bars)
    words = {word for one in topics for word in (*one.vocabulary, *(w for listed in one.lists for w in listed))}
    words |= set(documents.vocabulary) if documents is not None and not topics[0].vocabulary else set()
    vectors = None if source is None else read_vectors(source, words)
    first = opened[0]
    seed = first.plan.seed if not isinstance(first, Path) else 0
    given = Given(documents, held_out, vectors, against, topics[2 if others[0] else 1 :], seed, lacking)
    return judge(topics[0], given, bars), given


def _judging_documents(
    opened: list[FinishedRun | Path], corpus: Path | None, columns: tuple[str | None, str | None], bars: Stages
) -> tuple[Corpus | None, Array | None, Mapping[str, str]]:
    """The documents to judge by, which of them nobody trained on, and why something is not there."""
    import numpy as np

    from securetm.corpus.readers import read_corpus
    from securetm.runs.finished import NO_DOCUMENTS, documents_of_run, held_out_rows

    first = opened[0]
    if corpus is not None:
        text, label = columns
        if isinstance(first, Path):
            read = read_corpus(corpus, text=text, label=label)
        else:
            read = first.read_whole(corpus, bars, text=text, label=label)
        return read, np.arange(len(read)), {}
    if isinstance(first, Path):
        return None, None, {}
    documents = documents_of_run(first)
    if documents is None:
        return None, None, {"documents": NO_DOCUMENTS, "held_out": NO_DOCUMENTS}
    lacking = {"labels": "needs labels: train with --label COLUMN, or judge with --corpus FILE --label COLUMN"}
    return documents, held_out_rows(documents, [one for one in opened if not isinstance(one, Path)]), lacking
