"""How many passes each party makes in a run by courier, before anything starts: it follows from the plan alone.

A party makes a pass whenever it takes in a letter and puts out its answer. What needs no answer first goes along with the next
letter, so a pass is a step in which everybody waits for everybody.
"""

from __future__ import annotations

from securetm.federation.coordinator.rounds import ROUNDS_PREPARED
from securetm.federation.questions import BUCKET_SUMS, HELD_OUT, JOINT, before_training
from securetm.models.questions.hidden_words import SHARES
from securetm.models.questions.word_sums import ROUNDS as ROUNDS_OF_WORDS
from securetm.plans.agreement import Agreement
from securetm.plans.profiles import BLIND, words_in_sums

KEY_WAVES, NAMES_WAVES = 3, 2  # of the exchanges of hidden words


def questions_in(agreement: Agreement) -> int:
    """How many questions a run asks at most, one after the other."""
    choice, words = agreement.plan.training, ROUNDS_OF_WORDS if words_in_sums(agreement.profile) else 1
    times = {JOINT: words, BUCKET_SUMS: len(SHARES)}
    before = sum(times.get(question, 1) for question in before_training(agreement))
    judged = choice.rounds // choice.every if choice.stop == HELD_OUT else 0
    parties_open = agreement.profile.aggregation.opened_by == "parties"
    at_the_end = 0 if agreement.budget is not None else 1 if parties_open else 2  # held-out loss, and how topics cohere
    return before + choice.rounds + judged + at_the_end


def passes_of(agreement: Agreement) -> int:
    """How many passes each party makes at most, with nobody missing: from the invitation to the model."""
    set_up, each = agreement.profile.aggregation.waves()
    questions = questions_in(agreement)
    set_ups = -(-questions // ROUNDS_PREPARED) if set_up else 0
    begin = set_ups * set_up or 1
    # What is signed of ledgers goes along too, unless a question is a single wave: then nothing is between two of them.
    signed = questions + 1 if agreement.budget is not None and each == 1 else 0
    hidden = agreement.plan.vocabulary.source == BLIND
    shared = KEY_WAVES + (NAMES_WAVES if agreement.budget is None else 0) if hidden else 0
    return begin + questions * each + signed + shared + 1
