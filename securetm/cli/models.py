"""What is done with the model of a finished run: its topics shown, new documents transformed, adapted to, or judged by it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from securetm.cli.command import Output, command
from securetm.cli.corpus import language_in
from securetm.cli.options import ARGUMENT, COLUMN, FILE, FOLDERS, Run, Text
from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.dates import PERIODS
from securetm.corpus.readers import read_corpus
from securetm.corpus.records import Columns
from securetm.corpus.tokeniser import ENGLISH_LIST, RECOMMENDED, Tokeniser
from securetm.corpus.word_vectors import read_vectors
from securetm.data_classes import dataclass
from securetm.federation.topic_labels import TopicLabels
from securetm.models.given_documents import NoKnownWords
from securetm.quality.evaluation import Evaluation, Given
from securetm.quality.evaluation import evaluate as judge
from securetm.quality.judged_topics import read_topics
from securetm.reports.evaluation import show_evaluation
from securetm.reports.files import check_writable
from securetm.reports.terminal import Screen, results
from securetm.reports.topics import (
    STANDARD_OUTPUT,
    documents_table,
    groups_table,
    labels_table,
    mean_shares_csv,
    merged_table,
    moved_table,
    over_time_table,
    shares_csv,
    shares_parquet,
    topics_csv,
    topics_table,
)
from securetm.runs.adapted import adapted_to, check_free_folder, write_adapted
from securetm.runs.finished import (
    NO_DOCUMENTS,
    FinishedRun,
    TopicsByDate,
    documents_in,
    documents_of_run,
    held_out_rows,
    judged_run,
    topics_by_date,
    topics_by_label,
)
from securetm.settings import require
from securetm.stages import Stages
from securetm.wording import counted

# ---- topics ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OfDocuments:
    """Options of what `topics` shows of documents: of a party of a simulation, or of a file."""

    by_date: Annotated[
        str | None, "Show each topic's share of the documents of every year, month or day.", {"metavar": "PERIOD"}
    ] = None
    by_label: Annotated[str | None, "Show the topics of the documents of every label, as this column says.", COLUMN] = None
    documents: Annotated[
        bool, "--documents", "Show the documents that each topic is strongest in, of --party or of --corpus."
    ] = False
    party: Annotated[str | None, "With --by-date, --by-label or --documents: those of this party of a simulation."] = None
    corpus: Annotated[Path | None, "With --by-date, --by-label or --documents: a file that is not in the run."] = None
    text: Text = None
    date: Annotated[str | None, "The column of the date, unless it is called so.", COLUMN] = None

    def check_page(self, html: Path | None, model_only: bool) -> None:
        """Refuses options of a page that do not go together, before anything is read."""
        require(html is not None or not model_only, "", "--model-only", model_only, "is of use with --html only")
        whose = bool(self.party or self.corpus)
        require(not self.documents or whose, "", "--documents", True, "needs --party or --corpus, which say whose they are")
        more = bool(self.documents or self.by_date or self.by_label)
        require(not (model_only and more), "", "--model-only", model_only, "leaves no room for documents, dates or labels")
        if html is not None:
            check_writable(html)

    def held(self, run: FinishedRun) -> dict[str, Corpus]:
        """The documents in the run's folder or of the file, by whose they are; none where they are not asked for."""
        if not self.documents and self.by_date is None and self.by_label is None:
            needed = "is of use with --by-date, --by-label or --documents only"
            for name in ("party", "corpus", "text", "date"):
                require(getattr(self, name) is None, "securetm topics", f"--{name}", getattr(self, name), needed)
            return {}
        one = self.corpus is None or self.party is None
        require(one, "", "--party", self.party, "names a party of the run, and --corpus other documents")
        own = run.plan.corpus.label or "label"
        needed = f"names a column of --corpus FILE; the documents of the run have the labels of {own}"
        require(self.corpus is not None or self.by_label in (None, own), "", "--by-label", self.by_label, needed)
        if self.corpus is None:
            return documents_in(run, self.party)
        return {str(self.corpus): run.read(self.corpus, self.text, self.date, label=self.by_label)}

    def over_time(self, run: FinishedRun, held: dict[str, Corpus]) -> TopicsByDate | None:
        """The topics by date; nothing where they are not asked for."""
        if self.by_date is None:
            return None
        require(self.by_date in PERIODS, "", "--by-date", self.by_date, known=PERIODS)
        return topics_by_date(run, held, self.by_date)


@command("runs/demo --words 8")
def topics(
    out: Output,
    run: Run,
    words: Annotated[int, "Words per topic.", {"min": 1, "max": 1000}] = 10,
    label: Annotated[list[str] | None, "Label a topic; it is kept in the run's folder.", {"metavar": "NUMBER=TEXT"}] = None,
    labels: Annotated[Path | None, "A file of labels that takes the place of the run's own."] = None,
    of: OfDocuments = OfDocuments(),
    html: Annotated[Path | None, "Write one page with map, bars and search to this file."] = None,
    model_only: Annotated[bool, "--model-only", "With --html: only what follows from the model."] = False,
    under: Annotated[int | None, "Show like topics together, in so many groups.", {"metavar": "GROUPS"}] = None,
    merge: Annotated[bool, "--merge", "Show topics that are nearly the same as one; --csv then writes these."] = False,
    csv: Annotated[
        str | None, "Write topics, words and weights as CSV, or shares by date or label; - for standard output.", FILE
    ] = None,
) -> dict[str, Any]:
    """Shows the topics of a finished run, heaviest words first. Labels that people gave to topics stand beside them."""
    from securetm.reports import topic_page  # pages take long to load, and not every command has one

    to = _results_beside(csv, out)
    finished = FinishedRun.open(run)
    of.check_page(html, model_only)
    held = of.held(finished)
    over_time = of.over_time(finished, held)
    of_labels = None if of.by_label is None else topics_by_label(finished, held)
    groups = None if under is None else finished.under(under)
    found, count = finished.topics(words), len(finished.components_)
    named = finished.labels() if labels is None else TopicLabels.read(labels, count)
    for one in label or []:
        named = named.with_given(one, count)
    if label or labels is not None:
        named.write(finished.folder)
    shares, moved, texts = topic_page.shares_everywhere(finished), finished.moved(), named.texts
    above, alike, merged = finished.above_noise(words), finished.alike(), finished.merged(shares[0]) if merge else None
    of_merged: Mapping[int, str] = texts
    if merged is not None:  # all labels that people gave to the topics of one
        each = [[texts[topic] for topic in group if topic in texts] for group in merged.groups]
        of_merged = {place: " / ".join(dict.fromkeys(given)) for place, given in enumerate(each) if given}
    behind = [topic_page.documents_behind(finished, held[one], one) for one in held if of.documents and html is None]
    likes = "Topics {} and {} are nearly the same: {:.0%} of their words' weight is common."
    if csv is not None and (grouped := over_time or of_labels) is not None:
        mean_shares_csv(grouped, texts, csv)
    elif csv is not None:
        topics_csv((merged or finished).heaviest_words(words), of_merged, csv, private=finished.is_adapted())
    for shown in (
        topics_table(found, texts, *shares, above_noise=above, noised=finished.spent_a_budget()),
        merged and merged_table(merged, words, of_merged),
        groups and groups_table(groups, found, texts),
        moved and moved_table(moved, found, texts),
        *(likes.format(one + 1, other + 1, common) for one, other, common in alike),
        *(topic_page.documents_of_topics(one, finished.topics(3), texts) for one in behind),
        over_time and over_time_table(over_time, found, texts, to.width),
        of_labels and labels_table(of_labels, found, texts),
    ):
        if shown:
            to.print(shown)
    if html is not None:
        with out.busy("writing the page"):
            page = topic_page.shown_topics(
                finished, labels=texts, model_only=model_only, documents=held, quoted=of.documents, over_time=over_time
            )
            topic_page.write_topic_page(page, html)
        out.note(f"Written: {html}")
    more = {
        "by_date": over_time and over_time.table(),
        "by_label": of_labels and of_labels.table(),
        "moved": moved,
        "alike": [[one, other] for one, other, _ in alike],
        "merged": merged and merged.table(words),
        "under": groups,
    }
    facts = {"run": finished.name, "model": finished.plan.model.name, "topics": found, "above_noise": above}
    return {**facts, **named.table(), **{name: value for name, value in more.items() if value}}


def _results_beside(csv: str | None, out: Output, parquet: Path | None = None) -> Screen:
    """Where results are shown beside a table in CSV. What could not be written is refused, before anything is read."""
    to_output = csv == STANDARD_OUTPUT
    require(not (out.json and to_output), "", "--csv", csv, "cannot share standard output with --json")
    for place in (None if csv is None or to_output else Path(csv), parquet):
        if place is not None:
            check_writable(place)
    return results(out.json or to_output)


# ---- transform -------------------------------------------------------------------------------------------------------


@command("runs/demo new.jsonl --json")
def transform(
    out: Output,
    run: Run,
    file: Annotated[Path, ARGUMENT, "New documents: .jsonl, .csv, .tsv, .parquet or a folder of .txt."],
    text: Text = None,
    best: Annotated[int, "How many topics to name per document.", {"min": 1}] = 3,
    outliers: Annotated[
        float | None,
        "Mark documents that no topic is so near to (--model semantic).",
        {"metavar": "COSINE", "min": -1, "max": 1},
    ] = None,
    csv: Annotated[str | None, "Write the topic shares as CSV; - for standard output.", FILE] = None,
    parquet: Annotated[Path | None, "Write the topic shares as Parquet (Arrow).", FILE] = None,
) -> dict[str, Any]:
    """Finds the topics of new documents with the model of a finished run."""
    to = _results_beside(csv, out, parquet)
    finished = FinishedRun.open(run)
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


@command("runs/demo --corpus mine.jsonl --out mine")
def adapt(
    shown: Output,
    run: Annotated[Path, ARGUMENT, "The folder of a finished run, or in which its model landed.", FOLDERS],
    out: Annotated[Path, "Folder of the adapted model; must not hold one yet."],
    corpus: Annotated[Path | None, "The party's own documents."] = None,
    text: Text = None,
    party: Annotated[str | None, "A party of a simulation, instead of --corpus."] = None,
    own_topics: Annotated[
        int | None,
        "Topics of the party's own; without it, as many as there are, and at most one for ten documents.",
        {"min": 0, "max": 1000},
    ] = None,
) -> dict[str, Any]:
    """Adapts the model of a finished run to your own documents, and adds topics of your own. Nothing is sent.

    The shared topics keep their numbers and labels. `securetm topics` and `securetm transform` take the new folder.
    """
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


def told_apart(first: float, second: float) -> tuple[str, str]:
    """Two perplexities with as many decimals as it takes to see that they differ."""
    shown = [(f"{first:,.{decimals}f}", f"{second:,.{decimals}f}") for decimals in range(7)]
    return next((pair for pair in shown if pair[0] != pair[1]), shown[0])


def _gain_in_words(told: Mapping[str, Any]) -> str:
    """What adapting gave, on documents that were not learned from."""
    documents, figures = told["documents"], told["held_out"]
    if (worse := figures.get("not_kept")) is not None:
        ours, before = told_apart(worse["held_out"], figures["shared"]["held_out"])
        return (
            f"Adapting made it worse (perplexity {ours} instead of {before} on documents that were not learned from), "
            "so the shared model was kept unchanged."
        )
    if not told["stages"]:
        return "The shared model predicts your documents best as it is, so it was kept unchanged."
    shared, adapted = (figures[name]["held_out"] for name in ("shared", "adapted"))
    if shared is None or adapted is None:
        return "There are too few documents to say how well the adapted model predicts."
    held_out = counted(documents["held_out"], "document")
    own = f", with {counted(told['own_topics'], 'topic')} of your own" if told["own_topics"] else ""
    before, ours = told_apart(shared, adapted)
    return f"Perplexity of {held_out} that were not learned from: shared {before}, adapted {ours}{own}."


_SHOWN_ABSENT = 10  # words of topics that are counted in no document

# ---- evaluate --------------------------------------------------------------------------------------------------------


@command("runs/demo --json")
def evaluate(
    out: Output,
    run: Annotated[Path | None, ARGUMENT, "The folder of a finished run, or with --topics none.", FOLDERS] = None,
    topics: Annotated[Path | None, "A file of topics from anywhere: words, or words with weights, in JSON or CSV."] = None,
    corpus: Annotated[Path | None, "Documents to judge by, instead of those in the run's folder."] = None,
    text: Text = None,
    label: Annotated[str | None, "The column of the label, unless called so.", COLUMN] = None,
    vectors: Annotated[
        str | None, "Word vectors: glove, minilm, a file, or a sentence model's folder.", {"metavar": "SOURCE"}
    ] = None,
    against: Annotated[Path | None, "Another run, or a file of topics, to compare with.", FOLDERS] = None,
    other_seed: Annotated[
        list[Path] | None, "A run of another seed, for stability; may be given several times.", FOLDERS, {"metavar": "RUN"}
    ] = None,
) -> dict[str, Any]:
    """Measures the quality of topics: coherence, diversity, prediction, classification, agreement and stability.

    Beside each figure stands what topics reach that saw no document. A figure that needs more than is given says what.
    """
    where = "securetm evaluate"
    both = "cannot be given beside RUN; compare the two with --against"
    require(run is not None or topics is not None, where, "RUN", None, "or give --topics FILE")
    require(run is None or topics is None, where, "--topics", str(topics), both)
    for name, value in (("--text", text), ("--label", label)):
        needed = "names a column of --corpus FILE; labels of a run are those that its documents were read with"
        require(value is None or corpus is not None, where, name, value, needed)
    with out.late_bars() as bars:
        found, given = _evaluated(run or topics, corpus, (text, label), vectors, (against, other_seed or []), out, bars)
    documents, held_out = (0 if one is None else len(one) for one in (given.documents, given.held_out))
    judged = "without documents" if given.documents is None else f"by {documents:,} documents, {held_out:,} of them held out"
    show_evaluation(found, judged, out.results)
    absent = found.topics.never_in(given.documents)
    if absent:
        whole, are = counted(len(found.topics.words), "word"), "is" if len(absent) == 1 else "are"
        said = f"Of {whole} of the topics {len(absent):,} {are} not among the words that the documents' tokeniser counts"
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
    out: Output,
    bars: Stages,
) -> tuple[Evaluation, Given]:
    assert judged is not None
    paths = (judged, *([others[0]] if others[0] else []), *others[1])
    opened = [FinishedRun.open(path) if path.is_dir() else path for path in paths]
    topics = [read_topics(one) if isinstance(one, Path) else judged_run(one) for one in opened]
    documents, held_out, lacking = _judging_documents(opened[: 2 if others[0] else 1], corpus, columns, out, bars)
    topics = [one.as_counted_in(documents) for one in topics]
    against = topics[1] if others[0] else None
    words = {word for one in topics for word in (*one.vocabulary, *(w for listed in one.lists for w in listed))}
    words |= set(documents.vocabulary) if documents is not None and not topics[0].vocabulary else set()
    vectors = None if source is None else read_vectors(source, words)
    first = opened[0]
    seed = first.plan.seed if not isinstance(first, Path) else 0
    given = Given(documents, held_out, vectors, against, topics[2 if others[0] else 1 :], seed, lacking)
    return judge(topics[0], given, bars), given


def _judging_documents(
    opened: list[FinishedRun | Path], corpus: Path | None, columns: tuple[str | None, str | None], out: Output, bars: Stages
) -> tuple[Corpus | None, Array | None, Mapping[str, str]]:
    """The documents to judge by, which of them nobody trained on, and why something is not there."""
    first = opened[0]
    if corpus is not None:
        text, label = columns
        if isinstance(first, Path):
            seen = language_in(str(corpus), Columns(text, label))
            if seen.foreign:
                out.note(f"The documents read as {seen.name}, so its stop words are not counted.")
            by = Tokeniser(stop_words=seen.foreign or ENGLISH_LIST, **RECOMMENDED)
            read = read_corpus(corpus, text=text, label=label, tokeniser=by)
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
