"""`python -m lab bench NAME` and `python -m lab reproduce NAME`: measure the figures of papers and of this project again."""

from __future__ import annotations

import json as json_document
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from lab.research_corpora import corpus_in_words, looking_in
from securetm.errors import NotFound, SecuretmError
from securetm.foreign_text import json_text, printable
from securetm.settings import require
from securetm.stages import Stages

app = typer.Typer(
    name="lab",
    help="Benches and reproductions: the figures of papers and of this project, measured again.",
    epilog="Example: python -m lab bench prodlda",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Data = Annotated[
    Path | None,
    typer.Option(exists=True, file_okay=False, metavar="DIR", help="Folder of the research corpora; without them, docstrings."),
]
Name = Annotated[str, typer.Argument(help="Which; an unknown name lists those there are.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and the tables on stderr.")]
MISUSE, FAILURE, INTERRUPTED = 2, 3, 130

PAPERS: Mapping[str, str] = {  # their experiments come in scales
    "fednmf": "papers.fednmf",
    "gfedntm": "papers.gfedntm",
    "iftm": "papers.iftm",
}
REPRODUCTIONS: Mapping[str, str] = {  # the module, and its function where that is not `reproduce`
    "adapted-ngrams": "reproduce.adapted_ngrams",
    "additive-prodlda": "reproduce.additive_prodlda",
    "chosen-plans": "fits.chosen_plans",
    "word-sources": "fits.word_sources",
    "column-matching": "reproduce.column_matching",
    "common-vocabulary": "reproduce.common_vocabulary",
    "default-model": "reproduce.default_model",
    "documents-curve": "reproduce.documents_curve",
    "lda-frontier": "reproduce.noise_frontiers:lda_frontier",
    "matched-topics": "reproduce.matched_topics",
    "one-run-audits": "reproduce.one_run_audits",
    "private-frontier": "reproduce.private_frontier",
    "private-lists": "reproduce.private_lists",
    "privacy-utility": "reproduce.noise_frontiers:privacy_utility",
    "rounds-rule": "fits.rounds_and_starts:rounds_rule",
    "rounds-without-vectors": "fits.rounds_and_starts:rounds_without_vectors",
    "semantic-rounds": "fits.semantic_rounds",
    "settings-rule": "fits.settings",
    "start-rule": "fits.rounds_and_starts:start_rule",
    "together-and-alone": "reproduce.together_and_alone",
    "use-and-leakage": "reproduce.use_and_leakage",
    "usefulness-forecast": "fits.forecast_trials",
    "word-policies": "reproduce.word_policies",
    **PAPERS,
}
BENCHES: Mapping[str, str] = {
    name: f"bench.{name.replace('-', '_')}"
    for name in (
        "correlated-noise", "dp", "federation", "he", "lda", "neural", "noise", "private", "private-mh", "prodlda", "scale",
        "semantic", "sum", "word-lists",
    )
}  # fmt: skip
KINDS = {"reproduction": ("reproduce", REPRODUCTIONS), "bench": ("bench", BENCHES)}


@app.command(short_help="Reproduce a table or figure.", epilog="Example: python -m lab reproduce additive-prodlda")
def reproduce(
    name: Name,
    html: Annotated[Path | None, typer.Option(help="Write the figure as one page, where it has one.")] = None,
    data: Data = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=VALUE", help="Only such cases, where it has some; may be repeated.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep each case here as it comes, and make none of these again.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=256, help="Processes, where it can use several.")] = None,
    scale: Annotated[str | None, typer.Option(help="How large a paper's experiment is: small, medium or paper.")] = None,
    write: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a paper's result as JSON and CSV, and each figure as SVG and PNG.")
    ] = None,
    json: Json = False,
) -> None:
    """Reproduces a table or figure, ours beside theirs, in one run. A paper's experiment keeps its cases by itself."""
    sizes = {"only": only or None, "keep": keep, "workers": workers, "scale": scale or (name in PAPERS and "small") or None}
    require(write is None or name in PAPERS, f"reproduce {name}", "--write", write, "is for papers' experiments")
    _measure("reproduction", name, sizes, data, json, html, write)


@app.command(short_help="Measure beside peers, in one run.", epilog="Example: python -m lab bench prodlda")
def bench(
    name: Name,
    parties: Annotated[int | None, typer.Option(min=2, max=1000, help="How many parties, where it has some.")] = None,
    length: Annotated[int | None, typer.Option(min=1, max=10**8, help="Values in a vector, where it has some.")] = None,
    documents: Annotated[int | None, typer.Option(min=100, max=10**7, help="The most documents, where it has sizes.")] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep each row here as it comes, and measure none of these again.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=VALUE", help="Only such cases, where it has some; may be repeated.")
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Measures speed and memory side by side with peers, as ratios in one run."""
    sizes = {"parties": parties, "length": length, "documents": documents, "keep": keep, "only": only or None}
    _measure("bench", name, sizes, data, json)


def _measure(
    kind: str,
    name: str,
    sizes: dict[str, Any],
    data: Path | None,
    json: bool,
    html: Path | None = None,
    write: Path | None = None,
) -> None:
    from lab.papers.written import write_files
    from lab.shown import show_measured, write_measured
    from securetm.reports.files import check_folder, check_writable
    from securetm.reports.terminal import Bars, results, screen
    from securetm.stages import InLines

    for file in (html, sizes["keep"]):
        if file is not None:
            check_writable(file)
    if write is not None:
        check_folder(write)
    with Bars(screen()) if sys.stderr.isatty() else InLines(screen().print) as bars:
        result = measure(kind, name, bars, {size: value for size, value in sizes.items() if value is not None}, data)
    show_measured(result, results(json))
    if json:
        finite = json_document.loads(json_document.dumps(result), parse_constant=lambda _: None)  # JSON has no NaN
        sys.stdout.write(json_text(json_document.dumps(finite, indent=2)) + "\n")
    if html is not None:
        write_measured(result, html)
    if write is not None:
        write_files(result, write)


def measure(
    kind: str, name: str, stages: Stages, sizes: Mapping[str, Any] | None = None, data: Path | None = None
) -> dict[str, Any]:
    """Runs the reproduction or bench of that name, in other sizes than its own where they are given.

    `data` is the folder of the research corpora, where it does not lie beside the checkout.
    """
    function, known = KINDS[kind]
    if name not in known:
        raise NotFound(kind, name, tuple(sorted(known)))
    module, _, named = known[name].partition(":")
    run: Callable[..., dict[str, Any]] = getattr(import_module(f"lab.{module}"), named or function)
    for size, value in (sizes or {}).items():
        require(size in signature(run).parameters, f"{kind} {name}", f"--{size}", value, "is no size of this one")

    def tell(done: int, total: int) -> None:
        if done == 1:
            stages.stage(f"{kind} {name}", total)
        stages.step(done)

    with looking_in(data):
        corpus = {"corpus": corpus_in_words()} if kind == "reproduction" and name not in PAPERS else {}  # papers name theirs
        return {**corpus, **run(on_progress=tell, **(sizes or {}))}


@app.callback()
def _everything(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
) -> None:
    """Benches and reproductions: the figures of papers and of this project, measured again."""
    del debug


def main() -> None:
    """Runs the command and ends the process: 0 fine, 2 misuse, 3 failure."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    # by version, typer has a copy of click or depends on it, so the base class of misuses is found through one of them
    misused: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    try:
        code = app(arguments or ["--help"], prog_name="python -m lab", standalone_mode=False)
        sys.exit(_ended(FAILURE, "interrupted", "what --keep names is kept", debug) if code == INTERRUPTED else int(code or 0))
    except misused as misuse:
        sys.exit(_ended(MISUSE, misuse.format_message(), "see python -m lab --help", debug))  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(_ended(FAILURE, "interrupted", "what --keep names is kept", debug))
    except SecuretmError as failure:
        sys.exit(_ended(failure.exit_code, str(failure), failure.advice(), debug))


def _ended(code: int, sentence: str, hint: str, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    for kind, text in (("error", sentence), ("hint", hint)):
        if text:
            sys.stderr.write(f"lab: {kind}: {printable(text)}\n")
    return code


if __name__ == "__main__":
    main()
