"""What a run says in the terminal: whether its model is of use, its topics, what was spent, and several runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from securetm.accounting.calculator.budget_report import unit_name
from securetm.contracts import Origin, OriginKind, Unit
from securetm.reports.forecast import after_a_run
from securetm.reports.terminal import titled
from securetm.reports.topics import noise_said, with_marks
from securetm.runs.compare import COMPARED, SEED, PairedRuns, SeedFigure, SideBySide
from securetm.runs.kept_runs import KeptRun
from securetm.wording import counted, listed, upward, upward_figure

_SETTINGS = {
    "continue_from": "the model to go on from",
    "vocabulary": "the list of words",
    "stop_words": "the list of stop words",
    "vectors": "the word vectors",
    "embeddings": "what makes the embeddings",
}


def origins_said(result: Mapping[str, Any]) -> tuple[str, ...]:
    """What a person said of the inputs, and what the runs spent that this one started from; nothing of what is built in."""
    inputs = _inputs(result)
    return (*_declared(inputs), *_paid(inputs), *counted_before(result))


def every_origin(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Every input of a run with its origin, those that are built in too, and what earlier runs took as public."""
    said = (f"{_SETTINGS[one['setting']]} ({_named(one)}): {Origin.of_facts(one).in_words()}" for one in _inputs(result))
    return (*said, *counted_before(result))


def _named(one: Mapping[str, Any]) -> str:
    """The input by its file's name or its own: the folders above a file are nobody else's affair."""
    shown = str(one["shown"])
    return PurePath(shown).name if PurePath(shown).is_absolute() else shown


def _inputs(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    inputs: Sequence[Mapping[str, Any]] = (result.get("origins") or {}).get("inputs", ())
    return inputs


def _declared(inputs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The reasons that the plan gives, word for word, and those on which earlier runs rest."""
    declared = [(f"{_SETTINGS[one['setting']]} ({one['shown']})", one["reason"]) for one in inputs if one["declared"]]
    said = [f"Taken as public: {what}, because: {reason}" for what, reason in declared]
    before = dict.fromkeys(reason for one in inputs for reason in one["rests_on"])
    return (*said, *(f"Taken as public by an earlier run: {reason}" for reason in before))


def _paid(inputs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    origins = ((one, Origin.of_facts(one)) for one in inputs)
    paid = (f"{_SETTINGS[one['setting']]} ({one['shown']})" for one, origin in origins if origin.kind is OriginKind.PAID)
    return tuple(f"It started from what earlier runs paid for: {what}." for what in paid)


def counted_before(result: Mapping[str, Any]) -> tuple[str, ...]:
    """How much of the epsilon that is shown is that of earlier runs, for the party with the most of it."""
    given = result.get("spent") or ()
    spent = [given] if isinstance(given, Mapping) else given
    before = [one for one in spent if one.get("from_origins")]
    if not before:
        return ()
    most = max(before, key=lambda one: float(one["epsilon"]))
    runs = (f"epsilon {upward(float(run['epsilon']))} of the run {run['run']}" for run in most["from_origins"])
    own = upward(float(most["own"]["epsilon"]))
    who = "" if len(before) == len(spent) else f" at {listed(tuple(str(one['party']) for one in before))}"
    return (f"The epsilon of this run{who} is its own {own} and what it started from: {listed(tuple(runs))}.",)


def of_use(result: Mapping[str, Any]) -> str:
    """The model's perplexity beside that of word frequencies and of a uniform guess, and what helps a model of no use."""
    told = result.get("baseline")
    if told is None:
        return "Whether the model is of use cannot be told: no held-out document has two words of the list."
    alone = f"word frequencies alone at {told['word_frequencies']:,.0f}, a uniform guess at {told['uniform']:,.0f}"
    found = "at no finite perplexity" if told["model"] is None else f"at perplexity {told['model']:,.0f}"
    said = f"it predicts held-out words {found}; {alone}."
    if result["useful"]:
        return f"The model is of use: {said}"
    if result["useful"] is None and told.get("from_whole_texts"):
        why = "the embedding of a document was made of all its words, those to be predicted too, so this perplexity is too low"
        return f"Whether the model is of use is not told by perplexity: {why}. As it is, {said}"
    if result["useful"] is None:
        held_out = counted(told["documents"], "held-out document")
        return f"Whether the model is of use cannot be told from {held_out}: {said} --set training.held_out=SHARE takes more."
    worse = (
        "The model is of no use" if told["gain"]["high"] is None or told["gain"]["high"] < 0 else "The model learned nothing"
    )
    private = any(spent["epsilon"] is not None for spent in result["spent"])
    helps = "a larger epsilon, or fewer words, topics or rounds" if private else "more rounds, fewer topics, or another model"
    return f"{worse}: {said} What helps: more documents, {helps}.{_for_short_texts(result, private)}"


def _for_short_texts(result: Mapping[str, Any], private: bool) -> str:
    """What a plan may say that left its start open: topics of general word vectors may fit short texts badly."""
    told = result.get("start") or {}
    if not private or told.get("topics") != "public":
        return ""
    stated = "--set training.documents=N --set training.document_length=5"
    return f" Texts of about five words have topics of their own to begin with: {stated}, if that is no secret."


def start_said(result: Mapping[str, Any]) -> str:
    """Which topics the training began at, and what they are worth by themselves; nothing where that is as ever."""
    told, control = result.get("start"), result.get("control")
    if told is None:  # a run of an earlier version
        return ""
    if told.get("vectors"):
        known = f"{told['words_known']:,} of {counted(told['words'], 'word')} known"
        first = "pairs of words, which were asked for first, and of " if told["topics"] == "moments" else ""
        said = f"Training began at topics of {first}public word vectors ({told['vectors']}, {known})."
        return said if control is None else f"{said} {_control_said(result, control)}"
    if told["topics"] == "moments":
        return "Training began at topics of pairs of words, which were asked for first."
    if told["lacking"]:
        return "Training began at random topics: no word vectors are here (pip install 'securetm[glove]' brings some)."
    return ""


def _control_said(result: Mapping[str, Any], control: Mapping[str, Any]) -> str:
    held_out, own = control["held_out"], result["quality"].get("held_out")
    found = "no finite perplexity" if held_out is None or held_out != held_out else f"perplexity {held_out:,.0f}"
    beside = "" if own is None else f" (the model: {own:,.0f})"
    figures = f"{found}{beside}, NPMI {control['npmi']:.2f}, diversity {control['diversity']:.2f}"
    alone = "These topics alone" if result["start"]["topics"] == "public" else "Topics of the vectors alone"
    return f"{alone}, which no document made: {figures}."


def comparison_said(result: Mapping[str, Any]) -> str:
    """How long the comparison with each party's own model took, and which documents it used."""
    told = result.get("comparison")
    if not told or not result["rounds"]:
        return ""
    judged = f"at most {counted(told['judged_documents'], 'held-out document')} of each party"
    if not told["made"]:
        return f"Not compared with what each party learns alone. Judged on {judged}." if told["sampled"] else ""
    took = f"Of this, the comparison with each party alone took {told['seconds']:.0f} s (--no-comparison leaves it out)"
    if not told["sampled"]:
        return f"{took}."
    return f"{took}: it learned alone from a sample of at most {told['training_documents']:,} documents, judged on {judged}."


_SHADES = " ▁▂▃▄▅▆▇█"

MOST_TOPICS = 20  # topics of the shared model; those with the largest share at any party come first

PER_PARTY = 3  # topics shown of each party's own model

MOST_ALONE = 10  # parties whose own topics are shown

MOST_NAMED = 3  # parties named for a strong topic

STRONG = 5  # per cent of a party's documents; a topic with a smaller share is not called strong

LEAST_WORDS = 34  # characters for a topic's words

_EDGE = 3  # characters between two columns


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


def _pair(alone: float | None, shared: float | None) -> tuple[str, str]:
    better = alone is not None and shared is not None and shared < alone
    text = _figure(shared, ",.0f")
    return _figure(alone, ",.0f"), f"[green]{text}[/green]" if better else text


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None or value != value else f"{value:{form}}"


def _bar(share: float, most: float) -> str:
    return _SHADES[round(share / max(most, 1e-9) * (len(_SHADES) - 1))] * 2


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
        cells = [_seed_figure(group.figures[measure.name]) for group in compared.groups]
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


def _seed_figure(figure: SeedFigure) -> str:
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
