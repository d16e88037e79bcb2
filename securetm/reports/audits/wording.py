"""The words for an audit's figures and verdicts, which terminal, page and summary share. This module judges nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from securetm.auditing.record import (
    BROKEN,
    DOCUMENT,
    EVERY_PARTY,
    HELD,
    NOT_TESTED,
    OPEN,
    Audit,
    Example,
    Finding,
    Measured,
    RefusalRecord,
)
from securetm.reports.texts import sentence
from securetm.sessions.identities import COORDINATOR
from securetm.wording import downward_figure, downward_share, upward_figure, upward_share

MARKS = {BROKEN: "■", OPEN: "◧", HELD: "□", NOT_TESTED: "–"}  # they stand beside the word, never alone
_LEAST = 1e-6  # a smaller share is written as "under" this one, not as 0
SHARE, EPSILON, NUMBER = "share", "epsilon", "number"  # the scales on which a measure is drawn and written
MEANING = {
    BROKEN: "the attack succeeded at what the profile claims to prevent: the claim does not hold as it was used here",
    OPEN: "the attack succeeded at what nobody claims to prevent; baselines are such, and must be open",
    HELD: "this attack failed at this effort, where one that is never wrong would have been seen to succeed; another might",
    NOT_TESTED: "nothing was learned",
}
CAUTION = "A failed attack is no evidence of safety: it shows what this attack could not do, not what no attack can do."
QUOTES = "This page quotes what was recovered of documents, beside the documents themselves: keep it as you keep these."
INTERVALS = (
    "Intervals of counted tries are exact (Clopper and Pearson) and two-sided. They assume that tries are independent of each "
    "other. Where nothing is counted, an interval follows from its attack's own theory. Documents of one answer depend on each "
    "other to some degree, and pairs of words of one document do: their intervals are too narrow."
)


def quotes(audit: Audit, examples: int) -> bool:
    """Whether a report with so many examples of each finding holds words of documents."""
    return examples > 0 and any(finding.leaked for finding in audit.findings)


# ---- the headline --------------------------------------------------------------------------------------------------


def headline(audit: Audit) -> str:
    """The first sentences of every report. They claim no more than what was tried."""
    unclaimed = [f for f in audit.findings if not f.about.claimed and not f.attempt.baseline]
    leaks = _profiles_of((f.about.title.lower(), f.run.profile) for f in unclaimed if f.standing == OPEN)
    broken = dict.fromkeys((f.attempt.claim, f.run.profile, f.about.title.lower()) for f in audit.refuted_claims)
    tried = [finding for finding in audit.findings if finding.is_claim]
    stood = [finding for finding in tried if finding.outcome.verdict != NOT_TESTED]
    named = _profiles_of((f"“{f.attempt.claim}” against the {f.attempt.adversary}", f.run.profile) for f in stood)
    held = {"claims": len(set(map(_claim, stood))), "findings": len(stood), "named": named}
    return sentence("audit.headline", audit.broken_promises, broken, tried, held, leaks, _untested(audit))


def _profiles_of(found: Iterable[tuple[str, str]]) -> Mapping[str, Mapping[str, None]]:
    """Each text once, with all its profiles."""
    profiles: dict[str, dict[str, None]] = {}
    for text, profile in found:
        profiles.setdefault(text, {})[profile] = None
    return profiles


def _claim(finding: Finding) -> tuple[str, str, str]:
    """The claim that a finding tries. Several findings may try the same."""
    return finding.run.profile, finding.attempt.adversary, finding.attempt.claim


def _untested(audit: Audit) -> Mapping[str, Any]:
    """How many findings tested nothing, on how many claims that no other finding tested, and why."""
    tried = [one for one in audit.findings if not one.attempt.baseline]
    untested = [one for one in tried if one.standing == NOT_TESTED]
    known = {_claim(one) for one in tried if one.standing != NOT_TESTED}
    alone = {_claim(one) for one in untested if one.is_claim} - known
    reasons = Counter(one.outcome.why for one in untested).most_common()
    return {"findings": len(untested), "of": len(tried), "claims": len(alone), "reasons": reasons} if untested else {}


# ---- one finding ---------------------------------------------------------------------------------------------------

Numbered = tuple[int, Finding]  # a finding with its number in the report


def by_adversary(audit: Audit) -> Mapping[str, Sequence[Numbered]]:
    groups: dict[str, list[Numbered]] = {}
    for number, finding in enumerate(audit.findings, start=1):
        groups.setdefault(adversary_of(finding), []).append((number, finding))
    return groups


def adversary_of(finding: Finding) -> str:
    return f"{finding.attempt.adversary} of {finding.attempt.threat_model}"


def of_whom(finding: Finding) -> str:
    return sentence("audit.of_whom", finding)


def verdict(finding: Finding) -> str:
    return f"{MARKS[finding.standing]} {finding.standing}"


def claimed_epsilon(finding: Finding) -> str:
    """The epsilon that the run claims for its total, with unit and delta; empty if it claims none."""
    return "" if finding.run.epsilon is None else sentence("audit.claimed_epsilon", finding.run)


def promised(finding: Finding) -> str:
    """The run's epsilon, and whether the profile promises it against this adversary."""
    from securetm.mechanisms.noising import PRIVATE  # its import takes longer than a report

    return sentence("audit.promised", finding, claimed_epsilon(finding), finding.attempt.claim == PRIVATE)


def confidence(finding: Finding) -> str:
    return sentence("audit.confidence", finding.attempt.confidence, finding.attempt.tests)


def effort_in_words(finding: Finding) -> str:
    """The effort that the plan asks for, and the effort that was spent if the run allowed less."""
    effort, spent = finding.attempt.effort, finding.outcome.spent
    return effort if spent in ("", effort) else f"{effort} asked for; spent: {spent}"


def helped(finding: Finding) -> str:
    return sentence("audit.helped", finding.attempt)


def since(finding: Finding) -> str:
    return f"kept since {finding.run.kept}, and not made again" if finding.run.kept else ""


def quoted(example: Example) -> tuple[str, str, str]:
    """An example: the original, what was recovered, and whether it is exact."""
    if example.original.rstrip().endswith(":"):  # an empty list of a named party
        return f"{example.original.rstrip()} nothing", example.recovered or "nothing", "–"
    return example.original, example.recovered or "nothing", "yes" if example.exact else "no"


def about_examples(finding: Finding) -> str:
    """How a row of examples relates to a figure that counts smaller units than a row."""
    unit = finding.outcome.measured.unit
    if unit == DOCUMENT:
        return ""
    noised = " The originals are the real words, before noise." if finding.run.epsilon_unit == "word" else ""
    return f"“Exact” speaks of a whole row; the figure speaks of each {unit}.{noised}"


# ---- figures -------------------------------------------------------------------------------------------------------


def scale_of(measured: Measured) -> str:
    """Whether a measure is a share, an epsilon, or another number, such as a multiple of the claimed epsilon."""
    if "epsilon" in measured.unit:
        return EPSILON if measured.unit == EPSILON else NUMBER
    ends = (measured.low, measured.high, measured.ceiling, 0 if measured.value is None else measured.value)
    return SHARE if measured.of is not None or all(0 <= end <= 1 for end in ends) else NUMBER


def shown(value: float | None, scale: str) -> str:
    """A value on its scale, for people."""
    if value is None:
        return "–"
    if scale == SHARE:
        return share(value)
    return f"{value:.3g}" if math.isfinite(value) else "no bound"


def at_least(low: float, scale: str) -> str:
    """The low end of an interval, or what is reached for certain: rounded downwards."""
    return downward_share(low) if scale == SHARE else downward_figure(low)


def at_most(high: float, scale: str) -> str:
    """The high end of an interval, or the most that can be reached: rounded upwards."""
    return upward_share(high) if scale == SHARE else upward_figure(high)


def figure(measured: Measured) -> str:
    if measured.value is None:
        return "–"
    scale = scale_of(measured)
    return f"{shown(measured.value, scale)} ({at_least(measured.low, scale)} to {at_most(measured.high, scale)})"


def by_chance(finding: Finding) -> float | None:
    outcome = finding.outcome
    return outcome.measured.by_chance if outcome.chance is None else outcome.chance.value


def compared(finding: Finding) -> str:
    """The result by chance, and that of an ideal attacker with as many tries."""
    found = finding.outcome.measured
    if found.value is None:
        return "–"
    chance = shown(by_chance(finding), scale_of(found))
    if found.of is not None:
        return f"by chance {chance}; an ideal attacker surely {at_least(found.ceiling, scale_of(found))}"
    return f"by chance {chance}; an ideal attacker, never wrong, at most {ideal_most(finding)}"


def ideal(finding: Finding) -> str:
    """What an attacker who is never wrong would have reached with as many tries, as a clause."""
    found = finding.outcome.measured
    if found.value is None:
        return ""
    if found.of is not None:
        most = shown(found.ceiling, scale_of(found))
        return f"an ideal attacker, never wrong, would surely have reached {most} by as many tries"
    return f"an ideal attacker, never wrong, could have shown {ideal_most(finding)} at most"


def ideal_most(finding: Finding) -> str:
    """The most that an ideal attacker could show, in the unit of the measure."""
    found = finding.outcome.measured
    most = at_most(found.ceiling, scale_of(found))
    if scale_of(found) != NUMBER or "epsilon" not in found.unit:
        return most
    return f"an epsilon of {most}, where none is claimed" if finding.run.epsilon is None else f"{most} times what is claimed"


def unit_of(measured: Measured) -> str:
    """The unit that is counted, or the unit of a measure that counts nothing."""
    return f"one {measured.unit}" if measured.of is not None else measured.unit


def tries(measured: Measured) -> str:
    return f"{measured.hits:,} of {measured.of:,}" if measured.of else "–"


def share(value: float) -> str:
    """A share in per cent. Only exactly 1 is written as 100 %, and only 0 as 0 %. The space does not break."""
    space = "\N{NO-BREAK SPACE}"
    if 0.9995 <= value < 1:
        return f"over 99.9{space}%"
    if 0 < value < _LEAST:
        return f"under {100 * _LEAST:g}{space}%"
    if 0 < value < 0.01:
        return f"{100 * value:.2g}{space}%"
    return f"{100 * value:.1f}".removesuffix(".0") + f"{space}%"


# ---- refusals ------------------------------------------------------------------------------------------------------


def refusal_in_words(refusal: RefusalRecord) -> str:
    """How a run below the minimum or a violation ended, and the day if the result was kept."""
    return sentence("audit.refusal", refusal, refusal.by == COORDINATOR, refusal.by == EVERY_PARTY)
