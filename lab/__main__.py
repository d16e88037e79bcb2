"""`python -m lab bench NAME` and `python -m lab reproduce NAME`: measure the figures of papers and of this project again."""

from __future__ import annotations

import json as json_document
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

from securetm.errors import SecuretmError
from securetm.foreign_text import json_text, printable

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
    json: Json = False,
) -> None:
    """Reproduces a table or figure, ours beside theirs, in one run."""
    _measure("reproduction", name, {"only": only or None, "keep": keep, "workers": workers}, data, json, html)


@app.command(short_help="Measure beside peers, in one run.", epilog="Example: python -m lab bench prodlda")
def bench(
    name: Name,
    parties: Annotated[int | None, typer.Option(min=2, max=1000, help="How many parties, where it has some.")] = None,
    length: Annotated[int | None, typer.Option(min=1, max=10**8, help="Values in a vector, where it has some.")] = None,
    documents: Annotated[int | None, typer.Option(min=100, max=10**7, help="The most documents, where it has sizes.")] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep each row here as it comes, and measure none of these again.")
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Measures speed and memory side by side with peers, as ratios in one run."""
    _measure("bench", name, {"parties": parties, "length": length, "documents": documents, "keep": keep}, data, json)


def _measure(kind: str, name: str, sizes: dict[str, Any], data: Path | None, json: bool, html: Path | None = None) -> None:
    from lab.catalogue import measure
    from lab.shown import show_measurements, show_plots, write_measured
    from securetm.reports.files import check_writable
    from securetm.reports.progress import Bars
    from securetm.reports.terminal import results, screen

    for file in (html, sizes["keep"]):
        if file is not None:
            check_writable(file)
    with Bars(screen()) as bars:
        result = measure(kind, name, bars, {size: value for size, value in sizes.items() if value is not None}, data)
    to = results(json)
    show_measurements(result, to)
    show_plots(result, to)
    if json:
        finite = json_document.loads(json_document.dumps(result), parse_constant=lambda _: None)  # JSON has no NaN
        sys.stdout.write(json_text(json_document.dumps(finite, indent=2)) + "\n")
    if html is not None:
        write_measured(result, html)


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
    """Says in two lines what went wrong and what to do about it."""
    if debug:
        traceback.print_exc()
    for kind, text in (("error", sentence), ("hint", hint)):
        if text:
            sys.stderr.write(f"lab: {kind}: {printable(text)}\n")
    return code


if __name__ == "__main__":
    main()
