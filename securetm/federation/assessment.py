"""Judges the finished model for the coordinator, by two more questions and one figure of the topics alone."""

from __future__ import annotations

import numpy as np

from securetm.contracts import State
from securetm.federation.questions import COHERENCE, HELD_OUT, TOP_WORDS
from securetm.federation.rounds import Rounds
from securetm.models.quality import diversity, top_words
from securetm.models.queries import npmi_from_answer, perplexity_from_answer


def assess(rounds: Rounds, state: State) -> dict[str, float]:
    """Returns the quality of the shared model, as far as a coordinator may know it."""
    if rounds.blind:
        rounds.ask(HELD_OUT, state)  # its answer is the parties' to know
        return {}
    topics = rounds.agreement.model.topics(state)
    spread = float(diversity(top_words(topics, 25)))
    if rounds.questions.paid:  # nothing was set aside for these questions
        return {"diversity": spread}
    top = top_words(topics, TOP_WORDS)
    coherence = npmi_from_answer(top, rounds.ask(COHERENCE, {"top": top.astype(np.int64)}))
    held_out = perplexity_from_answer(rounds.ask(HELD_OUT, state))
    return {"npmi": float(np.mean(coherence)), "diversity": spread, "held_out": held_out}
