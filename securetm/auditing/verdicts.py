"""Exact intervals, and the verdicts that figures lead to. None is "safe": a failed attack proves only that it failed."""

from __future__ import annotations

from securetm.auditing.record import NOT_REFUTED, NOT_TESTED, REFUTED, Finding, Measured
from securetm.wording import downward_figure, upward_figure


def clopper_pearson(hits: int, of: int, confidence: float) -> tuple[float, float]:
    """The exact interval of a share with these hits in this many tries; (0, 1) if nothing was tried."""
    tail = (1.0 - confidence) / 2.0
    return _from(hits, of, tail), 1.0 - _from(of - hits, of, tail)


def corrected(confidence: float, statements: int) -> float:
    """The confidence of each of so many statements at which all together err as rarely as one alone (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / max(statements, 1)


def _from(hits: int, of: int, tail: float) -> float:
    """The lower end. The upper end is 1 minus the lower end for the failures, which is exact for a small tail too."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, of - hits + 1, tail)) if hits else 0.0


def judged_alone(found: Measured, chance: Measured, refuted_from: float) -> tuple[str, str]:
    """The verdict and its reason, before the baseline is looked at."""
    if found.value is None:
        return NOT_TESTED, "there was nothing to try it on"
    if found.ceiling < refuted_from:
        return (
            NOT_TESTED,
            f"too little was tried: even an ideal attacker's interval would begin at {downward_figure(found.ceiling)}",
        )
    if chance.low >= refuted_from and found.low <= chance.high:
        return NOT_TESTED, "random numbers reach as much, so this measure shows nothing here"
    if found.low >= refuted_from and found.low > chance.high:
        return REFUTED, f"the interval begins at {downward_figure(found.low)}, and {refuted_from:.3g} counts as success"
    if found.low >= refuted_from:
        return NOT_TESTED, "its interval does not lie above that of chance"
    reached = f"reached {found.value:.3g}, and by its interval {downward_figure(found.low)} to {upward_figure(found.high)}"
    return (
        NOT_REFUTED,
        f"this attack, at this effort, {reached}; an interval that begins at {refuted_from:.3g} counts as success",
    )


def possible_verdicts(finding: Finding) -> frozenset[str]:
    """The verdicts that the figures allow: one, or two if no interval of the control was kept."""
    found, least, chance = finding.outcome.measured, finding.attempt.refuted_from, finding.outcome.chance
    if chance is not None:
        return frozenset({judged_alone(found, chance, least)[0]})
    if found.value is not None and found.low >= least and found.by_chance is not None:
        return frozenset({REFUTED, NOT_TESTED} if found.by_chance < found.low else {NOT_TESTED})
    return frozenset({judged_alone(found, found, least)[0]})


def with_baseline(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings of one trial. If its attack did not break the baseline, its failures elsewhere tested nothing.

    A refuted claim stays refuted.
    """
    if any(one.attempt.baseline and one.outcome.verdict == REFUTED for one in findings):
        return findings
    why = "the attack did not break the baseline, where the claim is known not to hold, so its failure here means nothing"
    return tuple(
        one if one.attempt.baseline or one.outcome.verdict == REFUTED else one.judged(NOT_TESTED, why) for one in findings
    )
