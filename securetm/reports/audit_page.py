"""An audit as one HTML file that loads nothing, for whoever has to decide. It shows records and computes nothing.

It prints on white paper, and nothing on it is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from securetm.accounting.calculator.statement import Table
from securetm.leakage.findings import Audit, Finding, Measured
from securetm.reports.findings import CAUTION, INTERVALS, MEANING, QUOTES, figure, headline, of_whom, share, tries
from securetm.reports.page import framed, table_section, write_html


def write_audit(audit: Audit, path: Path, examples: int) -> None:
    """Writes the page."""
    write_html(path, audit.title, _parts(audit, examples))


def audit_page(audit: Audit, examples: int) -> str:
    """The whole file."""
    return framed(audit.title, _parts(audit, examples))


def _parts(audit: Audit, examples: int) -> Sequence[str]:
    quoted = any(finding.examples for finding in audit.findings) and examples > 0
    return (
        _head(audit),
        *([f'<p class=warning role="note"><b>Warning:</b> {QUOTES}</p>'] if quoted else []),
        _verdicts(audit),
        _chart(audit.findings),
        *(_detail(number, finding, examples) for number, finding in enumerate(audit.findings, start=1)),
        _list("What was not tried", audit.not_tried),
        _reading(),
        _end(audit),
    )


def _head(audit: Audit) -> str:
    return (
        f"<h1>{escape(audit.title)}</h1>\n<blockquote>{escape(headline(audit))}</blockquote>\n<p>{CAUTION}</p>\n"
        f"<p class=note>Audit plan “{escape(audit.plan)}” on the run “{escape(audit.run)}”, "
        f"{audit.seconds:.0f} seconds, securetm {escape(audit.version)}.</p>"
    )


def _verdicts(audit: Audit) -> str:
    rows = tuple(
        (str(number), finding.profile, f"“{finding.claim}”: {of_whom(finding)}", finding.title, finding.verdict)
        for number, finding in enumerate(audit.findings, start=1)
    )
    columns = ("", "profile", "what was tried", "how", "verdict")
    caption = (
        "A baseline is attacked first: a verdict on anything else counts only if the attack succeeds where nothing protects. "
        "What no profile claims can be refuted without any claim being broken."
    )
    return table_section(Table("Verdicts", columns, rows, caption))


# ---- the chart -----------------------------------------------------------------------------------------------------

_WIDTH, _ROW, _LEFT, _RIGHT, _TOP = 760, 44, 330, 24, 12


def _chart(findings: Sequence[Finding]) -> str:
    """Each result with its interval, chance, and the point from which it counts as refuted, on one scale from 0 to 100 %."""
    high = _TOP + _ROW * len(findings) + 34
    grid = "\n".join(_tick(step / 4, high - 34) for step in range(5))
    rows = "\n".join(_row(number, finding) for number, finding in enumerate(findings))
    label = "Results of all findings with their intervals"
    svg = (
        f'<svg class="plot" viewBox="0 0 {_WIDTH} {high}" role="img" aria-label="{label}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{label}</title>\n{grid}\n{rows}\n</svg>"
    )
    caption = (
        "<p class=note>Dot: what the attack reached, with its interval. Cross: the same attack on random "
        "numbers. Upright stroke: from here the verdict is “refuted”.</p>"
    )
    return f"<section><h2>Results beside chance</h2>\n<figure>{svg}</figure>{caption}</section>"


def _x(value: float) -> float:
    return _LEFT + value * (_WIDTH - _LEFT - _RIGHT)


def _tick(value: float, ground: float) -> str:
    x = _x(value)
    return (
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{ground}"/>'
        f'<text x="{x:.1f}" y="{ground + 18}" text-anchor="middle">{100 * value:.0f} %</text>'
    )


def _row(number: int, finding: Finding) -> str:
    y, found = _TOP + _ROW * number + _ROW / 2, finding.measured
    name = f'<text x="0" y="{y - 3:.1f}">{number + 1}. {escape(finding.profile)}: {escape(finding.verdict)}</text>'
    under = f'<text x="0" y="{y + 12:.1f}" class="small">{escape(_short(found.measure))}</text>'
    mark = _x(finding.refuted_from)
    stroke = f'<line class="from" x1="{mark:.1f}" x2="{mark:.1f}" y1="{y - 11:.1f}" y2="{y + 11:.1f}"/>'
    if found.value is None:
        return f'{name}{under}<text x="{_x(0.5):.1f}" y="{y + 4:.1f}" text-anchor="middle">not tested</text>'
    bar = f'<path class="bar" d="M{_x(found.low):.1f} {y:.1f}H{_x(found.high):.1f}"/>'
    dot = f'<circle class="marked" cx="{_x(found.value):.1f}" cy="{y:.1f}" r="5"/>'
    return name + under + stroke + bar + dot + _cross(finding.chance, y)


def _cross(chance: Measured | None, y: float) -> str:
    if chance is None or chance.value is None:
        return ""
    x = _x(chance.value)
    return f'<path class="cross" d="M{x - 5:.1f} {y + 6:.1f}l10 10M{x - 5:.1f} {y + 16:.1f}l10 -10"/>'


def _short(measure: str) -> str:
    return measure if len(measure) <= 46 else measure[:45].rstrip() + "…"


# ---- one finding ---------------------------------------------------------------------------------------------------


def _detail(number: int, finding: Finding, examples: int) -> str:
    found = finding.measured
    rows = [
        ("verdict", f"{finding.verdict}: {finding.why}"),
        ("claim", f"“{finding.claim}”, {of_whom(finding)}"),
        *([("what it means", finding.remark)] if finding.remark else []),
        *([("accepted because", finding.accepted)] if finding.accepted else []),
        ("adversary", f"{finding.adversary} of {finding.threat_model}; it reads the channels {', '.join(finding.sees)}"),
        ("measured", f"{found.measure}: {figure(found)}, {tries(found)}; the unit is one {found.unit}"),
        ("by chance", f"{figure(finding.chance)}, the same attack on random numbers"),
        ("an ideal attacker", f"would have reached all; its interval would begin at {share(found.ceiling)} with as many tries"),
        (
            "counts as refuted",
            f"where the whole interval, at {share(finding.confidence)} confidence, is above {share(finding.refuted_from)}",
        ),
        *((f"beside: {more.measure}", _beside(more)) for more in finding.beside if more.value is not None),
        ("run", f"{finding.setting}; model {finding.model}, profile {finding.profile}"),
        ("effort", f"{finding.effort}; {finding.seconds:.1f} seconds with its control ({finding.cost})"),
        ("it was given", finding.given),
        ("method", finding.citation),
        *([("what it leaves out", "; ".join(finding.limits))] if finding.limits else []),
    ]
    title = f"{number}. {finding.title}, profile {finding.profile}"
    return table_section(Table(title, ("fact", "of this finding"), tuple(rows))) + _examples(finding, examples)


def _beside(more: Measured) -> str:
    by_chance = "" if more.by_chance is None else f"; by chance {share(more.by_chance)}"
    return f"{figure(more)}, {tries(more)}{by_chance}"


def _examples(finding: Finding, examples: int) -> str:
    if not finding.examples or not examples:
        return ""
    rows = tuple((e.original, e.recovered or "nothing", "yes" if e.exact else "no") for e in finding.examples[:examples])
    caption = "Words with how often they occur; their order is in no answer, so it cannot be recovered."
    columns = ("the original", "recovered as", "exact")
    return table_section(Table(f"Recovered, beside the original (profile {finding.profile})", columns, rows, caption))


# ---- around the findings -------------------------------------------------------------------------------------------


def _list(title: str, sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<section><h2>{escape(title)}</h2><ul>{items}</ul></section>" if items else ""


def _reading() -> str:
    rows = tuple((verdict, meaning) for verdict, meaning in MEANING.items())
    return table_section(Table("How to read a verdict", ("verdict", "means"), rows, f"{CAUTION} {INTERVALS}"))


def _end(audit: Audit) -> str:
    commands = "".join(f"<p><code>{escape(command)}</code></p>" for command in audit.reproduce)
    return (
        f"<section><h2>To have it again</h2>{commands}<p class=note>Runs that the audit makes for itself are made "
        "anew, with the plan's own seeds; what is masked is masked with fresh randomness each time.</p></section>"
        "<footer><p>Attacks read the messages that really passed in the run, on the channels named above, and nothing else.</p>"
        "</footer>"
    )
