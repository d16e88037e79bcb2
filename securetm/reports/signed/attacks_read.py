"""What our own attacks read in kept trials of a run's model: of its profile, or of the same model without any protection.

The figures are those of the kept evidence. Trials of other models are left out: they say nothing of this one.
"""

from __future__ import annotations

from securetm.leakage.audit_record import DOCUMENT, Finding
from securetm.leakage.regulators import bears_on
from securetm.leakage.verdicts import BROKEN, NOT_TESTED, OPEN, standing
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
    bare = profile == _BARE  # there a baseline is what it is about
    tried = [(one, profile) for one in kept_findings(profile, model) if bare or not one.attempt.baseline]
    if sources.budget is None and not unprotected:
        tried += [(one, _BARE) for one in kept_findings(_BARE, model) if one.attempt.adversary == READER]
    tested = [one for one in tried if _tests(one[0])]
    if not tested:
        return (f"No attack of ours tested {model} {_where(profile)}: expect that documents can be read.",)
    read = [one for one in tested if standing(one[0]) in (BROKEN, OPEN)]
    worst = [max(of, key=_rank) for who in _ORDER if (of := [one for one in read if one[0].attempt.adversary == who])]
    if not worst:
        made = f"{counted(len(tested), 'attempt')} of ours on {model} {_where(profile)}"
        return (f"Of {made}, none did what it set out to do; that is no bound.",)
    return tuple(f"{_said(one)} (our own trial of {model} {_where(under)})." for one, under in worst)


def _where(profile: str) -> str:
    return "without any protection" if profile == _BARE else f"under the profile {profile}"


def _tests(finding: Finding) -> bool:
    """Whether it could have found out something about documents or their owners; spoiling a model does not."""
    return standing(finding) != NOT_TESTED and bool(bears_on(finding.attempt.attack))


def _said(finding: Finding) -> str:
    found, who = finding.outcome.measured, _WHO[finding.attempt.adversary]
    helped = f" with the help of {counted(finding.attempt.helpers, 'party', 'parties')}" if finding.attempt.helpers else ""
    return f"Our attacks read, as {who}{helped}: {figure(found)} {plain_measure(found.measure)}"


def _rank(one: tuple[Finding, str]) -> tuple[bool, bool, float]:
    """Shares before other figures, which cannot be compared with them; those of documents before others; then the larger."""
    found = one[0].outcome.measured
    return scale_of(found) == SHARE, found.unit == DOCUMENT, found.value or 0.0
