"""`securetm adapt`: adapts the model of a finished run to one party's own documents, on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli import completion
from securetm.cli.json_output import Json, print_json
from securetm.settings import require

if TYPE_CHECKING:
    from securetm.corpus.corpus import Corpus
    from securetm.runs.finished import FinishedRun
    from securetm.stages import Stages


def adapt(
    run: Annotated[
        Path,
        typer.Argument(
            help="The folder of a finished run, or in which its model landed.", autocompletion=completion.run_folders
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the adapted model; must not hold one yet.")],
    corpus: Annotated[Path | None, typer.Option(help="The party's own documents.")] = None,
    text: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the text, unless it is called so.")] = None,
    party: Annotated[str | None, typer.Option(help="A party of a simulation, instead of --corpus.")] = None,
    own_topics: Annotated[
        int | None, typer.Option(min=0, max=1000, help="Topics of the party's own; without it, as many as there are.")
    ] = None,
    json: Json = False,
) -> None:
    """Adapts the model of a finished run to your own documents, and adds topics of your own. Nothing is sent.

    The shared topics keep their numbers and labels. `securetm topics` and `securetm transform` take the new folder.
    """
    from securetm.reports.terminal import LateBars, results, screen
    from securetm.reports.topics import moved_table
    from securetm.runs.adapted import adapted_to, check_free_folder, write_adapted
    from securetm.runs.finished import FinishedRun

    require((corpus is None) != (party is None), "securetm adapt", "--corpus", None, "give --corpus FILE or --party NAME")
    require(text is None or corpus is not None, "securetm adapt", "--text", text, "is of use with --corpus only")
    check_free_folder(out)
    finished = FinishedRun.open(run)
    with LateBars(screen()) as bars:
        documents = _documents(finished, corpus, text, party, bars)
        adapted, figures = adapted_to(finished, documents, own_topics, bars)
    told = write_adapted(out, finished, adapted, figures)
    to = results(json)
    to.print(moved_table(told["moved"], told["topics"], finished.labels().texts))
    to.print(_in_words(told["adapted"]))
    to.print(f"Kept in [bold]{out}[/bold]; next: securetm topics {out}")
    if json:
        print_json({name: value for name, value in told.items() if name != "plan"})


def _documents(finished: FinishedRun, corpus: Path | None, text: str | None, party: str | None, stages: Stages) -> Corpus:
    """The documents of the file, or of the party in a simulation's folder."""
    from securetm.runs.finished import documents_in

    if corpus is not None:
        return finished.read(corpus, text, stages=stages)
    (documents,) = documents_in(finished, party).values()
    return documents


def _in_words(told: Mapping[str, Any]) -> str:
    """What adapting gave, on documents that were not learned from."""
    from securetm.wording import counted

    documents, figures = told["documents"], told["held_out"]
    if not told["stages"]:
        return "The shared model predicts your documents best as it is, so it was kept unchanged."
    shared, adapted = (figures[name]["held_out"] for name in ("shared", "adapted"))
    if shared is None or adapted is None:
        return "There are too few documents to say how well the adapted model predicts."
    held_out = counted(documents["held_out"], "document")
    own = f", with {counted(told['own_topics'], 'topic')} of your own" if told["own_topics"] else ""
    return f"Perplexity of {held_out} that were not learned from: shared {shared:,.0f}, adapted {adapted:,.0f}{own}."
