"""What the run of a plan costs in rounds, bytes and time, in proportion to a committed run. It measures and reads nothing.

What travels is topics times words for each party and round; what takes time is documents times rounds.
"""

from __future__ import annotations

from typing import Any

from securetm.agreement import Agreement
from securetm.experiments.committed_costs import ProfileCost
from securetm.federation.questions import JOINT
from securetm.wording import counted


def plan_cost(agreement: Agreement, parties: int, documents: int, measured: ProfileCost) -> dict[str, Any]:
    """The figures of this plan. Time is told of the model that was measured alone, and no time of another one."""
    plan, rounds = agreement.plan, agreement.plan.training.rounds
    topics, words = agreement.model.most_shown_topics, len(agreement.longest_list)
    values = topics * words / (measured.topics * measured.words)
    megabytes = measured.megabytes * rounds / measured.rounds * values * parties / measured.parties
    seconds = measured.seconds * rounds / measured.rounds * documents / measured.documents
    return {
        "model": plan.model.name,
        "rounds": rounds,
        "topics": topics,
        "words": words,
        "parties": parties,
        "documents": documents,
        "megabytes": round(megabytes, 3),
        "seconds": round(seconds, 1) if plan.model.name == measured.model else None,
        "and_words": plan.vocabulary.source == JOINT,
        "bytes_up": measured.bytes_up,
        "bytes_down": measured.bytes_down,
    }


def plan_said(cost: dict[str, Any]) -> str:
    """The run of the plan in one line."""
    return (
        f"{cost['model']}, {counted(cost['topics'], 'topic')}, at most {cost['words']:,} words, "
        f"{counted(cost['rounds'], 'round')}, {counted(cost['parties'], 'party', 'parties')}, {cost['documents']:,} documents"
    )


def bytes_of_plan(cost: dict[str, Any]) -> str:
    """About how much is sent in all rounds, and what comes to it."""
    more = ", and once the search for words" if cost["and_words"] else ""
    times = f"up {cost['bytes_up']:.1f} times, down {cost['bytes_down']:.1f} times that, as it is encrypted"
    encrypted = "" if cost["bytes_up"] == 1 else f"; {times}"
    return f"about {_amount(cost['megabytes'])} MB in all rounds{more}{encrypted}"


def time_of_plan(cost: dict[str, Any]) -> str:
    """About how long it takes; nothing where no such model was measured."""
    if cost["seconds"] is None:
        return f"not measured for {cost['model']}"
    return f"about {_amount(cost['seconds'])} s for {counted(cost['rounds'], 'round')} on this project's machine"


def _amount(value: float) -> str:
    """To two digits, and never without one."""
    return f"{float(f'{value:.2g}'):g}" if value >= 0.1 else "0.1"
