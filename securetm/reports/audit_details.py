"""One finding of an audit in full, folded under its verdict: figures, plots and recovered examples. It judges nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from securetm.foreign_text import html_text
from securetm.leakage.audit_record import Finding, Measured
from securetm.leakage.illustrations import Example
from securetm.leakage.verdicts import REFUTED, standing
from securetm.reports.audit_charts import ResultBar, bar_of, bars, planes
from securetm.reports.audit_markup import Html, facts, grid, joined, lines
from securetm.reports.audit_tables import examples_table, plain_table
from securetm.reports.audit_wording import (
    adversary_of,
    at_least,
    by_chance,
    confidence,
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
