"""How many rounds a plan's epochs are, once the number of documents is public. It trains nothing.

The coordinator computes it from the answer that made the list of words, or from the record of that answer. Parties answer as
many rounds as the plan allows at most, whatever comes out here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from securetm.contracts import State
from securetm.federation.client_sampling import cohort_size
from securetm.federation.questions import TRAIN, Questions
from securetm.plans.agreement import Agreement
from securetm.plans.schema import TrainingChoice


def followed(questions: Questions, state: State, members: Sequence[str], documents: int) -> TrainingChoice:
    """Returns the plan's [training] with the number of rounds that its epochs are, at most those that it allows."""
    choice = questions.agreement.plan.training
    if not choice.epochs:
        return choice
    batch = questions.make(TRAIN, questions.shown(TRAIN, state, members[0])).terms.batch
    return replace(choice, rounds=min(choice.rounds, rounds_of(questions.agreement, batch, len(members), documents)))


def rounds_of(agreement: Agreement, batch: int, parties: int, documents: int) -> int:
    """Returns how many rounds read every training document as often as the plan says. A batch of 0 is all documents."""
    choice, model = agreement.plan.training, agreement.model
    if not batch:
        return max(1, math.ceil(choice.epochs / model.epochs_per_round))
    trained_on = documents * (1 - choice.held_out)
    return max(1, math.ceil(choice.epochs * trained_on / (batch * cohort_size(parties, agreement))))
