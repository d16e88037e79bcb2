"""The agreement of a role on its own, which sees no other role's documents. Each role makes it from its own copy of the plan.

It equals what a simulation of the same plan agrees on, so that both go by the same digest. It reads no document.
"""

from __future__ import annotations

from collections.abc import Collection

from securetm.contracts import Unit
from securetm.federation.budget.prices import calibrated
from securetm.federation.serving_errors import UnitNotInPlan
from securetm.federation.soundness import check_answerable, check_floor
from securetm.plans.agreement import Agreement, agree
from securetm.plans.schema import Plan
from securetm.profile_errors import TooFewForProfile
from securetm.settings import require


def agreed_apart(plan: Plan, members: Collection[str]) -> Agreement:
    """Returns the agreement on this plan among these parties, with the noise that its budget calls for.

    A simulation sees whether documents name persons. A role on its own does not, so the plan must say whom a budget protects.
    """
    agreement = agree(plan)
    needed = agreement.profile.minimum_parties
    if len(members) < needed:
        raise TooFewForProfile(len(members), needed, plan.profile)
    check_answerable(agreement, len(members))
    check_floor(agreement, len(members))
    for name in plan.model.settings.get("topics_at", {}):
        require(name in members, "[model]", "topics_at", name, known=tuple(members))
    if agreement.budget is not None and agreement.unit is not Unit.WORD and not plan.privacy.unit:
        raise UnitNotInPlan(plan.profile)
    return calibrated(agreement, len(members))
