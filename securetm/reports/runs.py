"""What a run says in the terminal: whether its model is of use, its topics, what was spent, and several runs side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from rich.console import Console
from rich.text import Text

from securetm.contracts.origin import Origin, OriginKind
from securetm.figures import Curve, Figure
from securetm.reports.charts import in_terminal
from securetm.reports.document import Block, Cell, Document, Line, Paragraph, Section, Table, numbers_of
from securetm.reports.files import write_report
from securetm.reports.forecast import after_a_run
from securetm.reports.pages import in_html
from securetm.reports.terminal import show
from securetm.reports.texts import blocks, said, sentence, table
from securetm.reports.topics import noise_said, with_marks
from securetm.runs.compare import COMPARED, F1, PERPLEXITY, SO_FAR, best_of, best_value
from securetm.runs.kept_runs import KeptRun
from securetm.wording import upward


def origins_said(result: Mapping[str, Any]) -> tuple[str, ...]:
    """What a person said of the inputs, and what the runs spent that this one started from; nothing of what is built in."""
    inputs = (result.get("origins") or {}).get("inputs", ())
    before = dict.fromkeys(reason for one in inputs for reason in one["rests_on"])
    paid = [one for one in inputs if Origin.of_facts(one).kind is OriginKind.PAID]
    return (*said("run.declared", inputs, before), *said("run.paid", paid), *counted_before(result))


def every_origin(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Every input of a run with its origin, those that are built in too, and what earlier runs took as public."""
    inputs = []
    for one in (result.get("origins") or {}).get("inputs", ()):
        shown = str(one["shown"])  # by its file's name or its own: the folders above a file are nobody else's affair
        inputs.append((one, PurePath(shown).name if PurePath(shown).is_absolute() else shown, Origin.of_facts(one)))
    return (*said("run.every_origin", inputs), *counted_before(result))


def counted_before(result: Mapping[str, Any]) -> tuple[str, ...]:
    """How much of the epsilon that is shown is that of earlier runs, for the party with the most of it."""
    given = result.get("spent") or ()
    spent = [given] if isinstance(given, Mapping) else given
    before = [one for one in spent if one.get("from_origins")]
    if not before:
        return ()
    most = max(before, key=lambda one: float(one["epsilon"]))
    return said("run.counted_before", before, most, len(before) == len(spent))


def of_use(result: Mapping[str, Any]) -> str:
    """The model's perplexity beside that of word frequencies and of a uniform guess, and what helps a model of no use."""
    return sentence("run.of_use", result)


# ---- one run -------------------------------------------------------------------------------------------------------

MOST_TOPICS = 20  # topics of the shared model; those with the largest share at any party come first
PER_PARTY = 3  # topics shown of each party's own model
MOST_ALONE = 10  # parties whose own topics are shown
MOST_NAMED = 3  # parties named for a strong topic
STRONG = 5  # per cent of a party's documents; a topic with a smaller share is not called strong
LEAST_WORDS = 34  # characters for a topic's words
_EDGE = 3  # characters between two columns
_SHADES = " ▁▂▃▄▅▆▇█"


def show_run(result: Mapping[str, Any], danger: str, to: Console) -> None:
    """Whether the model is of use, its topics, the spend, and what the federation was worth to each party."""
    shown: list[Block] = [*blocks("run.learned", result, after_a_run(result))]
    if result["rounds"]:
        shown.append(shared_topics(result, to.width))
        shown += blocks("run.matched", result["matched"]) if "matched" in result else ()
        if result["topics_alone"]:
            shown.append(own_topics(result))
        shown.append(quality(result))
    if any(spent["epsilon"] is not None for spent in result["spent"]):
        shown += [*blocks("run.spending", result["spent"]), *map(Paragraph, origins_said(result))]
    show((*shown, *blocks("run.ended", result, danger)), to)


def shared_topics(result: Mapping[str, Any], width: int = 80) -> Table:
    """The shared topics. Each party has a column with a bar if there is room; else one column names the strong parties."""
    bars: dict[int, tuple[str, ...]]
    parties, topics, above = result["parties"], result["topics"], result.get("above_noise")
    shares = list(zip(*(result["prevalence"][name] for name in parties), strict=True))  # of each topic, by party
    order = sorted(range(len(topics)), key=lambda topic: -max(shares[topic]))[:MOST_TOPICS]
    if 2 * _EDGE + LEAST_WORDS + len(parties) * (_EDGE + max(2, len(str(len(parties))))) <= width:
        heads = tuple(str(number) for number in range(1, len(parties) + 1))
        legend = ", ".join(f"{number} {name}" for number, name in enumerate(parties, start=1))
        caption = sentence("run.by_party", legend)
        most = max(max(shares[topic]) for topic in order)
        bars = {topic: tuple(2 * _SHADES[round(8 * share / max(most, 1e-9))] for share in shares[topic]) for topic in order}
    else:
        heads = ("strong at",)
        caption = sentence("run.strong_at", STRONG, len(parties))
        bars = {}
        for topic in order:  # the parties at which a topic's share is far above the average; there may be none
            each = shares[topic]
            least = max(STRONG / 100, 2 * sum(each) / len(each))
            strong = [place for place in sorted(range(len(each)), key=lambda place: -each[place]) if each[place] >= least]
            more = f" and {len(strong) - MOST_NAMED} more" if len(strong) > MOST_NAMED else ""
            bars[topic] = (", ".join(parties[place] for place in strong[:MOST_NAMED]) + more,)
    noised = any(spent["epsilon"] is not None for spent in result.get("spent", ()))
    noise = noise_said(above and [above[topic][:7] for topic in order], noised)
    words: dict[int, Line] = {topic: with_marks(topics[topic][:7], above and above[topic]) for topic in order}
    rows: tuple[tuple[Cell, ...], ...] = tuple((str(topic + 1), (words[topic],), *bars[topic]) for topic in order)
    whole = range(2, 2 + len(heads)) if heads[0] == "1" else ()
    title = f"Topics of the shared model ({len(order)} of {len(topics)})"
    return Table(("", "top words", *heads), rows, f"{caption} {noise}".rstrip(), title, numeric=(0,), whole=(0, *whole))


def own_topics(result: Mapping[str, Any]) -> Table:
    """A few topics that each party finds alone, for the first parties."""
    return table("run.own_topics", list(result["topics_alone"].items()), MOST_ALONE, PER_PARTY)


def quality(result: Mapping[str, Any]) -> Table:
    """The quality of each party's own model beside that of the shared one, and of that one adapted to its documents."""
    return table("run.quality", result)


# ---- several runs --------------------------------------------------------------------------------------------------

_NAMES = {
    "parties_better_than_alone": "parties better off than alone",
    "megabytes": "MB sent",
    "npmi": "NPMI",
    "perplexity_over_frequencies": "perplexity over that of word frequencies",
    F1: "macro F1 of a classifier on topics",
}


def runs_table(runs: Sequence[KeptRun]) -> Table:
    return table("run.runs", runs)


def comparison_tables(compared: Mapping[str, Any]) -> tuple[Block, ...]:
    groups = compared["groups"]
    same_words = len({words for group in groups for words in group["words"]}) == 1
    labelled = any(group["figures"][F1]["mean"] is not None for group in groups)  # F1 needs labels, which few corpora have
    shown = [one for one in COMPARED if (one.name != PERPLEXITY or same_words) and (one.name != F1 or labelled)]
    figures = [
        (
            _NAMES.get(one.name, one.name),
            [_seed_figure(group["figures"][one.name], bound=one.name == "epsilon") for group in groups],
            best_of(groups, one),
        )
        for one in shown
    ]
    identical = [names for group in groups for names in group["identical"]]
    return blocks("run.compared", list(groups), compared["differing"].items(), figures, identical, same_words)


def _digits(mean: float, values: Collection[float]) -> int:
    return 0 if set(values) == {round(mean)} or abs(mean) >= 100 else 1 if abs(mean) >= 10 else 3


def _figure(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:,.{_digits(mean, (mean,))}f}"


def _seed_figure(figure: Mapping[str, Any], *, bound: bool) -> str:
    mean, values = figure["mean"], set(figure["values"])
    if mean is None:
        return "–"
    digits = _digits(mean, values)
    if figure["low"] is None or len(values) == 1:
        return upward(mean) if bound else f"{mean:,.{digits}f}"
    return f"{upward(mean) if bound else f'{mean:,.{digits}f}'} ± {(figure['high'] - figure['low']) / 2:,.{digits}f}"


def paired_sentences(tested: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """What the test over documents says of each pair of runs."""
    return said("run.paired", tested)


# ---- one run for each value of a setting -----------------------------------------------------------------------------

_IN_SWEEP = ("perplexity_over_frequencies", F1, "npmi", "diversity", "rounds", "seconds")
_SHORT = {"perplexity_over_frequencies": "ratio to word frequencies", F1: "macro F1", "npmi": "NPMI"}
_DRAWN = ("perplexity_over_frequencies", F1, "diversity")


def show_sweep(found: Mapping[str, Any], to: Console) -> None:
    """The figures of each value in a table, and as a curve."""
    show(_swept(found), to)
    to.print(Text(in_terminal(sweep_curves(found), min(to.width, 90))), soft_wrap=True)


def write_sweep(found: Mapping[str, Any], path: Path) -> None:
    figure = sweep_curves(found)
    sections = (Section("", _swept(found)), Section(figure.title, (figure, numbers_of(figure))))
    write_report(path, in_html(Document(f"One run for each value of {found['over']}", "", sections)))


def _swept(found: Mapping[str, Any]) -> tuple[Block, ...]:
    shown = [one for one in COMPARED if one.name in _IN_SWEEP and any(v is not None for v in found["figures"][one.name])]
    shown.sort(key=lambda one: _IN_SWEEP.index(one.name))
    cells = [(_SHORT.get(one.name, one.name), [_figure(v) for v in found["figures"][one.name]]) for one in shown]
    best = [best_value(found["figures"][one.name], one.better) for one in shown]
    if any(epsilon is not None for epsilon in found["figures"][SO_FAR]):
        cells.append(("epsilon of all so far", ["–" if one is None else upward(one) for one in found["figures"][SO_FAR]]))
        best.append(None)
    return blocks("run.swept", found, cells, best)


def sweep_curves(found: Mapping[str, Any]) -> Figure:
    """The curves of the figures that lie between 0 and about 1, over the values, or over their places where these are words."""
    try:
        across = [float(value) for value in found["values"]]
    except ValueError:
        across = [float(place) for place in range(1, len(found["values"]) + 1)]
    points = {name: zip(across, found["figures"][name], strict=True) for name in _DRAWN}
    known = {
        name: tuple((x, y) for x, y in sorted(each, key=lambda at: at[0]) if y is not None) for name, each in points.items()
    }
    curves = tuple(Curve(_SHORT.get(name, name), each) for name, each in known.items() if each)
    return Figure(f"Figures by {found['over']}", found["over"], "", curves)
