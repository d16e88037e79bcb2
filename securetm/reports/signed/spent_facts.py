"""What the documents of a run spent, in this run and in all runs so far, in sentences. It reads nothing.

A reader has the models of all runs that a ledger knows, and not of one alone: so a guess stands on all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from securetm.accounting.calculator.group_privacy import grown
from securetm.accounting.calculator.persons import MANY_PARTIES
from securetm.contracts import Budget, Unit
from securetm.reports.guess_limit import limit_said, right_guesses
from securetm.wording import downward_whole, upward, upward_figure

_SEVERAL = (2, 5, 10)  # documents of a person, of which the page says what they spend together
Spent = Sequence[Mapping[str, Any]]  # of each party, as the record of the run has it


def right_guesses_of(spent: Spent, budget: Budget | None) -> float | None:
    """The largest share of right guesses whether somebody was in it, where a coin is right half of the time."""
    paid = _paid(spent)
    if budget is None or budget.unit is Unit.WORD or not paid:
        return None
    return max(right_guesses(*_of_all_runs(one)) for one in paid)


def limit_of(spent: Spent, right: float | None) -> str:
    """What the budget proves, whatever anybody tries; empty where it proves nothing of documents."""
    if right is None:
        return ""
    if unbounded := _unbounded(spent):
        return f"All runs so far together are unbounded, because of {unbounded}: nothing limits a guess."
    together = " That is what the results of all runs so far tell together." if _others(_paid(spent)) else ""
    return f"{limit_said(right)}{together}"


def spent_in_words(spent: Spent, budget: Budget | None, right: float | None) -> tuple[str, ...]:
    """What this run spent, what all runs did, and what follows for a guess and for a person."""
    paid = _paid(spent)
    if budget is None or not paid:
        return ("There is no budget: nothing limits what the results tell of one document or person.",)
    most = max(paid, key=lambda one: float(one["epsilon"]))
    delta = float(most["delta"])
    whose = {Unit.WORD: "word occurrence"}.get(budget.unit, budget.unit.value)
    bound = f"At most epsilon = {upward(float(most['epsilon']))} per {whose}, with delta = {upward_figure(delta)}"
    head = f"{bound}; {_one_in(delta)}."
    if budget.unit is Unit.WORD:
        return (
            head,
            "This bounds single words. For a whole document it is that many times its words, which bounds hardly anything.",
        )
    (whole, loss), limit = max(map(_of_all_runs, paid)), limit_of(spent, right)
    said = [head] if not limit else [head, f"That means: {limit[0].lower()}{limit[1:]}"]
    if unbounded := _unbounded(spent):
        said.append(f"All runs over these documents so far, together: unbounded, because of {unbounded}.")
        return tuple(said)
    if _others(paid) or any(_is_lasting(one) for one in paid):
        together = f"at most epsilon = {upward(whole)}, with delta = {upward_figure(loss)}"
        said.append(f"All runs over these documents so far, together: {together}. Later runs add to it.")
    if budget.unit is Unit.PERSON:
        said.append(
            f"Per document it is at most the same, {upward(whole)}: what bounds a person bounds each of their documents."
        )
        said.append(f"{MANY_PARTIES} No party can see it.")
    else:
        said.append(f"Per person it is more: {_group(whole, loss)}. How many documents a person has is not known here.")
    return tuple(said)


def _paid(spent: Spent) -> Spent:
    return [one for one in spent if one.get("epsilon") is not None]


def _unbounded(spent: Spent) -> str:
    """The run because of which all runs together have no bound; empty where they have one."""
    return next((str(one["unbounded_because"]) for one in spent if one.get("unbounded_because")), "")


def _is_lasting(one: Mapping[str, Any]) -> bool:
    """Whether its ledger knows of other runs."""
    return one.get("all_runs") is not None and not one.get("trial", False)


def _of_all_runs(one: Mapping[str, Any]) -> tuple[float, float]:
    """Epsilon and delta of all runs that the record knows: of the party's ledger, and of what this run started from."""
    if one.get("unbounded_because"):
        return math.inf, 1.0
    own = float(one["epsilon"]), float(one["delta"])
    if one.get("all_runs") is None:
        return own
    return max(own[0], float(one["all_runs"])), max(own[1], float(one["all_runs_delta"]))


def _others(paid: Spent) -> bool:
    return any(_of_all_runs(one)[0] > float(one["epsilon"]) for one in paid)


def _one_in(delta: float) -> str:
    """The chance that the limit fails, in words."""
    return f"one chance in {downward_whole(1 / delta)} that this limit fails" if delta > 0 else "this limit cannot fail"


def _group(epsilon: float, delta: float) -> str:
    """What several documents of a person spend together, by group privacy, each with its delta."""
    bounds = ((several, grown(epsilon, delta, several)) for several in _SEVERAL)
    return "; ".join(
        f"{upward(one.epsilon)} for {several} documents (delta = {upward_figure(one.delta)})" for several, one in bounds
    )
