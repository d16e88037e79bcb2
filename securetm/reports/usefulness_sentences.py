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
    return f"{worse}: {said} What helps: more documents, {helps}.{_for_short_texts(result, private)}"


def _for_short_texts(result: Mapping[str, Any], private: bool) -> str:
    """What a plan may say that left its start open: topics of general word vectors may fit short texts badly."""
    told = result.get("start") or {}
    if not private or told.get("topics") != "public":
        return ""
    stated = "--set training.documents=N --set training.document_length=5"
    return f" Texts of about five words have topics of their own to begin with: {stated}, if that is no secret."


def start_said(result: Mapping[str, Any]) -> str:
    """Which topics the training began at, and what they are worth by themselves; nothing where that is as ever."""
    told, control = result.get("start"), result.get("control")
    if told is None:  # a run of an earlier version
        return ""
    if told.get("vectors"):
        known = f"{told['words_known']:,} of {counted(told['words'], 'word')} known"
        first = "pairs of words, which were asked for first, and of " if told["topics"] == "moments" else ""
        said = f"Training began at topics of {first}public word vectors ({told['vectors']}, {known})."
        return said if control is None else f"{said} {_control_said(result, control)}"
    if told["topics"] == "moments":
        return "Training began at topics of pairs of words, which were asked for first."
    if told["lacking"]:
        return "Training began at random topics: no word vectors are here (pip install 'securetm[glove]' brings some)."
    return ""


def _control_said(result: Mapping[str, Any], control: Mapping[str, Any]) -> str:
    held_out, own = control["held_out"], result["quality"].get("held_out")
    found = "no finite perplexity" if held_out is None or held_out != held_out else f"perplexity {held_out:,.0f}"
    beside = "" if own is None else f" (the model: {own:,.0f})"
    figures = f"{found}{beside}, NPMI {control['npmi']:.2f}, diversity {control['diversity']:.2f}"
    alone = "These topics alone" if result["start"]["topics"] == "public" else "Topics of the vectors alone"
    return f"{alone}, which no document made: {figures}."


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
