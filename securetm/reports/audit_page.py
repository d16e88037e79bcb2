"""An audit as one HTML file that loads nothing. This module computes nothing.

The summary comes first, then all verdicts, then each adversary with its findings, folded under their verdicts. A print unfolds
claims and leaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from securetm.foreign_text import html_text
from securetm.leakage.audit_record import Audit, Finding
from securetm.reports.audit_charts import bar_of, bars
from securetm.reports.audit_details import detail
from securetm.reports.audit_markup import STYLE, Html, bullets, grid, joined, lines, section
from securetm.reports.audit_tables import AuditTable, Cell, counts_table, findings_table, meaning_table, refusals_table
from securetm.reports.audit_wording import CAUTION, INTERVALS, QUOTES, Numbered, by_adversary, headline, quotes, verdict
from securetm.reports.page import framed, on_each_sheet
from securetm.reports.writing import write_report
from securetm.threats import CHANNELS, read_threat_model, threat_model_names
from securetm.wording import counted

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
        ("again", "To have it again", [_again(audit)]),
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
        bars([bar_of(finding, _label(number, finding)) for number, finding in several]),
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


def _label(number: int, finding: Finding) -> Html:
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


def _again(audit: Audit) -> Html:
    commands = "".join(f"<p><code>{html_text(command)}</code></p>" for command in audit.reproduce)
    return Html(
        f"{commands}<p class=note>with securetm {html_text(audit.version)}. Runs that the audit makes for itself are made "
        "anew, with the plan's own seeds; what is masked is masked with fresh randomness each time.</p>"
    )
