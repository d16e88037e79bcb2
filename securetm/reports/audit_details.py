"""One finding of an audit in full, folded under its verdict: figures, plots, what was recovered. It shows a record, no more."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from securetm.leakage.findings import Finding, Measured
from securetm.leakage.illustrations import Example
from securetm.leakage.verdicts import REFUTED
from securetm.reports.audit_charts import Strip, planes, strip_of, strips
from securetm.reports.audit_markup import Cell, Html, facts, grid, joined, small
from securetm.reports.findings import (
    about_examples,
    certainty,
    effort_in_words,
    figure,
    helped,
    ideal_most,
    of_whom,
    promised,
    quoted,
    scale_of,
    shown,
    since,
    tries,
    verdict,
)

_MORE = "…"  # ends a list of words that is not shown whole
_MOST_TILES = 24


def detail(number: int, finding: Finding, examples: int, *, unfolded: bool) -> Html:
    """The finding under its verdict."""
    title = f"{number}. {finding.title}, profile {finding.profile}, model {finding.model}"
    head = f'<span class="word">{escape(verdict(finding))}</span>: {escape(title)}'
    figures = facts(_facts(finding), f"Finding {number}")
    inner = joined(figures, _measures(finding), planes(finding), _recovered(finding, examples))
    opened = " open" if unfolded else ""
    kind = "" if _on_paper(finding) else ' class="spare"'
    return Html(f'<details id="finding-{number}"{kind}{opened}><summary><h3>{head}</h3></summary>\n{inner}</details>')


def _on_paper(finding: Finding) -> bool:
    """Whether a print shows it in full: what is claimed, and what leaked; of the rest the tables say enough."""
    return not finding.baseline and (finding.claimed or finding.verdict == REFUTED)


def _facts(finding: Finding) -> list[tuple[str, Cell]]:
    found = finding.measured
    counted = f", {tries(found)}; one try is one {found.unit}" if found.of is not None else ""
    begins = shown(finding.refuted_from, scale_of(found))
    where = (finding.setting, f"model {finding.model}", f"profile {finding.profile}", finding.run)
    rows: list[tuple[str, Cell]] = [
        ("verdict", f"{finding.verdict}: {finding.why}"),
        ("claim", f"“{finding.claim}”, {of_whom(finding)}"),
        ("epsilon of the run", promised(finding)),
        ("what it means", finding.remark),
        ("accepted because", finding.accepted),
        ("measured", f"{found.measure}: {figure(found)}{counted}"),
        ("by chance", f"{_by_chance(finding)}, the same attack on random numbers (the base rate)"),
        ("an ideal attacker", _ideal(finding)),
        ("counts as refuted", f"from {begins} on{_allowed(finding)}, if all of the interval lies there"),
        ("confidence", certainty(finding)),
        ("effort", f"{effort_in_words(finding)}; {finding.seconds:.1f} seconds with its control ({finding.cost})"),
        ("result", since(finding)),
        ("adversary", f"{finding.adversary} of {finding.threat_model}{', ' * bool(helped(finding))}{helped(finding)}"),
        ("it saw", ", ".join(finding.sees)),
        ("it was given", finding.given),
        ("run", "; ".join(part for part in where if part)),
        ("method", finding.citation),
        ("what it leaves out", "; ".join(finding.limits)),
    ]
    return [(name, said) for name, said in rows if said]


def _by_chance(finding: Finding) -> str:
    """With its interval, which is not kept with kept results."""
    return _chance(finding.measured) if finding.chance is None else figure(finding.chance)


def _allowed(finding: Finding) -> str:
    return ", which is the most that the claimed epsilon allows" if finding.epsilon is not None else ""


def _ideal(finding: Finding) -> str:
    found = finding.measured
    most = shown(found.ceiling, scale_of(found))
    if found.of is not None:
        return f"would have succeeded every time; its interval would begin at {most} with as many tries"
    return f"could show {ideal_most(finding)} at most with as many tries, if it were never wrong"


def _measures(finding: Finding) -> Html:
    """The result and everything that was measured beside it, drawn one under the other, and as numbers."""
    more = [one for one in finding.beside if one.value is not None]
    lines = [strip_of(finding, _label(finding.measured)), *(Strip(_label(one), one) for one in more)]
    rows = [(one.measure, figure(one), tries(one), one.unit, _chance(one)) for one in more]
    columns = ("measured beside it", "reached", "tries", "unit", "by chance")
    return joined(Html("<h4>What was measured</h4>"), strips(lines, explained=False), grid(columns, rows) if rows else "")


def _label(found: Measured) -> Html:
    return joined(found.measure, small(figure(found)))


def _chance(found: Measured) -> str:
    return "–" if found.by_chance is None else shown(found.by_chance, scale_of(found))


# ---- what was recovered --------------------------------------------------------------------------------------------


def _recovered(finding: Finding, examples: int) -> Html:
    if not finding.examples or not examples:
        return Html("")
    rows = [_beside(example) for example in finding.examples[:examples]]
    columns = ("the original", "recovered as", "exact")
    return joined(
        Html("<h4>What was recovered, beside the original</h4>"),
        grid(columns, rows, f"{_HOW} {about_examples(finding)}".rstrip()),
    )


_HOW = (
    "Words with how often they occur; their order is in no answer, so it cannot be recovered. A filled square is a word of "
    "the original that was found, an empty one a word that was not. Dotted underneath: missed. Struck out: not in the original."
)


def _beside(example: Example) -> tuple[Cell, Cell, Cell]:
    _, _, exact = quoted(example)
    (whose, original), (said, recovered) = _words(example.original), _words(example.recovered)
    if _MORE in example.original + example.recovered or len(original) < 2:  # nothing can be said word by word
        return quoted(example)
    hit = [word in recovered for word in original]
    there = joined(whose, _listed(original, recovered, "u", "missed")) if any(hit) else example.original
    return there, joined(said, _listed(recovered, original, "s", "wrong") or "nothing", _tiles(hit)), exact


def _words(listed: str) -> tuple[str, list[str]]:
    """What stands before a list of words, such as whose they are, and the words."""
    before, colon, words = listed.rpartition(": ")
    return before + colon, [word for word in words.split(", ") if word]


def _listed(words: Sequence[str], known: Sequence[str], tag: str, kind: str) -> Html:
    """The words; those that the other side lacks are marked."""
    marked = (escape(word) if word in known else f'<{tag} class="{kind}">{escape(word)}</{tag}>' for word in words)
    return Html(", ".join(marked))


def _tiles(hit: Sequence[bool]) -> Html:
    found = sum(hit)
    drawn = "■" * found + "□" * (len(hit) - found) if len(hit) <= _MOST_TILES else ""
    return Html(f'<small><span class="tiles" aria-hidden="true">{drawn}</span> {found} of {len(hit)} words</small>')
