"""Tables of runs: those that lie in a folder, and several side by side. It reads no file."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Column, Table

from securetm.federation.kept_runs import KeptRun
from securetm.federation.paired_runs import PairedRuns
from securetm.federation.side_by_side import COMPARED, SEED, SeedFigure, SideBySide
from securetm.reports.terminal import titled
from securetm.wording import counted, upward

_INTERVALS = "Mean over seeds ± half of its 95 % interval. Where intervals overlap, a better mean may be chance."
_NAMES = {"parties_better_than_alone": "parties better off than alone", "megabytes": "MB sent", "npmi": "NPMI"}


def runs_table(runs: Sequence[KeptRun]) -> Table:
    """Two lines for each run; what is unfinished or cannot be read says so."""
    heads = ("begun\n(UTC)", "parties\nrounds", "perplexity\nNPMI", "epsilon\nper", "size")
    right = [Column(head, justify="right", no_wrap=True) for head in heads]
    table = titled("", Column("run\nmodel, profile", overflow="fold"), *right, show_lines=True)
    for run in runs:
        what = f"[red]cannot be read: {_plain(run.trouble)}[/red]" if run.trouble else f"{run.model}, {_plain(run.profile)}"
        rounds = _shown(run.rounds, "{:,}") if run.finished or run.trouble else "unfinished"
        table.add_row(
            f"[bold]{_plain(run.name)}[/bold]\n{what}",
            run.begun[:16].replace("T", "\n"),
            f"{_shown(run.parties, '{:,}')}\n{rounds}",
            f"{_shown(run.perplexity, '{:,.0f}')}\n{_shown(run.npmi, '{:.3f}')}",
            "–" if run.epsilon is None else f"{upward(run.epsilon)}\n{run.unit}",
            f"{run.size / 1e6:,.1f} MB",
        )
    return table


def comparison_tables(compared: SideBySide) -> RenderableType:
    """The settings that differ, and the figures of each group."""
    heads = [_head(number, group.runs) for number, group in enumerate(compared.groups, 1)]
    settings = titled("Settings that differ", "setting", *heads)
    for name in compared.differing:
        settings.add_row(name, *(_value(group.settings.get(name)) for group in compared.groups))
    settings.add_row(SEED, *(" ".join(map(str, group.seeds)) for group in compared.groups))
    several = any(len(group.runs) > 1 for group in compared.groups)
    caption = (
        "Mean over seeds ± half of its 95 % interval. Where intervals overlap, a better mean may be chance." if several else ""
    )
    figures = titled("Quality, privacy and cost", "figure", *(Column(head, justify="right") for head in heads), caption=caption)
    for measure in COMPARED:
        best = compared.best(measure)
        cells = [_figure(group.figures[measure.name]) for group in compared.groups]
        marked = [f"[bold]{cell}[/bold]" if place == best else cell for place, cell in enumerate(cells)]
        figures.add_row(_NAMES.get(measure.name, measure.name), *marked)
    several_named = [f"{n}: {_plain(', '.join(g.runs))}" for n, g in enumerate(compared.groups, 1) if len(g.runs) > 1]
    return Group(*several_named, settings, figures)


def paired_sentences(tested: Sequence[PairedRuns]) -> list[str]:
    """What the test over documents says of each pair of runs."""
    return [_paired(one) for one in tested]


def _paired(tested: PairedRuns) -> str:
    first, other = tested.runs
    if tested.difference is None:
        return f"{other} and {first} are not tested over documents; that needs {tested.needs}."
    apart = tested.difference
    said = "no difference beyond chance" if not apart.sure else "better" if apart.value > 0 else "worse"
    ends = f"{apart.value:+.3f} ({apart.low:+.3f} to {apart.high:+.3f}) nats per word"
    return f"{other} against {first}, on the same {counted(tested.documents, 'held-out document')}: {said}, {ends}."


def _head(number: int, runs: Sequence[str]) -> str:
    return _plain(runs[0]) if len(runs) == 1 else f"{number}: {counted(len(runs), 'seed')}"


def _figure(figure: SeedFigure) -> str:
    if figure.mean is None:
        return "–"
    digits = 0 if set(figure.values) == {round(figure.mean)} or abs(figure.mean) >= 100 else 1 if abs(figure.mean) >= 10 else 3
    said, interval = f"{figure.mean:,.{digits}f}", figure.interval
    if interval is None or len(set(figure.values)) == 1:
        return said
    return f"{said} ± {(interval[1] - interval[0]) / 2:,.{digits}f}"


def _value(value: object) -> str:
    return "–" if value is None or value == "" else _plain(str(value))


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def _plain(text: str) -> str:
    """Text out of a file, without rich's marks."""
    from rich.markup import escape

    return escape(text)
