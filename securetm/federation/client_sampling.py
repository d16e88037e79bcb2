"""Which parties a training round is asked of, where the plan asks only some of them. The plan's public seed decides it.

Everybody can compute who is asked, so nobody is hidden by it: no smaller privacy loss is claimed than that of a party that is
asked every time. A party's ledger holds the rounds that it answered, and a bill counts all rounds.
"""

from __future__ import annotations

from securetm.federation.questions import TRAIN
from securetm.plans.agreement import Agreement
from securetm.settings import digest


def asked_of(members: tuple[str, ...], agreement: Agreement, question: str, number: int) -> tuple[str, ...]:
    """Returns the parties of that round, in roster order: all, except in the training of a plan that names a number."""
    size = cohort_size(len(members), agreement)
    if question != TRAIN or size == len(members):
        return members
    seed = agreement.plan.seed
    drawn = sorted(members, key=lambda member: digest([seed, "cohort", number, member]))[:size]
    return tuple(member for member in members if member in drawn)


def is_fixed(agreement: Agreement) -> bool:
    """Whether a party holds the coordinator to the parties that the plan and its seed name for each round.

    A coordinator that may depart from the protocol would choose cohorts that differ in one party, and subtract their sums.
    """
    return bool(agreement.plan.federation.cohort) or agreement.profile.hides_from_active


def cohort_size(parties: int, agreement: Agreement) -> int:
    """Returns how many parties a training round is asked of."""
    return min(agreement.plan.federation.cohort or parties, parties)
