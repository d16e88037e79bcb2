"""`securetm reproduce` and `securetm bench`: measure the figures of papers and of this project again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from securetm.cli.json_output import Json, print_json

Data = Annotated[
    Path | None,
    typer.Option(exists=True, file_okay=False, metavar="DIR", help="Folder of the research corpora; without them, docstrings."),
]
Name = Annotated[str, typer.Argument(help="Which; an unknown name lists those there are.")]


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
    from securetm.cli.report_command import check_places

    check_places(html, keep)
    sizes = {"only": only, "keep": keep, "workers": workers}
    result = _measured("reproduction", name, json, data, {size: value for size, value in sizes.items() if value})
    if html is not None:
        from securetm.reports.measurement import write_measured

        write_measured(result, html)


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
    from securetm.cli.report_command import check_places

    check_places(None, keep)
    sizes = {"parties": parties, "length": length, "documents": documents, "keep": keep}
    _measured("bench", name, json, data, {size: value for size, value in sizes.items() if value is not None})


def _measured(kind: str, name: str, json: bool, data: Path | None, sizes: dict[str, Any] | None = None) -> dict[str, Any]:
    from securetm.experiments.catalogue import measure
    from securetm.reports.measurement import show_measurements, show_plots
    from securetm.reports.progress import Bars
    from securetm.reports.terminal import results, screen

    with Bars(screen()) as bars:
        result = measure(kind, name, bars, sizes, data)
    to = results(json)
    show_measurements(result, to)
    show_plots(result, to)
    if json:
        print_json(result)
    return result
