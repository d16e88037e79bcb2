"""The forecast of a run under a budget, from its plan alone, and what came true of it. It reads no document.

The number of documents is forecast with only where the plan states it: under a budget nobody may count them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from securetm.contracts import Block, Terms, Unit
from securetm.plans.agreement import Agreement
from securetm.plans.forecast import (
    BY_MOMENTS,
    BY_MOMENTS_ALONE,
    PLAIN,
    PUBLIC,
    Forecast,
    ForecastSetting,
    forecast,
    forecast_of_lengths,
    under_profile,
)
from securetm.plans.schema import MOMENTS, hides_documents


def why_no_forecast(agreement: Agreement) -> str:
    """Why nothing is forecast of a run, and what to do about it; nothing where it is."""
    if not hides_documents(agreement.budget):
        return "it has no budget for documents or persons"
    if not agreement.plan.training.documents:
        return "under a budget nobody may count the documents; --set training.documents=N says about how many there are"
    if agreement.unit is Unit.PERSON and not agreement.plan.training.persons:
        return "nobody may count the persons either; --set training.persons=N says about how many there are"
    return ""


def forecast_of(agreement: Agreement, parties: int) -> Forecast | None:
    """The forecast of a run, its noise being calibrated; None where the plan does not say how many documents there are."""
    if why_no_forecast(agreement):
        return None
    training = agreement.plan.training
    each = training.documents / (training.persons or training.documents)
    return forecast_with(agreement, parties, training.documents, training.document_length, each)


def forecast_with(agreement: Agreement, parties: int, documents: int, length: float = 0.0, each: float = 1.0) -> Forecast:
    """The forecast of a run on so many documents of such a length, of which a person has `each`; 0: nobody says how long."""
    plan, budget = agreement.plan, agreement.budget
    assert budget is not None
    setting = ForecastSetting(
        documents=documents,
        epsilon=budget.epsilon,
        delta=budget.delta,
        model=plan.model.name,
        start=_start(agreement),
        words=max(len(agreement.longest_list), 2),
        topics=agreement.model.most_shown_topics,
        rounds=plan.training.rounds,
        length=length or 1.0,
        general_list=plan.vocabulary.language is not None,
        documents_per_person=each,
        noise_factor=under_profile(agreement.profile, parties),
        noise=plan.privacy.noise,
        radius=_radius(agreement),
    )
    return forecast(setting) if length else forecast_of_lengths(setting)


def _start(agreement: Agreement) -> str:
    """How the training begins, in the forecast's words."""
    if agreement.plan.training.start == MOMENTS:
        return BY_MOMENTS_ALONE if agreement.vectors is None else BY_MOMENTS
    return PLAIN if agreement.vectors is None else PUBLIC


def _radius(agreement: Agreement) -> float:
    """The bound on a document's row of counts."""
    shape = (agreement.model.most_shown_topics, len(agreement.longest_list))
    terms = Terms((Block("counts", shape),), bits=64)
    return min((mechanism.row_radius(terms) for mechanism in agreement.profile.mechanisms), default=1.0)


def forecast_record(agreement: Agreement, parties: int, found: Mapping[str, Any]) -> dict[str, Any]:
    """The forecast of a run and what came true of it, for its result. `found` says how useful the model turned out."""
    told = forecast_of(agreement, parties)
    if told is None or told.held_out is None:
        return {"forecast": told.record() if told else None, "came_true": None}
    gain = ((found.get("baseline") or {}).get("gain") or {}).get("value")
    if gain is None:
        return {"forecast": told.record(), "came_true": None}
    inside = told.held_out.low <= gain <= told.held_out.high
    return {"forecast": told.record(), "came_true": {"held_out": gain, "inside": inside, "useful": found.get("useful")}}
