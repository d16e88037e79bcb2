"""Tables of runs, models and profiles in the terminal. This module shows plain records and computes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from securetm.accounting.calculator.budget_report import unit_name
from securetm.contracts import Unit
from securetm.foreign_text import without_commands
from securetm.registries import OURS
from securetm.reports.forecast_sentences import after_a_run
from securetm.reports.noise_marks import noise_said, with_marks
from securetm.reports.origins_said import origins_said
from securetm.reports.streams import StandardOutput
from securetm.reports.usefulness_sentences import comparison_said, of_use, start_said
from securetm.wording import counted, upward, upward_figure

_SHADES = " ▁▂▃▄▅▆▇█"
MOST_TOPICS = 20  # topics of the shared model; those with the largest share at any party come first
PER_PARTY = 3  # topics shown of each party's own model
MOST_ALONE = 10  # parties whose own topics are shown
MOST_NAMED = 3  # parties named for a strong topic
STRONG = 5  # per cent of a party's documents; a topic with a smaller share is not called strong
LEAST_WORDS = 34  # characters for a topic's words
_EDGE = 3  # characters between two columns


class Screen(Console):
    """A terminal that ignores control sequences in the text it shows, which may come from any file."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Renders text without control sequences."""
        for part in super().render(renderable, options):
            yield part if part.control else part._replace(text=without_commands(part.text))

    def on_broken_pipe(self) -> None:
        """Raises the error that rich would turn into an exit."""
        raise BrokenPipeError


def screen() -> Console:
    """Standard error, for progress and notes on what a command does."""
    return Screen(stderr=True, highlight=False)


def results(json: bool = False) -> Console:
    """Standard output, for the results of a command; standard error if JSON alone may stand on standard output."""
    return screen() if json else Screen(file=cast(IO[str], StandardOutput()), highlight=False)


def titled(title: str, *columns: Column | str, caption: str = "", **style: Any) -> Table:
    """An empty table with bold heads; title and caption stand on the left."""
    style = {"header_style": "bold", "title_justify": "left", "caption_justify": "left", **style}
    return Table(*columns, title=title or None, caption=caption or None, **style)


def show_list(title: str, sentences: Sequence[str], to: Console) -> None:
    """A bold title and one line for each sentence; nothing if there are none."""
    if sentences:
        to.print(f"[bold]{title}:[/bold]")
    for sentence in sentences:
        to.print(f"  • {escape(sentence)}")


def show_run(result: Mapping[str, Any], danger: str, to: Console) -> None:
    """Whether the model is of use, its topics, the spend, and what the federation was worth to each party."""
    if result["rounds"]:
        to.print(Text(of_use(result), style="bold" if result.get("useful") is not False else "bold yellow"))
        _show_topics(result, to)
    if any(spent["epsilon"] is not None for spent in result["spent"]):
        _show_spending(result, to)
    if danger:
        to.print(Text(f"profile {result['profile']}: {danger}", style="bold red"))
    up, down = result["bytes_up"] / 1e6, result["bytes_down"] / 1e6
    rounds = counted(result["rounds"], "round")
    if result.get("epochs") and result["stopped"] == "rounds":
        cut = f"Stopped after {rounds}, the most that the plan allows, before its {result['epochs']:g} epochs"
        to.print(f"[yellow]{cut}: --rounds allows more.[/yellow]")
    to.print(f"{rounds} in {result['seconds']:.0f} s; {_sent(up)} from the parties, {_sent(down)} to them.")
    if compared := comparison_said(result):
        to.print(compared)
    if result["rounds"]:
        to.print(
            f"What may leave is in [bold]{escape(result['directory'])}/release[/bold], with a statement; nothing else may."
        )
        invited = "" if result.get("useful") is False else f"; next: securetm topics {escape(result['directory'])}"
        to.print(f"Kept in [bold]{escape(result['directory'])}[/bold]{invited}")


def _show_spending(result: Mapping[str, Any], to: Console) -> None:
    to.print(spending(result))
    for sentence in origins_said(result):
        to.print(Text(sentence))
    if result["stopped"] == "budget":
        to.print(_stopped(result))


def _show_topics(result: Mapping[str, Any], to: Console) -> None:
    for said in filter(None, (after_a_run(result), start_said(result))):
        to.print(Text(said))
    to.print(shared_topics(result, to.width))
    if "matched" in result:
        to.print(matched_topics(result["matched"]))
    if result["topics_alone"]:
        to.print(own_topics(result))
    to.print(quality(result))


def matched_topics(said: Mapping[str, Any]) -> str:
    """How many different topics all parties have together, and which of them the shared model shows."""
    found, asked = said["found"], said["asked"]
    different = f"All parties' topics together are {counted(found, 'different topic')}"
    if said["merged"] == "all":
        return f"{different}, and the model keeps them all (model.merged = all), where {asked} were asked for."
    if found <= asked:
        return f"{different}; the model has the {asked} asked for."
    why = f"{different}, since a topic that no other party's resembles stands alone"
    return f"{why}. The model has the {asked} asked for, merged by likeness; --set model.merged=all keeps all {found}."


def shared_topics(result: Mapping[str, Any], width: int = 80) -> Table:
    """The shared topics. Each party has a column with a bar if there is room; else one column names the strong parties."""
    shown = min(MOST_TOPICS, len(result["topics"]))
    title = f"Topics of the shared model ({shown} of {len(result['topics'])})"
    table = titled(title, Column("", justify="right", no_wrap=True), Column("top words", overflow="fold"))
    parties = result["parties"]
    shares = [result["prevalence"][name] for name in parties]
    order = sorted(range(len(result["topics"])), key=lambda topic: -max(row[topic] for row in shares))[:MOST_TOPICS]
    each = [[row[topic] for row in shares] for topic in order]
    for_bars = len(parties) * (_EDGE + max(2, len(str(len(parties)))))
    cells = (_bars if 2 * _EDGE + LEAST_WORDS + for_bars <= width else _strong)(table, parties, each)
    above = result.get("above_noise")  # a run of an earlier version does not say it
    for number, more in zip(order, cells, strict=True):
        words = with_marks(result["topics"][number][:7], above and above[number])
        table.add_row(str(number + 1), words, *more)
    noised = any(spent["epsilon"] is not None for spent in result.get("spent", ()))
    table.caption = f"{table.caption} {noise_said(above and [above[number][:7] for number in order], noised)}".rstrip()
    return table


def _bars(table: Table, parties: Sequence[str], topics: Sequence[Sequence[float]]) -> list[tuple[str, ...]]:
    """A column for each party; a bar shows a topic's share of its documents, as that party computed it."""
    for number in range(1, len(parties) + 1):
        table.add_column(str(number), justify="center", no_wrap=True)
    legend = ", ".join(f"{number} {escape(name)}" for number, name in enumerate(parties, start=1))
    table.caption = f"How much of its documents each party finds a topic takes, kept in its own store: {legend}."
    most = max(map(max, topics))
    return [tuple(_bar(share, most) for share in row) for row in topics]


def _strong(table: Table, parties: Sequence[str], topics: Sequence[Sequence[float]]) -> list[tuple[str, ...]]:
    """One column with the parties at which a topic's share is far above the average; there may be none."""
    table.add_column("strong at", overflow="fold", max_width=32)
    table.caption = (
        f"Strong at a party: the topic takes {STRONG}\N{NO-BREAK SPACE}% of its documents or more, and twice the average of "
        f"all {len(parties)} parties, each of which found its own share. No name: it is strong at none."
    )
    return [(_strong_at(parties, row),) for row in topics]


def _strong_at(parties: Sequence[str], shares: Sequence[float]) -> str:
    least = max(STRONG / 100, 2 * sum(shares) / len(shares))
    strong = [place for place in sorted(range(len(shares)), key=lambda place: -shares[place]) if shares[place] >= least]
    more = f" and {len(strong) - MOST_NAMED} more" if len(strong) > MOST_NAMED else ""
    return escape(", ".join(parties[place] for place in strong[:MOST_NAMED]) + more)


def own_topics(result: Mapping[str, Any]) -> Table:
    """A few topics that each party finds alone, for the first parties."""
    columns = (Column("party", overflow="fold"), Column(f"{PER_PARTY} of its own topics", overflow="fold"))
    alone = list(result["topics_alone"].items())
    more = f"and {len(alone) - MOST_ALONE} more parties: topics_alone with --json" if len(alone) > MOST_ALONE else ""
    table = titled("What each party finds alone", *columns, caption=more)
    for name, topics in alone[:MOST_ALONE]:
        table.add_row(escape(name), "\n".join(escape(" ".join(words[:8])) for words in topics[:PER_PARTY]), end_section=True)
    return table


def quality(result: Mapping[str, Any]) -> Table:
    """The quality of each party's own model beside that of the shared one, and of that one adapted to its documents."""
    heads = ("own:\nalone", "\nshared", "\nadapted", "everybody's:\nalone", "\nshared", "NPMI")
    columns = (Column(head, justify="right", overflow="fold", no_wrap=True) for head in heads)
    simulated = "known to the simulation only, since nothing pays for asking"
    source = simulated if result.get("quality_by_simulation") else "answers to the coordinator's questions"
    alone = (
        "Own documents: each party's own figures. Alone on everybody's: only a simulation can know. NPMI: of each party's own "
        f"model, and below of the shared one.{_adapted_said(result)}"
    )
    title, caption = "Quality: held-out perplexity, lower is better", f"All parties: {source}. {alone}"
    table, whole = titled(title, Column("", overflow="fold"), *columns, caption=caption), result["quality"]
    for name in result["parties"]:
        own_model, shared = result["alone"].get(name, {}), result["shared_at_party"][name]
        adapted = result.get("adapted_at_party", {}).get(name, {})  # a run of an earlier version has none
        own = _pair(own_model.get("held_out"), shared["held_out"])
        _, fitted = _pair(own_model.get("held_out"), adapted.get("held_out"))
        all_ = _pair(own_model.get("held_out_everywhere"), whole["held_out"])
        table.add_row(escape(name), *own, fitted, *all_, _figure(own_model.get("npmi"), ".2f"))
    table.add_section()
    table.add_row("all parties", "", "", "", "", _figure(whole["held_out"], ",.0f"), _figure(whole["npmi"], ".2f"))
    return table


def _adapted_said(result: Mapping[str, Any]) -> str:
    """What adapted means, where any party adapted the model."""
    adapted = result.get("adapted_at_party", {}).values()
    if not adapted:
        return ""
    own = max(one["own_topics"] for one in adapted)
    more = f", with up to {counted(own, 'topic')} of its own beside the shared ones" if own else ""
    return f" Adapted: the shared model after the party went on with it on its own documents{more}; nothing is sent."


def spending(result: Mapping[str, Any]) -> Table:
    """What the run spent of each party's budget, as that party's own ledger counts it."""
    first = result["spent"][0]
    by_word = first["unit"] == "word"
    unit = unit_name(Unit(first["unit"]))
    title = f"Spent: epsilon per {unit} at delta = {upward_figure(first['delta'])}, when one is added or removed"
    heads = ("this run", "of its budget", "all runs", *(_WHOLE if by_word else ()))
    figures = (Column(head, justify="right", overflow="fold") for head in heads)
    ends = (Column("", overflow="fold"), Column("accountant", overflow="fold"))
    because = f" All runs: unbounded, because of {escape(why)}." if (why := first.get("unbounded_because")) else ""
    caption = _whose(first) + because + (f" {_ONE_WORD}" if by_word else "")
    table = titled(title, ends[0], *figures, ends[1], caption=caption)
    for spent in result["spent"]:
        figures_of = (spent[name] for name in ("epsilon", "budget", "all_runs"))
        spends = ("unbounded" if figure is None else upward(figure) for figure in figures_of)
        whole = _of_documents(spent["per_document"]) if by_word else ()
        table.add_row(escape(spent["party"]), *spends, *whole, spent["accountant"])
    return table


def _whose(spent: Mapping[str, Any]) -> str:
    """Whether the budget is a trial's own, or that of the documents for all runs."""
    beside = f"{escape(spent['ledger'])} and beside it."
    if not spent.get("trial"):  # a run of an earlier version has no such entry, and its ledgers outlive it
        return f"Kept for all runs over these documents: {beside}"
    return (
        f"A trial's budget, which guards nothing across runs: {beside} With --ledgers FOLDER the budget belongs to the "
        "documents, and what all runs spend of them adds up there."
    )


_WHOLE = ("its median document", "its 95 % document")
_ONE_WORD = (
    "This protects one word occurrence, not a document: a whole document has the epsilon of all its words together, as each "
    "party finds from its own documents' lengths. Noise that an earlier run drew is used again and charged no more."
)


def _of_documents(per: Mapping[str, Any] | None) -> tuple[str, str]:
    """The epsilon of a whole document by group privacy, with the document's length."""
    if per is None:
        return "–", "–"
    named = ((per[f"{which}_epsilon"], per[f"{which}_words"]) for which in ("median", "p95"))
    median, longest = (f"{'–' if epsilon is None else upward(epsilon)} ({words:,} words)" for epsilon, words in named)
    return median, longest


def _sent(megabytes: float) -> str:
    """An amount of data in megabytes, or in kilobytes if it is less than one."""
    return f"{megabytes:,.0f} MB" if megabytes >= 1 else f"{1000 * megabytes:,.0f} kB"


def _stopped(result: Mapping[str, Any]) -> str:
    """Why the training ended before its last round."""
    rounds = int(result["rounds"])
    by_word = any(spent["unit"] == "word" for spent in result["spent"])
    nothing = _NOT_ONE[by_word].replace("FILE", escape(str(result["spent"][0]["ledger"])))
    more = "another round would have exceeded the budget; the model so far is kept" if rounds else nothing
    return f"[bold yellow]Stopped after {counted(rounds, 'round')}:[/bold yellow] {more}."


_NOTHING = "the first would have exceeded the budget, so that nothing was learned. `securetm budget ledger FILE` shows what "
_NOT_ONE = {
    False: _NOTHING + "earlier runs over these documents spent; if it is none, one round costs more than the budget, and needs "
    "more noise",
    True: _NOTHING + "earlier runs over these documents spent: their noise serves any run with the same list of words, epsilon "
    "and threshold, and anything else needs noise of its own, which is charged again",
}


_NO_LABELS: Mapping[int, str] = {}


def documents_table(
    shares: Any,
    topics: Sequence[Sequence[str]],
    best: int,
    unknown: Sequence[int] = (),
    most: int = 20,
    labels: Mapping[int, str] = _NO_LABELS,
) -> Table:
    """The strongest topics of the first documents; documents that are `unknown` have none."""
    columns = (Column("", justify="right"), Column("strongest topics", overflow="fold"))
    more = f"the first {most}; all of them with --json" if len(shares) > most else ""
    table = titled(f"Topics of {counted(len(shares), 'document')}", *columns, caption=more)
    for number, row in enumerate(shares[:most], start=1):
        if number - 1 in unknown:
            table.add_row(str(number), "none: it has no word that the model knows")
            continue
        order = sorted(range(len(row)), key=lambda topic: -row[topic])[:best]
        named = {t: f"{t + 1}: {escape(labels.get(t) or ' '.join(topics[t]))}" for t in order}
        table.add_row(str(number), "\n".join(f"{row[t]:5.1%}  {name}" for t, name in named.items()))
    return table


def show_explanation(facts: Mapping[str, Any], to: Console) -> None:
    """What a profile means: who sees what, what protects it, what is spent, and what still shows."""
    to.print(Text(f"{facts['profile']}: {facts['title']}", style="bold"))
    if facts["danger"]:
        to.print(Text(facts["danger"], style="bold red"))
    heads = ("who", "sees", "what protects it")
    table = titled("", *(Column(head, overflow="fold") for head in heads), show_lines=True)
    for view in facts["views"]:
        protection = "\n".join(view["protected_by"]) or "[bold red]nothing[/bold red]"
        table.add_row(view["role"], "\n".join(f"• {escape(seen)}" for seen in view["sees"]), protection)
    to.print(table)
    to.print(f"[bold]Spent:[/bold] {escape(facts['spent'])}")
    to.print(f"[bold]Threat model:[/bold] {facts['threat_model']['name']}: {escape(facts['threat_model']['title'])}")
    show_list("What it still shows", facts["still_shows"], to)
    to.print(f"[bold]Training begins[/bold] {escape(facts['start'])}.")
    if facts["recommended"]:
        to.print(f"[bold]Model to take[/bold]: {escape(facts['recommended'])}.")
    parties, documents = facts["minimum_parties"], facts["minimum_documents"]
    least = f"{counted(parties, 'party', 'parties')}, {counted(documents, 'document')} {facts['minimum_counts']}"
    to.print(f"[bold]Least:[/bold] {least}")
    show_list("Knowingly accepted", [f"not “{part['claim']}”: {part['reason']}" for part in facts["accepted"]], to)
    show_list("Out of scope", facts["out_of_scope"], to)
    others = [part for part in facts["parts"] if part["package"] != OURS]
    show_list("Parts of other packages", [f"{one['kind']} {one['name']}, of {one['package']}" for one in others], to)
    show_list("Audits that try it", facts["audits"], to)
    _show_gaps(facts["gaps"], facts["threat_model"]["name"], to)


def show_check(facts: Mapping[str, Any], to: Console) -> None:
    """What a profile gives up, against whom it was checked, and every gap."""
    if facts["danger"]:
        to.print(Text(f"profile {facts['profile']}: {facts['danger']}", style="bold red"))
    threats = facts["threat_model"]
    to.print(f"[bold]Threat model:[/bold] {escape(threats['name'])}: {escape(threats['title'])}")
    if not facts["required"]:
        to.print("It requires nothing, so nothing is promised.")
    _show_gaps(facts["gaps"], threats["name"], to)


def _show_gaps(gaps: Sequence[Mapping[str, Any]], threats: str, to: Console) -> None:
    """Every gap, or that there is none."""
    if not gaps:
        to.print(f"[green]No gap:[/green] every claim that the threat model {escape(threats)} requires is made.")
        return
    heads = ("claim", "adversary", "reason", "hint")
    table = titled("Gaps", *(Column(head, overflow="fold") for head in heads), header_style="bold red", show_lines=True)
    for gap in gaps:
        table.add_row(*(escape(str(gap[head])) for head in heads))
    to.print(table)


def _pair(alone: float | None, shared: float | None) -> tuple[str, str]:
    better = alone is not None and shared is not None and shared < alone
    text = _figure(shared, ",.0f")
    return _figure(alone, ",.0f"), f"[green]{text}[/green]" if better else text


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None or value != value else f"{value:{form}}"


def _bar(share: float, most: float) -> str:
    return _SHADES[round(share / max(most, 1e-9) * (len(_SHADES) - 1))] * 2
