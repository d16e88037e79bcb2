"""The words for an audit's figures and verdicts, which terminal, page and summary share. This module judges nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

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
from securetm.sessions.identities import COORDINATOR
from securetm.wording import counted, downward_figure, downward_share, upward, upward_figure, upward_share

MARKS = {BROKEN: "■", OPEN: "◧", HELD: "□", NOT_TESTED: "–"}  # they stand beside the word, never alone
_MOST_REASONS = 3
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
    leaks = _with_profiles((f.about.title.lower(), f.run.profile) for f in unclaimed if f.standing == OPEN)
    broken = "; ".join(f"{one.attempt} (profile {one.profile})" for one in audit.broken_promises)
    before = f"NOT HELD: parties should have refused {broken}. " if broken else ""
    after = f" Open, as no profile promises to prevent it: {leaks}." if leaks else ""
    return before + _on_claims(audit) + after + _on_untested(audit)


def _with_profiles(found: Iterable[tuple[str, str]]) -> str:
    """Each text once, with all its profiles."""
    profiles: dict[str, dict[str, None]] = {}
    for text, profile in found:
        profiles.setdefault(text, {})[profile] = None
    return "; ".join(f"{text} (profile {', '.join(names)})" for text, names in profiles.items())


def _on_claims(audit: Audit) -> str:
    tried = [finding for finding in audit.findings if finding.is_claim]
    if audit.refuted_claims:
        said = (f"“{f.attempt.claim}” of profile {f.run.profile}, by {f.about.title.lower()}" for f in audit.refuted_claims)
        return f"Broken: {'; '.join(dict.fromkeys(said))}."
    if not tried:
        return "No claim of any profile was tried: what was attacked here promises nothing."
    stood = [finding for finding in tried if finding.outcome.verdict != NOT_TESTED]
    held = {_claim(finding) for finding in stood}
    if not held:
        return "Nothing was learned about any claim."
    claims = f"{'One claim' if len(held) == 1 else f'{len(held)} claims'} ({counted(len(stood), 'finding')})"
    were = "was" if len(held) == 1 else "were"
    named = _with_profiles((f"“{f.attempt.claim}” against the {f.attempt.adversary}", f.run.profile) for f in stood)
    return f"{claims} {were} tried and held against these attacks at this effort: {named}."


def _claim(finding: Finding) -> tuple[str, str, str]:
    """The claim that a finding tries. Several findings may try the same."""
    return finding.run.profile, finding.attempt.adversary, finding.attempt.claim


def _on_untested(audit: Audit) -> str:
    """How many findings tested nothing, on how many claims that no other finding tested, and why."""
    tried = [one for one in audit.findings if not one.attempt.baseline]
    untested = [one for one in tried if one.standing == NOT_TESTED]
    if not untested:
        return ""
    known = {_claim(one) for one in tried if one.standing != NOT_TESTED}
    alone = {_claim(one) for one in untested if one.is_claim} - known
    reasons = Counter(one.outcome.why for one in untested)
    why = "; ".join(f"{reason} ({number})" for reason, number in reasons.most_common(_MOST_REASONS))
    more = "; and others" if len(reasons) > _MOST_REASONS else ""
    claims = f", and so nothing of {counted(len(alone), 'claim')}" if alone else ""
    return f" Nothing was learned from {len(untested)} of {counted(len(tried), 'finding')}{claims}: {why}{more}."


# ---- one finding ---------------------------------------------------------------------------------------------------

Numbered = tuple[int, Finding]  # a finding with its number in the report


def by_adversary(audit: Audit) -> Mapping[str, Sequence[Numbered]]:
    """The findings by adversary and threat model, in the order of the audit."""
    groups: dict[str, list[Numbered]] = {}
    for number, finding in enumerate(audit.findings, start=1):
        groups.setdefault(adversary_of(finding), []).append((number, finding))
    return groups


def adversary_of(finding: Finding) -> str:
    """The adversary with its threat model."""
    return f"{finding.attempt.adversary} of {finding.attempt.threat_model}"


def of_whom(finding: Finding) -> str:
    """What a finding tried: a baseline, a claim of the profile, or something that the profile does not claim."""
    if finding.attempt.baseline:
        return "baseline: known not to hold"
    if finding.about.claimed:
        return "claimed by the profile"
    return "not claimed; the threat model accepts it" if finding.about.accepted else "not claimed by the profile"


def verdict(finding: Finding) -> str:
    """What the finding is called, as a mark and a word."""
    return f"{MARKS[finding.standing]} {finding.standing}"


def claimed_epsilon(finding: Finding) -> str:
    """The epsilon that the run claims for its total, with unit and delta; empty if it claims none."""
    run = finding.run
    if run.epsilon is None:
        return ""
    unit = {"word": "word occurrence", "": "unit that was not noted"}.get(run.epsilon_unit, run.epsilon_unit)
    with_delta = f", delta = {upward_figure(run.delta)}" if run.delta is not None else ""
    return f"epsilon = {upward(run.epsilon)} per {unit}{with_delta}"


def promised(finding: Finding) -> str:
    """The run's epsilon, and whether the profile promises it against this adversary."""
    from securetm.mechanisms.noising import PRIVATE  # its import takes longer than a report

    epsilon, attempt = claimed_epsilon(finding), finding.attempt
    if not epsilon:
        return ""
    if attempt.claim != PRIVATE:
        return f"another promise of this run: {epsilon}"
    if finding.about.claimed or attempt.baseline:
        return f"claimed of the whole run: {epsilon}"
    help_ = " with this help" if attempt.helpers else ""
    return f"{epsilon}: promised of what is handed on, such as the model, not against this {attempt.adversary}{help_}"


def confidence(finding: Finding) -> str:
    """The confidence of the interval, and the number of tests for which it was corrected."""
    tests, each = finding.attempt.tests, finding.attempt.confidence
    alone = f"{100 * each:.6g}\N{NO-BREAK SPACE}%"
    if tests < 2:
        return alone
    together = 1 - tests * (1 - each)
    return (
        f"{alone}: {tests} claimed epsilons are tested here, and all of their intervals hold together at no less than "
        f"{downward_share(together)} (Bonferroni)"
    )


def effort_in_words(finding: Finding) -> str:
    """The effort that the plan asks for, and the effort that was spent if the run allowed less."""
    effort, spent = finding.attempt.effort, finding.outcome.spent
    return effort if spent in ("", effort) else f"{effort} asked for; spent: {spent}"


def helped(finding: Finding) -> str:
    """Who helped the adversary, and what was added to the run for the trial; empty if nothing was."""
    attempt = finding.attempt
    said = (
        (attempt.helpers, f"helped by {counted(attempt.helpers, 'party', 'parties')}"),
        (attempt.liars, f"{counted(attempt.liars, 'party', 'parties')} lying"),
        (attempt.canaries, f"{counted(attempt.canaries, 'made document')} drawn for each party"),
        (attempt.without, f"beside a second run without {counted(attempt.without, 'party', 'parties')}"),
    )
    return ", ".join(words for number, words in said if number)


def since(finding: Finding) -> str:
    """The day of a result that was kept and not made again."""
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
    """A measure with its interval, for people."""
    if measured.value is None:
        return "–"
    scale = scale_of(measured)
    return f"{shown(measured.value, scale)} ({at_least(measured.low, scale)} to {at_most(measured.high, scale)})"


def by_chance(finding: Finding) -> float | None:
    """The result of the same attack on random numbers."""
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
    """Hits and tries of a share."""
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
    return _became(refusal) + (f"; kept since {refusal.kept}" if refusal.kept else "")


def _became(refusal: RefusalRecord) -> str:
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
