"""The three questions of regulators on the page to sign: what came out on this run, with the figure of the record.

How attempts are sorted by these questions is in leakage/regulators.py. It judges nothing, and it reads no file.
"""

from __future__ import annotations

from collections.abc import Sequence

from securetm.leakage.audit_record import Finding
from securetm.leakage.regulators import CRITERIA, NOT_TRIED, SCOPES, anonymity_of, bearing_on, outcome_of
from securetm.reports.audit_wording import SHARE, figure, ideal, scale_of
from securetm.reports.signed.plain_words import plain_measure
from securetm.reports.signed.report_facts import CriterionFacts


def asked_by_regulators(findings: Sequence[Finding]) -> tuple[CriterionFacts, ...]:
    """Each question, asked of the finished model and of the messages; none where nothing was tried on the run."""
    made = [one for one in findings if not one.attempt.baseline]
    outcomes = {(one.criterion, one.scope): one.outcome for one in anonymity_of(made)}
    if not outcomes:
        return ()
    places = ((criterion, scope) for criterion in CRITERIA for scope in SCOPES)
    return tuple(_facts(criterion, scope, outcomes[criterion, scope], made) for criterion, scope in places)


def _facts(criterion: str, scope: str, outcome: str, findings: Sequence[Finding]) -> CriterionFacts:
    """The outcome with the largest figure that stands behind it."""
    told = [one for one in bearing_on(findings, criterion, scope) if outcome_of(one) != NOT_TRIED]
    if not told:
        return CriterionFacts(criterion, scope, NOT_TRIED)
    worst = max((one for one in told if outcome_of(one) == outcome), key=_rank)
    found = worst.outcome.measured
    said = (worst.about.title, plain_measure(found.measure), figure(found), found.value)
    return CriterionFacts(criterion, scope, outcome, *said, len(told), ideal(worst))


def _rank(finding: Finding) -> tuple[bool, float]:
    """Shares before other figures, which cannot be compared with them; then the larger one."""
    found = finding.outcome.measured
    return scale_of(found) == SHARE, found.value or 0.0
