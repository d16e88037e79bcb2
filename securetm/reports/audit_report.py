"""An audit in the terminal, on a page and in Markdown. Words from documents, runs or plans cannot become markup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from securetm.auditing.record import Audit, Example, Finding, Measured
from securetm.auditing.verdicts import BROKEN, OPEN, REFUTED, standing
from securetm.foreign_text import html_text, markdown_text, printable
from securetm.reports.audit_charts import ResultBar, bar_of, bars, planes
from securetm.reports.audit_markup import STYLE, Html, bullets, facts, grid, joined, lines, section
from securetm.reports.audit_tables import (
    FINDING_COLUMNS,
    AuditTable,
    Cell,
    counts_table,
    examples_table,
    findings_table,
    meaning_table,
    plain_table,
    refusals_table,
)
from securetm.reports.audit_wording import (
    CAUTION,
    INTERVALS,
    QUOTES,
    Numbered,
    adversary_of,
    at_least,
    by_adversary,
    by_chance,
    confidence,
    effort_in_words,
    figure,
    headline,
    helped,
    ideal_most,
    of_whom,
    promised,
    quoted,
    quotes,
    scale_of,
    shown,
    since,
    tries,
    verdict,
)
from securetm.reports.files import write_report
from securetm.reports.pages import framed, on_each_sheet
from securetm.reports.terminal import show_list, titled
from securetm.threats import CHANNELS, read_threat_model, threat_model_names
from securetm.wording import counted

_MORE = "…"  # the end of a list of words that is cut

_MOST_TILES = 24

_HOW = (
    "Words with how often they occur; their order is in no answer, so it cannot be recovered. A filled square is a word of "
    "the original that was found, an empty one a word that did not leak, and is not shown. Struck out: not in the original."
)


def detail(number: int, finding: Finding, examples: int, *, unfolded: bool) -> Html:
    """The finding, folded under its verdict. A print unfolds claims and leaks; of other findings the tables say enough."""
    title = f"{number}. {finding.about.title}, profile {finding.run.profile}, model {finding.run.model}"
    head = f'<span class="word">{html_text(verdict(finding))}</span>: {html_text(title)}'
    inner = joined(
        facts(((name, said) for name, said in _facts(finding) if said), f"Finding {number}"),
        _measures(finding),
        planes(finding),
        _recovered(finding, examples),
    )
    printed = finding.is_claim or (finding.outcome.verdict == REFUTED and not finding.attempt.baseline)
    kind = "" if printed else ' class="spare"'
    opened = " open" if unfolded else ""
    return Html(f'<details id="finding-{number}"{kind}{opened}><summary><h3>{head}</h3></summary>\n{inner}</details>')


def _facts(finding: Finding) -> Iterator[tuple[str, str]]:
    attempt, run, outcome, about = finding.attempt, finding.run, finding.outcome, finding.about
    found = outcome.measured
    chance = shown(by_chance(finding), scale_of(found)) if outcome.chance is None else figure(outcome.chance)
    allowed = ", which is the most that the claimed epsilon allows" if run.epsilon is not None else ""
    begins = shown(attempt.refuted_from, scale_of(found))
    yield "verdict", f"{standing(finding)}: {outcome.why}"
    yield "claim", f"“{attempt.claim}”, {of_whom(finding)}"
    yield "epsilon of the run", promised(finding)
    yield "what it means", about.remark
    yield "accepted because", about.accepted
    yield (
        "measured",
        f"{found.measure}: {figure(found)}"
        + (f", {tries(found)}; one try is one {found.unit}" if found.of is not None else ""),
    )
    yield "by chance", f"{chance}, the same attack on random numbers (the base rate)"
    yield "an ideal attacker", _ideal(finding)
    yield "counts as success", f"from {begins} on{allowed}, if all of the interval lies there"
    yield "confidence", confidence(finding)
    yield "effort", f"{effort_in_words(finding)}; {outcome.seconds:.1f} seconds with its control ({about.cost})"
    yield "result", since(finding)
    yield "adversary", ", ".join(filter(None, (adversary_of(finding), helped(finding))))
    yield "it saw", ", ".join(about.sees)
    yield "it was given", about.given
    yield "run", "; ".join(filter(None, (run.setting, f"model {run.model}", f"profile {run.profile}", run.name)))
    yield "method", about.citation
    yield "what it leaves out", "; ".join(about.limits)


def _ideal(finding: Finding) -> str:
    found = finding.outcome.measured
    if found.of is None:
        return f"could show {ideal_most(finding)} at most with as many tries, if it were never wrong"
    most = at_least(found.ceiling, scale_of(found))
    return f"would have succeeded every time; its interval would begin at {most} with as many tries"


def _measures(finding: Finding) -> Html:
    """The result and all other measures, as bars and as numbers."""
    more = [one for one in finding.outcome.beside if one.value is not None]
    drawn = [bar_of(finding, _label(finding.outcome.measured)), *(ResultBar(_label(one), one, one.by_chance) for one in more)]
    rows = ((one.measure, figure(one), tries(one), one.unit, shown(one.by_chance, scale_of(one))) for one in more)
    table = plain_table(("measured beside it", "reached", "tries", "unit", "by chance"), rows)
    return joined(Html("<h4>What was measured</h4>"), bars(drawn, explained=False), grid(table) if more else "")


def _label(found: Measured) -> Html:
    return lines((found.measure, figure(found)))


# ---- what was recovered --------------------------------------------------------------------------------------------


def _recovered(finding: Finding, examples: int) -> Html:
    if not finding.leaked or not examples:
        return Html("")
    plain = examples_table(finding, examples)
    rows = (_marked(example) for example in finding.leaked[:examples])
    table = plain_table(plain.columns, rows, f"{_HOW} {plain.caption}".rstrip())
    return joined(Html("<h4>What was recovered, beside the original</h4>"), grid(table))


def _marked(example: Example) -> tuple[str, str, str]:
    """An example. Words that were missed, and words that are not in the original, are marked."""
    _, _, exact = quoted(example)
    (whose, original), (said, recovered) = _words(example.original), _words(example.recovered)
    if _MORE in example.original + example.recovered or len(original) < 2:  # no comparison word by word
        return quoted(example)
    hit = [word in recovered for word in original]
    there = joined(whose, _listed(original, recovered, "u", "missed")) if any(hit) else example.original
    tiles = "".join("■" if found else "□" for found in sorted(hit, reverse=True)) if len(hit) <= _MOST_TILES else ""
    count = Html(f'<small><span class="tiles" aria-hidden="true">{tiles}</span> {sum(hit)} of {len(hit)} words</small>')
    return there, joined(said, _listed(recovered, original, "s", "wrong") or "nothing", count), exact


def _words(listed: str) -> tuple[str, list[str]]:
    """The words of a list, and the text before them, such as the name of a party."""
    before, colon, words = listed.rpartition(": ")
    return before + colon, [word for word in words.split(", ") if word]


def _listed(words: Sequence[str], known: Sequence[str], tag: str, kind: str) -> Html:
    """The words. Those that are not in `known` are marked."""
    marked = (html_text(word) if word in known else f'<{tag} class="{kind}">{html_text(word)}</{tag}>' for word in words)
    return Html(", ".join(marked))


_UNFOLDED = 8  # a page with more findings folds them

_FEW = 5  # a table with more profiles has smaller letters

_READ = "Attacks read the messages that really passed in the run, on the channels that are named, and nothing else."


def write_audit(audit: Audit, path: Path, examples: int) -> None:
    """Writes the page, for its owner alone if it quotes documents."""
    write_report(path, audit_page(audit, examples), private=quotes(audit, examples))


def audit_page(audit: Audit, examples: int, foot: str = "", mark: str = "") -> str:
    """The text of the page; as a part of an annex with a foot on every sheet, and a mark that nobody sees."""
    sections = _sections(audit, examples)
    names = [("summary", "Summary"), *((anchor, title) for anchor, title, _ in sections)]
    links = bullets(_link(anchor, title) for anchor, title in names)
    parts = (
        _head(audit),
        "<main>",
        section("summary", "Summary", *_summary(audit, examples)),
        f'<nav aria-label="Contents">{links}</nav>',
        *(section(anchor, title, *inner) for anchor, title, inner in sections),
        "</main>",
        f"<footer><p>{html_text(foot)}</p><p>{_READ}</p></footer>" if foot else f"<footer><p>{_READ}</p></footer>",
        *([mark] if mark else []),
    )
    return framed(audit.title, parts, STYLE + on_each_sheet(foot))


def _link(anchor: str, text: str) -> Html:
    return Html(f'<a href="#{anchor}">{html_text(text)}</a>')


def _sections(audit: Audit, examples: int) -> Sequence[tuple[str, str, Sequence[str]]]:
    """Anchor, title and content of each section after the summary."""
    groups = by_adversary(audit)
    unfolded = len(audit.findings) <= _UNFOLDED
    found = [
        (f"adversary-{n}", f"Adversary: {adversary}", _group(several, examples, unfolded=unfolded))
        for n, (adversary, several) in enumerate(groups.items(), start=1)
    ]
    reading = (grid(meaning_table()), Html(f"<p>{CAUTION}</p><p>{INTERVALS}</p>"))
    return [
        ("verdicts", "All verdicts", [_matrix(audit)]),
        *found,
        *([("refused", "What was refused", [grid(refusals_table(audit))])] if audit.refusals else []),
        *([("channels", "What each adversary saw", [_channels(groups)])] if groups else []),
        ("not-tried", "What was not tried", [bullets(audit.not_tried or ("nothing is noted",))]),
        ("reading", "How to read a verdict", reading),
        ("again", "To have it again", [_again_section(audit)]),
    ]


def _head(audit: Audit) -> str:
    made, spent = f", {html_text(audit.made)}" if audit.made else "", counted(round(audit.seconds), "second")
    return (
        f"<header><h1>{html_text(audit.title)}</h1>\n<p class=note>Leakage audit: plan “{html_text(audit.plan)}” on the run "
        f"“{html_text(audit.run)}”, {spent}, securetm {html_text(audit.version)}{made}.</p></header>"
    )


def _summary(audit: Audit, examples: int) -> Sequence[str]:
    warning = [f'<p class=warning role="note"><b>Warning:</b> {QUOTES}</p>'] if quotes(audit, examples) else []
    said = f"<blockquote>{html_text(headline(audit))}</blockquote>\n<p>{CAUTION}</p>"
    return (said, grid(counts_table(audit)), *warning)


# ---- all verdicts --------------------------------------------------------------------------------------------------


def _matrix(audit: Audit) -> Html:
    """A row for each attack on a claim, a column for each profile."""
    profiles = list(dict.fromkeys(finding.run.profile for finding in audit.findings))
    rows: dict[tuple[str, str], dict[str, list[Html]]] = {}
    for number, finding in enumerate(audit.findings, start=1):
        row = rows.setdefault((finding.about.title, finding.attempt.claim), {})
        row.setdefault(finding.run.profile, []).append(_entry(number, finding))
    cells = tuple(
        ((title, f"tries “{claim}”"), *([joined(*row.get(profile, ())) or _EMPTY] for profile in profiles))
        for (title, claim), row in rows.items()
    )
    caption = "Numbers lead to the finding. A profile without an entry was not tried with that attack."
    kind = "matrix many" if len(profiles) > _FEW else "matrix"
    return grid(AuditTable(("attack", *profiles), cells, caption), kind)


_EMPTY = Html("<small>not tried</small>")


def _entry(number: int, finding: Finding) -> Html:
    kind = "baseline" if finding.attempt.baseline else "claimed" if finding.about.claimed else "not claimed"
    word = Html(f'<span class="word">{html_text(verdict(finding))} ({_link(f"finding-{number}", str(number))})</span>')
    return lines((word, kind))


# ---- one adversary -------------------------------------------------------------------------------------------------


def _group(several: Sequence[Numbered], examples: int, *, unfolded: bool) -> Sequence[str]:
    sees = dict.fromkeys(channel for _, finding in several for channel in finding.about.sees)
    threats = several[0][1].attempt.threat_model
    shipped = threats in threat_model_names()
    return (
        f"<p>{html_text(read_threat_model(threats).title)}.</p>" if shipped else "",
        f"<p>Its attacks read these channels: {html_text(', '.join(sees)) or 'none'}.</p>",
        grid(_linked(findings_table(several))),
        Html("<h3>Results beside chance</h3>"),
        bars([bar_of(finding, _finding_label(number, finding)) for number, finding in several]),
        Html("<h3>Each finding in full</h3>"),
        *(detail(number, finding, examples, unfolded=unfolded) for number, finding in several),
    )


def _linked(table: AuditTable) -> AuditTable:
    """The same table with numbers as links to their findings, and verdicts that are not broken across lines."""
    rows = (
        ([_link(f"finding-{number}", number)], [Html(f'<span class="word"><b>{html_text(said)}</b></span>')], *rest)
        for (number,), (said,), *rest in table.rows
    )
    return replace(table, rows=tuple(rows))


def _finding_label(number: int, finding: Finding) -> Html:
    return lines((f"{number}. {finding.run.profile}: {verdict(finding)}", finding.outcome.measured.measure))


# ---- around the findings -------------------------------------------------------------------------------------------


def _channels(groups: Mapping[str, Sequence[Numbered]]) -> Html:
    seen = {adversary: [name for _, f in several for name in f.about.sees] for adversary, several in groups.items()}
    everything = tuple(dict.fromkeys(name for names in seen.values() for name in names))
    rows: list[tuple[Cell, ...]] = [
        ([adversary], *(["seen" if name in names else "–"] for name in everything)) for adversary, names in seen.items()
    ]
    caption = "Channels that an attack of this adversary read. None can read a channel that its threat model does not grant."
    meaning = [joined(Html(f"<b>{html_text(name)}</b>"), f": {CHANNELS[name]}") for name in everything if name in CHANNELS]
    table = grid(AuditTable(("adversary", *everything), tuple(rows), caption))
    return joined(table, bullets(meaning) if meaning else "")


def _again_section(audit: Audit) -> Html:
    commands = "".join(f"<p><code>{html_text(command)}</code></p>" for command in audit.reproduce)
    return Html(
        f"{commands}<p class=note>with securetm {html_text(audit.version)}. Runs that the audit makes for itself are made "
        "anew, with the plan's own seeds; what is masked is masked with fresh randomness each time.</p>"
    )


def show_audit(audit: Audit, examples: int, to: Console) -> None:
    """Prints verdicts, reasons, examples, the summary, refusals and what was not tried."""
    to.print(f"[bold]{escape(audit.title)}[/bold]")
    for adversary, several in by_adversary(audit).items():
        to.print(_findings(f"Seen by {adversary}", several))
    for number, finding in enumerate(audit.findings, start=1):
        if finding.outcome.verdict != REFUTED:
            to.print(f"{number}. {standing(finding)}: {escape(finding.outcome.why)}.")
    for number, finding in enumerate(audit.findings, start=1):
        if finding.leaked and examples and (finding.outcome.verdict == REFUTED or finding.outcome.measured.hits):
            title = f"{number}. Recovered under {finding.run.profile} by {finding.about.title.lower()}"
            to.print(_table(examples_table(finding, examples), title, captioned=True))
    to.print(_table(counts_table(audit), numeric=True))
    style = "bold red" if audit.refuted_claims else "bold"
    to.print(f"[{style}]{escape(headline(audit))}[/{style}] {CAUTION}")
    show_list("What the parties refused", [_refusal(row) for row in refusals_table(audit).rows], to)
    show_list("Not tried", audit.not_tried, to)
    to.print(f"{counted(len(audit.findings), 'finding')} in {audit.seconds:.0f} s.")


def _findings(title: str, several: Sequence[Numbered]) -> Table:
    """Number and verdict have columns of their own. The last column holds all others, one below the other."""
    whole = findings_table(several)
    upright = [True, *(column.upright for column in FINDING_COLUMNS)]
    stacked = ", ".join(name for name, one in zip(whole.columns, upright, strict=True) if not one)
    columns = [Column(name, no_wrap=True) for name, one in zip(whole.columns, upright, strict=True) if one]
    table = titled(escape(title), *columns, Column(stacked, overflow="fold"), title_style="bold", box=SIMPLE_HEAD)
    for row in whole.rows:
        ahead = [_lines(cell) for cell, one in zip(row, upright, strict=True) if one]
        below = [line for cell, one in zip(row, upright, strict=True) if not one for line in cell]
        table.add_row(*ahead, _lines(below))
    return table


def _lines(cell: Cell) -> str:
    first, *rest = (escape(line).replace("\N{NO-BREAK SPACE}%", "%") for line in cell)  # rich would break it
    bold = f"[bold]{first}[/bold]" if first.endswith((f" {BROKEN}", f" {OPEN}")) else first
    return "\n".join((bold, *(f"[dim]{line}[/dim]" for line in rest)))


def _table(whole: AuditTable, title: str = "", *, numeric: bool = False, captioned: bool = False) -> Table:
    caption = escape(whole.caption) if captioned else ""
    table = titled(escape(title), caption=caption, box=SIMPLE_HEAD, show_lines=captioned)
    for place, name in enumerate(whole.columns):
        table.add_column(name, overflow="fold", justify="right" if numeric and place else "left", no_wrap=numeric)
    for row in whole.rows:
        table.add_row(*map(_lines, row))
    return table


def _refusal(row: tuple[Cell, ...]) -> str:
    (profile,), (least,), (attempt,), (became,) = row
    at_least = "" if least == "–" else f", at least {least} documents"
    return f"{profile}{at_least}: {attempt}: {became}"


def write_summary(audit: Audit, path: Path, examples: int) -> None:
    """Writes the summary, for its owner alone if it quotes documents."""
    write_report(path, summary(audit, examples), private=quotes(audit, examples))


def summary(audit: Audit, examples: int) -> str:
    """The whole text."""
    intent = "A leakage audit: real runs were attacked with what their adversaries saw, to refute what is claimed of them."
    limits = dict.fromkeys(f"{f.about.title}: {limit}" for f in audit.findings for limit in f.about.limits)
    numbered = list(enumerate(audit.findings, start=1))
    parts = (
        f"# {markdown_text(audit.title)}",
        _section(
            "Purpose and result", intent, f"**{markdown_text(headline(audit))}**", CAUTION, _markdown_table(counts_table(audit))
        ),
        _section("Setting", _bullets(_setting(audit))),
        _section("Verdicts", _markdown_table(findings_table(numbered)), _markdown_table(meaning_table())),
        _section("What leaked", *_leaked(audit, examples)),
        _section("What was refused", _markdown_table(refusals_table(audit))) if audit.refusals else "",
        _section("What was not tried", _bullets(audit.not_tried or ("nothing is noted",))),
        _section("Limits", INTERVALS, _bullets(list(limits))) if limits else "",
        _section("To have it again", *_again(audit)),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, *parts: str) -> str:
    return "\n\n".join((f"## {title}", *(part for part in parts if part)))


def _bullets(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {markdown_text(sentence)}" for sentence in sentences)


def _markdown_table(table: AuditTable) -> str:
    rows = ([markdown_text("; ".join(cell)) for cell in row] for row in table.rows)
    lines = [table.columns, ["---"] * len(table.columns), *rows]
    below = f"\n\n{markdown_text(table.caption)}" if table.caption else ""
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + below


# ---- the sections --------------------------------------------------------------------------------------------------


def _setting(audit: Audit) -> Sequence[str]:
    made = f", {audit.made}" if audit.made else ""
    seen = {
        adversary: ", ".join(dict.fromkeys(channel for _, finding in several for channel in finding.about.sees)) or "nothing"
        for adversary, several in by_adversary(audit).items()
    }
    return (
        f"plan “{audit.plan}”, run “{audit.run}”, securetm {audit.version}{made}",
        *dict.fromkeys(f"profile {f.run.profile}, model {f.run.model}: {f.run.setting}" for f in audit.findings),
        *(f"{adversary} read {channels}" for adversary, channels in seen.items()),
    )


def _leaked(audit: Audit, examples: int) -> Sequence[str]:
    said, tables = [], []
    for number, f in enumerate(audit.findings, start=1):
        if f.outcome.verdict == REFUTED:
            measured = f"{f.outcome.measured.measure}: {figure(f.outcome.measured)}"
            said.append(f"finding {number}: {f.about.title}, profile {f.run.profile} ({of_whom(f)}): {measured}")
            if f.leaked and examples:
                tables.append(f"Finding {number}:\n\n{_markdown_table(examples_table(f, examples))}")
    warning = [QUOTES.replace("This page", "This text")] if tables else []
    return (_bullets(said or ["nothing, to these attacks at this effort"]), *warning, *tables)


def _again(audit: Audit) -> Sequence[str]:
    # after four spaces nothing is markup
    commands = "\n".join(f"    {printable(' '.join(command.split()))}" for command in audit.reproduce)
    methods = dict.fromkeys(f"{f.about.title}: {f.about.citation}" for f in audit.findings if f.about.citation)
    return (commands, "The methods are described in:" if methods else "", _bullets(list(methods)))
