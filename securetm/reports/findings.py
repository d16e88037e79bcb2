"""An audit as plain data for --json, and the words that terminal and page share for its figures. It judges nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict
from typing import Any

from securetm.aggregation.plain import COORDINATOR
from securetm.leakage.findings import DOCUMENT, EVERY_PARTY, Audit, Finding, Measured, Refusal
from securetm.leakage.illustrations import Example
from securetm.leakage.kept_refusals import DatedRefusal
from securetm.leakage.verdicts import NOT_REFUTED, NOT_TESTED, REFUTED
from securetm.wording import counted, upward

MARKS = {REFUTED: "■", NOT_REFUTED: "□", NOT_TESTED: "–"}  # beside the word, never in its place
_LEAST = 1e-6  # a share that is written out; it is never rounded to nothing
SHARE, EPSILON, NUMBER = "share", "epsilon", "number"  # the scales on which a measure is drawn and written

MEANING = {
    REFUTED: "the attack succeeded: what was tried does not hold as it was used here",
    NOT_REFUTED: "this attack, at this effort, did not succeed; a better one might",
    NOT_TESTED: "nothing was learned",
}
CAUTION = "A failed attack is no evidence of safety: it shows what this attack could not do, not what no attack can do."
QUOTES = "This page quotes what was recovered of documents, beside the documents themselves: keep it as you keep these."
INTERVALS = (
    "Intervals of counted tries are exact (Clopper and Pearson) and two-sided, and take tries for independent of each "
    "other; an interval where nothing is counted follows from its attack's own theory. Documents of one answer stand or "
    "fall together to some degree, and pairs of words of one document do: their intervals are too narrow."
)


def record(audit: Audit, examples: int) -> dict[str, Any]:
    """The audit as plain data; so many examples of each finding."""
    return {
        "plan": audit.plan,
        "title": audit.title,
        "run": audit.run,
        "findings": [_finding(finding, examples) for finding in audit.findings],
        "refuted_claims": len(audit.refuted_claims),
        "not_tried": list(audit.not_tried),
        "seconds": round(audit.seconds, 2),
        "version": audit.version,
        "reproduce": list(audit.reproduce),
        "refusals": [asdict(refusal) for refusal in audit.refusals],
        "made": audit.made,
    }


def _finding(finding: Finding, examples: int) -> dict[str, Any]:
    plain = asdict(finding)
    measured = plain.pop("measured")
    shown = [asdict(example) for example in finding.examples[:examples]]
    finite: dict[str, Any] = _finite({**plain, **measured, "seconds": round(finding.seconds, 2), "examples": shown})
    return finite


def _finite(plain: Any) -> Any:
    """JSON knows no infinity: an end that does not exist is null there."""
    if isinstance(plain, dict):
        return {name: _finite(value) for name, value in plain.items()}
    if isinstance(plain, list | tuple):
        return [_finite(value) for value in plain]
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def quotes(audit: Audit, examples: int) -> bool:
    """Whether a report with so many examples of each finding holds words of documents."""
    return examples > 0 and any(finding.examples for finding in audit.findings)


def headline(audit: Audit) -> str:
    """The first sentences of every report: they never say more than what was tried."""
    shown = [f for f in audit.findings if f.verdict == REFUTED and not f.claimed and not f.baseline]
    leaks = {f.title: ", ".join(dict.fromkeys(one.profile for one in shown if one.title == f.title)) for f in shown}
    named = "; ".join(f"{title.lower()} (profile {profiles})" for title, profiles in leaks.items())
    beside = f" Shown to leak, though no profile promises that it does not: {named}." if leaks else ""
    return _on_refusals(audit) + _on_claims(audit) + beside


def _on_refusals(audit: Audit) -> str:
    named = "; ".join(f"{one.attempt} (profile {one.profile})" for one in audit.broken_promises)
    return f"NOT HELD: parties should have refused {named}. " if named else ""


def _on_claims(audit: Audit) -> str:
    broken, tried = audit.refuted_claims, [f for f in audit.findings if f.claimed and not f.baseline]
    if broken:
        named = "; ".join(dict.fromkeys(f"“{f.claim}” of profile {f.profile}, by {f.title.lower()}" for f in broken))
        return f"Refuted: {named}."
    if not tried:
        return "No claim of any profile was tried: what was attacked here promises nothing."
    held = {_promise(f) for f in tried if f.verdict != NOT_TESTED}
    if not held:
        return "Nothing was learned about any claim: each finding says why."
    stood = [f for f in tried if f.verdict != NOT_TESTED]
    several = f"{'One claim' if len(held) == 1 else f'{len(held)} claims'} ({counted(len(stood), 'finding')})"
    were = "was" if len(held) == 1 else "were"
    named = _named_claims(stood)
    return f"{several} {were} tried and not refuted by these attacks at this effort: {named}.{_on_untested(tried, held)}"


def _promise(finding: Finding) -> tuple[str, str, str]:
    """What several findings may try together."""
    return finding.profile, finding.adversary, finding.claim


def _on_untested(tried: Sequence[Finding], held: Set[tuple[str, str, str]]) -> str:
    """Findings without a verdict, on claims that others tried, and on claims that nothing tried."""
    idle = [f for f in tried if f.verdict == NOT_TESTED]
    beside, alone = [f for f in idle if _promise(f) in held], [f for f in idle if _promise(f) not in held]
    said = f" {counted(len(beside), 'more finding')} on them tested nothing." if beside else ""
    more = len({_promise(f) for f in alone})
    return said + (f" Of {more} more ({counted(len(alone), 'finding')}), nothing was learned." if more else "")


def _named_claims(findings: Sequence[Finding]) -> str:
    profiles: dict[tuple[str, str], list[str]] = {}
    for f in findings:
        profiles.setdefault((f.claim, f.adversary), []).append(f.profile)
    return "; ".join(
        f"“{claim}” against the {adversary} (profile {', '.join(dict.fromkeys(names))})"
        for (claim, adversary), names in profiles.items()
    )


def of_whom(finding: Finding) -> str:
    """Why a finding is there: a baseline, a claim, or something that nobody claims."""
    if finding.baseline:
        return "baseline: known not to hold"
    if finding.claimed:
        return "claimed by the profile"
    return "not claimed; the threat model accepts it" if finding.accepted else "not claimed by the profile"


def verdict(finding: Finding) -> str:
    """The verdict as a mark and a word."""
    return f"{MARKS[finding.verdict]} {finding.verdict}"


Numbered = tuple[int, Finding]  # a finding with the number under which every part of a report speaks of it


def by_adversary(audit: Audit) -> Mapping[tuple[str, str], Sequence[Numbered]]:
    """The findings by threat model and adversary, in the order in which they came."""
    groups: dict[tuple[str, str], list[Numbered]] = {}
    for number, finding in enumerate(audit.findings, start=1):
        groups.setdefault((finding.threat_model, finding.adversary), []).append((number, finding))
    return groups


def tally(audit: Audit) -> tuple[tuple[str, int, int, int], ...]:
    """How many claims, unclaimed things and baselines ended in each verdict: refuted, not refuted, not tested."""
    kinds = {
        "claims of a profile": [f for f in audit.findings if f.claimed and not f.baseline],
        "what no profile claims": [f for f in audit.findings if not f.claimed and not f.baseline],
        "baselines, which must break": [f for f in audit.findings if f.baseline],
    }
    order = (REFUTED, NOT_REFUTED, NOT_TESTED)
    return tuple((name, *(sum(f.verdict == one for f in found) for one in order)) for name, found in kinds.items())  # type: ignore[misc]


def scale_of(measured: Measured) -> str:
    """Whether a measure is a share of tries, an epsilon, or another number, such as a multiple of what is claimed."""
    if "epsilon" in measured.unit:
        return EPSILON if measured.unit == EPSILON else NUMBER
    ends = (measured.low, measured.high, measured.ceiling, 0 if measured.value is None else measured.value)
    return SHARE if measured.of is not None or all(0 <= end <= 1 for end in ends) else NUMBER


def shown(value: float, scale: str) -> str:
    """A value as people read it on its scale."""
    if scale == SHARE:
        return share(value)
    return f"{value:.3g}" if math.isfinite(value) else "no bound"


def figure(measured: Measured | None) -> str:
    """A measure with its interval, as people read it."""
    if measured is None or measured.value is None:
        return "–"
    scale = scale_of(measured)
    return f"{shown(measured.value, scale)} ({shown(measured.low, scale)} to {shown(measured.high, scale)})"


def compared(finding: Finding) -> str:
    """What a result stands beside: chance, and an ideal attacker with as many tries."""
    if finding.measured.value is None:
        return "–"
    scale = scale_of(finding.measured)
    chance = finding.measured.by_chance if finding.chance is None else finding.chance.value
    by_chance = "–" if chance is None else shown(chance, scale)
    return f"by chance {by_chance}; {_ideal(finding)}"


def _ideal(finding: Finding) -> str:
    """How far an attacker could come that is never wrong."""
    found = finding.measured
    if found.of is not None:
        return f"an ideal attacker surely {shown(found.ceiling, scale_of(found))}"
    return f"an ideal attacker, never wrong, at most {ideal_most(finding)}"


def ideal_most(finding: Finding) -> str:
    """The most that could be shown; where an epsilon is measured in its own claim, so is this."""
    found = finding.measured
    most = shown(found.ceiling, scale_of(found))
    if scale_of(found) != NUMBER or "epsilon" not in found.unit:
        return most
    return f"{most} times what is claimed" if finding.epsilon is not None else f"an epsilon of {most}, where none is claimed"


def claimed_epsilon(finding: Finding) -> str:
    """What the run claims of its total, with unit and delta; nothing where it claims nothing."""
    if finding.epsilon is None:
        return ""
    unit = {"word": "word occurrence", "": "unit that was not noted"}.get(finding.epsilon_unit, finding.epsilon_unit)
    with_delta = f", delta = {finding.delta:.3g}" if finding.delta is not None else ""
    return f"epsilon = {upward(finding.epsilon)} per {unit}{with_delta}"


def promised(finding: Finding) -> str:
    """The run's epsilon beside what this finding tries, and whether it is promised against this adversary at all."""
    from securetm.mechanisms.noising import PRIVATE  # with arithmetic that takes longer to import than a report takes

    epsilon = claimed_epsilon(finding)
    if not epsilon:
        return ""
    if finding.claim != PRIVATE:
        return f"another promise of this run: {epsilon}"
    if finding.claimed or finding.baseline:
        return f"claimed of the whole run: {epsilon}"
    help_ = " with this help" if finding.helpers else ""
    return f"{epsilon}: promised of what is handed on, such as the model, not against this {finding.adversary}{help_}"


def confidence(finding: Finding) -> str:
    """The confidence of the interval alone."""
    return f"{100 * finding.confidence:.6g}\N{NO-BREAK SPACE}%"


def certainty(finding: Finding) -> str:
    """The confidence of the interval, and for how many tests it was corrected."""
    alone = confidence(finding)
    if finding.tests < 2:
        return alone
    together = 100 * (1 - finding.tests * (1 - finding.confidence))
    return (
        f"{alone}: {finding.tests} claimed epsilons are tested here, and all of their intervals hold together at no less than "
        f"{together:.4g}\N{NO-BREAK SPACE}% (Bonferroni)"
    )


def effort_in_words(finding: Finding) -> str:
    """How hard it was tried: what was asked for, and what was spent where the run had room for less."""
    if finding.spent in ("", finding.effort):
        return finding.effort
    return f"{finding.effort} asked for; spent: {finding.spent}"


def helped(finding: Finding) -> str:
    """Who stood by the adversary, or by the truth; nothing where nobody did."""
    said = (
        (finding.helpers, f"helped by {counted(finding.helpers, 'party', 'parties')}"),
        (finding.liars, f"{counted(finding.liars, 'party', 'parties')} lying"),
        (finding.canaries, f"{counted(finding.canaries, 'made document')} drawn for each party"),
        (finding.without, f"beside a second run without {counted(finding.without, 'party', 'parties')}"),
    )
    return ", ".join(words for number, words in said if number)


def since(finding: Finding) -> str:
    """From when a result is that was not made again."""
    return f"kept since {finding.kept}, and not made again" if finding.kept else ""


def quoted(example: Example) -> tuple[str, str, str]:
    """An example as people read it: the original, what was made of it, and whether that is all of it."""
    if example.original.rstrip().endswith(":"):  # somebody's list, and there was nothing on it
        return f"{example.original.rstrip()} nothing", example.recovered or "nothing", "–"
    return example.original, example.recovered or "nothing", "yes" if example.exact else "no"


def about_examples(finding: Finding) -> str:
    """How a row of examples stands to the figure, where that counts smaller things than a row holds."""
    if finding.measured.unit == DOCUMENT:
        return ""
    noised = " The originals are the real words, before noise." if finding.epsilon_unit == "word" else ""
    return f"“Exact” speaks of a whole row; the figure speaks of each {finding.measured.unit}.{noised}"


def unit_of(measured: Measured) -> str:
    """What is counted, where something is; else in what it is measured."""
    return f"one {measured.unit}" if measured.of is not None else measured.unit


def refusal_in_words(refusal: Refusal) -> str:
    """What became of a run below the minimum, or of a lie; and since when that is kept, where it was not tried again."""
    kept = refusal.kept if isinstance(refusal, DatedRefusal) else ""
    return _became(refusal) + (f"; kept since {kept}" if kept else "")


def _became(refusal: Refusal) -> str:
    if not refusal.minimum and not refusal.refused:
        return f"NOT HELD: the party answered{'; ' if refusal.reason else ''}{refusal.reason}"
    if not refusal.minimum:
        who = "the coordinator" if refusal.by == COORDINATOR else f"the party “{refusal.by}”"
        if refusal.by == EVERY_PARTY:
            return f"told nothing: every party sent {refusal.reason}"
        return f"refused by {who} ({refusal.reason})"
    if not refusal.refused:
        return "went on: the minimum does not hold here"
    return f"refused by the party “{refusal.by}” ({refusal.reason}); no sum of the training was opened"


def worst_first(audit: Audit) -> Sequence[Refusal]:
    """What was tried of the parties; promises that they did not keep stand before all others."""
    return sorted(audit.refusals, key=lambda one: not one.broken)


def least_asked(refusal: Refusal) -> str:
    """The minimum that was tried; nothing where a lie was."""
    return f"{refusal.minimum:,}" if refusal.minimum else "–"


def tries(measured: Measured) -> str:
    """So many of so many, where it is a share."""
    return f"{measured.hits:,} of {measured.of:,}" if measured.of else "–"


def share(value: float) -> str:
    """A share in per cent: 100 % only where it is, and 0 % too; the space does not break."""
    space = "\N{NO-BREAK SPACE}"
    if 0.9995 <= value < 1:
        return f"over 99.9{space}%"
    if 0 < value < _LEAST:
        return f"under {100 * _LEAST:g}{space}%"
    if 0 < value < 0.01:
        return f"{100 * value:.2g}{space}%"
    return f"{100 * value:.1f}".removesuffix(".0") + f"{space}%"
