"""Adds up the entries of a ledger by run, and decides whether more fits the budget. It reads no file and trusts the entries.

A run without a bound takes nothing of the budget: what later runs add is bounded whatever it showed. It makes the total
unbounded, which `all_runs` says.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from securetm.accounting.composition import Total, affordable, largest, total
from securetm.accounting.ledger.ledger_file import Content, Entry
from securetm.accounting.ledger.privacy_filter import ALONE, Cost, Orders, cost_of, filter_epsilon, nothing
from securetm.accounting.spends import Spend, event_as_text, event_from_text
from securetm.contracts import Budget, Unit

OPENED, BUDGET, SPENT, ANSWERED, UNBOUNDED, ENDED = "opened", "budget", "spent", "answered", "unbounded", "ended"
EARLIER = "earlier"  # in place of a question: of all that a run spent in a ledger before this one

as_text = lru_cache(maxsize=256)(event_as_text)
_from_text = lru_cache(maxsize=256)(event_from_text)


LOST = "lost"  # in place of a digest: paid for in an earlier ledger, and never computed


@dataclass
class PaidAnswer:
    """One answer that was paid for. It leaves only once its digest is in the ledger, so without one it never left."""

    entry: int  # that paid for it
    question: str
    number: int
    members: str  # digest of who was asked, by their identities
    asked: str  # digest of everything that was asked
    answer: str = ""  # digest of the answer with the noise in it, before anything masks or encrypts it
    price: Spend | None = None  # of one answer; None where an earlier ledger has it


@dataclass
class RunAccount:
    """One run: the profile it began under, how many answers of each kind it gave, and whether it has a bound at all."""

    run: str
    profile: str
    digest: str  # of the profile
    began: str
    entries: int = 0
    answers: Counter[Spend] = field(default_factory=Counter)
    unbounded: str = ""  # why what it released has no bound; empty where it has one
    paid: list[PaidAnswer] = field(default_factory=list)  # in their order

    def paid_for(self, question: str, number: int) -> PaidAnswer | None:
        """The last answer to that question and number that was paid for."""
        wanted = question, number
        return next((one for one in reversed(self.paid) if (one.question, one.number) == wanted), None)

    def was_asked(self, question: str) -> bool:
        """Whether an answer to that question was paid for."""
        return any(one.question == question for one in self.paid)

    def latest(self, question: str) -> int:
        """The highest number of that question that was paid for; -1 if there is none."""
        return max((one.number for one in self.paid if one.question == question), default=-1)

    def spends(self, more: Counter[Spend] | None = None) -> list[Spend]:
        """What the run spent, and `more` in addition."""
        return [replace(kind, count=count) for kind, count in (self.answers + (more or Counter())).items()]

    def total(self, budget: Budget) -> Total:
        """What the run spent by itself, at the share of delta that a single run has."""
        return total(self.spends(), ALONE * budget.delta)


class Accounts:
    """The runs of one ledger and its budget."""

    def __init__(self) -> None:
        self.owner = self.corpus = ""
        self.has_budget = False  # a ledger that was opened by a run without a bound gets its budget later
        self.budget = Budget(Unit.DOCUMENT, 0.0, 0.0)
        self.orders: Orders = ()
        self.ended = ""  # the ledger that succeeds this one
        self.number = 0  # of the entry that was taken last
        self.runs: dict[str, RunAccount] = {}
        self._cost = nothing(())  # of all entries of all runs, for the filter
        self._ahead: Counter[Spend] = Counter()  # further answers that are known to fit a single run, all together
        self._beyond: dict[Spend, int] = {}  # by kind, a number of answers that does not fit a single run

    def take(self, entry: Entry) -> None:
        """Adds one entry."""
        self.number = entry.number
        _TAKEN[entry.content["kind"]](self, entry.content)

    def fits(self, run: str, kind: Spend, count: int) -> bool:
        """Whether so many more answers of this kind stay within the budget."""
        if self._others(run):
            return self._filtered(self._cost.plus(cost_of(kind, self.orders), count)) <= self.budget.epsilon
        return self._ahead[kind] >= count or self._look_ahead(run, kind, count)

    def room(self, run: str, kind: Spend, most: int) -> int:
        """How many more answers of this kind fit, up to `most`."""
        if self._others(run):
            return largest(lambda count: self.fits(run, kind, count), most)
        return self._affordable(self._spends(run), kind, most)

    def spent(self, run: str = "", kind: Spend | None = None, count: int = 0) -> Total:
        """What all runs spend together, with `count` more answers of this kind by `run`."""
        more = Counter({kind: count}) if kind else Counter()
        bounded = {name for name, account in self.runs.items() if account.answers}
        if len(bounded | ({run} if kind else set())) < 2:
            alone = total(self._spends(run or next(iter(bounded), ""), more), ALONE * self.budget.delta)
            return replace(alone, delta=self.budget.delta)
        cost = self._cost.plus(cost_of(kind, self.orders), count) if kind else self._cost
        return Total(self._filtered(cost), self.budget.delta, f"Renyi filter at orders {', '.join(map(str, self.orders))}")

    def _others(self, run: str) -> bool:
        return any(name != run and account.answers for name, account in self.runs.items())

    def _filtered(self, cost: Cost) -> float:
        return filter_epsilon(cost, self.orders, self.budget)

    def _spends(self, run: str, more: Counter[Spend] | None = None) -> list[Spend]:
        return self.runs[run].spends(more) if run in self.runs else RunAccount("", "", "", "").spends(more)

    def _look_ahead(self, run: str, kind: Spend, count: int) -> bool:
        """Composes ahead and remembers how many answers fit, because composing is slow and an answer must be quick."""
        if self._given(run, kind) + count >= self._beyond.get(kind, math.inf):
            return False
        others = Counter({held: n for held, n in self._ahead.items() if held != kind and n})
        if others and self._grant(run, others, kind, count):
            return True
        return self._grant(run, Counter(), kind, count)  # without what was reserved for other kinds

    def _grant(self, run: str, held: Counter[Spend], kind: Spend, count: int) -> bool:
        """Reserves as many answers as were given already, or half of what may be left, or fewer, until they fit."""
        given, beyond = self._given(run, kind), self._beyond.get(kind, 0)
        asked = max(count, (beyond - given) // 2 if beyond else given)
        while not self._affordable(self._spends(run, held + Counter({kind: asked - 1})), kind, 1):
            if not held:
                self._beyond[kind] = given + asked
            if asked == count:
                return False
            asked = max(count, asked // 4)
        self._ahead = held
        self._ahead[kind] = asked
        return True

    def _given(self, run: str, kind: Spend) -> int:
        return self.runs[run].answers[kind] if run in self.runs else 0

    def _affordable(self, before: Sequence[Spend], kind: Spend, most: int) -> int:
        return affordable(before, kind, self.budget.epsilon, ALONE * self.budget.delta, most)

    def _opened(self, content: Content) -> None:
        self.owner, self.corpus = str(content["party"]), str(content["corpus"])
        if "epsilon" in content:
            self._set_budget(content)

    def _set_budget(self, content: Content) -> None:
        if not self.has_budget:
            self.orders = tuple(int(order) for order in content["orders"])
            self._cost = nothing(self.orders)
        self.budget, self.has_budget = Budget(Unit(content["unit"]), float(content["epsilon"]), float(content["delta"])), True
        self._ahead.clear()
        self._beyond.clear()

    def _end(self, content: Content) -> None:
        self.ended = str(content["successor"])

    def _account(self, content: Content) -> RunAccount:
        about = dict(content["about"])
        began = content["run"], str(about.get("profile", "")), str(about.get("digest", "")), str(content["time"])
        account = self.runs.setdefault(content["run"], RunAccount(*began))
        account.entries += 1
        return account

    def _unbounded(self, content: Content) -> None:
        self._account(content).unbounded = str(content["why"])

    def _answered(self, content: Content) -> None:
        account = self.runs[content["run"]]
        paid = next(one for one in reversed(account.paid) if one.entry == content["entry"])
        if paid.answer:  # one that was carried over from an earlier ledger has a digest or is lost
            raise ValueError("an answer has two digests")
        paid.answer = str(content["digest"])
        account.entries += 1

    def _spent(self, content: Content) -> None:
        if not self.has_budget:
            raise ValueError("an answer is paid for before there is a budget")
        kind = Spend(_from_text(content["event"]), content["slack"])
        count, about, account = int(content["count"]), dict(content["about"]), self._account(content)
        if "question" in about and about["question"] != EARLIER:
            what = str(about["question"]), int(about.get("number", 0)), str(about.get("members", ""))
            account.paid.append(PaidAnswer(self.number, *what, str(about.get("asked", "")), "", kind))
        account.paid += [PaidAnswer(self.number, *one) for one in content.get("paid", ())]
        account.answers[kind] += count
        self._cost = self._cost.plus(cost_of(kind, self.orders), count)
        if self._ahead[kind] >= count:
            self._ahead[kind] -= count
        else:  # another process gave this answer
            self._ahead.clear()


_TAKEN = {
    OPENED: Accounts._opened,
    BUDGET: Accounts._set_budget,
    SPENT: Accounts._spent,
    ANSWERED: Accounts._answered,
    UNBOUNDED: Accounts._unbounded,
    ENDED: Accounts._end,
}
