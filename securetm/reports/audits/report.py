"""An audit as a document: in the terminal, as a page, and as a short text in Markdown to be kept with a model.

The page has the summary first, then all verdicts, then each adversary with its findings, folded under their verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console

from securetm.auditing import record
from securetm.auditing.record import NOT_TESTED, REFUTED, STANDINGS, Audit, Example, Finding, Measured
from securetm.contracts import Unit
from securetm.data_classes import dataclass, replace
from securetm.figures import Curve, Figure
from securetm.reports.audits import wording
from securetm.reports.audits.wording import (
    CAUTION,
    EPSILON,
    INTERVALS,
    MARKS,
    MEANING,
    NUMBER,
    QUOTES,
    SHARE,
    Numbered,
    about_examples,
    by_adversary,
    by_chance,
    compared,
    confidence,
    effort_in_words,
    figure,
    headline,
    helped,
    of_whom,
    promised,
    quoted,
    quotes,
    refusal_in_words,
    scale_of,
    shown,
    since,
    tries,
    unit_of,
    verdict,
)
from securetm.reports.charts import axis, axis_mark
from securetm.reports.document import (
    Bar,
    Bars,
    Block,
    Cell,
    Document,
    Fold,
    Heading,
    Items,
    Line,
    Paragraph,
    Section,
    Table,
    Words,
    items,
    named_curves,
)
from securetm.reports.files import write_report
from securetm.reports.markdown import in_markdown
from securetm.reports.pages import in_html
from securetm.reports.terminal import rich_table, show
from securetm.reports.texts import table
from securetm.threats import CHANNELS, read_threat_model, threat_model_names
from securetm.wording import counted, upward

_UNFOLDED = 8  # a page with more findings folds them
_FEW = 5  # a table with more profiles has smaller letters
_READ = "Attacks read the messages that really passed in the run, on the channels that are named, and nothing else."
_NOTHING = ("nothing is noted",)


def write_audit(audit: Audit, path: Path, examples: int) -> None:
    write_report(path, audit_page(audit, examples), private=quotes(audit, examples))


def write_summary(audit: Audit, path: Path, examples: int) -> None:
    write_report(path, summary(audit, examples), private=quotes(audit, examples))


# ---- tables, the same in every form --------------------------------------------------------------------------------


def findings_table(findings: Iterable[Numbered]) -> Table:
    columns = ("no.", "verdict", "attack and effort", "reached, with its interval", "compared with", "claim, profile and model")
    return Table(columns, tuple((str(number), *_finding(finding)) for number, finding in findings), upright=2)


def _finding(finding: Finding) -> Iterator[Cell]:
    found, attempt, run = finding.outcome.measured, finding.attempt, finding.run
    tried = (f"{effort_in_words(finding)}; {finding.outcome.seconds:.1f} s", helped(finding), since(finding))
    measured = "; ".join((found.measure, *([tries(found)] if found.of else []), f"unit: {unit_of(found)}"))
    claim = f"tries “{attempt.claim}”", of_whom(finding), f"profile {run.profile}, model {run.model}"
    yield (_verdict(finding),)
    yield (finding.about.title, *filter(None, tried))
    yield figure(found), measured, f"confidence {confidence(finding)}"
    yield (compared(finding), *filter(None, (promised(finding),)))
    yield claim


def _verdict(finding: Finding) -> Words:
    return Words(verdict(finding), f"verdict {finding.standing.replace(' ', '-')}")


def counts_table(audit: Audit) -> Table:
    kinds = {
        "claims of a profile": [f for f in audit.findings if f.is_claim],
        "what no profile claims": [f for f in audit.findings if not f.about.claimed and not f.attempt.baseline],
        "baselines, which must break": [f for f in audit.findings if f.attempt.baseline],
    }
    counts = {name: [sum(f.standing == one for f in found) for one in STANDINGS] for name, found in kinds.items()}
    made = table("audit.counts", [f"{MARKS[one]} {one}" for one in STANDINGS], counts)
    return replace(made, numeric=range(1, len(made.columns)))


def meaning_table() -> Table:
    return table("audit.meanings", {f"{MARKS[one]} {one}": meaning for one, meaning in MEANING.items()})


def refusals_table(audit: Audit) -> Table:
    """Attempts that parties must refuse, and how each ended. Broken promises come first."""
    in_order = sorted(audit.refusals, key=lambda one: not one.broken)
    return table("audit.refusals", [(one, refusal_in_words(one)) for one in in_order])


def examples_table(finding: Finding, examples: int) -> Table:
    """Recovered examples beside their originals."""
    rows = tuple(quoted(example) for example in finding.leaked[:examples])
    return Table(("the original", "recovered as", "exact"), rows, about_examples(finding))


# ---- the terminal --------------------------------------------------------------------------------------------------


def show_audit(audit: Audit, examples: int, to: Console) -> None:
    """Prints verdicts, reasons, examples, the summary, refusals and what was not tried."""
    show(_on_screen(audit, examples), to)


def _on_screen(audit: Audit, examples: int) -> Iterator[Any]:
    def shown(table: Table, title: str = "", **style: Any) -> Any:
        return rich_table(replace(table, title=title), title_style="bold", box=SIMPLE_HEAD, **style)

    numbered = list(enumerate(audit.findings, start=1))
    yield Paragraph(audit.title, "strong")
    for adversary, several in by_adversary(audit).items():
        yield shown(findings_table(several), f"Seen by {adversary}")
    for place, finding in numbered:
        if finding.outcome.verdict != REFUTED:
            yield Paragraph(f"{place}. {finding.standing}: {finding.outcome.why}.")
    for place, finding in numbered:
        if finding.leaked and examples and (finding.outcome.verdict == REFUTED or finding.outcome.measured.hits):
            title = f"{place}. Recovered under {finding.run.profile} by {finding.about.title.lower()}"
            yield shown(examples_table(finding, examples), title, show_lines=True)
    yield shown(replace(counts_table(audit), caption=""))
    yield Paragraph((Words(headline(audit), "danger" if audit.refuted_claims else "strong"), f" {CAUTION}"))
    refused = []
    for profile, least, attempt, became in (map(str, row) for row in refusals_table(audit).rows):
        at_least = "" if least == "–" else f", at least {least} documents"
        refused.append(f"{profile}{at_least}: {attempt}: {became}")
    yield from items(refused, "What the parties refused")
    yield from items(audit.not_tried, "Not tried")
    yield Paragraph(f"{counted(len(audit.findings), 'finding')} in {audit.seconds:.0f} s.")


# ---- the text ------------------------------------------------------------------------------------------------------


def summary(audit: Audit, examples: int) -> str:
    intent = "A leakage audit: real runs were attacked with what their adversaries saw, to refute what is claimed of them."
    limits = tuple(dict.fromkeys(f"{f.about.title}: {limit}" for f in audit.findings for limit in f.about.limits))
    methods = tuple(dict.fromkeys(f"{f.about.title}: {f.about.citation}" for f in audit.findings if f.about.citation))
    described = (Paragraph("The methods are described in:"), Items(methods)) if methods else ()
    made = f", {audit.made}" if audit.made else ""
    setting = [f"plan “{audit.plan}”, run “{audit.run}”, securetm {audit.version}{made}"]
    setting += dict.fromkeys(f"profile {f.run.profile}, model {f.run.model}: {f.run.setting}" for f in audit.findings)
    setting += [f"{who} read {', '.join(_channels_read(of)) or 'nothing'}" for who, of in by_adversary(audit).items()]
    result = (Paragraph(intent), Paragraph(headline(audit), "strong"), Paragraph(CAUTION), counts_table(audit))
    sections = (
        Section("Purpose and result", result),
        Section("Setting", (Items(tuple(setting)),)),
        Section("Verdicts", (findings_table(enumerate(audit.findings, start=1)), meaning_table())),
        Section("What leaked", tuple(_leaked(audit, examples))),
        *([Section("What was refused", (refusals_table(audit),))] if audit.refusals else []),
        Section("What was not tried", items(audit.not_tried or _NOTHING)),
        *([Section("Limits", (Paragraph(INTERVALS), Items(limits)))] if limits else []),
        Section("To have it again", (*(Paragraph(one, "code") for one in audit.reproduce), *described)),
    )
    return in_markdown(Document(audit.title, "", sections))


def _channels_read(several: Iterable[Numbered]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(channel for _, finding in several for channel in finding.about.sees))


def _leaked(audit: Audit, examples: int) -> Iterator[Block]:
    refuted = [(n, f) for n, f in enumerate(audit.findings, start=1) if f.outcome.verdict == REFUTED]
    said = (
        f"finding {n}: {f.about.title}, profile {f.run.profile} ({of_whom(f)}): {f.outcome.measured.measure}: "
        f"{figure(f.outcome.measured)}"
        for n, f in refuted
    )
    yield Items(tuple(said) or ("nothing, to these attacks at this effort",))
    told = [(n, f) for n, f in refuted if f.leaked and examples]
    if told:
        yield Paragraph(QUOTES.replace("This page", "This text"))
    for n, f in told:
        yield Paragraph(f"Finding {n}:")
        yield examples_table(f, examples)


# ---- the page ------------------------------------------------------------------------------------------------------


def audit_page(audit: Audit, examples: int, foot: str = "", marks: tuple[str, ...] = ()) -> str:
    """The text of the page; as a part of an annex with a foot on every sheet, and marks that nobody sees."""
    made, spent = f", {audit.made}" if audit.made else "", counted(round(audit.seconds), "second")
    whence = f"Leakage audit: plan “{audit.plan}” on the run “{audit.run}”, {spent}, securetm {audit.version}{made}."
    sections = tuple(_sections(audit, examples))
    return in_html(
        Document(audit.title, whence, sections, kind="audit", foot=foot, ending=(_READ,), marks=marks, contents=True)
    )


def _sections(audit: Audit, examples: int) -> Iterator[Section]:
    groups = by_adversary(audit)
    warning = (Paragraph(QUOTES, "warning"),) if quotes(audit, examples) else ()
    head = (Paragraph(headline(audit), "strong"), Paragraph(CAUTION), counts_table(audit), *warning)
    yield Section("Summary", head, anchor="summary")
    yield Section("All verdicts", (_matrix(audit),), anchor="verdicts")
    for n, (adversary, several) in enumerate(groups.items(), start=1):
        group = tuple(_group(several, examples, unfolded=len(audit.findings) <= _UNFOLDED))
        yield Section(f"Adversary: {adversary}", group, anchor=f"adversary-{n}")
    if audit.refusals:
        yield Section("What was refused", (refusals_table(audit),), anchor="refused")
    if groups:
        seen = {adversary: _channels_read(several) for adversary, several in groups.items()}
        every = tuple(dict.fromkeys(name for names in seen.values() for name in names))
        rows = tuple((who, *("seen" if name in names else "–" for name in every)) for who, names in seen.items())
        caption = (
            "Channels that an attack of this adversary read. None can read a channel that its threat model does not grant."
        )
        listed = items([(Words(name, "strong"), f": {CHANNELS[name]}") for name in every if name in CHANNELS])
        yield Section("What each adversary saw", (Table(("adversary", *every), rows, caption), *listed), anchor="channels")
    yield Section("What was not tried", items(audit.not_tried or _NOTHING), anchor="not-tried")
    yield Section("How to read a verdict", (meaning_table(), Paragraph(CAUTION), Paragraph(INTERVALS)), anchor="reading")
    anew = (
        f"with securetm {audit.version}. Runs that the audit makes for itself are made anew, with the plan's own seeds; what "
        "is masked is masked with fresh randomness each time."
    )
    commands = (Paragraph(one, "code") for one in audit.reproduce)
    yield Section("To have it again", (*commands, Paragraph(anew, "note")), anchor="again")


def _matrix(audit: Audit) -> Table:
    """A row for each attack on a claim, a column for each profile."""
    profiles = list(dict.fromkeys(finding.run.profile for finding in audit.findings))
    rows: dict[tuple[str, str], dict[str, list[Line]]] = {}
    for number, finding in enumerate(audit.findings, start=1):
        kind = "baseline" if finding.attempt.baseline else "claimed" if finding.about.claimed else "not claimed"
        entry = (_verdict(finding), " (", _link(number), f"), {kind}")
        row = rows.setdefault((finding.about.title, finding.attempt.claim), {})
        row.setdefault(finding.run.profile, []).append(entry)
    nothing: tuple[Line, ...] = (Words("not tried", "note"),)
    cells = tuple(
        ((title, f"tries “{claim}”"), *(tuple(row.get(profile, nothing)) for profile in profiles))
        for (title, claim), row in rows.items()
    )
    caption = "Numbers lead to the finding. A profile without an entry was not tried with that attack."
    return Table(("attack", *profiles), cells, caption, kind="matrix many" if len(profiles) > _FEW else "matrix")


def _link(number: int) -> Words:
    return Words(str(number), to=f"#finding-{number}")


def _group(several: Sequence[Numbered], examples: int, *, unfolded: bool) -> Iterator[Block]:
    threats = several[0][1].attempt.threat_model
    if threats in threat_model_names():
        yield Paragraph(f"{read_threat_model(threats).title}.")
    yield Paragraph(f"Its attacks read these channels: {', '.join(_channels_read(several)) or 'none'}.")
    table = findings_table(several)
    linked = (((_link(number),), *row[1:]) for (number, _), row in zip(several, table.rows, strict=True))
    yield replace(table, rows=tuple(linked))
    yield Heading("Results beside chance")
    yield from bars(
        [
            result_of(finding, ((f"{number}. {finding.run.profile}: ", _verdict(finding)), finding.outcome.measured.measure))
            for number, finding in several
        ]
    )
    yield Heading("Each finding in full")
    for number, finding in several:
        yield _detail(number, finding, examples, unfolded=unfolded)


# ---- one finding in full -------------------------------------------------------------------------------------------

_MORE = "…"  # the end of a list of words that is cut
_MOST_TILES = 24
_HOW = (
    "Words with how often they occur; their order is in no answer, so it cannot be recovered. A filled square is a word of "
    "the original that was found, an empty one a word that did not leak, and is not shown. Struck out: not in the original."
)


def _detail(number: int, finding: Finding, examples: int, *, unfolded: bool) -> Fold:
    """The finding, folded under its verdict. A print unfolds claims and leaks; of other findings the tables say enough."""
    title = f": {number}. {finding.about.title}, profile {finding.run.profile}, model {finding.run.model}"
    shown: list[Block] = [table("audit.facts", finding, number, wording), *_measures(finding), *figures(finding)]
    if finding.leaked and examples:
        shown.append(Heading("What was recovered, beside the original", 4))
        found, rows = examples_table(finding, examples), tuple(_marked(example) for example in finding.leaked[:examples])
        shown.append(replace(found, rows=rows, caption=f"{_HOW} {found.caption}".rstrip()))
    printed = finding.is_claim or (finding.outcome.verdict == REFUTED and not finding.attempt.baseline)
    return Fold((_verdict(finding), title), tuple(shown), f"finding-{number}", unfolded, spare=not printed)


def _measures(finding: Finding) -> Iterator[Block]:
    more = [one for one in finding.outcome.beside if one.value is not None]
    own = finding.outcome.measured
    yield Heading("What was measured", 4)
    drawn = (Result((one.measure, figure(one)), one, one.by_chance) for one in more)
    yield from bars([result_of(finding, (own.measure, figure(own))), *drawn], explained=False)
    if more:
        rows = ((one.measure, figure(one), tries(one), one.unit, shown(one.by_chance, scale_of(one))) for one in more)
        yield Table(("measured beside it", "reached", "tries", "unit", "by chance"), tuple(rows))


def _marked(example: Example) -> tuple[Cell, ...]:
    """An example. Words that were missed, and words that are not in the original, are marked."""
    _, _, exact = quoted(example)
    (whose, original), (said, recovered) = _words(example.original), _words(example.recovered)
    if _MORE in example.original + example.recovered or len(original) < 2:  # no comparison word by word
        return quoted(example)
    hit = [word in recovered for word in original]
    there: Line = (whose, *_listed(original, recovered, "missed")) if any(hit) else example.original
    tiles = "".join("■" if found else "□" for found in sorted(hit, reverse=True)) if len(hit) <= _MOST_TILES else ""
    count = (Words(tiles, "tiles"), f" {sum(hit)} of {len(hit)} words")
    return (there,), ((said, *(_listed(recovered, original, "wrong") or ("nothing",))), count), exact


def _words(listed: str) -> tuple[str, list[str]]:
    """The words of a list, and the text before them, such as the name of a party."""
    before, colon, words = listed.rpartition(": ")
    return before + colon, [word for word in words.split(", ") if word]


def _listed(words: Sequence[str], known: Sequence[str], kind: str) -> tuple[str | Words, ...]:
    """The words. Those that are not in `known` are marked."""
    marked = ((", " if place else "", Words(word, "" if word in known else kind)) for place, word in enumerate(words))
    return tuple(part for pair in marked for part in pair)


# ---- bars: one value with its interval in each line ----------------------------------------------------------------

_DOT = "Dot with a bar: what the attack reached, and its interval. Cross: the same attack on random numbers."
_CAPTIONS = {
    SHARE: f"{_DOT} Upright stroke: the interval must begin there or beyond to count as success. Open triangle: where the "
    "interval of an ideal attacker would begin; what stands on the right edge may lie beyond it.",
    EPSILON: f"{_DOT} Upright stroke: the epsilon that is claimed, or from which on something counts as success where none "
    "is. Open triangle: the most that an ideal attacker could show with as many tries. What begins beyond the "
    "stroke succeeded. An arrow: it goes on beyond the edge.",
    NUMBER: f"{_DOT} Upright stroke: from here on it counts as success. Open triangle: the most that an ideal attacker could "
    "show with as many tries. An arrow: it goes on beyond the edge.",
}
_BEYOND = 4  # times the limit: on a longer axis, results near the limit could not be distinguished
_SMALL = 0.1  # smaller shares have an axis of their own, or they could not be distinguished


@dataclass(frozen=True)
class Result:
    label: tuple[Line, ...]
    measured: Measured
    by_chance: float | None
    limit: float | None = None  # from here on it counts as success


def result_of(finding: Finding, label: tuple[Line, ...]) -> Result:
    """The line of a finding's own measure."""
    return Result(label, finding.outcome.measured, by_chance(finding), finding.attempt.refuted_from)


def bars(results: Sequence[Result], *, explained: bool = True) -> Iterator[Bars]:
    kinds = [_kind(one, results) for one in results]
    for scale, small in dict.fromkeys(kinds):
        group = [one for one, own in zip(results, kinds, strict=True) if own == (scale, small)]
        top, ticks = _ticks(group, scale, small)
        percent = scale == SHARE
        marks = ((tick / top, f"{100 * tick:.3g}\N{NO-BREAK SPACE}%" if percent else axis_mark(tick)) for tick in ticks)
        yield Bars(tuple(_bar(one, scale, top) for one in group), tuple(marks), _CAPTIONS[scale] if explained else "")


def _kind(result: Result, results: Sequence[Result]) -> tuple[str, bool]:
    """The scale, and whether all results of this measure are small on it."""
    scale = scale_of(result.measured)
    alike = [one for one in results if one.measured.measure == result.measured.measure and one.measured.value is not None]
    reach = [max(one.measured.high, one.limit or 0.0, one.by_chance or 0.0) for one in alike]
    return scale, scale == SHARE and bool(alike) and max(reach) < _SMALL


def _ticks(results: Sequence[Result], scale: str, small: bool) -> tuple[float, list[float]]:
    """The end of the axis, and its marks."""
    if scale == SHARE and not small:
        return 1.0, [0, 0.25, 0.5, 0.75, 1.0]
    ends: list[float] = []
    for one in results:
        found = one.measured
        ends += [found.value or 0.0, found.low, found.high, one.by_chance or 0.0, one.limit or 0.0]
        ends += [] if small else [found.ceiling]
    ends = list(filter(math.isfinite, ends))
    limit = max((one.limit or 0.0 for one in results), default=0.0)
    most = min(max(ends), _BEYOND * limit) if limit and not small else max(ends)
    reach = axis(max(most, 1e-3), 4)
    return reach.top, reach.ticks()


def _bar(result: Result, scale: str, top: float) -> Bar:
    found = result.measured
    if found.value is None:
        return Bar(result.label, NOT_TESTED)

    def at(value: float) -> float:
        return min(max(value / top, 0.0), 1.0)

    def known(value: float | None) -> float | None:
        return None if value is None else at(value)

    beside = "" if result.by_chance is None else f", by chance {shown(result.by_chance, scale)}"
    places = (at(found.value), at(found.low), at(found.high), at(found.ceiling))
    rest = (known(result.by_chance), known(result.limit), found.high > top)
    return Bar(result.label, f"{figure(found)}{beside}", *places, *rest)


# ---- curves over two equal axes ------------------------------------------------------------------------------------

ROC, EMPIRICAL = "roc", "epsilon"  # kinds of curves (auditing/attack.py)
_CHANCE = "chance"  # the diagonal of a plot of rates
_WHOLE = {unit.value for unit in Unit if unit.whole_documents}
_AT = (0.001, 0.01, 0.1)  # rates of false positives that the table names
_WHY_MORE = (
    "These are the rates among the very documents that were asked about. A result that is told “at” a rate of false alarms is "
    "smaller: its threshold is set so that surely no more of all others lie above it."
)
_ABOVE = (
    "All numbers are epsilons. What lies above the finely dotted line would show more than is claimed. An ideal attacker's "
    "line is its average on honest noise: one that is never wrong could show more."
)
Points = tuple[tuple[float, float], ...]


def figures(finding: Finding) -> Iterator[Block]:
    """The curves of a finding with their numbers. Each kind of curve has its own figure."""
    curves = [curve for curve in finding.outcome.curves if curve.across]
    if roc := [curve for curve in curves if curve.kind == ROC and curve.label != _CHANCE]:
        yield from _roc(finding, roc)
    if epsilons := [curve for curve in curves if curve.kind == EMPIRICAL]:
        yield from _empirical(finding, epsilons)


def _roc(finding: Finding, found: Sequence[record.Curve]) -> Iterator[Block]:
    smallest = min([x for curve in found for x in (*curve.across, *curve.up) if x > 0], default=1e-3)
    decades, title = min(-3, max(-5, math.floor(math.log10(smallest)))), "True against false positives"
    curves, allowed = tuple(Curve(curve.label, _stairs(curve)) for curve in found), _allowed(finding)
    named = f"{title}, profile {finding.run.profile}"
    drawn = Figure(named, "false positives", "true positives", curves, None, "", True, _CHANCE, decades, allowed)
    most = f" The dotted line marked ε is the most that epsilon = {upward(finding.run.epsilon or 0.0)} allows."
    caption = (
        "Both axes are logarithmic; the finely dotted line is chance. With fewer than 1,000 tries that should fail, what "
        f"stands at 0.1 % was reached without any false positive. {_WHY_MORE}{most if allowed else ''}"
    )
    columns = ("line", *(f"true positives at {100 * at:g}\N{NO-BREAK SPACE}% false ones" for at in _AT))
    rows = []
    for name, curve in zip(named_curves(drawn), found, strict=True):
        points = list(zip(curve.across, curve.up, strict=True))
        rates = [max((y for x, y in points if x <= at + 1e-12), default=0.0) for at in _AT]
        rows.append((name, *(shown(rate, SHARE) for rate in rates)))
    yield Heading(title, 4)
    yield drawn
    yield Table(columns, tuple(rows), caption)


def _stairs(curve: record.Curve) -> Points:
    """The curve as stairs. Nothing is known between two thresholds, so the line stays level there."""
    points, level = [(0.0, 0.0)], 0.0
    for x, y in sorted(zip(curve.across, curve.up, strict=True)):
        if x > points[-1][0]:
            points.append((x, level))
        points.append((x, y))
        level = y
    return (*points, (1.0, level))


def _allowed(finding: Finding) -> Curve | None:
    """The most true positives that the claimed epsilon allows; None if it is not claimed for whole documents."""
    run = finding.run
    if run.epsilon is None or run.delta is None or run.epsilon_unit not in _WHOLE:
        return None
    grow, delta = math.exp(min(run.epsilon, 700.0)), run.delta
    places = [10.0 ** (step / 20 - 5) for step in range(101)]
    return Curve("allowed", tuple((x, min(grow * x + delta, 1 - (1 - delta - x) / grow, 1.0)) for x in places))


def _empirical(finding: Finding, found: Sequence[record.Curve]) -> Iterator[Block]:
    title, known = "Shown against claimed epsilon", [dict(zip(one.across, one.up, strict=True)) for one in found]
    curves = tuple(Curve(one.label, tuple(sorted(line.items()))) for one, line in zip(found, known, strict=True))
    named = f"{title}, profile {finding.run.profile}"
    drawn = Figure(named, "epsilon that is claimed", "epsilon that is shown", curves, square=True, diagonal="as claimed")
    places = sorted({x for one in found for x in one.across})
    rows = tuple((f"{x:.4g}", *(shown(line.get(x), EPSILON) for line in known)) for x in places)
    whose = "claimed of one sum" if "one sum" in finding.outcome.measured.unit else "claimed of the whole run"
    lower = (f"{name} (lower end of its interval)" if ": shown" in name else name for name in named_curves(drawn))
    yield Heading(title, 4)
    yield drawn
    yield Table((whose, *lower), rows, _ABOVE)
