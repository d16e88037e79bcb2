"""What our own attacks read in kept trials of a run's model: of its profile, or of the same model without any protection.

The figures are those of the kept evidence. Trials of other models are left out: they say nothing of this one.
"""

from __future__ import annotations

from securetm.leakage.audit_record import DOCUMENT, Finding
from securetm.leakage.regulators import bears_on
from securetm.leakage.verdicts import BROKEN, OPEN, standing
from securetm.reports.audit_wording import SHARE, figure, scale_of
from securetm.reports.signed.plain_words import plain_measure
from securetm.reports.signed.report_sources import ReportSources, kept_findings
from securetm.wording import counted

_BARE = "open"  # the profile without protection
READER = "model reader"
_WHO = {"coordinator": "the coordinator", "party": "another party", READER: "whoever gets the model"}
_ORDER = tuple(reversed(_WHO))  # a model is released, so its readers come first


def attacks_read(sources: ReportSources, *, unprotected: bool = False) -> tuple[str, ...]:
    """A sentence for each kind of adversary with the most that one of our attacks read, or one that none did.

    A profile that adds no noise hands on the model that there is without protection: what its readers read there counts, too.
    """
    profile, model = _BARE if unprotected else sources.profile.name, sources.model
    tried = [(one, profile) for one in kept_findings(profile, model) if unprotected or not one.attempt.baseline]
    if sources.budget is None and not unprotected:
        tried += [(one, _BARE) for one in kept_findings(_BARE, model) if one.attempt.adversary == READER]
    if not tried:
        return (f"No attack of ours was tried on {model} {_where(profile)}: expect that documents can be read.",)
    read = [one for one in tried if _reads(one[0])]
    worst = [max(of, key=_rank) for who in _ORDER if (of := [one for one in read if one[0].attempt.adversary == who])]
    if not worst:
        return (
            f"Of {counted(len(tried), 'attempt')} of ours on {model} {_where(profile)}, none read anything; that is no bound.",
        )
    return tuple(f"{_said(one)} (our own trial of {model} {_where(under)})." for one, under in worst)


def _where(profile: str) -> str:
    return "without any protection" if profile == _BARE else f"under the profile {profile}"


def _reads(finding: Finding) -> bool:
    """Whether it found out something about documents or their owners; spoiling a model does not."""
    told = standing(finding) in (BROKEN, OPEN) and bool(bears_on(finding.attempt.attack))
    return told and finding.outcome.measured.value is not None and scale_of(finding.outcome.measured) == SHARE


def _said(finding: Finding) -> str:
    found, who = finding.outcome.measured, _WHO[finding.attempt.adversary]
    helped = f" with the help of {counted(finding.attempt.helpers, 'party', 'parties')}" if finding.attempt.helpers else ""
    return f"Our attacks read, as {who}{helped}: {figure(found)} {plain_measure(found.measure)}"


def _rank(one: tuple[Finding, str]) -> tuple[bool, float]:
    """Figures of documents before others; then the larger one."""
    found = one[0].outcome.measured
    return found.unit == DOCUMENT, found.value or 0.0
