"""An audit as one HTML file that loads nothing, for whoever has to decide. It shows records and computes nothing.

Summary first, then every verdict, then each adversary with its findings folded under their verdicts; on paper what is claimed
and what leaked is unfolded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from securetm.leakage.findings import Audit, Finding
from securetm.reports.audit_charts import strip_of, strips
from securetm.reports.audit_details import detail
from securetm.reports.audit_markup import STYLE, Cell, Html, bullets, grid, joined, section, small
from securetm.reports.findings import (
    CAUTION,
    INTERVALS,
    MARKS,
    MEANING,
    QUOTES,
    Numbered,
    by_adversary,
    compared,
    confidence,
    effort_in_words,
    figure,
    headline,
    helped,
    least_asked,
    of_whom,
    promised,
    quotes,
    refusal_in_words,
    since,
    tally,
    unit_of,
    verdict,
    worst_first,
)
from securetm.reports.page import framed, write_html
from securetm.threats import CHANNELS, read_threat_model, threat_model_names
from securetm.wording import counted

_UNFOLDED = 8  # findings up to which none is folded
_FEW = 5  # profiles that stand side by side in letters of the usual size


def write_audit(audit: Audit, path: Path, examples: int) -> None:
    """Writes the page."""
    write_html(path, audit.title, _parts(audit, examples), STYLE, private=quotes(audit, examples))


def audit_page(audit: Audit, examples: int) -> str:
    """The whole file."""
    return framed(audit.title, _parts(audit, examples), STYLE)


def _parts(audit: Audit, examples: int) -> Sequence[str]:
    sections = [*_sections(audit, examples)]
    names = [("summary", "Summary"), *((anchor, title) for anchor, title, _ in sections)]
    links = bullets([Html(f'<a href="#{anchor}">{escape(title)}</a>') for anchor, title in names])
    body = "\n".join(section(anchor, title, *parts) for anchor, title, parts in sections)
    return (
        _head(audit),
        "<main>",
        section("summary", "Summary", *_summary(audit, examples)),
        f'<nav aria-label="Contents">{links}</nav>',
        body,
        "</main>",
        f"<footer><p>{_READ}</p></footer>",
    )


_READ = "Attacks read the messages that really passed in the run, on the channels that are named, and nothing else."


def _sections(audit: Audit, examples: int) -> Sequence[tuple[str, str, Sequence[str]]]:
    """Anchor, title and content of every section after the summary."""
    groups = by_adversary(audit)
    unfolded = len(audit.findings) <= _UNFOLDED
    found = [
        (
            f"adversary-{n}",
            f"{adversary} of {threats}",
            (_feared(threats), *_group(several, examples, unfolded=unfolded)),
        )
        for n, ((threats, adversary), several) in enumerate(groups.items(), start=1)
    ]
    return [
        ("verdicts", "All verdicts", [_matrix(audit)]),
        *((anchor, f"Adversary: {title}", parts) for anchor, title, parts in found),
        *([("refused", "What was refused", [_refused(audit)])] if audit.refusals else []),
        *([("channels", "What each adversary saw", [_channels(groups)])] if groups else []),
        (
            "not-tried",
            "What was not tried",
            [bullets(audit.not_tried or ("nothing is noted",))],
        ),
        ("reading", "How to read a verdict", [_reading()]),
        ("again", "To have it again", [_again(audit)]),
    ]


# ---- the head and the summary --------------------------------------------------------------------------------------


def _head(audit: Audit) -> str:
    made, spent = f", {escape(audit.made)}" if audit.made else "", counted(round(audit.seconds), "second")
    return (
        f"<header><h1>{escape(audit.title)}</h1>\n<p class=note>Leakage audit: plan “{escape(audit.plan)}” on the run "
        f"“{escape(audit.run)}”, {spent}, securetm {escape(audit.version)}{made}.</p></header>"
    )


def _summary(audit: Audit, examples: int) -> Sequence[str]:
    rows = [(name, *map(str, counts)) for name, *counts in tally(audit)]
    columns = ("number of findings", *(f"{MARKS[one]} {one}" for one in MEANING))
    caption = (
        "A baseline, where the claim is known not to hold, is attacked first: a verdict on anything else counts only if the "
        "attack succeeds there. What no profile claims can be refuted without any claim being broken."
    )
    return (
        f"<blockquote>{escape(headline(audit))}</blockquote>\n<p>{CAUTION}</p>",
        grid(columns, rows, caption, "tally"),
        *([f'<p class=warning role="note"><b>Warning:</b> {QUOTES}</p>'] if quotes(audit, examples) else []),
    )


# ---- all verdicts --------------------------------------------------------------------------------------------------


def _matrix(audit: Audit) -> Html:
    """A row for each attack on a claim, a column for each profile."""
    profiles = list(dict.fromkeys(finding.profile for finding in audit.findings))
    rows: dict[tuple[str, str], dict[str, list[Numbered]]] = {}
    for number, finding in enumerate(audit.findings, start=1):
        row = rows.setdefault((finding.title, finding.claim), {})
        row.setdefault(finding.profile, []).append((number, finding))
    cells = [
        (joined(title, small(f"tries “{claim}”")), *(_cell(row.get(profile, ())) for profile in profiles))
        for (title, claim), row in rows.items()
    ]
    caption = "Numbers lead to the finding. A profile without an entry was not tried with that attack."
    return grid(("attack", *profiles), cells, caption, "matrix many" if len(profiles) > _FEW else "matrix")


def _cell(several: Sequence[Numbered]) -> Html:
    if not several:
        return Html("<small>not tried</small>")
    return joined(*(_entry(number, finding) for number, finding in several))


def _entry(number: int, finding: Finding) -> Html:
    kind = "baseline" if finding.baseline else "claimed" if finding.claimed else "not claimed"
    link = f'<a href="#finding-{number}">{number}</a>'
    return Html(f'<span class="word">{escape(verdict(finding))} ({link})</span>{small(kind)}')


# ---- one adversary -------------------------------------------------------------------------------------------------


def _feared(threats: str) -> str:
    """What this threat model fears, in its own words; nothing of one that is not on the shelf."""
    return f"<p>{escape(read_threat_model(threats).title)}.</p>" if threats in threat_model_names() else ""


def _group(several: Sequence[Numbered], examples: int, *, unfolded: bool) -> Sequence[str]:
    sees = dict.fromkeys(channel for _, finding in several for channel in finding.sees)
    columns = ("no.", "claim, profile and model", "attack and effort", "reached, with its interval", "stands beside", "verdict")
    lines = [strip_of(finding, _label(number, finding)) for number, finding in several]
    return (
        f"<p>Its attacks read these channels: {escape(', '.join(sees)) or 'none'}.</p>",
        grid(columns, [_row(number, finding) for number, finding in several]),
        Html("<h3>Results beside chance</h3>"),
        strips(lines),
        Html("<h3>Each finding in full</h3>"),
        *(detail(number, finding, examples, unfolded=unfolded) for number, finding in several),
    )


def _row(number: int, finding: Finding) -> tuple[Cell, ...]:
    found = finding.measured
    counted = f"{found.hits:,} of {found.of:,}; " if found.of else ""
    corrected = f", corrected for {finding.tests} tests" if finding.tests > 1 else ""
    return (
        Html(f'<a href="#finding-{number}">{number}</a>'),
        joined(f"“{finding.claim}”", small(of_whom(finding)), small(f"profile {finding.profile}, model {finding.model}")),
        joined(
            finding.title,
            small(f"{effort_in_words(finding)}; {finding.seconds:.1f} s"),
            small(helped(finding)),
            small(since(finding)),
        ),
        joined(
            figure(found),
            small(f"{found.measure}; {counted}unit: {unit_of(found)}"),
            small(f"confidence {confidence(finding)}{corrected}"),
        ),
        joined(compared(finding), small(promised(finding))),
        Html(f'<span class="word"><b>{escape(verdict(finding))}</b></span>'),
    )


def _label(number: int, finding: Finding) -> Html:
    return joined(f"{number}. {finding.profile}: {verdict(finding)}", small(finding.measured.measure))


# ---- around the findings -------------------------------------------------------------------------------------------


def _refused(audit: Audit) -> Html:
    columns = ("profile", "least number of documents in a sum", "what was attempted", "what became of it")
    rows = [(one.profile, least_asked(one), one.attempt, refusal_in_words(one)) for one in worst_first(audit)]
    caption = (
        "These runs were really begun, and these lies really told in them. A refusal names its reason and no number: how many "
        "documents a party has stays with it."
    )
    return grid(columns, rows, caption)


def _channels(groups: Mapping[tuple[str, str], Sequence[Numbered]]) -> Html:
    everything = list(dict.fromkeys(channel for several in groups.values() for _, f in several for channel in f.sees))
    rows = [
        (f"{adversary} of {threats}", *(_seen(channel, several) for channel in everything))
        for (threats, adversary), several in groups.items()
    ]
    caption = "Channels that an attack of this adversary read. None can read a channel that its threat model does not grant."
    meaning = [joined(Html(f"<b>{escape(name)}</b>"), f": {CHANNELS[name]}") for name in everything if name in CHANNELS]
    return joined(grid(("adversary", *everything), rows, caption), bullets(meaning) if meaning else "")


def _seen(channel: str, several: Sequence[Numbered]) -> str:
    return "seen" if any(channel in finding.sees for _, finding in several) else "–"


def _reading() -> Html:
    rows = [(f"{MARKS[name]} {name}", meaning) for name, meaning in MEANING.items()]
    return joined(grid(("verdict", "means"), rows), Html(f"<p>{CAUTION}</p><p>{INTERVALS}</p>"))


def _again(audit: Audit) -> Html:
    commands = "".join(f"<p><code>{escape(command)}</code></p>" for command in audit.reproduce)
    return Html(
        f"{commands}<p class=note>with securetm {escape(audit.version)}. Runs that the audit makes for itself are made anew, "
        "with the plan's own seeds; what is masked is masked with fresh randomness each time.</p>"
    )
