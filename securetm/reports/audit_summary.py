"""An audit as a short text in Markdown, like a model card, to be kept with a model. It judges nothing.

Words from documents, runs or plans cannot become markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from securetm.foreign_text import markdown_text, printable
from securetm.leakage.audit_record import Audit
from securetm.leakage.verdicts import REFUTED
from securetm.reports.audit_tables import (
    AuditTable,
    counts_table,
    examples_table,
    findings_table,
    meaning_table,
    refusals_table,
)
from securetm.reports.audit_wording import CAUTION, INTERVALS, QUOTES, by_adversary, figure, headline, of_whom, quotes
from securetm.reports.writing import write_report


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
        _section("Purpose and result", intent, f"**{markdown_text(headline(audit))}**", CAUTION, _table(counts_table(audit))),
        _section("Setting", _bullets(_setting(audit))),
        _section("Verdicts", _table(findings_table(numbered)), _table(meaning_table())),
        _section("What leaked", *_leaked(audit, examples)),
        _section("What was refused", _table(refusals_table(audit))) if audit.refusals else "",
        _section("What was not tried", _bullets(audit.not_tried or ("nothing is noted",))),
        _section("Limits", INTERVALS, _bullets(list(limits))) if limits else "",
        _section("To have it again", *_again(audit)),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, *parts: str) -> str:
    return "\n\n".join((f"## {title}", *(part for part in parts if part)))


def _bullets(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {markdown_text(sentence)}" for sentence in sentences)


def _table(table: AuditTable) -> str:
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
                tables.append(f"Finding {number}:\n\n{_table(examples_table(f, examples))}")
    warning = [QUOTES.replace("This page", "This text")] if tables else []
    return (_bullets(said or ["nothing, to these attacks at this effort"]), *warning, *tables)


def _again(audit: Audit) -> Sequence[str]:
    # after four spaces nothing is markup
    commands = "\n".join(f"    {printable(' '.join(command.split()))}" for command in audit.reproduce)
    methods = dict.fromkeys(f"{f.about.title}: {f.about.citation}" for f in audit.findings if f.about.citation)
    return (commands, "The methods are described in:" if methods else "", _bullets(list(methods)))
