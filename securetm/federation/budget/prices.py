"""What questions and whole runs spend of a budget, before any document is read.

Parties, the calibration of the noise, the calculator and the coordinator's public figures all use the same function.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import cached_property
from typing import Any

import numpy as np

from securetm.accounting.calculator.runs_ahead import RunsAhead, Spending
from securetm.accounting.calibration import noise_for
from securetm.accounting.composition import total
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Bill, Spend
from securetm.answers.route import Route, compile_route
from securetm.contracts import Budget, Cohort, Mechanism, Unit
from securetm.data_classes import dataclass, field, replace
from securetm.errors import BadSetting
from securetm.federation.origins import before_in_trial
from securetm.federation.questions import BUCKET_SUMS, JOINT, PAIRS, TRAIN, Questions, before_training, cohort_size
from securetm.models.questions.hidden_words import MOST_OPEN, opened
from securetm.models.trials import check_additive
from securetm.plans.agreement import Agreement
from securetm.plans.origins import check_units
from securetm.plans.profiles import BLIND, cohort_of, count_of_parties
from securetm.settings import require
from securetm.wording import upward

FINEST, COARSEST = 0.05, 1000.0  # noise multipliers that are tried


def spend_of(route: Route, free: Collection[Mechanism] = ()) -> Spend | None:
    """Returns what one answer spends of each unit's budget; None where no step adds noise.

    The `free` mechanisms add noise that was drawn, kept and paid for before.
    """
    paid = [step for step in route.steps if step.mechanism not in free]
    events = [step.event for step in paid if step.event is not None]
    if not events:
        return None
    from securetm.contracts.events import ComposedDpEvent

    together = events[0] if len(events) == 1 else ComposedDpEvent(events)
    return Spend(together, sum(step.failure_probability for step in paid))


def bill_of(agreement: Agreement, parties: int) -> Bill:
    """Computes what a run with so many parties spends. Without a public list, the longest possible vocabulary counts."""
    profile = agreement.profile
    members = tuple(f"party {n}" for n in range(count_of_parties(profile, parties)))  # fewer are refused
    cohort, asked = cohort_of(profile, members), cohort_of(profile, members[: cohort_size(len(members), agreement)])
    questions = Questions(agreement)
    words = _words_in(questions, cohort)
    questions.adopt(agreement.longest_list)
    asked_first = PAIRS in before_training(agreement)
    start = spend_of(compile_route(questions.make(PAIRS, {}).terms, profile, cohort)) if asked_first else None
    state = questions.shown(TRAIN, agreement.model.start(questions.vocabulary, np.random.default_rng(0)), "")
    route = compile_route(questions.make(TRAIN, state).terms, profile, asked)  # an unsound profile is refused here
    drawn_once = tuple(mechanism for mechanism in profile.mechanisms if mechanism.once)
    others = tuple(mechanism for mechanism in profile.mechanisms if not mechanism.once)
    each, once = spend_of(route, drawn_once), spend_of(route, others)
    assert each is not None or once is not None  # what is admitted under a budget is noised
    return Bill(words, start, once, each, agreement.plan.training.rounds)


def _words_in(questions: Questions, cohort: Cohort) -> Spend | None:
    """What is spent until the words are found; None where they are public."""
    agreement = questions.agreement
    source, profile = agreement.plan.vocabulary.source, agreement.profile
    if source == BLIND:
        from securetm.contracts.events import ComposedDpEvent

        open_now = [opened(np.arange(min(n, questions.buckets)), questions.buckets, at) for at, n in enumerate(MOST_OPEN, 1)]
        most = [{}, *open_now]
        parts = (spend_of(compile_route(questions.make(BUCKET_SUMS, about).terms, profile, cohort)) for about in most)
        spends = [one for one in parts if one is not None]
        return Spend(ComposedDpEvent([one.event for one in spends]), sum(one.failure_probability for one in spends))
    if source != JOINT:
        return None
    words = spend_of(compile_route(questions.make(JOINT, {}).terms, profile, cohort))
    return replace(words, count=questions.times(JOINT)) if words else None


_ANY = 100.0  # a noise, where it does not matter which
_STEPS = 100  # of a run: composing losses takes longer than a round, so the answers are counted up to the next step


@dataclass
class PlannedSpending:
    """What a run spends: at a noise that is still open, or at its own after so many answers of the training.

    The questions before the training are counted from the beginning, whether they were asked already or not.
    """

    agreement: Agreement
    parties: int
    _epsilon: dict[int, float] = field(default_factory=dict)  # by the number of answers

    @cached_property
    def bill(self) -> Bill:
        """The bill of the whole run; of words that the parties find, that of the first run."""
        return bill_of(self.agreement, self.parties)

    def at(self, noise: float) -> Bill:
        return bill_of(self.agreement.with_privacy(noise=noise), self.parties)

    def possible(self, noise: float) -> bool:
        try:
            self.at(noise)
        except BadSetting as refusal:
            if refusal.name != "noise_multiplier":
                raise
            return False
        return True

    @property
    def words(self) -> Spend | None:
        """What words that the parties find cost, whatever the noise of the rounds. They are paid for once."""
        return self.at(_ANY).words

    def spending(self) -> Spending:
        return Spending(
            lambda noise: replace(self.at(noise), words=None).spends(), (self.words,) if self.words else (), self.possible
        )

    def after(self, answers: int) -> dict[str, Any] | None:
        """Returns epsilon and delta for each unit; nothing where there is no budget. It never says too little."""
        budget = self.agreement.budget
        if budget is None:
            return None
        rounds = self.agreement.plan.training.rounds
        step = max(1, rounds // _STEPS)
        counted = min(-(-answers // step) * step, max(rounds, answers))
        if counted not in self._epsilon:
            spends = self.bill.spends(counted)
            self._epsilon[counted] = total(spends, ALONE * budget.delta).epsilon if spends else 0.0
        spent = {"unit": budget.unit.value, "epsilon": self._epsilon[counted], "delta": budget.delta, "budget": budget.epsilon}
        before = before_in_trial(self.agreement)  # at most: whose documents the earlier runs read, the ledgers know
        return before.added_to(spent) if before.entries else spent


def calibrated(agreement: Agreement, parties: int, unit: Unit | None = None, *, tried: bool = True) -> Agreement:
    """Adds the unit that the documents call for and, where the plan names only epsilon, the least noise that suffices.

    The model is `tried` on made-up documents, but by a party, which tries its rows before it pays for the first answer.
    """
    if agreement.budget is None:
        return agreement
    if unit is not None and agreement.unit is not Unit.WORD and not agreement.plan.privacy.unit:
        agreement = agreement.with_privacy(unit=unit.value)
    check_units(agreement.inputs, agreement.budget)
    if agreement.unit is Unit.WORD:  # the noise is in the documents before any row is made of them, as large as epsilon says
        bill_of(agreement, parties)
        return agreement

    if tried:
        check_additive(agreement.model)
    agreement = with_words_noise(agreement)
    if agreement.plan.privacy.epsilon and not agreement.plan.privacy.noise:
        agreement = agreement.with_privacy(noise=_least_noise(agreement, parties))
    bill_of(agreement, parties)  # what cannot be billed is refused now, not after the first answer was paid for
    return agreement


def check_affords_a_round(agreement: Agreement, parties: int) -> None:
    """Refuses noise that a plan gives if a single round with it spends more than the whole budget: nothing would be learned."""
    budget, noise = agreement.budget, agreement.plan.privacy.noise
    each = bill_of(agreement, parties).round if budget is not None and noise else None
    if budget is None or each is None:
        return
    spent = total([replace(each, count=1)], budget.delta * ALONE).epsilon
    problem = (
        f"spends epsilon = {upward(spent)} in a single round, and the budget of the run is {upward(budget.epsilon)}: no round "
        "could be trained"
    )
    instead = f"leave the noise out, which makes the budget last; or give --epsilon {upward(spent)} at least"
    require(spent <= budget.epsilon, "[privacy]", "noise", noise, problem, instead=instead)


def with_words_noise(agreement: Agreement) -> Agreement:
    """Adds the noise at which the selection of words alone would spend a quarter of epsilon, where epsilon decides it."""
    privacy, budget = agreement.plan.privacy, agreement.budget
    if budget is None or not privacy.epsilon or agreement.plan.vocabulary.source not in (JOINT, BLIND) or privacy.words:
        return agreement
    from securetm.contracts.events import GaussianDpEvent

    share = budget.delta * ALONE / 2
    noise = noise_for(lambda noise: [Spend(GaussianDpEvent(noise))], budget.epsilon / 4, share, FINEST, COARSEST)
    return agreement.with_privacy(words=_written_alike(noise))


def _least_noise(agreement: Agreement, parties: int) -> float:
    budget = agreement.budget
    assert budget is not None

    run, finest = PlannedSpending(agreement, parties), FINEST
    while finest < COARSEST and not run.possible(finest):  # shares of less noise are too narrow where rows are short
        finest *= 2
    least = noise_for(lambda noise: run.at(noise).spends(), budget.epsilon, budget.delta * ALONE, finest, COARSEST)
    return _written_alike(least)


def _written_alike(noise: float) -> float:
    """Returns the noise rounded up to five digits: every role computes it, and processors differ in the last bits."""
    step = 10.0 ** (math.floor(math.log10(noise)) - 4)
    return float(f"{math.ceil(round(noise / step, 6)) * step:.5g}")


def noise_for_runs(agreement: Agreement, parties: int, runs: int) -> float:
    """The least noise of a round with which so many runs over the same documents fit into the agreement's budget."""
    run = PlannedSpending(with_words_noise(agreement), parties)
    assert agreement.budget is not None
    return RunsAhead(agreement.budget, run.spending()).least_noise(runs)


_STEP = 0.8  # by which less is tried


def epsilon_for_runs(agreement: Agreement, parties: int, runs: int) -> float:
    """How much of the agreement's epsilon so many runs can share: all of it, unless a ledger admits them at no noise.

    The chance that an answer is not as its mechanism says counts e^epsilon times, so there is a largest epsilon that several
    runs can add up to.
    """
    assert agreement.budget is not None
    epsilon = whole = agreement.budget.epsilon
    while epsilon > 1:
        own = with_words_noise(agreement.with_privacy(epsilon=epsilon))
        assert own.budget is not None
        if RunsAhead(own.budget, PlannedSpending(own, parties).spending()).fits(runs, COARSEST):
            return epsilon
        epsilon = math.floor(100 * _STEP * epsilon) / 100
    return whole


def epsilon_of_one(budget: Budget, runs: int) -> float:
    """What each of so many runs spends, if it were the only one. Rounds of Gaussian noise are as one round of less noise."""
    from securetm.contracts.events import GaussianDpEvent

    one = Spending(lambda noise: (Spend(GaussianDpEvent(noise)),))
    ledger = RunsAhead(budget, one)
    return ledger.alone(ledger.least_noise(runs))
