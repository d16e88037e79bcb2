"""What joining would send to whom, and what it would cost: from the plan, the profile and the ledgers. Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from securetm.accounting.composition import total
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.all_runs import all_runs
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.answers.route import compile_route
from securetm.federation.budget.prices import bill_of
from securetm.federation.origins import before_in_ledger
from securetm.federation.party.joining import Joining
from securetm.federation.questions import (
    BUCKET_SUMS,
    BUCKETS,
    COHERENCE,
    FREQUENCIES,
    HELD_OUT,
    JOINT,
    MARKS,
    PAIRS,
    TRAIN,
    WORDS,
    Questions,
    asked_in_run,
)
from securetm.plans.agreement import Agreement
from securetm.plans.origins import accepted_as
from securetm.plans.profiles import cohort_of

_WHAT = {
    WORDS: "every word of your documents",
    JOINT: "a sketch of your words, by which frequent ones are found in the sum",
    BUCKETS: "in how many of your documents a word of each bucket is: words are hashed under a key that only the parties have",
    MARKS: "the same for the frequent buckets, with marks by which the parties see whether a word is alone there",
    BUCKET_SUMS: "sums of your words in buckets, hashed under a key that only the parties have, behind noise",
    FREQUENCIES: "in how many of your documents each candidate word is",
    PAIRS: "how often each two words stand in one of your documents, from which the training begins",
    TRAIN: "one step of the training: a sum over your documents",
    HELD_OUT: "how well the model predicts the documents that are held out",
    COHERENCE: "in how many of your documents pairs of top words occur together",
}
_SEALED = "the coordinator, as random numbers: it opens only the sum over all parties"
_BY_PARTIES = "the coordinator, encrypted: only the parties open the sum over all of them"
_CLEAR = "the coordinator, as it is"
_NOISED = "the coordinator, with this party's noise in it"


def preview(joining: Joining) -> dict[str, Any]:
    """Returns everything that `securetm join --dry-run` says."""
    agreement, roster = joining.agreement, joining.roster
    return {
        **joining.facts(),
        "model": agreement.plan.model.name,
        "coordinator": {"address": roster.address, "fingerprint": roster.coordinator.fingerprint},
        "members": list(roster.members),
        "documents": len(joining.corpus),
        "engine": joining.file.engine.facts(),
        "leaves_home": list(questions_of(agreement, joining)),
        "cost": cost(joining),
        "starts_from": [
            {"setting": one.setting, "shown": one.shown, "origin": one.origin.in_words(), "accepted_as": accepted_as(one)}
            for one in agreement.inputs
        ],
        "lands_in": str(joining.home.run(agreement)),
    }


def questions_of(agreement: Agreement, joining: Joining) -> Iterator[dict[str, Any]]:
    """Each question that the plan asks, in its order: how often at most, and the longest message of an answer, in bytes."""
    questions, profile, members = Questions(agreement, agreement.longest_list), agreement.profile, joining.roster.members
    seen_by = _NOISED if profile.budget is not None else _CLEAR
    if profile.aggregation.channel == "sealed":
        seen_by = _BY_PARTIES if profile.aggregation.opened_by == "parties" else _SEALED
    for name, about in asked_in_run(questions, joining.file.name):
        terms = compile_route(questions.make(name, about).terms, profile, cohort_of(profile, members)).terms
        longest = profile.aggregation.longest(len(members), 0, terms)[0]
        allowed = joining.file.policy.allows_question(name)
        asked = {"question": name, "what": _WHAT[name], "times": questions.times(name)}
        yield {**asked, "bytes": longest, "seen_by": seen_by, "allowed": allowed}


def cost(joining: Joining) -> dict[str, Any] | None:
    """Returns what the whole run spends of each unit's budget, and what was spent before; None without a budget."""
    agreement = joining.agreement
    budget = agreement.budget
    if budget is None:
        return None
    spends = bill_of(agreement, len(joining.roster.members)).spends()
    whole, ledgers = total(spends, ALONE * budget.delta), joining.ledgers()
    before, own, left = 0.0, joining.file.privacy.budget(budget), []
    for path in ledgers:
        with Ledger.read(path) as ledger:
            before = max(before, ledger.spent().epsilon)
            if ledger.has_budget:
                own = joining.file.privacy.budget(ledger.budget)
                if spends:
                    left.append(ledger.remaining(joining.run_name, spends[-1], spends[-1].count))
    planned = {"epsilon": whole.epsilon, "delta": budget.delta}
    return {
        "unit": budget.unit.value,
        **before_in_ledger(agreement, joining.runs()).added_to(planned),
        "spent_before": before,
        "unbounded_because": next((one.unbounded_because for one in map(all_runs, ledgers) if one and one.because), None),
        "budget": own.epsilon,
        "left_before": max(0.0, own.epsilon - before),
        "answers_that_fit": min(left, default=None),  # None: no ledger says yet
        "answers": sum(spend.count for spend in spends),
    }
