"""The rules by which the page to sign recommends something. They are printed with it, and judge by nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from securetm.contracts import Profile, Unit
from securetm.leakage.verdicts import BROKEN, OPEN
from securetm.reports.guess_limit import MOST_RIGHT
from securetm.reports.signed.report_facts import THIS_RUN, PartyFacts, QuestionAnswer, Rule
from securetm.wording import listed

_WITHHOLD = "Do not hand over this model, and stop the training"
_AMONG = "Hand over this model only to people who may read the documents"
_CONDITIONS = "Hand over this model if the conditions below are met"
_NOTHING = "Nothing that was tried speaks against handing over this model"


def rules_for(
    answers: Sequence[QuestionAnswer], profile: Profile, parties: Sequence[PartyFacts], right: float | None
) -> tuple[Rule, ...]:
    """All rules in their order, each with whether it applies. `right` is the share of right guesses that the budget allows."""
    broken = any(tried.standing == BROKEN for one in answers for tried in one.tried) or any(
        one.standing == BROKEN for one in answers
    )
    open_ = [one.question for one in answers if one.standing == OPEN]
    untried = [one for one in answers if not any(tried.place == THIS_RUN and tried.tested for tried in one.tried)]
    budgeted = profile.budget is not None and profile.budget.unit is not Unit.WORD
    return (
        Rule("Something that the profile promises was broken, with this model or another.", broken, _WITHHOLD),
        Rule("No budget limits what the model tells of any one document or person.", not budgeted, _AMONG),
        Rule(
            f"All runs so far let guesses whether somebody was in them be right more than {100 * MOST_RIGHT:g} times in 100: a "
            "limit that securetm chose, and no law.",
            right is not None and right > MOST_RIGHT,
            _AMONG,
        ),
        Rule(
            "Something gets out that nobody promised to keep in.",
            bool(open_),
            f"{_CONDITIONS}: whoever signs accepts what is marked as open, in writing",
        ),
        Rule(
            "The budget was kept for this run alone, so that another run over the same documents would not count it.",
            budgeted and not all(one.lasting for one in parties),
            f"{_CONDITIONS}: there is no other run over these documents",
        ),
        Rule(
            "Not all five questions were tried on this run.",
            bool(untried),
            f"{_CONDITIONS}: {_relies_on(untried)}",
        ),
    )


def recommended(rules: Sequence[Rule]) -> str:
    """What the first rule that applies says; the conditions of later ones are listed with it."""
    return next((one.follows.partition(":")[0] for one in rules if one.applies), _NOTHING) + "."


def _relies_on(untried: Sequence[QuestionAnswer]) -> str:
    """What whoever signs relies on where this run was not tried: trials of other runs, or none at all, question by question."""
    places = {one.question: {tried.of_this_model for tried in one.tried if tried.tested} for one in untried}
    elsewhere = tuple(f"“{question}”" for question, known in places.items() if True in known)
    others = tuple(f"“{question}”" for question, known in places.items() if known == {False})
    nowhere = tuple(f"“{question}”" for question, known in places.items() if not known)
    said = [f"on trials of other runs for {listed(elsewhere)}"] if elsewhere else []
    said += [f"on what is promised, and on trials of other models only, for {listed(others)}"] if others else []
    said += [f"on what is promised, and on no trial at all, for {listed(nowhere)}"] if nowhere else []
    return f"whoever signs relies {', and '.join(said)}"
