"""Sentences about a run: whether its model is of use, and how it was compared. This module computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from securetm.wording import counted


def of_use(result: Mapping[str, Any]) -> str:
    """The model's perplexity beside that of word frequencies and of a uniform guess, and what helps a model of no use."""
    told = result.get("baseline")
    if told is None:
        return "Whether the model is of use cannot be told: no held-out document has two words of the list."
    alone = f"word frequencies alone at {told['word_frequencies']:,.0f}, a uniform guess at {told['uniform']:,.0f}"
    found = "at no finite perplexity" if told["model"] is None else f"at perplexity {told['model']:,.0f}"
    said = f"it predicts held-out words {found}; {alone}."
    if result["useful"]:
        return f"The model is of use: {said}"
    if result["useful"] is None and told.get("from_whole_texts"):
        why = "the embedding of a document was made of all its words, those to be predicted too, so this perplexity is too low"
        return f"Whether the model is of use is not told by perplexity: {why}. As it is, {said}"
    if result["useful"] is None:
        held_out = counted(told["documents"], "held-out document")
        return f"Whether the model is of use cannot be told from {held_out}: {said} --set training.held_out=SHARE takes more."
    worse = (
        "The model is of no use" if told["gain"]["high"] is None or told["gain"]["high"] < 0 else "The model learned nothing"
    )
    private = any(spent["epsilon"] is not None for spent in result["spent"])
    helps = "a larger epsilon, or fewer words, topics or rounds" if private else "more rounds, fewer topics, or another model"
    return f"{worse}: {said} What helps: more documents, {helps}."


def comparison_said(result: Mapping[str, Any]) -> str:
    """How long the comparison with each party's own model took, and which documents it used."""
    told = result.get("comparison")
    if not told or not result["rounds"]:
        return ""
    judged = f"at most {counted(told['judged_documents'], 'held-out document')} of each party"
    if not told["made"]:
        return f"Not compared with what each party learns alone. Judged on {judged}." if told["sampled"] else ""
    took = f"Of this, the comparison with each party alone took {told['seconds']:.0f} s (--no-comparison leaves it out)"
    if not told["sampled"]:
        return f"{took}."
    return f"{took}: it learned alone from a sample of at most {told['training_documents']:,} documents, judged on {judged}."
