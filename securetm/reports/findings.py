"""An audit as plain data for --json, and the words that terminal and page share for its figures. It judges nothing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from securetm.leakage.findings import NOT_REFUTED, NOT_TESTED, REFUTED, Audit, Finding, Measured

MEANING = {
    REFUTED: "the attack succeeded: what was tried does not hold as it was used here",
    NOT_REFUTED: "this attack, at this effort, did not succeed; a better one might",
    NOT_TESTED: "nothing was learned",
}
CAUTION = "A failed attack is no evidence of safety: it shows what this attack could not do, not what no attack can do."
QUOTES = "This page quotes what was recovered of documents, beside the documents themselves: keep it as you keep these."
INTERVALS = (
    "Intervals are exact (Clopper and Pearson) and two-sided, and take tries for independent of each other. Documents of one "
    "answer stand or fall together to some degree, and pairs of words of one document do: their intervals are too narrow."
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
    }


def _finding(finding: Finding, examples: int) -> dict[str, Any]:
    plain = asdict(finding)
    measured = plain.pop("measured")
    shown = [asdict(example) for example in finding.examples[:examples]]
    return {**plain, **measured, "seconds": round(finding.seconds, 2), "examples": shown}


def headline(audit: Audit) -> str:
    """The first sentences of every report: they never say more than what was tried."""
    shown = [f for f in audit.findings if f.verdict == REFUTED and not f.claimed and not f.baseline]
    leaks = dict.fromkeys(f"{f.title.lower()} (profile {f.profile})" for f in shown)
    beside = f" Shown to leak, though no profile promises that it does not: {'; '.join(leaks)}." if leaks else ""
    return _on_claims(audit) + beside


def _on_claims(audit: Audit) -> str:
    broken, tried = audit.refuted_claims, [f for f in audit.findings if f.claimed and not f.baseline]
    if broken:
        named = "; ".join(dict.fromkeys(f"“{f.claim}” of profile {f.profile}, by {f.title.lower()}" for f in broken))
        return f"Refuted: {named}."
    if not tried:
        return "No claim of any profile was tried: what was attacked here promises nothing."
    idle = [f for f in tried if f.verdict == NOT_TESTED]
    if len(idle) == len(tried):
        return "Nothing was learned about any claim: see why below."
    several = "One claim was" if len(tried) == 1 else f"{len(tried)} claims were"
    untested = f" ({len(idle)} of them not tested)" if idle else ""
    return f"{several} tried{untested} and not refuted by these attacks at this effort."


def of_whom(finding: Finding) -> str:
    """Why a finding is there: a baseline, a claim, or something that nobody claims."""
    if finding.baseline:
        return "baseline: nothing protects it"
    if finding.claimed:
        return "claimed by the profile"
    return "not claimed; the threat model accepts it" if finding.accepted else "not claimed by the profile"


def figure(measured: Measured | None) -> str:
    """A share with its interval, as people read it."""
    if measured is None or measured.value is None:
        return "–"
    return f"{share(measured.value)} ({share(measured.low)} to {share(measured.high)})"


def tries(measured: Measured) -> str:
    """So many of so many, where it is a share."""
    return f"{measured.hits:,} of {measured.of:,}" if measured.of else "–"


def share(value: float) -> str:
    """A share in per cent: 100 % only where it is, and 0 % too; the space does not break."""
    space = "\N{NO-BREAK SPACE}"
    if 0.9995 <= value < 1:
        return f"over 99.9{space}%"
    if 0 < value < 0.0005:
        return f"under 0.1{space}%"
    return f"{100 * value:.1f}".removesuffix(".0") + f"{space}%"
