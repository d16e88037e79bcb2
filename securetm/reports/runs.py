"""What a run says in the terminal: whether its model is of use, its topics, what was spent, and several runs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from rich.console import Console

from securetm.contracts import Unit, unit_name
from securetm.contracts.origin import Origin, OriginKind
from securetm.reports.document import Block, Cell, Line, Paragraph, Table, Words, paragraphs
from securetm.reports.forecast import after_a_run
from securetm.reports.terminal import show
from securetm.reports.topics import noise_said, with_marks
from securetm.runs.compare import COMPARED, SEED, best_of
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
    if told is None:
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
    show(_run(result, danger, to.width), to)


def _run(result: Mapping[str, Any], danger: str, width: int) -> Iterator[Block]:
    useful = result.get("useful") is not False
    if result["rounds"]:
        yield Paragraph(of_use(result), "strong" if useful else "alarm")
        yield from paragraphs((after_a_run(result), start_said(result)))
        yield shared_topics(result, width)
        yield from paragraphs([matched_topics(result["matched"])] if "matched" in result else [])
        if result["topics_alone"]:
            yield own_topics(result)
        yield quality(result)
    if any(spent["epsilon"] is not None for spent in result["spent"]):
        yield spending(result)
        yield from paragraphs(origins_said(result))
        if result["stopped"] == "budget":
            yield _stopped(result)
    if danger:
        yield Paragraph(f"profile {result['profile']}: {danger}", "danger")
    rounds = counted(result["rounds"], "round")
    if result.get("epochs") and result["stopped"] == "rounds":
        cut = f"Stopped after {rounds}, the most that the plan allows, before its {result['epochs']:g} epochs"
        yield Paragraph(f"{cut}: --rounds allows more.", "hint")
    up, down = (_sent(result[way] / 1e6) for way in ("bytes_up", "bytes_down"))
    yield Paragraph(f"{rounds} in {result['seconds']:.0f} s; {up} from the parties, {down} to them.")
    yield from paragraphs((comparison_said(result),))
    if result["rounds"]:
        folder = result["directory"]
        release = Words(f"{folder}/release", "strong")
        yield Paragraph(("What may leave is in ", release, ", with a statement; nothing else may."))
        yield Paragraph(("Kept in ", Words(folder, "strong"), f"; next: securetm topics {folder}" if useful else ""))


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
    bars: dict[int, tuple[str, ...]]
    parties, topics, above = result["parties"], result["topics"], result.get("above_noise")
    shares = list(zip(*(result["prevalence"][name] for name in parties), strict=True))  # of each topic, by party
    order = sorted(range(len(topics)), key=lambda topic: -max(shares[topic]))[:MOST_TOPICS]
    if 2 * _EDGE + LEAST_WORDS + len(parties) * (_EDGE + max(2, len(str(len(parties))))) <= width:
        heads = tuple(str(number) for number in range(1, len(parties) + 1))
        legend = ", ".join(f"{number} {name}" for number, name in enumerate(parties, start=1))
        caption = f"How much of its documents each party finds a topic takes, kept in its own store: {legend}."
        most = max(max(shares[topic]) for topic in order)
        bars = {topic: tuple(2 * _SHADES[round(8 * share / max(most, 1e-9))] for share in shares[topic]) for topic in order}
    else:
        heads = ("strong at",)
        caption = (
            f"Strong at a party: the topic takes {STRONG}\N{NO-BREAK SPACE}% of its documents or more, and twice the average "
            f"of all {len(parties)} parties, each of which found its own share. No name: it is strong at none."
        )
        bars = {topic: (_strong_at(parties, shares[topic]),) for topic in order}
    noised = any(spent["epsilon"] is not None for spent in result.get("spent", ()))
    said = noise_said(above and [above[topic][:7] for topic in order], noised)
    words: dict[int, Line] = {topic: with_marks(topics[topic][:7], above and above[topic]) for topic in order}
    rows: tuple[tuple[Cell, ...], ...] = tuple((str(topic + 1), (words[topic],), *bars[topic]) for topic in order)
    whole = range(2, 2 + len(heads)) if heads[0] == "1" else ()
    title = f"Topics of the shared model ({len(order)} of {len(topics)})"
    return Table(("", "top words", *heads), rows, f"{caption} {said}".rstrip(), title, numeric=(0,), whole=(0, *whole))


def _strong_at(parties: Sequence[str], shares: Sequence[float]) -> str:
    """The parties at which a topic's share is far above the average; there may be none."""
    least = max(STRONG / 100, 2 * sum(shares) / len(shares))
    strong = [place for place in sorted(range(len(shares)), key=lambda place: -shares[place]) if shares[place] >= least]
    more = f" and {len(strong) - MOST_NAMED} more" if len(strong) > MOST_NAMED else ""
    return ", ".join(parties[place] for place in strong[:MOST_NAMED]) + more


def own_topics(result: Mapping[str, Any]) -> Table:
    """A few topics that each party finds alone, for the first parties."""
    alone = list(result["topics_alone"].items())
    more = f"and {len(alone) - MOST_ALONE} more parties: topics_alone with --json" if len(alone) > MOST_ALONE else ""
    rows = ((name, "\n".join(" ".join(words[:8]) for words in topics[:PER_PARTY])) for name, topics in alone[:MOST_ALONE])
    heads = ("party", f"{PER_PARTY} of its own topics")
    return Table(heads, tuple(rows), more, "What each party finds alone", kind="lines")


def quality(result: Mapping[str, Any]) -> Table:
    """The quality of each party's own model beside that of the shared one, and of that one adapted to its documents."""
    heads = ("own:\nalone", "\nshared", "\nadapted", "everybody's:\nalone", "\nshared", "NPMI")
    simulated = "known to the simulation only, since nothing pays for asking"
    source = simulated if result.get("quality_by_simulation") else "answers to the coordinator's questions"
    adapted, whole = result.get("adapted_at_party", {}), result["quality"]
    own = max((one["own_topics"] for one in adapted.values()), default=0)
    beside = f", with up to {counted(own, 'topic')} of its own beside the shared ones" if own else ""
    went_on = f" Adapted: the shared model after the party went on with it on its own documents{beside}; nothing is sent."
    caption = (
        f"All parties: {source}. Own documents: each party's own figures. Alone on everybody's: only a simulation can know. "
        f"NPMI: of each party's own model, and below of the shared one.{went_on if adapted else ''}"
    )
    rows: list[tuple[Cell, ...]] = []
    for name in result["parties"]:
        alone, fitted = result["alone"].get(name, {}), adapted.get(name, {}).get("held_out")
        here, everywhere = alone.get("held_out"), alone.get("held_out_everywhere")
        shared = _beside(result["shared_at_party"][name]["held_out"], here), _beside(fitted, here)
        everybodys = _figure(everywhere, ",.0f"), _beside(whole["held_out"], everywhere)
        rows.append((name, _figure(here, ",.0f"), *shared, *everybodys, _figure(alone.get("npmi"), ".2f")))
    rows.append(("all parties", "", "", "", "", _figure(whole["held_out"], ",.0f"), _figure(whole["npmi"], ".2f")))
    numeric = range(1, 7)
    title = "Quality: held-out perplexity, lower is better"
    return Table(("", *heads), tuple(rows), caption, title, numeric=numeric, whole=numeric)


def _beside(shared: float | None, alone: float | None) -> Cell:
    """A perplexity, which stands out where it is lower than that of the party alone."""
    better = alone is not None and shared is not None and shared < alone
    return (Words(_figure(shared, ",.0f"), "good" if better else ""),)


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None or value != value else f"{value:{form}}"


def spending(result: Mapping[str, Any]) -> Table:
    """What the run spent of each party's budget, as that party's own ledger counts it."""
    first = result["spent"][0]
    by_word, unit = first["unit"] == "word", unit_name(Unit(first["unit"]))
    title = f"Spent: epsilon per {unit} at delta = {upward_figure(first['delta'])}, when one is added or removed"
    beside = f"{first['ledger']} and beside it."
    trial = (
        f"A trial's budget, which guards nothing across runs: {beside} With --ledgers FOLDER the budget belongs to the "
        "documents, and what all runs spend of them adds up there."
    )
    kept = trial if first["trial"] else f"Kept for all runs over these documents: {beside}"
    because = f" All runs: unbounded, because of {why}." if (why := first.get("unbounded_because")) else ""
    rows = (
        (
            spent["party"],
            *("unbounded" if spent[name] is None else upward(spent[name]) for name in ("epsilon", "budget", "all_runs")),
            *(_of_documents(spent["per_document"]) if by_word else ()),
            spent["accountant"],
        )
        for spent in result["spent"]
    )
    heads = ("this run", "of its budget", "all runs", *(("its median document", "its 95 % document") if by_word else ()))
    caption = f"{kept}{because}{f' {_ONE_WORD}' if by_word else ''}"
    return Table(("", *heads, "accountant"), tuple(rows), caption, title, numeric=range(1, 1 + len(heads)))


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
    return f"{megabytes:,.0f} MB" if megabytes >= 1 else f"{1000 * megabytes:,.0f} kB"


def _stopped(result: Mapping[str, Any]) -> Paragraph:
    """Why the training ended before its last round."""
    rounds, ledger = int(result["rounds"]), result["spent"][0]["ledger"]
    nothing = (
        f"the first would have exceeded the budget, so that nothing was learned. `securetm budget ledger {ledger}` shows what "
        "earlier runs over these documents spent"
    )
    if rounds:
        why = "another round would have exceeded the budget; the model so far is kept"
    elif any(spent["unit"] == "word" for spent in result["spent"]):
        why = (
            f"{nothing}: their noise serves any run with the same list of words, epsilon and threshold, and anything else "
            "needs noise of its own, which is charged again"
        )
    else:
        why = f"{nothing}; if it is none, one round costs more than the budget, and needs more noise"
    return Paragraph((Words(f"Stopped after {counted(rounds, 'round')}:", "alarm"), f" {why}."))


# ---- several runs --------------------------------------------------------------------------------------------------

_NAMES = {"parties_better_than_alone": "parties better off than alone", "megabytes": "MB sent", "npmi": "NPMI"}


def runs_table(runs: Sequence[KeptRun]) -> Table:
    """Two lines for each run; what is unfinished or cannot be read says so."""

    def shown(value: float | None, form: str) -> str:
        return "–" if value is None else f"{value:{form}}"

    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        what = Words(f"cannot be read: {run.trouble}", "bad") if run.trouble else f"{run.model}, {run.profile}"
        rounds = shown(run.rounds, ",") if run.finished or run.trouble else "unfinished"
        rows.append(
            (
                ((Words(run.name, "strong"), "\n", what),),
                run.begun[:16].replace("T", "\n"),
                f"{shown(run.parties, ',')}\n{rounds}",
                f"{shown(run.perplexity, ',.0f')}\n{shown(run.npmi, '.3f')}",
                "–" if run.epsilon is None else f"{upward(run.epsilon)}\n{run.unit}",
                f"{run.size / 1e6:,.1f} MB",
            )
        )
    heads = ("run\nmodel, profile", "begun\n(UTC)", "parties\nrounds", "perplexity\nNPMI", "epsilon\nper", "size")
    return Table(heads, tuple(rows), kind="lines", numeric=range(1, 6), whole=range(1, 6))


def comparison_tables(compared: Mapping[str, Any]) -> tuple[Block, ...]:
    """The settings that differ, and the figures of each group."""
    groups = compared["groups"]
    heads = (
        group["runs"][0] if len(group["runs"]) == 1 else f"{number}: {counted(len(group['runs']), 'seed')}"
        for number, group in enumerate(groups, 1)
    )
    columns = tuple(heads)
    values = ((name, *each) for name, each in compared["differing"].items())
    settings = tuple(tuple("–" if value in (None, "") else str(value) for value in row) for row in values)
    seeds = (SEED, *(" ".join(map(str, group["seeds"])) for group in groups))
    several = [f"{n}: {', '.join(group['runs'])}" for n, group in enumerate(groups, 1) if len(group["runs"]) > 1]
    overlap = "Mean over seeds ± half of its 95 % interval. Where intervals overlap, a better mean may be chance."
    figures: list[tuple[Cell, ...]] = []
    for measure in COMPARED:
        best = best_of(groups, measure)
        cells = (_seed_figure(group["figures"][measure.name]) for group in groups)
        marked = ((Words(cell, "strong" if place == best else ""),) for place, cell in enumerate(cells))
        figures.append((_NAMES.get(measure.name, measure.name), *marked))
    title, numeric = "Quality, privacy and cost", range(1, 1 + len(columns))
    return (
        *paragraphs(several),
        Table(("setting", *columns), (*settings, seeds), title="Settings that differ"),
        Table(("figure", *columns), tuple(figures), overlap if several else "", title, numeric=numeric),
    )


def _seed_figure(figure: Mapping[str, Any]) -> str:
    mean, values = figure["mean"], set(figure["values"])
    if mean is None:
        return "–"
    digits = 0 if values == {round(mean)} or abs(mean) >= 100 else 1 if abs(mean) >= 10 else 3
    if figure["low"] is None or len(values) == 1:
        return f"{mean:,.{digits}f}"
    return f"{mean:,.{digits}f} ± {(figure['high'] - figure['low']) / 2:,.{digits}f}"


def paired_sentences(tested: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the test over documents says of each pair of runs."""
    said = []
    for one in tested:
        (first, other), apart = one["runs"], one["difference"]
        if apart is None:
            said.append(f"{other} and {first} are not tested over documents; that needs {one['needs']}.")
            continue
        how = "no difference beyond chance" if not one["sure"] else "better" if apart > 0 else "worse"
        ends = f"{apart:+.3f} ({one['low']:+.3f} to {one['high']:+.3f}) nats per word"
        documents = counted(one["documents"], "held-out document")
        said.append(f"{other} against {first}, on the same {documents}: {how}, {ends}.")
    return said
