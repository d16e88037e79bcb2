"""`securetm evaluate`: the quality of the topics of a run, or of topics from any file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli import completion
from securetm.cli.json_output import Json, print_json
from securetm.settings import require

if TYPE_CHECKING:
    from securetm.contracts import Array
    from securetm.corpus.corpus import Corpus
    from securetm.quality.evaluation import Evaluation, Given
    from securetm.quality.judged_topics import JudgedTopics
    from securetm.runs.finished import FinishedRun
    from securetm.stages import Stages


def evaluate(
    run: Annotated[
        Path | None,
        typer.Argument(help="The folder of a finished run, or with --topics none.", autocompletion=completion.run_folders),
    ] = None,
    topics: Annotated[
        Path | None, typer.Option(help="A file of topics from anywhere: words, or words with weights, in JSON or CSV.")
    ] = None,
    corpus: Annotated[Path | None, typer.Option(help="Documents to judge by, instead of those in the run's folder.")] = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the text, unless it is called so.")] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the label, unless called so.")] = None,
    vectors: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="Word vectors: glove, minilm, a file, or a sentence model's folder.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Another run, or a file of topics, to compare with.", autocompletion=completion.run_folders),
    ] = None,
    other_seed: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="RUN",
            help="A run of another seed, for stability; may be given several times.",
            autocompletion=completion.run_folders,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Measures the quality of topics: coherence, diversity, prediction, classification, agreement and stability.

    Beside each figure stands what topics reach that saw no document. A figure that needs more than is given says what.
    """
    from securetm.reports.evaluation import show_evaluation
    from securetm.reports.terminal import LateBars, results, screen

    _check(run, topics, corpus, text, label)
    with LateBars(screen()) as bars:
        found, given = _evaluated(run or topics, corpus, (text, label), vectors, (against, other_seed or []), bars)
    said = _documents_in_words(given)
    show_evaluation(found, said, results(json))
    if json:
        print_json(_facts(found, given, against))


def _check(run: Path | None, topics: Path | None, corpus: Path | None, text: str | None, label: str | None) -> None:
    """Refuses a command that names nothing to judge, or two things, or columns without a file."""
    where = "securetm evaluate"
    both = "cannot be given beside RUN; compare the two with --against"
    require(run is not None or topics is not None, where, "RUN", None, "or give --topics FILE")
    require(run is None or topics is None, where, "--topics", str(topics), both)
    for name, value in (("--text", text), ("--label", label)):
        needed = "names a column of --corpus FILE; labels of a run are those that its documents were read with"
        require(value is None or corpus is not None, where, name, value, needed)


def _evaluated(
    judged: Path | None,
    corpus: Path | None,
    columns: tuple[str | None, str | None],
    source: str | None,
    others: tuple[Path | None, list[Path]],
    bars: Stages,
) -> tuple[Evaluation, Given]:
    from securetm.corpus.word_vectors import read_vectors
    from securetm.quality.evaluation import Given, evaluate

    assert judged is not None
    opened = [_opened(path) for path in (judged, *([others[0]] if others[0] else []), *others[1])]
    topics = [_topics_of(one) for one in opened]
    against = topics[1] if others[0] else None
    documents, held_out, lacking = _documents(opened[: 2 if others[0] else 1], corpus, columns, bars)
    words = {word for one in topics for word in (*one.vocabulary, *(w for listed in one.lists for w in listed))}
    words |= set(documents.vocabulary) if documents is not None and not topics[0].vocabulary else set()
    vectors = None if source is None else read_vectors(source, words)
    first = opened[0]
    seed = first.plan.seed if not isinstance(first, Path) else 0
    given = Given(documents, held_out, vectors, against, topics[2 if others[0] else 1 :], seed, lacking)
    return evaluate(topics[0], given, bars), given


def _opened(path: Path) -> FinishedRun | Path:
    """The run in that folder, or the file."""
    from securetm.runs.finished import FinishedRun

    return FinishedRun.open(path) if path.is_dir() else path


def _topics_of(opened: FinishedRun | Path) -> JudgedTopics:
    from securetm.quality.judged_topics import read_topics
    from securetm.runs.finished import judged_run

    return read_topics(opened) if isinstance(opened, Path) else judged_run(opened)


def _documents(
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


def _documents_in_words(given: Given) -> str:
    if given.documents is None:
        return "without documents"
    held = 0 if given.held_out is None else len(given.held_out)
    return f"by {len(given.documents):,} documents, {held:,} of them held out"


def _facts(found: Evaluation, given: Given, against: Path | None) -> dict[str, Any]:
    """The JSON document."""
    return {
        "name": found.topics.name,
        "topics": len(found.topics),
        "documents": 0 if given.documents is None else len(given.documents),
        "held_out_documents": 0 if given.held_out is None else len(given.held_out),
        "vectors": None if given.vectors is None else given.vectors.name,
        "against": None if against is None else str(against),
        "other_seeds": [one.name for one in given.other_seeds],
        "rows": [row.table() for row in found.rows],
        "compared": [one.table() for one in found.compared],
    }
