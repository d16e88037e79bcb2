"""What `securetm check` says of a plan beside its soundness: whether its documents suffice, and whether its model is of use.

It reads no document: the numbers are those that the plan states.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from securetm.agreement import agree
from securetm.federation.run_forecast import forecast_of, why_no_forecast
from securetm.plans import Plan, hides_documents
from securetm.profile_choice import documents_needed
from securetm.profiles import read_profile
from securetm.reports.forecast_sentences import before_a_run
from securetm.threats import Gap


def too_few_documents(plan: Plan, parties: int) -> list[dict[str, Any]]:
    """The gap of a plan whose documents, dealt out equally, are too few for its sums; none if it does not say how many."""
    documents, profile = plan.training.documents, read_profile(plan.profile)
    if not documents or parties < profile.minimum_parties:
        return []
    need = documents_needed(profile, parties)
    if documents // parties >= need:
        return []
    problem = f"{documents:,} documents of {parties:,} parties are {documents // parties:,} each, and each must bring {need:,}"
    return [asdict(Gap("a sum holds enough documents", "", problem, "correct [federation] parties or [training] documents"))]


def use_said(plan: Plan, parties: int) -> str:
    """Whether the model will be of use, in words; nothing where no documents or persons have a budget."""
    agreement = agree(plan)
    if not hides_documents(agreement.budget):
        return ""
    return before_a_run(forecast_of(agreement, parties), why_no_forecast(agreement))
