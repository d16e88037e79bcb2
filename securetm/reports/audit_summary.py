"""An audit as a short text in Markdown, like a model card, to be kept beside a model. It judges nothing.

Words that come from documents, runs or plans cannot become markup in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from securetm.leakage.findings import Audit, Finding
from securetm.leakage.verdicts import REFUTED
from securetm.reports.findings import (
    CAUTION,
    INTERVALS,
    MARKS,
    MEANING,
    QUOTES,
    Numbered,
    about_examples,
    by_adversary,
    certainty,
    compared,
    effort_in_words,
    figure,
    headline,
    helped,
    least_asked,
    of_whom,
    promised,
    quoted,
    quotes,
    refusal_in_words,
    since,
    tally,
    tries,
    unit_of,
    verdict,
    worst_first,
)
from securetm.reports.writing import write_report

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~#&!$])")


def write_summary(audit: Audit, path: Path, examples: int) -> None:
    """Writes the summary."""
    write_report(path, summary(audit, examples), private=quotes(audit, examples))


def summary(audit: Audit, examples: int) -> str:
    """The whole text."""
    parts = (
        f"# {_plain(audit.title)}",
        _purpose(audit),
        _setting(audit),
        _verdicts(audit),
        _leaked(audit, examples),
        _refused(audit),
        _section("What was not tried", _bullets(audit.not_tried or ("nothing is noted",))),
        _limits(audit),
        _again(audit),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _plain(text: str) -> str:
    """A text that stays text: one line, without anything that Markdown would obey."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()).replace("\N{NO-BREAK SPACE}", " "))


def _section(title: str, *parts: str) -> str:
    return "\n\n".join((f"## {title}", *(part for part in parts if part)))


def _bullets(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {_plain(sentence)}" for sentence in sentences)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *([_plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# ---- the sections --------------------------------------------------------------------------------------------------


def _purpose(audit: Audit) -> str:
    rows = [(name, *map(str, counts)) for name, *counts in tally(audit)]
    columns = ("number of findings", *(f"{mark} {word}" for word, mark in MARKS.items()))
    intent = "A leakage audit: real runs were attacked with what their adversaries saw, to refute what is claimed of them."
    return _section("Purpose and result", intent, f"**{_plain(headline(audit))}**", CAUTION, _table(columns, rows))


def _setting(audit: Audit) -> str:
    named = [
        f"plan “{audit.plan}”, run “{audit.run}”, securetm {audit.version}{f', {audit.made}' if audit.made else ''}",
        *dict.fromkeys(f"profile {f.profile}, model {f.model}: {f.setting}" for f in audit.findings),
    ]
    eyes = [
        f"{adversary} of {threats} read {_channels([finding for _, finding in several])}"
        for (threats, adversary), several in by_adversary(audit).items()
    ]
    return _section("Setting", _bullets([*named, *eyes]))


def _channels(findings: Sequence[Finding]) -> str:
    return ", ".join(dict.fromkeys(channel for finding in findings for channel in finding.sees)) or "nothing"


def _verdicts(audit: Audit) -> str:
    rows = [_row(number, finding) for number, finding in enumerate(audit.findings, start=1)]
    columns = ("no.", "profile, model", "claim", "attack, effort", "reached", "beside", "verdict")
    meaning = [f"{MARKS[word]} {word}: {says}" for word, says in MEANING.items()]
    return _section("Verdicts", _table(columns, rows), _bullets(meaning))


def _row(number: int, finding: Finding) -> tuple[str, ...]:
    found, beside = finding.measured, (helped(finding), since(finding))
    counted = f", {tries(found)}" if found.of else ""
    return (
        str(number),
        f"{finding.profile}, {finding.model}",
        f"“{finding.claim}”, {of_whom(finding)}",
        "; ".join(part for part in (finding.title, effort_in_words(finding), f"{finding.seconds:.1f} s", *beside) if part),
        f"{found.measure}: {figure(found)}{counted}; unit: {unit_of(found)}; confidence {certainty(finding)}",
        "; ".join(filter(None, (compared(finding), promised(finding)))),
        verdict(finding),
    )


def _leaked(audit: Audit, examples: int) -> str:
    leaks = [(number, f) for number, f in enumerate(audit.findings, start=1) if f.verdict == REFUTED]
    said = [
        f"finding {number}: {f.title}, profile {f.profile} ({of_whom(f)}): {f.measured.measure}: {figure(f.measured)}"
        for number, f in leaks
    ]
    rows = [(str(number), *quoted(example)) for number, finding in leaks for example in finding.examples[:examples]]
    columns, explained = (
        ("no.", "the original", "recovered as", "exact"),
        dict.fromkeys(filter(None, map(about_examples, _quoting(leaks)))),
    )
    table = (QUOTES.replace("This page", "This text"), _table(columns, rows), _bullets(list(explained))) if rows else ()
    return _section("What leaked", _bullets(said or ["nothing, to these attacks at this effort"]), *table)


def _quoting(leaks: Sequence[Numbered]) -> list[Finding]:
    return [finding for _, finding in leaks if finding.examples]


def _refused(audit: Audit) -> str:
    if not audit.refusals:
        return ""
    rows = [(one.profile, least_asked(one), one.attempt, refusal_in_words(one)) for one in worst_first(audit)]
    return _section("What was refused", _table(("profile", "least number of documents", "attempt", "what became of it"), rows))


def _limits(audit: Audit) -> str:
    """What each attack leaves out, each said once."""
    said = dict.fromkeys(f"{f.title}: {limit}" for f in audit.findings for limit in f.limits)
    return _section("Limits", INTERVALS, _bullets(list(said)) if said else "")


def _again(audit: Audit) -> str:
    # with four spaces before it nothing is markup
    commands = "\n".join(f"    {' '.join(command.split())}" for command in audit.reproduce)
    methods = dict.fromkeys(f"{f.title}: {f.citation}" for f in audit.findings if f.citation)
    return _section("To have it again", commands, "The methods are described in:" if methods else "", _bullets(list(methods)))
